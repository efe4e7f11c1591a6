//! `validate`: each kind of misconfiguration gives a line that names the culprit.

use std::fs;

use predicates::str::contains;
use serde_json::Value;

use crate::support::{Receiver, baler, file_uri, workspace};

/// Returns the document of a run, and its exit code.
fn validate(args: &[&str]) -> (i32, Value) {
    let mut all = vec!["validate", "--format", "json"];
    all.extend(args);
    let run = baler(&all);
    let ended = run.get_output();
    let text = String::from_utf8(ended.stdout.clone()).unwrap();
    let document = serde_json::from_str(&text);
    let told = String::from_utf8_lossy(&ended.stderr);
    (
        ended.status.code().unwrap(),
        document.unwrap_or_else(|error| panic!("{error}: {text}{told}")),
    )
}

/// Returns the messages of checks with this status.
fn messages(document: &Value, status: &str) -> String {
    let checks = document["checks"].as_array().unwrap().iter();
    let lines = checks.filter(|it| it["status"] == status).map(|it| {
        let text = |name: &str| it[name].as_str().unwrap_or("").to_owned();
        format!(
            "{}: {}; {}\n",
            text("subject"),
            text("message"),
            text("fix")
        )
    });
    lines.collect()
}

#[test]
fn what_is_wrong_in_itself_is_told_without_a_connection() {
    for (args, status, message, code) in [
        (
            vec!["--to", "tcp://h:1?hartbeat=5s"],
            "failed",
            "the setting hartbeat is unknown; did you mean heartbeat?",
            78,
        ),
        (
            vec!["--from", "kieker-lgo:/d"],
            "failed",
            "did you mean kieker-log:?",
            78,
        ),
        (
            vec!["--to", "null:", "--chunk-bytes", "2MiB"],
            "failed",
            "chunk_bytes (2.0 MiB) is above max_chunk_bytes (960.0 KiB)",
            78,
        ),
        (
            vec!["--to", "tcp://h:1?max_chunk=64KiB"],
            "warning",
            "chunk_bytes (256.0 KiB) is above the largest chunk of tcp",
            0,
        ),
        (
            vec!["--to", "null:", "--wait-time", "10s"],
            "warning",
            "wait_time: 10s is not below shutdown_timeout (10s)",
            0,
        ),
        (
            vec!["--to", "null:", "--max-latency", "100ms"],
            "failed",
            "max_latency: max_latency (100ms) goes with chunk_records = auto, which is not set",
            78,
        ),
        (
            vec![
                "--to",
                "null:",
                "--chunk-records",
                "64",
                "--max-latency",
                "1s",
            ],
            "failed",
            "max_latency (1s) goes with chunk_records = auto, which is 64",
            78,
        ),
        (
            vec!["--to", "null:", "--chunk-records", "auto"],
            "ok",
            "chunk_records: auto: chunks grow with the rate, as far as a record is confirmed within \
             500ms (max_latency)",
            0,
        ),
        (
            vec![
                "--to",
                "null:",
                "--chunk-records=auto",
                "--wait-time",
                "20ms",
                "--max-latency=1m",
            ],
            "ok",
            "within 60s (max_latency), waits for its chunk no longer than 20ms",
            0,
        ),
        (
            vec![
                "--to",
                "null:",
                "--chunk-records=auto",
                "--max-latency",
                "10s",
            ],
            "warning",
            "max_latency: 10s is not below shutdown_timeout (10s)",
            0,
        ),
        (
            vec!["--to", "null:", "--give-up", "100ms"],
            "warning",
            "give_up: 100ms is below wait_time (500ms)",
            0,
        ),
        (
            vec!["--to", "null:", "--spool", "/dev/null/spool"],
            "failed",
            "spool: /dev/null is no folder",
            78,
        ),
        (
            vec![
                "--to",
                "null:",
                "--spool",
                "/tmp",
                "--spool-bytes",
                "1000000GiB",
            ],
            "warning",
            "below spool_bytes",
            0,
        ),
    ] {
        let (ended, document) = validate(&args);
        let told = messages(&document, status);
        assert!(told.contains(message), "{args:?}: {document:#}");
        assert_eq!(ended, code, "{document:#}");
    }
}

#[test]
fn every_end_of_a_configuration_is_checked() {
    let example = workspace("cli/baler.example.toml");
    let (_, document) = validate(&["--config", example.to_str().unwrap()]);
    let ok = messages(&document, "ok");
    for named in [
        "[generate] to",
        "[send] from",
        "[send] to",
        "[receive] from",
    ] {
        assert!(ok.contains(named), "{named}: {document:#}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.toml");
    fs::write(
        &path,
        "[send]\nfrom = \"null:\"\nto = \"tpc://me:hunter2@h:1\"\n",
    )
    .unwrap();
    let (code, document) = validate(&["--config", path.to_str().unwrap()]);
    let failed = messages(&document, "failed");
    assert!(
        failed.contains("[send] to, line 3") && failed.contains("did you mean tcp:?"),
        "{failed}"
    );
    assert!(!document.to_string().contains("hunter2"));
    assert_eq!(code, 78);
}

#[test]
fn who_does_not_answer_is_named() {
    for uri in [
        "tcp://127.0.0.1:1",
        "amqp://127.0.0.1:1?queue=q",
        "kafka://127.0.0.1:1/t",
    ] {
        let (code, document) = validate(&["--connect", "--to", uri]);
        let failed = messages(&document, "failed");
        assert!(
            failed.contains("--to: 127.0.0.1:1 takes no connection"),
            "{document:#}"
        );
        assert_eq!(code, 69);
    }
    let (_, document) = validate(&["--connect", "--to", "tcp://no-such-host.invalid:1"]);
    assert!(
        messages(&document, "failed").contains("the name has no address"),
        "{document:#}"
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("tcp://{}", taken.local_addr().unwrap());
    let (code, document) = validate(&["--connect", "--from", &uri]);
    assert!(
        messages(&document, "failed").contains("in use"),
        "{document:#}"
    );
    assert_eq!(code, 69);
    baler(&["validate", "--connect", "--from", "file:///no/such/folder"])
        .code(69)
        .stdout(contains("/no/such/folder"));
}

#[test]
fn ends_that_answer_are_connected_to_and_nothing_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    for from in ["tcp://127.0.0.1:0", "kafka+mock:records"] {
        let receiver = Receiver::at(
            from,
            &folder.path().join(from.replace([':', '/'], "_")),
            &[],
        );
        let to = match from.starts_with("kafka") {
            true => receiver.uri.replace("tcp://", "kafka://") + "/records",
            false => receiver.uri.clone(),
        };
        let (code, document) = validate(&["--connect", "--to", &to]);
        let ok = messages(&document, "ok");
        assert!(
            ok.contains("takes connections") && ok.contains("connected in"),
            "{document:#}"
        );
        assert!(ok.contains("reported when it connected"), "{document:#}");
        assert_eq!(code, 0, "{document:#}");
        receiver.process.signal("TERM");
        assert_eq!(receiver.end()["chunks"], 0);
    }
    let chunks = file_uri(&folder.path().join("chunks"));
    crate::support::output(&["generate", "--to", &chunks, "--records", "10"]);
    let (code, document) = validate(&["--connect", "--from", &chunks, "--to", &chunks]);
    assert_eq!(code, 0, "{document:#}");
}

#[cfg(feature = "amqp")]
#[test]
fn what_rabbitmq_refuses_is_named() {
    let node = baler_connector_testkit::faults::RabbitMqNode::start().unwrap();
    let good = node.uri("?queue=validated");
    for end in ["--to", "--from"] {
        let (code, document) = validate(&["--connect", end, &good]);
        assert_eq!(code, 0, "{document:#}");
    }
    let address = node.address();
    for (uri, culprit) in [
        (
            format!("amqp://guest:wrong@{address}?queue=validated"),
            "ACCESS_REFUSED",
        ),
        (
            format!("amqp://{address}/nowhere?queue=validated"),
            "nowhere",
        ),
        (
            format!("amqp://{address}?queue=validated&queue_type=classic"),
            "add queue_type=quorum to the URI, or take it as it is with declare=false",
        ),
    ] {
        for end in ["--to", "--from"] {
            let (code, document) = validate(&["--connect", end, &uri]);
            let failed = messages(&document, "failed");
            assert!(failed.contains(culprit), "{uri}: {document:#}");
            assert!(!failed.contains("wrong@"), "{failed}");
            assert_eq!(code, 69);
        }
    }

    // As everybody types the default virtual host, and in messages as typed.
    for path in ["/", "/%2f"] {
        let uri = format!("amqp://{address}{path}?queue=validated");
        let (code, document) = validate(&["--connect", "--to", &uri]);
        assert_eq!(code, 0, "{document:#}");
        let uri = format!("amqp://{address}{path}?queue=validated&queue_type=classic");
        let refused = baler(&["generate", "--records", "10", "--to", &uri]).code(69);
        let told = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(told.contains("add queue_type=quorum to the URI"), "{told}");
        assert!(told.contains(&format!("{address}{path}?queue")), "{told}");
        // One error, and not the client library's own words for it before.
        assert!(!told.contains("lapin"), "{told}");
    }
}

#[cfg(feature = "kafka")]
#[test]
fn credentials_that_kafka_refuses_are_named_and_not_shown() {
    use baler_connector_kafka::EmbeddedCluster;
    use baler_connector_testkit::faults::{KafkaProxy, KafkaSasl, KafkaSecurity};

    let cluster = EmbeddedCluster::start("records", 1).unwrap();
    let sasl = KafkaSasl::default();
    sasl.set_password("shipper", "open-sesame");
    let security = KafkaSecurity {
        tls: None,
        sasl: Some(sasl.clone()),
    };
    let proxy = KafkaProxy::start_secure(cluster.bootstrap_servers(), &security).unwrap();
    let uri = |who: &str| {
        format!(
            "kafka://{who}@{}/records?security.protocol=sasl_plaintext&sasl.mechanism=PLAIN",
            proxy.bootstrap_servers()
        )
    };
    for who in ["shipper:close-sesame", "nobody:open-sesame"] {
        for end in ["--to", "--from"] {
            let (code, document) = validate(&["--connect", end, &uri(who)]);
            let failed = messages(&document, "failed");
            assert!(
                failed.contains("Invalid username or password"),
                "{who}: {document:#}"
            );
            assert!(failed.contains("trying again cannot help"), "{failed}");
            assert!(!document.to_string().contains("sesame"), "{document:#}");
            assert_eq!(code, 69);
        }
    }
    for end in ["--to", "--from"] {
        let uri = uri("shipper:open-sesame");
        let (code, document) = validate(&["--connect", end, &uri]);
        assert_eq!(code, 0, "{document:#}");
        assert!(!document.to_string().contains("sesame"), "{document:#}");
    }
    assert!(sasl.admitted() >= 2);

    // What is sent and received is refused in the same way.
    let uri = uri("shipper:close-sesame");
    for args in [
        &["generate", "--records", "10", "--to", &uri][..],
        &["receive", "--from", &uri],
    ] {
        let run = baler(args).code(69);
        let output = run.get_output();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            told.contains("Invalid username or password"),
            "{args:?}: {told}"
        );
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            !told.contains("sesame") && !said.contains("sesame"),
            "{told} {said}"
        );
    }
}
