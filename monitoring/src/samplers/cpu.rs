//! Processors, from `/proc/stat`.

use std::collections::BTreeMap;
use std::io;

use baler_common::record::kieker::{CPUUtilizationRecord, ResourceUtilizationRecord};

use super::counter::float;
use super::proc::{malformed, numbers};
use super::sampler::{Context, Sample, Sensor};

const FILE: &str = "proc/stat";

/// Ticks since the start of the machine: user, nice, system, idle, iowait, irq, softirq, steal.
///
/// The time of guests is a part of user and nice.
type Ticks = [u64; 8];

/// How much of the time a processor did what.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shares {
    user: f64,
    nice: f64,
    system: f64,
    idle: f64,
    wait: f64,
    irq: f64,
    /// All but idle and wait: a processor that waits for a disk can compute.
    total: f64,
}

/// Which record is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// `CPUUtilizationRecord`.
    Full,
    /// `ResourceUtilizationRecord`.
    Combined,
}

/// The load of each processor since the sample before.
#[derive(Debug)]
pub(super) struct Cpu {
    detail: Detail,
    before: BTreeMap<u32, Ticks>,
}

impl Cpu {
    pub(super) const fn new(detail: Detail) -> Self {
        Self {
            detail,
            before: BTreeMap::new(),
        }
    }

    /// The shares since the last text, of processors that were there then.
    fn step(&mut self, text: &str) -> io::Result<Vec<(u32, Shares)>> {
        let now = parse(text)?;
        let mut all = Vec::new();
        // A processor that was taken off begins anew when it comes back.
        self.before.retain(|cpu, _| now.contains_key(cpu));
        for (cpu, ticks) in now {
            let Some(before) = self.before.insert(cpu, ticks) else {
                continue;
            };
            match shares(&before, &ticks) {
                Some(shares) => all.push((cpu, shares)),
                // Not a tick has passed: the next sample covers both.
                None => drop(self.before.insert(cpu, before)),
            }
        }
        Ok(all)
    }
}

impl Sensor for Cpu {
    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()> {
        let text = context.root.read(FILE)?;
        for (cpu, shares) in self.step(&text)? {
            if !context.is_active(&format!("%CPU::{cpu}")) {
                continue;
            }
            let timestamp = context.unix_ns;
            let hostname = context.hostname.to_owned();
            out.push(match self.detail {
                Detail::Full => Sample::Cpu(CPUUtilizationRecord {
                    timestamp,
                    hostname,
                    cpu_id: cpu.to_string(),
                    user: shares.user,
                    system: shares.system,
                    wait: shares.wait,
                    nice: shares.nice,
                    irq: shares.irq,
                    total_utilization: shares.total,
                    idle: shares.idle,
                }),
                Detail::Combined => Sample::Resource(ResourceUtilizationRecord {
                    timestamp,
                    hostname,
                    resource_name: format!("cpu-{cpu}"),
                    utilization: shares.total,
                }),
            });
        }
        Ok(())
    }
}

/// The ticks of each processor; the line of all together is left out.
fn parse(text: &str) -> io::Result<BTreeMap<u32, Ticks>> {
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(' ') else {
            continue;
        };
        let Some(number) = name.strip_prefix("cpu").filter(|it| !it.is_empty()) else {
            continue;
        };
        let cpu = number.parse().ok();
        // Kernels before 2.6.11 had no steal.
        let ticks = numbers::<8>(rest).or_else(|| {
            let [user, nice, system, idle, wait, irq, softirq] = numbers::<7>(rest)?;
            Some([user, nice, system, idle, wait, irq, softirq, 0])
        });
        let (Some(cpu), Some(ticks)) = (cpu, ticks) else {
            return Err(malformed(FILE, line));
        };
        all.insert(cpu, ticks);
    }
    if all.is_empty() {
        return Err(malformed(FILE, "no line of a processor"));
    }
    Ok(all)
}

/// `None` if no tick has passed.
///
/// The kernel does not promise that idle and iowait only grow; what went back counts as nothing.
fn shares(before: &Ticks, now: &Ticks) -> Option<Shares> {
    let mut ticks = [0.0; 8];
    let mut sum = 0.0;
    for ((share, before), now) in ticks.iter_mut().zip(before).zip(now) {
        *share = float(now.saturating_sub(*before));
        sum += *share;
    }
    if sum <= 0.0 {
        return None;
    }
    let [user, nice, system, idle, wait, irq, softirq, steal] = ticks.map(|it| it / sum);
    Some(Shares {
        user,
        nice,
        system,
        idle,
        wait,
        irq: irq + softirq,
        total: user + nice + system + irq + softirq + steal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "cpu  300 0 100 1600 0 0 0 0 0 0\n\
                         cpu0 100 0 50 850 0 0 0 0 0 0\n\
                         cpu1 200 0 50 750 0 0 0 0 0 0\n\
                         intr 12 0 0\nctxt 99\nbtime 1700000000\n";
    const SECOND: &str = "cpu  320 10 120 1800 40 4 6 0 0 0\n\
                          cpu0 110 10 70 950 50 4 4 2 0 0\n\
                          cpu1 200 0 50 850 0 0 0 0 0 0\n";

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }

    #[test]
    fn the_first_sample_primes_and_the_second_is_the_share_in_between() {
        let mut cpu = Cpu::new(Detail::Full);
        assert_eq!(cpu.step(FIRST).unwrap(), []);
        let all = cpu.step(SECOND).unwrap();
        let [(0, first), (1, second)] = all.as_slice() else {
            panic!("{all:?}");
        };
        // 10 + 10 + 20 + 100 + 50 + 4 + 4 + 2 ticks.
        close(first.user, 0.05);
        close(first.nice, 0.05);
        close(first.system, 0.1);
        close(first.idle, 0.5);
        close(first.wait, 0.25);
        close(first.irq, 0.04);
        close(first.total, 0.25);
        close(first.total + first.idle + first.wait, 1.0);
        close(second.idle, 1.0);
        close(second.total, 0.0);
    }

    #[test]
    fn without_a_tick_the_next_sample_covers_both_periods() {
        let mut cpu = Cpu::new(Detail::Full);
        cpu.step("cpu0 1 0 0 0 0 0 0 0").unwrap();
        assert_eq!(cpu.step("cpu0 1 0 0 0 0 0 0 0").unwrap(), []);
        let all = cpu.step("cpu0 2 0 0 1 0 0 0 0").unwrap();
        close(all.first().unwrap().1.user, 0.5);
    }

    #[test]
    fn what_goes_back_counts_as_nothing_and_what_comes_back_primes() {
        let mut cpu = Cpu::new(Detail::Full);
        cpu.step("cpu0 10 0 0 10 500 0 0 0\ncpu7 1 1 1 1 1 1 1 1")
            .unwrap();
        let all = cpu.step("cpu0 20 0 0 20 400 0 0 0").unwrap();
        close(all.first().unwrap().1.user, 0.5);
        close(all.first().unwrap().1.wait, 0.0);
        // Processor 7 was off meanwhile.
        let all = cpu
            .step("cpu0 30 0 0 20 400 0 0 0\ncpu7 9 1 1 1 1 1 1 1")
            .unwrap();
        assert_eq!(all.len(), 1);
        // Everything less, as after a move to another machine.
        assert_eq!(cpu.step("cpu0 0 0 0 0 0 0 0 0").unwrap(), []);
    }

    #[test]
    fn strange_texts_are_errors_and_never_numbers() {
        let mut cpu = Cpu::new(Detail::Combined);
        for text in [
            "",
            "cpu 1 2 3",
            "cpu0 1 2 3",
            "cpux 1 2 3 4 5 6 7 8",
            "cpu0 1 2 3 4 5 6 -7 8",
            "cpu0 99999999999999999999 2 3 4 5 6 7 8",
            "cpu99999999999 1 2 3 4 5 6 7 8",
        ] {
            assert!(cpu.step(text).is_err(), "{text}");
        }
        // An old kernel, and the largest numbers there are.
        cpu.step("cpu0 0 0 0 0 0 0 0").unwrap();
        let most = u64::MAX;
        let all = cpu
            .step(&format!("cpu0 {most} {most} 0 0 0 0 0 0"))
            .unwrap();
        close(all.first().unwrap().1.total, 1.0);
    }
}
