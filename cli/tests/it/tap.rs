//! Looking at records that pass: the tap sees them, and the consumer gets every one all the same.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::observability::{get, sum};
use crate::outputs::fill;
use crate::support::{Background, Receiver, baler, json_lines, output, wait_for};

/// Starts a sender that goes on until it is asked to end.
fn generator(to: &str, flags: &[&str]) -> Background {
    let made = ["generate", "--to", to, "--records", "10M", "--rate", "3000"];
    let chunks = ["--chunk-records", "50", "--format", "json"];
    Background::start(&[&made[..], &chunks, flags].concat())
}

/// Asks a sender to end. Returns the number of records that it delivered.
fn delivered(generator: Background) -> u64 {
    generator.signal("TERM");
    let (_, report, errors) = generator.end();
    let report: serde_json::Value =
        serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {report}{errors}"));
    assert_eq!(report["dropped"], serde_json::json!({}));
    report["delivered"].as_u64().unwrap()
}

fn address(path: &Path) -> String {
    let text = wait_for("an address", || fs::read_to_string(path).ok());
    text.trim().to_owned()
}

#[test]
fn a_tap_of_a_running_command_sees_records_and_its_consumer_gets_all() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("metrics");
    let metrics = [
        "--metrics",
        "0",
        "--metrics-port-file",
        port.to_str().unwrap(),
    ];
    let receiver = Receiver::start(&folder.path().join("out"), &metrics);
    let generator = generator(&receiver.uri, &[]);
    let process = address(&port);
    let tap = [
        "tap",
        &process,
        "--count",
        "200",
        "--format",
        "json",
        "--identity",
    ];
    let seen = output(&[&tap[..], &["--where", "operationSignature.contains('(')"]].concat());
    let seen = json_lines(&seen);
    assert_eq!(seen.len(), 200);
    assert!(
        seen.iter()
            .all(|record| record["identity"]["sequence"].is_u64())
    );
    let sent = delivered(generator);
    wait_for("all records to be received", || {
        let (_, text) = get(&process, "/metrics");
        (sum(&text, "baler_records_received_total") >= sent as f64).then_some(())
    });
    receiver.process.signal("TERM");
    let (records, summary) = receiver.succeed();
    assert_eq!(records.lines().count() as u64, sent);
    assert_eq!(summary["gaps"], serde_json::json!([]));
}

#[test]
fn a_tap_of_a_folder_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let chunks = folder.path().join("chunks");
    let uri = crate::support::file_uri(&chunks);
    output(&[
        "generate",
        "--to",
        &uri,
        "--records",
        "2000",
        "--chunk-records",
        "100",
    ]);
    let consumer = format!("{uri}?consumer=billing");
    let names = || {
        let mut names: Vec<_> = fs::read_dir(&chunks)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let before = names();
    // The URI is that of a consumer: its position must not move.
    let tap = ["tap", &consumer, "--from-start", "--count", "2000"];
    let seen = output(&[&tap[..], &["--format", "json"]].concat());
    assert_eq!(seen.lines().count(), 2_000);
    assert_eq!(names(), before);
    // It begins now, so it shows no earlier records.
    let nothing = output(&["tap", &uri, "--idle-timeout", "200ms", "--format", "json"]);
    assert_eq!(nothing, "");
    let received = output(&["receive", "--from", &consumer, "--format", "json"]);
    assert_eq!(received.lines().count(), 2_000);
}

#[test]
fn a_tap_selects_limits_and_tells_what_it_did_not_show() {
    let folder = tempfile::tempdir().unwrap();
    let uri = crate::support::file_uri(&folder.path().join("chunks"));
    output(&["generate", "--to", &uri, "--records", "1000"]);
    let tap = ["tap", &uri, "--from-start", "--idle-timeout", "300ms"];
    let told = |flags: &[&str]| {
        let run = baler(&[&tap[..], flags].concat()).success();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let output = run.get_output();
        (text(&output.stdout), text(&output.stderr))
    };
    let (shown, errors) = told(&["--rate", "10", "--format", "json"]);
    assert_eq!(shown.lines().count(), 10, "{errors}");
    assert!(
        errors.contains("990 records were not shown because of --rate"),
        "{errors}"
    );
    assert!(errors.contains("1,000 records in"), "{errors}");
    let (shown, _) = told(&["--type", "Nothing", "--format", "json"]);
    assert_eq!(shown, "");
    let (shown, _) = told(&["--where", "eoi == 0 && ess == 0", "--format", "json"]);
    let roots = json_lines(&shown);
    assert!(!roots.is_empty() && roots.len() < 1_000);
    assert!(roots.iter().all(|record| record["fields"]["eoi"] == 0));
    let run = baler(&[&tap[..], &["--where", "eoi", "--format", "json"]].concat()).code(65);
    let errors = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        run.get_output().stdout.is_empty() && errors.contains("--where cannot judge 1,000 records"),
        "{errors}"
    );
    let (shown, _) = told(&["--count", "3"]);
    assert_eq!(
        shown.lines().count(),
        4,
        "a header and three records: {shown}"
    );
}

#[test]
fn what_cannot_be_tapped_is_told_with_the_alternative() {
    let told = |args: &[&str], code| {
        let run = baler(args).code(code);
        String::from_utf8(run.get_output().stderr.clone()).unwrap()
    };
    let tcp = told(&["tap", "tcp://127.0.0.1:1"], 78);
    assert!(
        tcp.contains("--metrics") && tcp.contains("baler tap http://"),
        "{tcp}"
    );
    #[cfg(feature = "amqp")]
    {
        let queue = told(&["tap", "amqp://127.0.0.1:1?queue=work"], 78);
        assert!(
            queue.contains("from the consumers") && queue.contains("exchange=name"),
            "{queue}"
        );
    }
    let wrong = told(&["tap", "127.0.0.1:1", "--where", "a ="], 78);
    assert!(wrong.contains("--where `a =`: line 1, column"), "{wrong}");
    let gone = told(&["tap", "127.0.0.1:1"], 69);
    assert!(gone.contains("cannot tap http://127.0.0.1:1/tap"), "{gone}");
    let past = told(&["tap", "127.0.0.1:1", "--from-start"], 78);
    assert!(past.contains("--from-start"), "{past}");
}

/// Records go on passing while a tap comes and goes; the tap's end is the process's.
#[test]
fn a_tap_ends_with_the_command_that_it_looks_at() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("metrics");
    let metrics = [
        "--metrics",
        "0",
        "--metrics-port-file",
        port.to_str().unwrap(),
    ];
    let generator = generator("null:", &metrics);
    let process = address(&port);
    let tap = Background::start(&["tap", &process, "--format", "json"]);
    wait_for("the tap to be there", || {
        (sum(&get(&process, "/metrics").1, "baler_taps") > 0.0).then_some(())
    });
    let sent = delivered(generator);
    let seen = tap.succeed();
    let seen = json_lines(&seen).len() as u64;
    assert!(seen > 0 && seen <= sent, "{seen} of {sent}");
}

#[test]
fn a_tap_whose_output_takes_nothing_ends_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("metrics");
    let metrics = [
        "--metrics",
        "0",
        "--metrics-port-file",
        port.to_str().unwrap(),
    ];
    let generator = generator("null:", &metrics);
    let process = address(&port);
    let figure = |name: &str| sum(&get(&process, "/metrics").1, name);
    let mut tap = Background::start(&["--shutdown-timeout", "2s", "tap", &process]);
    fill(&tap, 1);
    wait_for("the tap to be there", || {
        (figure("baler_taps") > 0.0).then_some(())
    });
    let before = figure("baler_records_delivered_total");
    wait_for("records that the tap cannot write", || {
        (figure("baler_records_delivered_total") > before + 5_000.0).then_some(())
    });
    tap.signal("TERM");
    let asked = Instant::now();
    wait_for("the end", || (!tap.is_running()).then_some(()));
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
    let (status, _, stderr) = tap.end();
    assert_eq!(status.code(), Some(75), "{stderr}");
    delivered(generator);
}

#[cfg(feature = "kafka")]
mod kafka {
    use super::*;
    use crate::support::json;

    #[test]
    fn a_tap_of_a_topic_is_no_member_of_its_consumers_group() {
        let folder = tempfile::tempdir().unwrap();
        let receiver = Receiver::at("kafka+mock:records?partitions=2", folder.path(), &[]);
        let to = receiver.uri.replace("tcp://", "kafka://") + "/records";
        let generator = generator(&to, &[]);
        // With the group of the consumer, of which it must not become a member.
        let from = format!("{to}?group.id=baler");
        let tap = ["tap", &from, "--count", "300", "--format", "json"];
        assert_eq!(output(&tap).lines().count(), 300);
        let again = output(&[&tap[..], &["--from-start", "--where", "type != ''"]].concat());
        assert_eq!(again.lines().count(), 300);
        let sent = delivered(generator);
        wait_for("all records to be received", || {
            let text = fs::read_to_string(&receiver.output).unwrap_or_default();
            (text.lines().count() as u64 >= sent).then_some(())
        });
        receiver.process.signal("TERM");
        let (records, summary) = receiver.succeed();
        assert_eq!(records.lines().count() as u64, sent);
        assert_eq!(summary["gaps"], serde_json::json!([]));
        assert_eq!(
            summary["rebalances"], 0,
            "the group was left alone: {summary}"
        );
    }

    #[test]
    fn inspect_of_a_topic_shows_what_is_in_it_beside_its_consumers() {
        let folder = tempfile::tempdir().unwrap();
        let receiver = Receiver::at("kafka+mock:records?partitions=2", folder.path(), &[]);
        let to = receiver.uri.replace("tcp://", "kafka://") + "/records";
        let made = ["generate", "--to", &to, "--chunk-records", "50"];
        output(&[&made[..], &["--records", "1000"]].concat());
        wait_for("all records to be received", || {
            let text = fs::read_to_string(&receiver.output).unwrap_or_default();
            (text.lines().count() >= 1_000).then_some(())
        });
        // With the group of the consumer, of which it must not become a member; it ends by itself.
        let from = format!("{to}?group.id=baler");
        let look = ["inspect", &from, "--format", "json"];
        let forever = ["--idle-timeout", "1h"];
        let document = json(&[&look[..], &forever].concat());
        let chunks = document["chunks"].as_array().unwrap();
        let records = chunks.iter().map(|it| it["records"].as_u64().unwrap());
        assert!(records.sum::<u64>() >= 1_000, "{document:#}");
        assert_eq!(document["more"], false);
        let first = json(&[&look[..], &["--count", "3"]].concat());
        assert_eq!(first["chunks"].as_array().unwrap().len(), 3);
        assert_eq!(first["more"], true);
        receiver.process.signal("TERM");
        let summary = receiver.end();
        assert_eq!(
            (&summary["rebalances"], &summary["redelivered"]),
            (&0.into(), &0.into()),
            "the group was left alone: {summary}"
        );
    }
}

/// At an address that others can reach, records are shown for a token only.
#[test]
fn a_tap_at_an_open_address_needs_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (port, token, wrong) = (path("metrics"), path("token"), path("wrong"));
    fs::write(&token, "hush\n").unwrap();
    fs::write(&wrong, "hash\n").unwrap();
    let metrics = ["--metrics", "0.0.0.0:0", "--metrics-port-file", &port];
    let guard = ["--metrics-tap", &token];
    let receiver = Receiver::start(&folder.path().join("out"), &[&metrics[..], &guard].concat());
    let sender = generator(&receiver.uri, &[]);
    let process = address(Path::new(&port)).replace("0.0.0.0", "127.0.0.1");
    let tap = ["tap", &process, "--count", "10", "--format", "json"];
    for refused in [&[][..], &["--token-file", &wrong]] {
        baler(&[&tap[..], refused].concat())
            .code(69)
            .stderr(predicates::str::contains("401"));
    }
    let seen = output(&[&tap[..], &["--token-file", &token]].concat());
    assert_eq!(json_lines(&seen).len(), 10);
    delivered(sender);
}
