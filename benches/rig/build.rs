//! Finds valgrind, without which the test of instruction bounds is shown as ignored.

use std::process::{Command, Stdio};

fn main() {
    println!("cargo::rustc-check-cfg=cfg(valgrind)");
    println!("cargo::rerun-if-env-changed=PATH");
    println!("cargo::rerun-if-changed=build.rs");
    let version = Command::new("valgrind")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if version.is_ok_and(|status| status.success()) {
        println!("cargo::rustc-cfg=valgrind");
    }
}
