//! Switching the probes of programs that send to this process: by a file of patterns, and by the
//! admin endpoint of `--metrics`.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use baler_common::pattern::{Action, Dialect, Pattern, PatternList, Rule};
use baler_connector_kieker::adaptive::{Bridge, Change};
use baler_monitoring::{FileChange, PatternFile};
use serde_json::{Value, json};

use crate::args::{AdaptiveArgs, ObserveArgs};
use crate::exit::Failure;
use crate::observe::{Observation, Probes, authorization};
use crate::output;

/// How often the file is checked. A change counts when two checks have found the same.
const INTERVAL: Duration = Duration::from_millis(500);

/// The most signatures of an answer.
const MAX_SIGNATURES: usize = 10_000;

/// Switches probes by the patterns of a file, until it is dropped.
pub(crate) struct Adaptive {
    pub(crate) bridge: Arc<Bridge>,
    dialect: Dialect,
    watching: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Adaptive {
    /// Reads the file, and watches it from now on. Returns `None` without flags for it.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has a wrong line.
    pub(crate) fn start(args: &AdaptiveArgs) -> Result<Option<Self>, Failure> {
        if args.adaptive.is_none() && args.probes_token.is_none() {
            return Ok(None);
        }
        let dialect = args.adaptive_dialect.unwrap_or_default();
        let bridge = Arc::<Bridge>::default();
        let mut watching = None;
        if let Some(path) = &args.adaptive {
            let mut file = PatternFile::new(path.clone());
            match file.check(true) {
                FileChange::Changed(text) => {
                    let (patterns, errors) = PatternList::parse(&text, dialect);
                    if let Some(error) = errors.first() {
                        let path = path.display();
                        return Err(Failure::configuration(format!("{path}, {error}")));
                    }
                    bridge.set_patterns(patterns);
                }
                FileChange::Failed(error) => {
                    let path = path.display();
                    return Err(Failure::configuration(format!(
                        "cannot read {path}: {error}"
                    )));
                }
                FileChange::Same | FileChange::Settling => {}
            }
            watching = Some(watch(file, dialect, Arc::clone(&bridge))?);
        }
        Ok(Some(Self {
            bridge,
            dialect,
            watching,
        }))
    }

    /// Lets the address of `--metrics` list and switch probes, if the flags ask for it.
    ///
    /// # Errors
    ///
    /// The token cannot be read, or the address is not loopback.
    pub(crate) fn serve(
        &self,
        args: &AdaptiveArgs,
        observe: &ObserveArgs,
        observation: &Observation,
    ) -> Result<(), Failure> {
        let Some(path) = &args.probes_token else {
            return Ok(());
        };
        let is_remote = observe.metrics.is_some_and(|it| !it.ip().is_loopback());
        if is_remote && !args.probes_remote {
            return Err(Failure::configuration(
                "--probes-token: the address of --metrics is not loopback; --probes-remote allows it",
            ));
        }
        let admin = Admin {
            bridge: Arc::clone(&self.bridge),
            dialect: self.dialect,
        };
        let authorization = authorization(path)?;
        observation
            .observed
            .switch_probes(Arc::new(admin), authorization);
        Ok(())
    }
}

impl Drop for Adaptive {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.watching.take() {
            drop(stop);
            thread.join().ok();
        }
    }
}

/// Checks the file on a thread, until the sender is dropped.
fn watch(
    mut file: PatternFile,
    dialect: Dialect,
    bridge: Arc<Bridge>,
) -> Result<(Sender<()>, JoinHandle<()>), Failure> {
    let (stop, stopped) = channel();
    let run = move || {
        while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
            match file.check(false) {
                FileChange::Changed(text) => apply(&text, file.path(), dialect, &bridge),
                FileChange::Failed(error) => {
                    let path = file.path().display();
                    output::say(format_args!("patterns cannot be read from {path}: {error}"));
                }
                FileChange::Same | FileChange::Settling => {}
            }
        }
    };
    let named = thread::Builder::new().name("baler-adaptive".to_owned());
    let thread = named.spawn(run).map_err(Failure::thread)?;
    Ok((stop, thread))
}

/// Puts a new text in force; wrong lines are left out and reported.
fn apply(text: &str, path: &Path, dialect: Dialect, bridge: &Bridge) {
    let (patterns, errors) = PatternList::parse(text, dialect);
    for error in errors.iter().take(10) {
        output::say(format_args!("{}, {error}", path.display()));
    }
    let rules = patterns.rules().len();
    let Change { programs, slots } = bridge.set_patterns(patterns);
    tracing::info!(rules, programs, slots, "the patterns changed");
}

/// The admin endpoint's view of the bridge.
struct Admin {
    bridge: Arc<Bridge>,
    dialect: Dialect,
}

impl Probes for Admin {
    fn list(&self) -> Value {
        let mut room = MAX_SIGNATURES;
        let programs = self.bridge.programs().into_iter().map(|program| {
            let shown = program.signatures.iter().take(room);
            let shown = shown.map(
                |(signature, is_active)| json!({"signature": &**signature, "active": is_active}),
            );
            let shown: Vec<_> = shown.collect();
            room -= shown.len();
            let active = program.signatures.iter().filter(|it| it.1).count();
            let stats = program.stats.map(|stats| {
                json!({
                    "hits": stats.hits,
                    "misses": stats.misses,
                    "dropped_records": stats.dropped_records,
                    "used_slots": stats.used_slots,
                })
            });
            json!({
                "number": program.number,
                "agent": program.agent,
                "address": program.address.to_string(),
                "slots": program.signatures.len(),
                "active": active,
                "waiting": program.waiting,
                "stats": stats,
                "signatures": shown,
            })
        });
        let programs: Vec<_> = programs.collect();
        let patterns = self.bridge.patterns();
        let patterns = patterns.rules().iter().map(ToString::to_string);
        json!({"programs": programs, "patterns": patterns.collect::<Vec<_>>()})
    }

    fn switch(&self, action: Action, pattern: &str) -> Result<Value, String> {
        let pattern = Pattern::parse(pattern, self.dialect).map_err(|it| it.to_string())?;
        let change = self.bridge.push(Rule { pattern, action });
        let Change { programs, slots } = change.map_err(|it| it.to_string())?;
        tracing::info!(
            programs,
            slots,
            "probes were switched by the admin endpoint"
        );
        Ok(json!({"programs": programs, "slots": slots}))
    }
}
