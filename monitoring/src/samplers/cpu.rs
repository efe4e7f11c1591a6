//! Processors, from `/proc/stat`.

use std::collections::BTreeMap;
use std::io;

use baler_connector_kieker::types::{CPUUtilizationRecord, ResourceUtilizationRecord};

use super::proc::{float, malformed, numbers};
use super::sensor::{Context, Sample, Sensor};

const FILE: &str = "proc/stat";

/// Ticks since the start of the machine: user, nice, system, idle, iowait, irq, softirq, steal.
///
/// The time of guests is a part of user and nice.
type Ticks = [u64; 8];

/// The shares of a processor's time by kind of work.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shares {
    user: f64,
    nice: f64,
    system: f64,
    idle: f64,
    wait: f64,
    irq: f64,
    /// All but idle and wait: a processor that waits for a disk could compute.
    total: f64,
}

/// The type of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// `CPUUtilizationRecord`.
    Full,
    /// `ResourceUtilizationRecord`.
    Combined,
}

/// The load of each processor since the last sample.
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

    /// Returns the shares since the last text, of processors that were also in it.
    fn step(&mut self, text: &str) -> io::Result<Vec<(u32, Shares)>> {
        let now = parse(text)?;
        let mut all = Vec::new();
        // A processor that was removed starts over when it comes back.
        self.before.retain(|cpu, _| now.contains_key(cpu));
        for (cpu, ticks) in now {
            let Some(before) = self.before.insert(cpu, ticks) else {
                continue;
            };
            match shares(&before, &ticks) {
                Some(shares) => all.push((cpu, shares)),
                // No tick has passed: the next sample covers both periods.
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

/// Returns the ticks of each processor, without the line of the total.
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

/// Returns `None` if no tick has passed.
///
/// The kernel does not promise that idle and iowait only grow. A decrease counts as zero.
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
mod tests;
