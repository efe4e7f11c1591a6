//! The machine, program and command of a result. Without them a figure means nothing.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use baler_common::transport::uri::Uri;
use serde::Serialize;

/// The machine on which a result was measured.
///
/// It has no host name: results are published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Machine {
    /// The processor's own name.
    pub cpu: String,
    /// The number of threads that can run at the same time.
    pub cores: usize,
    /// Main memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The operating system with its version.
    pub system: String,
    /// The average number of runnable threads over the minute before. A load before a measurement
    /// is noise in it.
    pub load_before: Option<String>,
}

impl Machine {
    /// Returns this machine, without properties that cannot be read.
    pub fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let cpu = read("/proc/cpuinfo").and_then(|text| field(&text, "model name"));
        let memory = read("/proc/meminfo").and_then(|text| field(&text, "MemTotal"));
        let kernel = read("/proc/sys/kernel/osrelease");
        let load = read("/proc/loadavg");
        Self {
            cpu: cpu.unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory.and_then(|text| kilobytes(&text)),
            system: match kernel {
                Some(version) => format!("{} {}", std::env::consts::OS, version.trim()),
                None => std::env::consts::OS.to_owned(),
            },
            load_before: load.and_then(|text| text.split(' ').next().map(str::to_owned)),
        }
    }
}

/// The provenance of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Provenance {
    /// The machine.
    pub machine: Machine,
    /// The command, the program without its folder.
    pub command: String,
    /// The commit from which the program was built, with `-dirty` after it if files differed.
    /// `None` if it was built without git.
    pub commit: Option<String>,
    /// Whether the program was optimised.
    pub optimised: bool,
    /// The time, in seconds since the Unix epoch.
    pub unix_seconds: u64,
}

impl Provenance {
    /// Returns the provenance of this process.
    pub fn this() -> Self {
        let without_folder = |program: String| match Path::new(&program).file_name() {
            Some(name) => name.to_string_lossy().into_owned(),
            None => program,
        };
        let mut words = std::env::args();
        let program = words.next().map(without_folder);
        let command: Vec<_> = program.into_iter().chain(words).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            machine: Machine::this(),
            command: command.join(" "),
            commit: option_env!("BALER_COMMIT").map(str::to_owned),
            optimised: !cfg!(debug_assertions),
            unix_seconds: now.map_or(0, |since| since.as_secs()),
        }
    }
}

/// Returns a URI that may be shown.
pub(crate) fn without_secrets(uri: &str) -> String {
    Uri::parse(uri).map_or_else(|_| "a URI".to_owned(), |uri| uri.to_string())
}

/// Returns the value after the first `name:` of a file of `/proc`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Converts `16384 kB` to bytes.
fn kilobytes(text: &str) -> Option<u64> {
    let number = text.strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests;
