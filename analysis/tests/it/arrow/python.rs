//! Python with pyarrow, DuckDB and DataFusion, other implementations of the formats.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

/// Returns the folder of a package: on the machine, or below the build folder of `scripts/test`.
fn folder_of(package: &str) -> Option<PathBuf> {
    let import = format!("import {package}");
    let found = |folder: Option<&Path>| {
        let mut python = Command::new("python3");
        if let Some(folder) = folder {
            python.env("PYTHONPATH", folder);
        }
        let output = python.args(["-c", &import]).output();
        output.is_ok_and(|output| output.status.success())
    };
    if found(None) {
        return None;
    }
    let beside = std::env::current_exe().unwrap();
    let mut beside = beside
        .ancestors()
        .map(|path| path.join("tools").join(package));
    let folder = beside.find(|folder| folder.is_dir() && found(Some(folder)));
    assert!(
        folder.is_some(),
        "no {package}, which reads what was written: scripts/test installs it, or \
         `pip install {package}`"
    );
    folder
}

/// Python with a package.
fn python(package: &str) -> Command {
    let mut python = Command::new("python3");
    if let Some(folder) = folder_of(package) {
        python.env("PYTHONPATH", folder);
    }
    python
}

/// Returns its output, a JSON document a line.
fn documents(python: &mut Command) -> Vec<Json> {
    let output = python.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    let lines = output.stdout.split(|byte| *byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// Returns the rows of the last of these statements. An engine runs them in this folder: `duckdb`
/// or `datafusion`.
pub(crate) fn last_rows(folder: &Path, engine: &str, statements: &[&str]) -> Vec<Json> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/arrow/queries.py");
    let mut python = python(engine);
    python.arg(script).arg(engine).args(statements);
    documents(python.current_dir(folder))
}

/// Returns what pyarrow reads in these folders: for each the types of the columns, then the rows.
pub(crate) fn read(folders: &[&Path]) -> Vec<Json> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/arrow/read_back.py");
    documents(python("pyarrow").arg(script).args(folders))
}
