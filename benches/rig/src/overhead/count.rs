//! Instructions a call, counted by valgrind's tool callgrind. Unlike times, they hardly differ
//! between runs, or between machines of an architecture.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::time::Duration;

use super::case::Case;
use super::measure::{COUNTED, Measured};
use super::run::{Order, Origin};
use crate::harness::Failure;
use crate::process::{Child, to_line};
use crate::statistics::to_f64;

/// The counted calls from outside, after some rounds of as many uncounted ones. Their records fit
/// into the queue, so no call waits: valgrind runs one thread at a time.
const CALLS: u64 = 5_000;

/// How often a case is counted. Calls may meet memory that must be cleared for the first time, if
/// valgrind lets the collector run less than before. The least count is without this.
const RUNS: usize = 3;

/// The time limit of one run.
const PATIENCE: Duration = Duration::from_secs(300);

/// Whether valgrind can run here.
pub(super) fn is_possible() -> bool {
    let version = Command::new("valgrind")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

/// Returns how many instructions the calling thread executes for an instrumented call of this
/// variant.
///
/// Instructions of other threads and of the operating system do not count.
///
/// # Errors
///
/// The program cannot be run in this way, or failed.
pub(super) fn instructions_per_call(case: &Case, origin: &Origin<'_>) -> Result<f64, Failure> {
    let case = Case {
        calls: CALLS,
        threads: 1,
        ..case.clone()
    };
    let calls = CALLS.saturating_mul(u64::from(case.depth)).max(1);
    let mut least = u64::MAX;
    for _ in 0..RUNS {
        least = least.min(instructions(case.clone(), origin)?);
    }
    Ok(to_f64(least) / to_f64(calls))
}

fn instructions(case: Case, origin: &Origin<'_>) -> Result<u64, Failure> {
    let folder = env::temp_dir().join(format!("baler-overhead-{}", process::id()));
    fs::create_dir(&folder).map_err(Failure::cannot("make a folder"))?;
    let counted = counted_in(&folder, case, origin);
    fs::remove_dir_all(&folder).map_err(Failure::cannot("remove a folder"))?;
    counted
}

fn counted_in(folder: &Path, case: Case, origin: &Origin<'_>) -> Result<u64, Failure> {
    let out = folder.join("counted");
    let mut file = OsString::from("--callgrind-out-file=");
    file.push(&out);
    let program = env::current_exe().map_err(Failure::cannot("find this program"))?;
    let mut command = Command::new("valgrind");
    command
        .args(["-q", "--tool=callgrind"])
        // Count only inside this function, with a file for each thread; the first one is the
        // caller.
        .arg(format!("--toggle-collect=*{COUNTED}*"))
        .arg("--separate-threads=yes")
        .arg(file)
        .arg(program)
        .args(origin.words)
        .arg(to_line(&Order::Call(case))?);
    let child = Child::start(command)?;
    child.answer::<Measured>(PATIENCE, &mut || true)?;
    child.end(PATIENCE)?;
    match read(&folder.join("counted-01"))? {
        0 => Err(Failure::new(
            "no instruction was counted: the program has no function names",
        )),
        count => Ok(count),
    }
}

/// The total in a file of callgrind: `totals: 123`.
fn read(path: &Path) -> Result<u64, Failure> {
    let text = fs::read_to_string(path).map_err(Failure::cannot("read what was counted"))?;
    let total = text.lines().find_map(|line| {
        let total = line.strip_prefix("totals:")?;
        total.trim().parse().ok()
    });
    total.ok_or_else(|| Failure::new("callgrind printed no total"))
}
