//! The clients in other languages, over a scripted peer and over the program.

use std::process::Command;

use crate::support::{command, workspace};

/// Runs a module of `clients/tests`, which has a suite for all clients.
fn run(module: &str) {
    let output = Command::new("python3")
        .args(["-m", "unittest", module])
        .current_dir(workspace("clients/tests"))
        .env("BALER", command().get_program())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("python3 runs; Debian's package is python3");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

#[test]
fn client_in_c_does_what_its_readme_says_also_under_sanitizers() {
    let gcc = Command::new("gcc").arg("--version").output();
    gcc.expect("gcc runs; Debian's package is gcc, and libc6-dev has the headers");
    run("test_c");
}

#[test]
fn client_in_python_does_what_its_readme_says() {
    run("test_python");
}
