//! Chunks in quarantine, sent on.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::relay::{generate, receive};
use crate::support::{Background, baler, file_uri, json as run_json};

#[test]
fn what_was_put_aside_is_sent_on_byte_for_byte_from_a_folder_and_from_a_medium() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let from = file_uri(&path("from"));
    let sent = generate(&from, 300);
    let narrow = format!("{}?max_chunk_bytes=200", file_uri(&path("narrow")));
    let (aside, medium) = (path("aside"), file_uri(&path("medium")));
    let aside = aside.to_str().unwrap();
    for quarantine in [aside, &medium] {
        baler(&[
            "relay",
            "--from",
            &from,
            "--to",
            &narrow,
            "--quarantine",
            quarantine,
        ])
        .code(65);
    }
    // One that never decodes.
    fs::write(
        path("aside").join("0000000000-0000000000.chunk"),
        b"no chunk",
    )
    .unwrap();

    let checked = baler(&["replay", aside, "--check", "--format", "json"]).code(65);
    let checked: Value = serde_json::from_slice(&checked.get_output().stdout).unwrap();
    assert_eq!(
        (&checked["decodable"], &checked["records"]),
        (&json!(3), &json!(300))
    );
    assert_eq!(
        (&checked["undecodable"], &checked["skipped"]),
        (&json!(1), &json!(1))
    );

    let to = file_uri(&path("to"));
    let replayed = baler(&["replay", aside, "--to", &to, "--remove", "--format", "json"]).code(65);
    let replayed: Value = serde_json::from_slice(&replayed.get_output().stdout).unwrap();
    assert_eq!(
        (&replayed["sent"]["forwarded"], &replayed["skipped"]),
        (&json!(3), &json!(1))
    );
    let left: Vec<_> = fs::read_dir(aside)
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    assert_eq!(
        left,
        ["0000000000-0000000000.chunk"],
        "only what was not sent is left"
    );
    let received = receive(&to, &path("received"));
    assert_eq!(
        (&received["records"], &received["lanes"]),
        (&json!(300), &json!(1))
    );
    assert_eq!(received["gaps"], json!([]));

    let again = file_uri(&path("again"));
    let replayed = run_json(&["replay", &medium, "--to", &again, "--format", "json"]);
    assert_eq!(
        (&replayed["unwrapped"], &replayed["undecodable"]),
        (&json!(3), &json!(0))
    );
    let bytes = replayed["sent"]["forwarded_bytes"].as_u64().unwrap();
    // All but the producer's last chunk, which passed.
    let last = run_json(&[
        "inspect",
        narrow.split('?').next().unwrap(),
        "--format",
        "json",
    ]);
    let last = last["chunks"][0]["bytes"].as_u64().unwrap();
    assert_eq!(bytes + last, sent["bytes"].as_u64().unwrap());
    assert_eq!(receive(&again, &path("received-again"))["records"], 300);
}

#[test]
fn a_signal_is_answered_with_the_number_of_chunks_that_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let from = file_uri(&folder.path().join("from"));
    generate(&from, 300);
    // It accepts connections and answers nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("tcp://{}", silent.local_addr().unwrap());
    let timeout = ["--shutdown-timeout", "1s"];
    let mut replay = Background::start(&[&timeout[..], &["replay", &from, "--to", &to]].concat());
    replay.wait_for_message("waiting for tcp:");
    replay.signal("TERM");
    let (status, _, stderr) = replay.end();
    assert_eq!(status.code(), Some(75), "{stderr}");
    let told = stderr.split_once("draining, ").expect(&stderr).1;
    let left = told.split_once(" chunks left").expect(&stderr).0;
    assert!(left.parse::<u64>().unwrap() > 0, "{stderr}");
}
