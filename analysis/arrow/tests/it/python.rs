//! Python with pyarrow, another implementation of both formats.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

/// Where pyarrow is: on the machine, or where `scripts/test` has put it, beside what it builds.
fn pyarrow() -> Option<PathBuf> {
    let found = |folder: Option<&Path>| {
        let mut python = Command::new("python3");
        if let Some(folder) = folder {
            python.env("PYTHONPATH", folder);
        }
        let output = python.args(["-c", "import pyarrow"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    if found(None) {
        return None;
    }
    let beside = std::env::current_exe().unwrap();
    let mut beside = beside.ancestors().map(|path| path.join("tools/pyarrow"));
    let folder = beside.find(|folder| folder.is_dir() && found(Some(folder)));
    assert!(
        folder.is_some(),
        "no pyarrow, which reads what was written: scripts/test installs it, or `pip install pyarrow`"
    );
    folder
}

/// What it reads in these folders: for each the types of the columns, then the rows.
pub(crate) fn read(folders: &[&Path]) -> Vec<Json> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_back.py");
    let mut python = Command::new("python3");
    if let Some(folder) = pyarrow() {
        python.env("PYTHONPATH", folder);
    }
    let output = python.arg(script).args(folders).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    let lines = output.stdout.split(|byte| *byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}
