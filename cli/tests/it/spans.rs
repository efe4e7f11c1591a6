//! `analyze` of OpenTelemetry's spans, and of the executions of Kieker that it makes of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use baler::Controller;
use baler_common::record::{AnyValue, Record};
use serde_json::{Value, json};

use crate::support::{baler, file_uri, json as document, json_lines, output, workspace};

type Attributes = BTreeMap<String, AnyValue<'static>>;

/// The fields of `otel.Span` that `analyze` reads.
#[derive(Record)]
#[record(name = "otel.Span")]
struct Span {
    resource: Resource,
    scope: Scope,
    trace_id: TraceId,
    span_id: u64,
    parent_span_id: u64,
    name: String,
    start_time_unix_nano: u64,
    #[record(timestamp)]
    end_time_unix_nano: u64,
    attributes: Attributes,
}

#[derive(Record)]
#[record(name = "otel.TraceId")]
struct TraceId {
    high: u64,
    low: u64,
}

#[derive(Record)]
#[record(name = "otel.Resource")]
struct Resource {
    attributes: Attributes,
}

#[derive(Record)]
#[record(name = "otel.Scope")]
struct Scope {
    name: String,
}

fn span(trace: u64, [id, parent]: [u64; 2], name: &str, [start, end]: [u64; 2]) -> Span {
    let service = AnyValue::String("shop".into());
    Span {
        resource: Resource {
            attributes: [("service.name".to_owned(), service)].into(),
        },
        scope: Scope {
            name: "web".to_owned(),
        },
        trace_id: TraceId {
            high: 1,
            low: trace,
        },
        span_id: id,
        parent_span_id: parent,
        name: name.to_owned(),
        start_time_unix_nano: start,
        end_time_unix_nano: end,
        attributes: Attributes::new(),
    }
}

/// Writes the spans of four traces to a folder; returns its URI.
fn spans(folder: &Path) -> String {
    let uri = file_uri(folder);
    let controller = Controller::to(&uri).unwrap();
    let spans = [
        // The last call does not end before its caller, and overlaps the one before.
        span(1, [3, 1], "send mail", [30, 150]),
        span(1, [2, 1], "GET /cart", [10, 40]),
        span(1, [1, 0], "checkout", [0, 100]),
        // The id is -2.
        span(u64::MAX - 1, [1, 0], "checkout", [200, 300]),
        span(3, [2, 9], "orphan", [400, 410]),
        span(4, [1, 2], "cycle", [500, 510]),
        span(4, [2, 1], "cycle", [500, 510]),
    ];
    assert!(spans.iter().all(|span| controller.emit(span)));
    let report = controller.shutdown(Duration::from_secs(60));
    assert_eq!(report.stats.delivered, report.stats.emitted);
    uri
}

/// Returns the operations by name, without failures, and the rest that depends on no form of records.
fn found(result: &Value) -> (Vec<Value>, [&Value; 3]) {
    let operations = result["operations"].as_array().unwrap().iter().cloned();
    let operations = operations.map(|mut operation| {
        operation.as_object_mut().unwrap().remove("failed");
        operation
    });
    let rest = ["dependencies", "graphs", "classes"].map(|name| &result[name]);
    (operations.collect(), rest)
}

#[test]
fn spans_give_traces_and_executions_that_give_the_same_traces() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let from = spans(&path("chunks"));
    let (list, log) = (path("list"), path("log"));
    let to = format!("kieker-log:{}", log.display());
    let args = ["analyze", "--format", "json", "--from", &from];
    let more = ["--output", list.to_str().unwrap(), "--executions", &to];
    let result = document(&[&args[..], &more].concat());
    let traces = &result["traces"];
    for (name, expected) in [
        ("records", json!(7)),
        ("valid", json!(3)),
        ("invalid", json!({ "parent_cycle": 1 })),
        ("asynchronous", json!(2)),
        ("spans_without_parent", json!(1)),
    ] {
        assert_eq!(traces[name], expected, "{name}");
    }
    // The calls, and the record about the log.
    let executions = &result["executions"];
    assert_eq!(
        (&executions["emitted"], &executions["delivered"]),
        (&json!(6), &json!(6))
    );

    let text = fs::read_to_string(list.join("traces.jsonl")).unwrap();
    let listed = json_lines(&text).into_iter().map(|it| {
        let names = ["trace", "verdict", "root", "calls", "asynchronous"];
        Value::from_iter(names.map(|name| it[name].clone()))
    });
    let listed: Vec<_> = listed.collect();
    let expected = [
        json!([1, "valid", "web.checkout()", 3, 2]),
        json!([-2, "valid", "web.checkout()", 1, 0]),
        json!([3, "valid", "web.orphan()", 1, 0]),
        json!([4, "invalid", null, 0, 0]),
    ];
    assert_eq!(listed, expected);
    let diagram = fs::read_to_string(list.join("class-1.puml")).unwrap()
        + &fs::read_to_string(list.join("class-2.puml")).unwrap()
        + &fs::read_to_string(list.join("class-3.puml")).unwrap();
    assert!(diagram.contains(" : async send_mail()"), "{diagram}");

    let table = output(&["analyze", "--from", &from, "--executions", "null:"]);
    assert!(table.contains("executions delivered  6"), "{table}");

    // A log, and chunks.
    let chunks = file_uri(&path("executions"));
    output(&["analyze", "--from", &from, "--executions", &chunks]);
    for from in [&to, &chunks] {
        let again = document(&["analyze", "--format", "json", "--from", from]);
        assert_eq!(found(&again), found(&result), "{from}");
        let traces = &again["traces"];
        assert_eq!(
            (&traces["valid"], &traces["asynchronous"]),
            (&json!(3), &json!(2))
        );
        assert_eq!(traces["records"], 5);
    }
    let received = output(&["receive", "--from", &to, "--format", "json"]);
    let signatures = json_lines(&received).into_iter().filter_map(|record| {
        let signature = record["fields"]["operationSignature"].as_str()?.to_owned();
        Some(signature)
    });
    let signatures: Vec<_> = signatures.collect();
    let expected = [
        "web.checkout()",
        "async web.GET_/cart()",
        "async web.send_mail()",
        "web.checkout()",
        "web.orphan()",
    ];
    assert_eq!(signatures, expected);
}

#[test]
fn executions_of_events_give_the_traces_of_the_events() {
    let folder = tempfile::tempdir().unwrap();
    let log = workspace("analysis/tests/data/kieker/trace-events-2014");
    let [from, to] = [&log, folder.path()].map(|it| format!("kieker-log:{}", it.display()));
    let args = [
        "analyze",
        "--format",
        "json",
        "--from",
        &from,
        "--executions",
        &to,
    ];
    let result = document(&args);
    let again = document(&["analyze", "--format", "json", "--from", &to]);
    assert_eq!(again["traces"]["valid"], 2);
    assert_eq!(again["graphs"], result["graphs"]);
    assert_eq!(again["classes"], result["classes"]);
}

#[test]
fn a_medium_that_takes_no_executions_ends_the_command_with_its_code() {
    let folder = tempfile::tempdir().unwrap();
    let from = spans(&folder.path().join("chunks"));
    let port = baler_connector_testkit::faults::free_port().unwrap();
    let away = format!("tcp://127.0.0.1:{port}");
    let analyze = ["analyze", "--from", &from, "--executions"];
    for (more, code, message) in [
        (&[&away, "--give-up", "200ms"][..], 69, &*away),
        (&["nowhere:x"][..], 78, "nowhere"),
        (&["null:", "--partial", "file"][..], 2, "--partial"),
    ] {
        let run = baler(&[&analyze[..], more].concat()).code(code);
        let told = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        assert!(told.contains(message), "{told}");
    }
}
