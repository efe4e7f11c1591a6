//! Hybrid monitoring: a sampler finds the operations in which the time passes, and the probes of
//! these alone record, within a budget of CPU time.
//!
//! ```text
//! clocks, counters of sites, stacks of threads -> [plan] -> what each site is allowed in a slice
//!                                                   └-> a record of each operation and period
//! ```

mod plan;

use std::collections::HashMap;
use std::fs;
use std::hint::black_box;
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use baler_common::record::{Interned, Record};

use super::stack::SeenStack;
use super::threads::{enter, leave, stacks};
use crate::controller::{active_key, random};
use crate::probe::{Part, Site, count_calls, read_marked, set_all_parts, set_parts, sites};
use crate::samplers::{Context, Sample, Sensor};
use crate::trace;
use plan::{Costs, Plan};

/// The files of this process's threads.
const THREADS: &str = "/proc/self/task";

/// Batches of calls that calibrate the costs, and the calls of each. The fastest batch counts.
const BATCHES: u32 = 50;
const BATCH_CALLS: u32 = 100;

/// In a program, caches are colder than in the calibration: a call is taken to cost this many times
/// as much.
const COLDER: f64 = 2.0;

/// The settings of hybrid monitoring, for [`Sampler::Hybrid`](crate::Sampler::Hybrid).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hybrid {
    budget_ppm: u32,
    period: Duration,
    hot_spots: usize,
}

impl Default for Hybrid {
    fn default() -> Self {
        Self {
            budget_ppm: 10_000,
            period: Duration::from_secs(1),
            hot_spots: 10,
        }
    }
}

impl Hybrid {
    /// The CPU time of monitoring in percent of the program's, 0 to 100. Default 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most a million, and not negative"
    )]
    #[must_use]
    pub const fn budget_percent(mut self, percent: f64) -> Self {
        self.budget_ppm = (percent.clamp(0.0, 100.0) * 1e4) as u32;
        self
    }

    /// How often to decide anew which probes record. Default 1 s.
    #[must_use]
    pub const fn period(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// The most operations whose probes record at a time. Default 10.
    #[must_use]
    pub const fn hot_spots(mut self, most: usize) -> Self {
        self.hot_spots = most;
        self
    }

    fn budget(self) -> f64 {
        f64::from(self.budget_ppm) / 1e6
    }
}

/// A [`PartTimeRecord`](baler_common::record::sampling::PartTimeRecord) with interned strings.
#[derive(Debug, Record)]
#[record(name = "baler.PartTimeRecord", rename_all = "camelCase")]
pub(crate) struct PartTime {
    #[record(unix_nanos)]
    timestamp: i64,
    hostname: Interned,
    operation_signature: Interned,
    interval: u64,
    off: u64,
    share: f64,
    recorded_share: f64,
    calls: u64,
    call_squares: f64,
    looks: u64,
    seen: f64,
    seen_squares: f64,
}

/// The sensor: it switches sites as long as its controller is the installed one.
#[derive(Debug)]
pub(crate) struct HybridSensor {
    settings: Hybrid,
    has_begun: bool,
    running: Option<Running>,
}

impl HybridSensor {
    pub(crate) const fn new(settings: Hybrid) -> Self {
        Self {
            settings,
            has_begun: false,
            running: None,
        }
    }

    /// Allows all sites everything again.
    fn end(&mut self) {
        self.running = None;
        if std::mem::take(&mut self.has_begun) {
            count_calls(false);
            set_all_parts(Part::Recorded);
        }
    }
}

impl Drop for HybridSensor {
    fn drop(&mut self) {
        self.end();
    }
}

impl Sensor for HybridSensor {
    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()> {
        if !context.is_installed {
            self.end();
            return Ok(());
        }
        if !self.has_begun {
            self.has_begun = true;
            count_calls(true);
            // Without clocks nothing can be on.
            set_all_parts(Part::Off);
        }
        match &mut self.running {
            Some(running) => running.sample(context, out),
            None => {
                self.running = Some(Running::begin(self.settings, context)?);
                Ok(())
            }
        }
    }

    fn stretch(&self) -> u32 {
        self.running.as_ref().map_or(1, |it| it.plan.stretch)
    }
}

/// Hybrid monitoring in operation.
#[derive(Debug)]
struct Running {
    period: Duration,
    plan: Plan,
    /// The sites in order of their numbers, the operation of each, and its calls so far.
    sites: Vec<(&'static Site, usize, u32)>,
    /// The operations, in the plan's order.
    names: Vec<Interned>,
    by_handle: HashMap<u32, usize>,
    collectors: Vec<String>,
    /// At the end of the last slice.
    at: Instant,
    period_began: Instant,
    cpu: u64,
    sampler: u64,
    collector: u64,
    seen: SeenStack,
}

impl Running {
    fn begin(settings: Hybrid, context: &Context<'_>) -> io::Result<Self> {
        let mut running = Self {
            period: settings.period,
            plan: Plan::new(settings, calibrate()),
            sites: Vec::new(),
            names: Vec::new(),
            by_handle: HashMap::new(),
            collectors: collectors()?,
            at: context.at,
            period_began: context.at,
            cpu: clock(Clock::Process)?,
            sampler: clock(Clock::Thread)?,
            collector: 0,
            seen: SeenStack::default(),
        };
        running.collector = busy_ns(&running.collectors)?;
        set_all_parts(Part::Published);
        running.learn();
        Ok(running)
    }

    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()> {
        self.end_slice(context.at)?;
        if !self.plan.is_spent() {
            self.look(context);
        }
        let since = context.at.saturating_duration_since(self.period_began);
        if since >= self.period {
            self.period_began = context.at;
            self.decide(context, out)?;
        }
        self.learn();
        self.begin_slice();
        Ok(())
    }

    fn end_slice(&mut self, at: Instant) -> io::Result<()> {
        let mut calls = vec![0_u32; self.names.len()];
        for (site, operation, before) in &mut self.sites {
            let now = site.calls();
            let more = now.wrapping_sub(std::mem::replace(before, now));
            if let Some(calls) = calls.get_mut(*operation) {
                *calls = calls.saturating_add(more);
            }
        }
        let ns = at.saturating_duration_since(self.at).as_nanos() as f64;
        self.at = at;
        let cpu = since(&mut self.cpu, clock(Clock::Process)?);
        let sampler = since(&mut self.sampler, clock(Clock::Thread)?);
        let calls = |index| calls.get(index).copied().unwrap_or_default();
        self.plan.end_slice(ns, cpu, sampler, calls);
        Ok(())
    }

    fn look(&mut self, context: &Context<'_>) {
        let (choice, stacks) = stacks();
        for stack in stacks {
            let (torn, is_whole) = stack.look(choice, &mut self.seen);
            context.torn.fetch_add(torn, Ordering::Relaxed);
            if is_whole {
                let open = self.seen.operations.iter();
                let known = open.filter_map(|handle| self.by_handle.get(handle).copied());
                self.plan.see(known);
            }
        }
        self.plan.end_look();
    }

    fn decide(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()> {
        if self.collectors.is_empty() {
            self.collectors = collectors()?;
        }
        let collector = since(&mut self.collector, busy_ns(&self.collectors)?);
        // The records are those of the shares until now.
        self.report(context, out);
        let names = &self.names;
        let may_record = |index| {
            let name = names.get(index);
            name.is_some_and(|name: &Interned| context.is_active(name.as_str()))
        };
        self.plan.decide(collector, may_record);
        self.plan.begin_period();
        Ok(())
    }

    fn report(&self, context: &Context<'_>, out: &mut Vec<Sample>) {
        let plan = &self.plan;
        for (operation, name) in plan.operations.iter().zip(&self.names) {
            let counted = operation.counted;
            if counted.calls == 0 && counted.seen_squares == 0.0 {
                continue;
            }
            out.push(Sample::PartTime(PartTime {
                timestamp: context.unix_ns,
                hostname: Interned::leaked(context.hostname),
                operation_signature: *name,
                interval: whole(plan.interval),
                off: whole(plan.off),
                share: operation.share,
                recorded_share: operation.recorded_share,
                calls: counted.calls,
                call_squares: counted.call_squares,
                looks: plan.looks,
                seen: counted.seen,
                seen_squares: counted.seen_squares,
            }));
        }
    }

    /// Learns of sites that were called for the first time.
    fn learn(&mut self) {
        for site in sites(self.sites.len()) {
            let name = site.signature();
            let next = self.names.len();
            let operation = *self.by_handle.entry(name.number()).or_insert(next);
            if operation == next {
                self.names.push(name);
                self.plan.learn();
            }
            if let Some(known) = self.plan.operations.get(operation) {
                // Another site of the operation may be the first one.
                set_parts(&[(self.sites.len(), known.part)]);
            }
            self.sites.push((site, operation, site.calls()));
        }
    }

    fn begin_slice(&mut self) {
        let plan = &self.plan;
        let draw = |operation| plan.draw(operation, (random() >> 11) as f64 / (1_u64 << 53) as f64);
        let parts: Vec<Part> = plan.operations.iter().map(draw).collect();
        let before = plan.operations.iter().map(|it| it.part);
        let is_new: Vec<bool> = before.zip(&parts).map(|(a, b)| a != *b).collect();
        let sites = self.sites.iter().enumerate();
        let changed = sites.filter_map(|(index, (_, operation, _))| {
            let is_new = is_new.get(*operation).copied().unwrap_or_default();
            let part = parts.get(*operation).filter(|_| is_new)?;
            Some((index, *part))
        });
        let changed: Vec<_> = changed.collect();
        if !changed.is_empty() {
            set_parts(&changed);
        }
        for (operation, part) in self.plan.operations.iter_mut().zip(parts) {
            operation.part = part;
        }
    }
}

/// Measures what a call costs: published, and recorded without the queue's part, which is as small
/// as the copy of a row.
fn calibrate() -> Costs {
    let (key, name) = (active_key(), Interned::new("baler.calibration()").number());
    let fastest = |call: &dyn Fn()| {
        let batch = || {
            let begin = Instant::now();
            (0..BATCH_CALLS).for_each(|_| call());
            begin.elapsed().as_nanos() as f64 / f64::from(BATCH_CALLS)
        };
        COLDER * (0..BATCHES).map(|_| batch()).fold(f64::INFINITY, f64::min)
    };
    Costs {
        published: fastest(&|| {
            enter(|| Some(name));
            leave(|| name);
        }),
        recorded: fastest(&|| {
            enter(|| Some(name));
            let at = trace::enter_fast().unwrap_or_else(trace::enter_slow);
            let tin = read_marked(key);
            black_box([trace::id_here(), tin, read_marked(key), at]);
            leave(|| name);
            trace::leave(at);
        }),
    }
}

/// The counters of CPU time.
enum Clock {
    Process,
    /// Of the calling thread.
    Thread,
}

/// Returns a counter of CPU time in nanoseconds.
#[cfg(target_os = "linux")]
fn clock(clock: Clock) -> io::Result<u64> {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(match clock {
        Clock::Process => ClockId::ProcessCPUTime,
        Clock::Thread => ClockId::ThreadCPUTime,
    });
    let time = Duration::try_from(time).map_err(io::Error::other)?;
    u64::try_from(time.as_nanos()).map_err(io::Error::other)
}

#[cfg(not(target_os = "linux"))]
fn clock(_clock: Clock) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the files with the CPU times of the collectors' threads.
fn collectors() -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for thread in fs::read_dir(THREADS)? {
        let folder = thread?.path();
        // A thread that has ended meanwhile has no files.
        let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
        if name.trim_end() == "baler-collector" {
            let file = folder.join("schedstat");
            // Fails if the kernel does not count.
            fs::metadata(&file)?;
            files.push(file.display().to_string());
        }
    }
    Ok(files)
}

/// Returns the CPU time of these threads in nanoseconds. One that has ended counts as 0.
fn busy_ns(files: &[String]) -> io::Result<u64> {
    let mut sum = 0_u64;
    for file in files {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            text => text?,
        };
        let time = text.split_ascii_whitespace().next();
        let time = time.and_then(|time| time.parse::<u64>().ok());
        let time = time.ok_or_else(|| io::Error::other(format!("{file} has no CPU time")))?;
        sum = sum.saturating_add(time);
    }
    Ok(sum)
}

/// Replaces the state of a counter; returns by how much it grew.
fn since(before: &mut u64, now: u64) -> f64 {
    now.saturating_sub(std::mem::replace(before, now)) as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time in nanoseconds that is not negative"
)]
fn whole(ns: f64) -> u64 {
    ns as u64
}

#[cfg(test)]
mod tests {
    use baler_common::record::sampling::PartTimeRecord;

    use super::*;

    #[test]
    fn the_type_of_records_is_the_public_one() {
        assert_eq!(PartTime::schema(), PartTimeRecord::schema());
    }
}
