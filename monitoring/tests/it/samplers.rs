//! Samplers on the test's machine: their records, their switching, and their end.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_connector_kieker::pattern::{Dialect, PatternList};
use baler_connector_kieker::types::{
    CPUUtilizationRecord, LoadAverageRecord, MemSwapUsageRecord, ResourceUtilizationRecord,
    UptimeRecord,
};
use baler_monitoring::{Controller, ControllerBuilder, ProcessRecord, Sampler, StartError};

use crate::support::{Medium, PATIENCE, await_that, of_type, plain};

const PERIOD: Duration = Duration::from_millis(20);

/// One test counts the process's threads, and `cargo test` runs many tests in one process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn all_samplers(builder: ControllerBuilder) -> ControllerBuilder {
    builder
        .hostname("here")
        .sampler(Sampler::Cpu, PERIOD)
        .sampler(Sampler::CpuCombined, PERIOD)
        .sampler(Sampler::Disk, PERIOD)
        .sampler(Sampler::Load, PERIOD)
        .sampler(Sampler::Memory, PERIOD)
        .sampler(Sampler::Network, PERIOD)
        .sampler(Sampler::Process, PERIOD)
}

/// How many records of each type were delivered, by the last part of its name.
fn counts(medium: &Medium) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in medium.received().types {
        let name = name.rsplit('.').next().unwrap().to_owned();
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn end(controller: &Controller) {
    let report = controller.shutdown(PATIENCE);
    let stats = report.stats;
    assert_eq!(stats.emitted, stats.delivered, "{stats:?}");
    assert_eq!(controller.sampler_stats().records, stats.emitted);
    assert_eq!(controller.sampler_stats().failed, 0);
}

#[test]
fn this_machine_is_sampled() {
    let _alone = alone();
    let medium = Medium::default();
    let controller = all_samplers(plain(medium.writer(8))).start().unwrap();
    // Keeps a processor busy meanwhile.
    await_that("five rounds", || {
        controller.flush(PATIENCE).unwrap();
        let counts = counts(&medium);
        ["CPUUtilizationRecord", "ProcessRecord"]
            .iter()
            .all(|name| counts.get(*name).is_some_and(|count| *count >= 5))
    });
    end(&controller);

    let shares = of_type::<CPUUtilizationRecord>(&medium);
    for cpu in &shares {
        assert_eq!(cpu.hostname, "here");
        assert!(cpu.cpu_id.parse::<u32>().is_ok(), "{cpu:?}");
        let sum = cpu.total_utilization + cpu.idle + cpu.wait;
        assert!((sum - 1.0).abs() < 1e-9, "{cpu:?}");
    }
    for cpu in of_type::<ResourceUtilizationRecord>(&medium) {
        assert!(cpu.resource_name.starts_with("cpu-"));
        assert!((0.0..=1.0).contains(&cpu.utilization), "{cpu:?}");
    }
    for memory in of_type::<MemSwapUsageRecord>(&medium) {
        assert!(memory.mem_used > 0 && memory.mem_free > 0, "{memory:?}");
        assert_eq!(memory.mem_used + memory.mem_free, memory.mem_total);
    }
    assert!(of_type::<LoadAverageRecord>(&medium).len() >= 5);
    let processes = of_type::<ProcessRecord>(&medium);
    for process in &processes {
        assert_eq!(process.process_id, std::process::id());
        assert!(
            process.threads >= 3 && process.resident_bytes > 1 << 20,
            "{process:?}"
        );
        assert!(process.peak_resident_bytes >= process.resident_bytes);
    }
    let busy: f64 = processes
        .iter()
        .map(|it| it.user_utilization + it.system_utilization)
        .sum();
    assert!(busy > 0.0);
    let uptimes = of_type::<UptimeRecord>(&medium);
    assert!(uptimes.is_sorted_by_key(|it| it.uptime_ms), "{uptimes:?}");
    let an_hour = 3_600_000;
    assert!(
        uptimes
            .iter()
            .all(|it| (0..an_hour).contains(&it.uptime_ms))
    );
}

#[test]
fn patterns_switch_samplers_and_single_processors() {
    let _alone = alone();
    let medium = Medium::default();
    let (list, errors) = PatternList::parse(
        "-%.*\n+ %LOAD_AVERAGE\n+ %CPU\n+ %CPU::0\n",
        Dialect::Strict,
    );
    assert_eq!(errors, []);
    let builder = all_samplers(plain(medium.writer(8))).patterns(list);
    let controller = builder.start().unwrap();
    await_that("processor 0", || {
        controller.flush(PATIENCE).unwrap();
        of_type::<CPUUtilizationRecord>(&medium).len() >= 3
    });
    // The kind of process has two signatures; only one is active.
    controller.deactivate("%CPU").unwrap();
    controller.activate("%PROCESS").unwrap();
    await_that("the process", || {
        controller.flush(PATIENCE).unwrap();
        of_type::<ProcessRecord>(&medium).len() >= 3
    });
    let before = of_type::<CPUUtilizationRecord>(&medium).len();
    let seen = of_type::<ProcessRecord>(&medium).len();
    await_that("the process", || {
        controller.flush(PATIENCE).unwrap();
        of_type::<ProcessRecord>(&medium).len() >= seen + 3
    });
    assert_eq!(of_type::<CPUUtilizationRecord>(&medium).len(), before);
    end(&controller);
    let processors = of_type::<CPUUtilizationRecord>(&medium);
    assert!(
        processors.iter().all(|it| it.cpu_id == "0"),
        "{processors:?}"
    );
    let counts = counts(&medium);
    let names: Vec<_> = counts.keys().map(String::as_str).collect();
    let wanted = [
        "CPUUtilizationRecord",
        "LoadAverageRecord",
        "ProcessRecord",
        "ResourceUtilizationRecord",
    ];
    assert_eq!(names, wanted);
}

#[test]
fn nothing_is_sampled_while_disabled() {
    let _alone = alone();
    let start = |enabled| {
        let builder = plain(Medium::default().writer(8)).enabled(enabled);
        builder.sampler(Sampler::Load, PERIOD).start().unwrap()
    };
    let records = |controller: &Controller| controller.sampler_stats().records;
    let (controller, other) = (start(false), start(true));
    // The records of the other one show that time passes.
    let pass = || {
        let before = records(&other);
        await_that("time to pass", || records(&other) >= before + 3);
    };
    pass();
    assert_eq!(records(&controller), 0);
    controller.enable();
    await_that("a sample", || records(&controller) > 0);
    controller.disable();
    pass();
    let before = records(&controller);
    pass();
    assert_eq!(records(&controller), before);
    end(&controller);
    end(&other);
}

#[test]
fn samplers_end_with_the_controller_and_keep_no_one_waiting() {
    let _alone = alone();
    let medium = Medium::default();
    let builder = plain(medium.writer(8));
    // Due again in an hour.
    let builder = builder.sampler(Sampler::Memory, Duration::from_secs(3_600));
    let controller = builder.start().unwrap();
    await_that("the first sample", || {
        controller.sampler_stats().records == 1
    });
    let start = Instant::now();
    end(&controller);
    assert!(start.elapsed() < PATIENCE / 2);
    let threads = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "baler-samplers").count()
    };
    await_that("the end of the thread", || threads() == 0);
    // Dropped without a shutdown, it ends as well.
    let builder = plain(Medium::default().writer(8));
    let controller = builder.sampler(Sampler::Memory, PERIOD).start().unwrap();
    await_that("its start", || threads() == 1);
    drop(controller);
    await_that("the end of the thread", || threads() == 0);
}

#[test]
fn a_period_must_be_a_millisecond_at_least() {
    let builder = plain(Medium::default().writer(8));
    let started = builder
        .sampler(Sampler::Load, Duration::from_micros(999))
        .start();
    assert!(matches!(started, Err(StartError::TooSmall { .. })));
}
