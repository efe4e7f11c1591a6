//! The program that takes long, for a moment: `soak`.

use std::process::{Command, Output};

use serde_json::Value;

fn rows(output: &Output) -> Vec<Value> {
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).expect(&told)
}

#[test]
fn nothing_is_lost_while_a_receiver_and_a_reader_of_files_restart() {
    let output = Command::new(env!("CARGO_BIN_EXE_soak"))
        .args(["--only", "tcp", "--only", "file", "--format", "json"])
        .args(["--seconds", "8", "--restart-every", "2", "--warm-up", "1"])
        .args(["--rate", "2000"])
        .output()
        .unwrap();
    let rows = rows(&output);
    // Three figures of two ends of two media; whether they are steady takes longer to tell.
    assert_eq!(rows.len(), 12);
    for row in &rows {
        assert_eq!(row["complete"], true, "{row:#}");
        assert!(row["restarts"].as_u64().unwrap() >= 3, "{row:#}");
        assert!(row["last"].as_f64().unwrap() > 0.0, "{row:#}");
        assert!(row["first_ms"]["max"].as_f64().unwrap() > 0.0, "{row:#}");
    }
}
