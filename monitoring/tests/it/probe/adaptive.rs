//! Switching single probes by patterns: by calls, by a file, for a part of the time.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use baler_connector_kieker::pattern::{Dialect, PatternList};
use baler_connector_testkit::{MemoryLimits, MemoryMedium};
use baler_monitoring::{Controller, ControllerBuilder, Event, Overflow, enter, probe};

use super::recording::{drain, execution, one_at_a_time};
use crate::support::{PATIENCE, await_that};

mod till {
    #[super::probe]
    pub(super) fn open() {}

    #[super::probe]
    pub(super) fn sell(_item: &str, _count: u32) {}
}

#[probe]
fn slow(meanwhile: impl FnOnce()) {
    meanwhile();
}

fn block() {
    let _probe = enter!("warehouse::pack");
}

/// Runs with an installed controller; returns the operations recorded meanwhile.
fn record(
    set_up: impl FnOnce(ControllerBuilder) -> ControllerBuilder,
    run: impl FnOnce(&Controller),
) -> Vec<String> {
    let _alone = one_at_a_time();
    let medium = MemoryMedium::new(MemoryLimits::default());
    let builder = Controller::builder(Box::new(medium.writer())).metadata_record(false);
    let controller = set_up(builder).start().unwrap();
    controller.install();
    run(&controller);
    let stats = controller.shutdown(PATIENCE).stats;
    assert_eq!(stats.emitted, stats.delivered, "{stats:?}");
    let mut operations = Vec::new();
    for batch in drain(&medium) {
        operations.extend(
            batch
                .records()
                .map(|it| execution(it).operation().to_owned()),
        );
    }
    operations
}

fn list(text: &str) -> PatternList {
    let (list, errors) = PatternList::parse(text, Dialect::Strict);
    assert_eq!(errors, []);
    list
}

fn call_all() {
    till::open();
    till::sell("tea", 2);
    slow(|| ());
    block();
}

#[test]
fn patterns_switch_the_probes_they_match() {
    let operations = record(
        |builder| builder,
        |controller| {
            call_all();
            controller
                .deactivate("* it.probe.adaptive.till.*(..)")
                .unwrap();
            call_all();
            controller.activate("* ..till.sell(str, *)").unwrap();
            call_all();
            controller.deactivate("*").unwrap();
            call_all();
            assert_eq!(controller.patterns().to_string(), "- *\n");
            controller.set_patterns(PatternList::new());
            call_all();
        },
    );
    let all = ["open", "sell", "slow", "warehouse::pack"];
    let rest = ["slow", "warehouse::pack"];
    let wanted = [&all[..], &rest, &["sell"], &rest, &all].concat();
    assert_eq!(operations, wanted);
}

#[test]
fn patterns_hold_for_sites_that_come_later_and_for_both_forms_of_signature() {
    #[probe]
    fn never_called_before() {}

    let operations = record(
        |builder| builder.patterns(PatternList::parse("- **\n+ warehouse::*", Dialect::Rust).0),
        |controller| {
            never_called_before();
            call_all();
            assert!(!controller.is_probe_active("public void a.B.c()"));
            assert!(controller.is_probe_active("warehouse::pack"));
            controller.disable();
            assert!(!controller.is_probe_active("warehouse::pack"));
        },
    );
    assert_eq!(operations, ["warehouse::pack"]);
}

#[test]
fn a_call_that_began_active_is_recorded() {
    let operations = record(
        |builder| builder,
        |controller| {
            slow(|| {
                controller.deactivate("*").unwrap();
                slow(|| controller.activate("*").unwrap());
            });
            slow(|| ());
        },
    );
    assert_eq!(operations, ["slow", "slow"]);
}

#[test]
fn a_wrong_pattern_changes_nothing() {
    let operations = record(
        |builder| builder,
        |controller| {
            controller.deactivate("* ..till.open()").unwrap();
            let error = controller.deactivate("* ..till.sell(").unwrap_err();
            assert!(error.to_string().contains("expected `)`"), "{error}");
            assert_eq!(controller.patterns().to_string(), "- * ..till.open()\n");
            call_all();
        },
    );
    assert_eq!(operations, ["sell", "slow", "warehouse::pack"]);
}

#[test]
fn the_patterns_of_the_installed_controller_count() {
    let operations = record(
        |builder| builder.patterns(list("- *")),
        |controller| {
            call_all();
            let medium = MemoryMedium::new(MemoryLimits::default());
            let builder = Controller::builder(Box::new(medium.writer())).metadata_record(false);
            let other = builder.start().unwrap();
            // It is not installed, so it has no effect.
            other.activate("*").unwrap();
            call_all();
            other.install();
            call_all();
            assert_eq!(other.shutdown(PATIENCE).stats.delivered, 4);
            controller.install();
            call_all();
        },
    );
    assert_eq!(operations, [""; 0]);
}

/// The news about patterns.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn hook(&self) -> impl FnMut(&Event) + Send + 'static {
        let told = self.clone();
        move |event| {
            if let Event::Patterns(news) = event {
                told.0.lock().unwrap().push(news.to_string());
            }
        }
    }

    fn await_news(&self, news: &str) {
        let is_told = || self.0.lock().unwrap().iter().any(|it| it.contains(news));
        await_that(news, is_told);
    }

    fn count(&self, news: &str) -> usize {
        let told = self.0.lock().unwrap();
        told.iter().filter(|it| it.contains(news)).count()
    }
}

fn watching<'a>(
    path: &'a Path,
    told: &'a Told,
) -> impl FnOnce(ControllerBuilder) -> ControllerBuilder + 'a {
    move |builder| {
        builder
            .pattern_file(path)
            .pattern_read_interval(Duration::from_millis(10))
            .on_event(told.hook())
    }
}

#[test]
fn a_file_is_read_at_the_start_and_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("patterns.conf");
    fs::write(
        &path,
        "# only the block\n- *\n+ warehouse.pack()\nnonsense\n",
    )
    .unwrap();
    let told = Told::default();
    let is_active = |controller: &Controller| controller.is_probe_active("warehouse.pack()");
    record(watching(&path, &told), |controller| {
        assert!(is_active(controller) && !controller.is_probe_active("a.B.c()"));
        told.await_news("line 4: begins with none of");
        told.await_news("2 patterns read from");
        // Rewritten.
        fs::write(&path, "+ *\n- warehouse.*(..)\n").unwrap();
        await_that("deactivation", || !is_active(controller));
        assert!(controller.is_probe_active("a.B.c()"));
        // Gone: the patterns stay.
        fs::remove_file(&path).unwrap();
        told.await_news("cannot be read");
        assert!(!is_active(controller));
        // Replaced, as an editor does it.
        let beside = folder.path().join("beside");
        fs::write(&beside, "- a.B.*()\n").unwrap();
        fs::rename(&beside, &path).unwrap();
        await_that("activation", || is_active(controller));
        assert!(!controller.is_probe_active("a.B.c()"));
        // Truncated for good.
        fs::write(&path, "").unwrap();
        await_that("activation of all", || {
            controller.is_probe_active("a.B.c()")
        });
        // The application's patterns apply until the file changes.
        controller.deactivate("*").unwrap();
        fs::write(&path, "+ x.Y.z()\n").unwrap();
        await_that("the file", || is_active(controller));
        assert_eq!(controller.patterns().to_string(), "+ x.Y.z()\n");
    });
    assert_eq!(told.count("cannot be read"), 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), "+ x.Y.z()\n");
}

#[test]
fn the_file_is_never_read_again_at_interval_zero() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("patterns.conf");
    let told = Told::default();
    record(
        |builder| watching(&path, &told)(builder).pattern_read_interval(Duration::ZERO),
        |controller| {
            told.await_news("cannot be read");
            fs::write(&path, "- *\n").unwrap();
            // The collector runs, but does not check the file.
            for _ in 0..10 {
                call_all();
                controller.flush(PATIENCE).unwrap();
            }
            assert!(controller.patterns().is_empty());
        },
    );
}

#[test]
fn switching_while_threads_call_ends_with_what_was_said_last() {
    let operations = record(
        // Nothing may be dropped, however fast the threads are.
        |builder| builder.overflow(Overflow::Block),
        |controller| {
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        while !stop.load(Ordering::Relaxed) {
                            call_all();
                        }
                    });
                }
                let others: Vec<_> = (0..2)
                    .map(|_| {
                        scope.spawn(|| {
                            for _ in 0..100 {
                                controller.deactivate("* ..till.*(..)").unwrap();
                                controller.activate("* ..till.sell(..)").unwrap();
                                controller.disable();
                                controller.enable();
                            }
                        })
                    })
                    .collect();
                others.into_iter().for_each(|thread| thread.join().unwrap());
                stop.store(true, Ordering::Relaxed);
            });
            assert_eq!(controller.patterns().rules().len(), 2);
            let before = controller.stats().emitted;
            call_all();
            let active = if controller.is_probe_active("void a.till.sell()") {
                3
            } else {
                2
            };
            assert_eq!(controller.stats().emitted - before, active);
        },
    );
    assert!(!operations.is_empty());
}

/// A site of its own for each name.
macro_rules! sites {
    ($($name:literal)*) => {
        [$((|| drop(enter!(concat!($name, ".C.call()"))), concat!($name, ".C.call()"))),*]
    };
}

#[test]
fn sites_that_are_called_for_the_first_time_during_a_change_obey_it() {
    let sites: [(fn(), &str); 24] = sites!(
        "a0" "b0" "a1" "b1" "a2" "b2" "a3" "b3" "a4" "b4" "a5" "b5"
        "a6" "b6" "a7" "b7" "a8" "b8" "a9" "b9" "aa" "bb" "ac" "bc"
    );
    record(
        |builder| builder.overflow(Overflow::Block),
        |controller| {
            let start = Barrier::new(3);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    sites.iter().for_each(|(call, _)| call());
                });
                scope.spawn(|| {
                    start.wait();
                    sites.iter().rev().for_each(|(call, _)| call());
                });
                start.wait();
                for sign in ["-", "+"].into_iter().cycle().take(101) {
                    let pattern = format!("{sign} a*.C.call()");
                    controller.set_patterns(list(&pattern));
                }
            });
            for (call, signature) in sites {
                let before = controller.stats().emitted;
                call();
                let is_active = controller.stats().emitted > before;
                assert_eq!(is_active, signature.starts_with('b'), "{signature}");
                assert_eq!(is_active, controller.is_probe_active(signature));
            }
        },
    );
}
