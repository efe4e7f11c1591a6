//! Instructions of a thread, counted by valgrind's tool callgrind. Unlike times, they hardly differ
//! between runs.
//!
//! A program runs itself under callgrind, with arguments that make it call [`count_last_round`].
//! Callgrind shows it a processor with at most AVX2, so all x86-64 machines that have AVX2 run the
//! same code.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::time::Duration;

use crate::harness::Failure;
use crate::process::Child;

/// How often a program is counted. Hashers have other seeds in each run, and calls may meet memory
/// that must be cleared for the first time, if valgrind lets the collector run less than before.
/// The least count is without this.
const RUNS: usize = 3;

/// The number of rounds before the counted one.
pub const UNCOUNTED_ROUNDS: u64 = 8;

/// The name of the function whose instructions are counted.
const COUNTED: &str = "counted_calls";

/// Keeps the C library from copying and filling memory by `rep movsb` and `rep stosb`. Callgrind
/// counts them once for each byte, and the library uses them for some addresses only.
const WITHOUT_REP: &str = "glibc.cpu.x86_rep_movsb_threshold=1000000000:\
                           glibc.cpu.x86_rep_stosb_threshold=1000000000";

/// The time limit of one run.
const PATIENCE: Duration = Duration::from_secs(300);

/// Whether valgrind can run here.
pub fn is_possible() -> bool {
    let version = Command::new("valgrind")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

/// Makes the same calls in several rounds. Only the instructions of the last round count.
///
/// The set-up in a thread's first calls is not counted, and neither is memory that is touched for
/// the first time. Its amount depends on when other threads run, so one round is not enough.
/// `settle` waits for these threads after a round.
///
/// # Errors
///
/// A round failed.
pub fn count_last_round(
    calls: &mut dyn FnMut() -> Result<(), Failure>,
    settle: &dyn Fn(),
) -> Result<(), Failure> {
    for _ in 0..UNCOUNTED_ROUNDS {
        calls()?;
        settle();
    }
    counted_calls(calls)
}

#[inline(never)]
fn counted_calls(calls: &mut dyn FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    calls()
}

/// Returns how many instructions the main thread of this program executes in its last round, if it
/// is started with these arguments: the least of several runs.
///
/// Instructions of other threads and of the operating system do not count.
///
/// # Errors
///
/// The program cannot be run in this way, or failed.
pub fn count(arguments: &[&str]) -> Result<u64, Failure> {
    let mut smallest = u64::MAX;
    for _ in 0..RUNS {
        smallest = smallest.min(count_once(arguments)?);
    }
    Ok(smallest)
}

fn count_once(arguments: &[&str]) -> Result<u64, Failure> {
    let folder = env::temp_dir().join(format!("baler-instructions-{}", process::id()));
    fs::create_dir(&folder).map_err(Failure::cannot("make a folder"))?;
    let counted = count_in(&folder, arguments);
    fs::remove_dir_all(&folder).map_err(Failure::cannot("remove a folder"))?;
    counted
}

fn count_in(folder: &Path, arguments: &[&str]) -> Result<u64, Failure> {
    let mut file = OsString::from("--callgrind-out-file=");
    file.push(folder.join("counted"));
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
        .args(arguments)
        .env("GLIBC_TUNABLES", WITHOUT_REP);
    Child::start(command)?.end(PATIENCE)?;
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
