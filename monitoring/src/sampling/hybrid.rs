//! Hybrid monitoring: a sampler finds the operations in which the time passes, and the probes of
//! these alone record, within a budget of CPU time.
//!
//! ```text
//! clocks, counters of sites, stacks of threads -> [plan] -> the state of each site in a slice
//!                                                   └-> a record of each operation and period
//! ```

mod plan;

use std::collections::HashMap;
use std::hint::black_box;
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use baler_common::random::random;
use baler_common::record::Interned;

use super::stack::SeenStack;
use super::threads::stacks;
use crate::controller::active_key;
use crate::probe::{Part, Site, call_for_calibration, count_calls, read_marked, set_parts, sites};
use crate::samplers::{Context, Sample, Sensor};
pub use plan::Hybrid;
use plan::{Costs, Plan};

/// Batches of calls that calibrate the costs, and the calls of each. The fastest batch counts.
const BATCHES: u32 = 50;
const BATCH_CALLS: u32 = 100;

/// In a program, caches are colder than in the calibration: a call is taken to cost this number of
/// times as much. The same margin pays for the place of a recorded call in its trace and in the queue.
const COLDER: f64 = 2.0;

/// The sensor: it switches sites as long as its controller is the installed one.
#[derive(Debug)]
pub(crate) struct HybridSensor {
    settings: Hybrid,
    running: Option<Running>,
}

impl HybridSensor {
    pub(crate) const fn new(settings: Hybrid) -> Self {
        Self {
            settings,
            running: None,
        }
    }
}

impl Sensor for HybridSensor {
    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()> {
        match &mut self.running {
            _ if !context.is_installed => self.running = None,
            Some(running) => running.sample(context, out),
            None => self.running = Some(Running::begin(self.settings, context)),
        }
        Ok(())
    }

    fn wait(&self) -> Option<Duration> {
        self.running.as_ref().map(|it| it.slice)
    }
}

/// Hybrid monitoring in operation. Its drop allows all sites everything again.
#[derive(Debug)]
struct Running {
    period: Duration,
    plan: Plan,
    /// The sites in order of their numbers, the position of their operation, and their calls so far.
    sites: Vec<(&'static Site, usize, u32)>,
    /// The positions of operations by the handles of their signatures.
    operations: HashMap<u32, usize>,
    /// The end of the last slice, and the CPU times until then.
    at: Instant,
    cpu_ns: [u64; 3],
    /// The length of the present slice.
    slice: Duration,
    period_began: Instant,
    seen: SeenStack,
}

impl Running {
    fn begin(settings: Hybrid, context: &Context<'_>) -> Self {
        count_calls(true);
        let mut running = Self {
            period: settings.period,
            plan: Plan::new(settings, calibrate()),
            sites: Vec::new(),
            operations: HashMap::new(),
            at: context.at,
            cpu_ns: cpu_times(context),
            slice: Duration::ZERO,
            period_began: context.at,
            seen: SeenStack::default(),
        };
        running.begin_slice(context);
        running
    }

    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) {
        if self.end_slice(context) {
            self.look(context);
        }
        if context.at.duration_since(self.period_began) >= self.period {
            self.period_began = context.at;
            let may_record = |signature: &str| context.is_active(signature);
            let records = self.plan.end_period(context.unix_ns, may_record);
            out.extend(records.into_iter().map(Sample::PartTime));
        }
        self.begin_slice(context);
    }

    /// Returns whether to look now.
    fn end_slice(&mut self, context: &Context<'_>) -> bool {
        for (site, operation, before) in &mut self.sites {
            let now = site.calls();
            let calls = now.wrapping_sub(std::mem::replace(before, now));
            self.plan.count(*operation, calls);
        }
        let slice = context.at.duration_since(self.at);
        self.at = context.at;
        let mut passed = cpu_times(context);
        let before = std::mem::replace(&mut self.cpu_ns, passed);
        for (passed, before) in passed.iter_mut().zip(before) {
            *passed = passed.saturating_sub(before);
        }
        self.plan.end_slice(slice, passed)
    }

    fn look(&mut self, context: &Context<'_>) {
        let (choice, stacks) = stacks();
        for stack in stacks {
            let (torn, is_whole) = stack.look(choice, &mut self.seen);
            context.torn.fetch_add(torn, Ordering::Relaxed);
            let innermost = self.seen.operations.last().filter(|_| is_whole);
            if let Some(operation) = innermost.and_then(|handle| self.operations.get(handle)) {
                self.plan.see(*operation);
            }
        }
        self.plan.end_look();
    }

    /// Learns of sites that were called for the first time, and switches all.
    fn begin_slice(&mut self, context: &Context<'_>) {
        for site in sites(self.sites.len()) {
            let name: Interned = site.signature();
            let operation = *self
                .operations
                .entry(name.number())
                .or_insert_with(|| self.plan.learn(context.hostname, name.as_str()));
            self.sites.push((site, operation, site.calls()));
        }
        let random = (random() >> 11) as f64 / (1_u64 << 53) as f64;
        self.slice = self.plan.begin_slice(random);
        let parts = self.sites.iter();
        let parts = parts.map(|(_, operation, _)| self.plan.part(*operation));
        // Each time, because the end of another controller's hybrid monitoring allows everything.
        count_calls(true);
        set_parts(&parts.collect::<Vec<_>>(), Part::Off);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        count_calls(false);
        set_parts(&[], Part::Recorded);
    }
}

/// Returns the CPU times so far in nanoseconds: of the process, this thread, and the collector's.
fn cpu_times(context: &Context<'_>) -> [u64; 3] {
    #[cfg(target_os = "linux")]
    let process = crate::usage::cpu_ns(rustix::time::ClockId::ProcessCPUTime);
    #[cfg(not(target_os = "linux"))]
    let process = 0;
    [process, thread_cpu_ns(), context.collector_ns]
}

/// Returns the CPU time so far of this thread in nanoseconds. Without Linux it stands still: hybrid
/// monitoring cannot be started there.
pub(crate) fn thread_cpu_ns() -> u64 {
    #[cfg(target_os = "linux")]
    return crate::usage::cpu_ns(rustix::time::ClockId::ThreadCPUTime);
    #[cfg(not(target_os = "linux"))]
    0
}

/// Measures the cost of a call: published, and recorded too.
fn calibrate() -> Costs {
    let key = active_key();
    let fastest = |call: &dyn Fn()| {
        let batch = || {
            let begin = Instant::now();
            (0..BATCH_CALLS).for_each(|_| call());
            begin.elapsed().as_nanos() as f64 / f64::from(BATCH_CALLS)
        };
        COLDER * (0..BATCHES).map(|_| batch()).fold(f64::INFINITY, f64::min)
    };
    Costs {
        published: fastest(&call_for_calibration),
        recorded: fastest(&|| {
            call_for_calibration();
            black_box([read_marked(key), read_marked(key)]);
        }),
    }
}
