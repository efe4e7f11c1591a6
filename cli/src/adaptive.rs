//! Switching the probes of programs that send to this process: by a file of patterns, and by the
//! endpoint `/probes` of `--metrics`.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use baler_connector_kieker::adaptive::{Bridge, Change};
use baler_connector_kieker::pattern::{Action, Dialect, Pattern, PatternList, Rule};
use baler_monitoring::{FileChange, PatternFile};
use serde_json::{Value, json};

use crate::args::{AdaptiveArgs, ObserveArgs};
use crate::endpoint::{self, Receiver};
use crate::exit::Failure;
use crate::observe::{Probes, ProbesAccess, authorization};
use crate::output;

/// How often the file is checked. A change counts when two checks have found the same text.
const INTERVAL: Duration = Duration::from_millis(250);

/// The most bytes of the signatures of an answer.
const MAX_SIGNATURE_BYTES: usize = 4 << 20;

/// The most wrong lines of a file that are reported.
const MAX_ERRORS: usize = 10;

/// Switches probes, until it is dropped.
#[derive(Default)]
pub(crate) struct Adaptive {
    /// `None` without flags.
    bridge: Option<Arc<Bridge>>,
    admin: Option<ProbesAccess>,
    watching: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Adaptive {
    /// Reads the file of patterns, and watches it from now on. Reads the token.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or the address of `--metrics` is not loopback.
    pub(crate) fn start(args: &AdaptiveArgs, observe: &ObserveArgs) -> Result<Self, Failure> {
        if args.adaptive.is_none() && args.probes_token.is_none() {
            return Ok(Self::default());
        }
        let dialect = args.adaptive_dialect.unwrap_or_default();
        let bridge = Arc::<Bridge>::default();
        let mut admin = None;
        if let Some(path) = &args.probes_token {
            let is_remote = observe.metrics.is_some_and(|it| !it.ip().is_loopback());
            if is_remote && !args.probes_remote {
                return Err(Failure::configuration(
                    "--probes-token: the address of --metrics is not loopback, and the token would \
                     travel unencrypted; --probes-remote allows it",
                ));
            }
            let probes = Admin {
                bridge: Arc::clone(&bridge),
                dialect,
            };
            admin = Some(ProbesAccess {
                probes: Arc::new(probes),
                authorization: authorization(path)?.into(),
            });
        }
        let mut watching = None;
        if let Some(path) = &args.adaptive {
            let mut file = PatternFile::new(path.clone());
            match file.check(true) {
                FileChange::Changed(text) => apply(&text, path, dialect, &bridge),
                FileChange::Failed(error) => {
                    return Err(Failure::configuration(format!(
                        "--adaptive: cannot read {}: {error}",
                        path.display()
                    )));
                }
                FileChange::Same | FileChange::Settling => {}
            }
            watching = Some(watch(file, dialect, Arc::clone(&bridge))?);
        }
        Ok(Self {
            bridge: Some(bridge),
            admin,
            watching,
        })
    }

    /// Returns the receiving end of a medium, whose senders' probes are switched if a flag asks for
    /// it.
    ///
    /// # Errors
    ///
    /// The URI is wrong, or no program that sends there has probes.
    pub(crate) fn receiver(&self, uri: &str, follow: bool) -> Result<Receiver, Failure> {
        match &self.bridge {
            Some(bridge) => endpoint::adaptive_receiver(uri, Arc::clone(bridge)),
            None => endpoint::receiver(uri, follow),
        }
    }

    /// Returns the means by which the address of `--metrics` lists and switches probes, if a flag
    /// asks for it.
    pub(crate) fn admin(&self) -> Option<ProbesAccess> {
        self.admin.clone()
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
                    output::say(format_args!(
                        "{path} cannot be read: {error}; the patterns stay as they are"
                    ));
                }
                FileChange::Same | FileChange::Settling => {}
            }
        }
    };
    let named = thread::Builder::new().name("baler-adaptive".to_owned());
    let thread = named.spawn(run).map_err(Failure::thread)?;
    Ok((stop, thread))
}

/// Puts a text in force. It replaces all patterns, also those of the endpoint. Wrong lines are
/// reported and left out.
fn apply(text: &str, path: &Path, dialect: Dialect, bridge: &Bridge) {
    let (patterns, errors) = PatternList::parse(text, dialect);
    let path = path.display();
    for error in errors.iter().take(MAX_ERRORS) {
        output::say(format_args!("{path}, {error}; the line is left out"));
    }
    if let Some(more @ 1..) = errors.len().checked_sub(MAX_ERRORS) {
        output::say(format_args!("{path}: {more} more wrong lines are left out"));
    }
    let rules = patterns.rules().len();
    let Change { programs, slots } = bridge.set_patterns(patterns);
    tracing::info!(rules, programs, slots, "the patterns changed");
}

/// The endpoint's view of the bridge.
struct Admin {
    bridge: Arc<Bridge>,
    dialect: Dialect,
}

impl Probes for Admin {
    fn list(&self) -> Value {
        let programs = self.bridge.programs(MAX_SIGNATURE_BYTES).into_iter();
        let programs = programs.map(|program| {
            let signatures = program.signatures.iter().map(
                |(signature, is_active)| json!({"signature": &**signature, "active": is_active}),
            );
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
                "slots": program.slots,
                "active": program.active,
                "waiting": program.waiting,
                "stats": stats,
                "signatures": signatures.collect::<Vec<_>>(),
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
        tracing::info!(programs, slots, "the endpoint switched probes");
        Ok(json!({"programs": programs, "slots": slots}))
    }
}
