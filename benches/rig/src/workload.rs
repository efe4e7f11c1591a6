//! Synthetic calls of operations, as a monitored service would record them.
//!
//! Four threads, 100 operation signatures called by Zipf's law, 50 sessions, one host; call trees of
//! 5 to 41 calls (23 on average) and up to depth 6; self times log-normal (sigma 0.8) with medians of
//! 0.3 to 20 us by operation; times in nanoseconds, records in order of their end, as one collector
//! sees them. Everything follows from the seed.

mod execution;

use std::collections::VecDeque;

pub use execution::{Execution, Executions, Names, PlainCall};

/// The number of operations.
const OPERATIONS: usize = 100;

/// The number of sessions.
const SESSIONS: usize = 50;

/// The name of the one host.
const HOSTNAME: &str = "node-17.shop.internal";

/// The first trace's id; the next ones count up.
pub const FIRST_TRACE_ID: i64 = 6_488_138_950_668_976_129;

/// The start of the first trace, in nanoseconds since the Unix epoch.
const START_UNIX_NS: i64 = 1_700_000_000_000_000_000;

const THREADS: usize = 4;
const MAX_DEPTH: u32 = 6;
const SMALLEST_TRACE: usize = 5;
const LARGEST_TRACE: usize = 41;
const SIGMA: f64 = 0.8;
/// Keeps the seeds of emitters far apart: an odd number with many bits.
const EMITTER_STRIDE: u64 = 0xd134_2543_de82_ef95;

/// One finished call. Its strings are positions in [`Names`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Call {
    /// The called operation.
    pub operation: usize,
    /// Its session.
    pub session: usize,
    /// Its trace.
    pub trace_id: i64,
    /// Its start, in nanoseconds since the Unix epoch.
    pub tin: i64,
    /// Its end, in nanoseconds since the Unix epoch.
    pub tout: i64,
    /// Its place in the order of the trace's calls, from 0 (Kieker's execution order index).
    pub eoi: i32,
    /// Its depth in the call tree, from 0 (Kieker's execution stack size).
    pub ess: i32,
}

/// Makes calls without end.
#[derive(Debug, Clone)]
pub struct Workload {
    random: Random,
    names: Names,
    median_ns: Vec<f64>,
    /// Cumulated probabilities of the operations.
    zipf: Vec<f64>,
    threads: Vec<Thread>,
    next_trace: i64,
}

#[derive(Debug, Clone)]
struct Thread {
    now: i64,
    /// The finished calls of its current trace, in order of their end.
    calls: VecDeque<Call>,
}

impl Workload {
    /// The workload of this seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let operations = (0..OPERATIONS)
            .map(|number| signature(number, &mut random))
            .collect();
        let median_ns = (0..OPERATIONS).map(|_| 300.0 * (20_000.0_f64 / 300.0).powf(random.unit()));
        let median_ns = median_ns.collect();
        let sessions = (0..SESSIONS)
            .map(|_| format!("{:016x}{:016x}", random.next(), random.next()))
            .collect();
        let threads = (0_i64..)
            .take(THREADS)
            .map(|thread| Thread {
                now: START_UNIX_NS + thread * 1_711,
                calls: VecDeque::new(),
            })
            .collect();
        Self {
            random,
            names: Names {
                operations,
                sessions,
            },
            median_ns,
            zipf: zipf(),
            threads,
            next_trace: FIRST_TRACE_ID,
        }
    }

    /// Returns the same operations and sessions, called by one of several emitters: other calls, in
    /// traces of their own. Number 0 equals [`Workload::new`].
    #[must_use]
    pub fn of_emitter(seed: u64, number: u32) -> Self {
        let mut workload = Self::new(seed);
        if number > 0 {
            workload.random = Random::new(seed ^ u64::from(number).wrapping_mul(EMITTER_STRIDE));
            workload.next_trace = FIRST_TRACE_ID.wrapping_add(i64::from(number) << 40);
        }
        workload
    }

    /// Returns the strings to which its calls refer.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// A trace: a random tree, its times, and its calls in order of their end.
    fn trace(&mut self, start: i64) -> (VecDeque<Call>, i64) {
        let trace_id = self.next_trace;
        self.next_trace += 1;
        let session = self.random.below(SESSIONS);
        let tree = self.tree();
        let mut walk = Walk {
            trace_id,
            session,
            now: start,
            eoi: 0,
            calls: VecDeque::new(),
        };
        self.call(&tree, 0, 0, &mut walk);
        (walk.calls, walk.now)
    }

    /// The children of each node; node 0 is the root, and children have larger numbers.
    fn tree(&mut self) -> Vec<Vec<usize>> {
        let size = SMALLEST_TRACE + self.random.below(LARGEST_TRACE - SMALLEST_TRACE + 1);
        let mut children: Vec<Vec<usize>> = vec![Vec::new()];
        let mut depths = vec![0_u32];
        while children.len() < size {
            let parent = self.random.below(children.len());
            let depth = depths[parent] + 1;
            if depth >= MAX_DEPTH {
                continue;
            }
            let node = children.len();
            children[parent].push(node);
            children.push(Vec::new());
            depths.push(depth);
        }
        children
    }

    fn call(&mut self, tree: &[Vec<usize>], node: usize, ess: i32, walk: &mut Walk) {
        let operation = self.operation();
        let (tin, eoi) = (walk.now, walk.eoi);
        walk.eoi += 1;
        walk.now += self.self_time(operation);
        for child in &tree[node] {
            self.call(tree, *child, ess + 1, walk);
            walk.now += self.self_time(operation);
        }
        let call = Call {
            operation,
            session: walk.session,
            trace_id: walk.trace_id,
            tin,
            tout: walk.now,
            eoi,
            ess,
        };
        walk.calls.push_back(call);
    }

    fn operation(&mut self) -> usize {
        let point = self.random.unit();
        self.zipf
            .partition_point(|cumulated| *cumulated <= point)
            .min(OPERATIONS - 1)
    }

    fn self_time(&mut self, operation: usize) -> i64 {
        let nanos = self.median_ns[operation] * (SIGMA * self.random.normal()).exp();
        #[expect(clippy::cast_possible_truncation, reason = "clamped to a second")]
        let nanos = nanos.clamp(1.0, 1e9) as i64;
        nanos
    }
}

/// A walk through the tree of a trace.
struct Walk {
    trace_id: i64,
    session: usize,
    now: i64,
    eoi: i32,
    calls: VecDeque<Call>,
}

/// It never ends.
impl Iterator for Workload {
    type Item = Call;

    fn next(&mut self) -> Option<Call> {
        for index in 0..self.threads.len() {
            if self.threads[index].calls.is_empty() {
                let (calls, end) = self.trace(self.threads[index].now);
                let pause = self.self_time(0);
                self.threads[index] = Thread {
                    now: end + pause,
                    calls,
                };
            }
        }
        let ends_first = self
            .threads
            .iter_mut()
            .min_by_key(|thread| thread.calls[0].tout)?;
        ends_first.calls.pop_front()
    }
}

/// Zipf's law with exponent 1, cumulated.
fn zipf() -> Vec<f64> {
    let weights: Vec<f64> = (1_u32..)
        .take(OPERATIONS)
        .map(|rank| 1.0 / f64::from(rank))
        .collect();
    let total: f64 = weights.iter().sum();
    weights
        .iter()
        .scan(0.0, |cumulated, weight| {
            *cumulated += weight / total;
            Some(*cumulated)
        })
        .collect()
}

/// Returns a signature like that of a Java or Rust service, about 93 bytes long.
fn signature(number: usize, random: &mut Random) -> String {
    const PACKAGES: &str = "catalog cart checkout payment inventory shipping account search";
    const LAYERS: &str = "service repository controller gateway";
    const NOUNS: &str = "Order Product Customer Invoice Stock Session Address Discount";
    const VERBS: &str = "find update calculate validate reserve publish load merge";
    const PARAMETERS: &str =
        "long|java.lang.String, int|com.example.shop.model.Request|java.lang.String";
    fn pick(random: &mut Random, from: &'static str, between: char) -> &'static str {
        let count = from.split(between).count();
        let picked = from.split(between).nth(random.below(count));
        picked.expect("the index is below the count")
    }
    let mut word = |from| pick(random, from, ' ');
    let (package, layer) = (word(PACKAGES), word(LAYERS));
    let (class, verb, noun) = (word(NOUNS), word(VERBS), word(NOUNS));
    let parameters = pick(random, PARAMETERS, '|');
    format!(
        "public java.lang.Object org.shop.{package}.{layer}.{class}{number:02}.\
         {verb}{noun}({parameters})"
    )
}

/// Random numbers that are the same for a seed on every machine and in every version: `SplitMix64`
/// (Steele, Lea, Flood 2014).
///
/// A crate may change its numbers with a new version. Then old and new results could not be
/// compared.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Begins the sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The high half of a product: Lemire's method without its rejection, whose bias is below
        // 2^-32 for the bounds used here.
        let product = u128::from(self.next()) * (bound as u128);
        usize::try_from(product >> 64).expect("it is below the bound")
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
        let mantissa = (self.next() >> 11) as f64;
        mantissa / 9_007_199_254_740_992.0
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests;
