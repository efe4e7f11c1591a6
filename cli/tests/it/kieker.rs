//! Kieker's own writers before Baler's receivers, and Kieker's logs.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::support::{Background, baler, read_json, wait_for, workspace};

/// Connects and sends what a socket writer of Kieker sends, until the receiver closes.
fn send_as_kieker(address: &str) {
    let stream = fs::read(workspace("common/tests/golden/kieker/tcp-single.stream")).unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    connection.write_all(&stream).unwrap();
    // The end may come as a reset.
    connection.read_to_end(&mut Vec::new()).ok();
}

#[test]
fn socket_writer_of_kieker_is_named_once_without_a_quarantine_and_counted() {
    for command in ["receive", "relay"] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let text = |name: &str| path(name).to_str().unwrap().to_owned();
        let (port, output, summary) = (text("port"), text("out"), text("summary"));
        let mut args = vec![command, "--from", "tcp://127.0.0.1:0"];
        args.extend(["--port-file", &port, "--format", "json"]);
        match command {
            "receive" => args.extend(["--output", &output, "--summary", &summary]),
            _ => args.extend(["--to", "null:"]),
        }
        let mut process = Background::start(&args);
        let address = wait_for("the address", || fs::read_to_string(path("port")).ok());
        for _ in 0..3 {
            send_as_kieker(address.trim());
        }
        process.wait_for_message("if it is a socket writer of Kieker");
        process.signal("TERM");
        let (status, stdout, stderr) = process.end();
        assert!(!stderr.contains("reason="), "it is said once: {stderr}");
        assert!(stderr.contains("count=3"), "{command}: {stderr}");
        assert_eq!(status.code(), Some(65), "{stderr}");
        let (summary, name) = match command {
            "receive" => (read_json(&path("summary")), "quarantined"),
            _ => (serde_json::from_str(&stdout).unwrap(), "damaged"),
        };
        assert_eq!(summary[name], 3, "{summary}");
    }
}

#[test]
fn compressed_log_is_refused_with_the_command_that_decompresses_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(
        path("kieker.map"),
        "$1=kieker.common.record.misc.EmptyRecord\n",
    )
    .unwrap();
    fs::write(path("kieker-1.gz"), b"BZh91AY&SY").unwrap();
    let from = format!("kieker-log:{}", folder.path().display());
    let refused = baler(&["send", "--from", &from, "--to", "null:"]);
    let refused = refused.code(69);
    let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    let advice = format!(
        "bzip2 -dc < {:?} > {:?}",
        path("kieker-1.gz"),
        path("kieker-1.dat")
    );
    assert!(stderr.contains(&advice), "{stderr}");
}
