//! Streams of RabbitMQ that outlive, or do not outlive, the position of their reader.

use baler_connector_testkit::faults::RabbitMqNode;

use crate::support::{baler, json_lines, output};

#[test]
fn a_stream_of_rabbitmq_that_was_made_anew_is_read_from_its_beginning_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let node = RabbitMqNode::start().unwrap();
    let stream = node.uri("?queue=s&queue_type=stream");
    let from = format!(
        "{stream}&position_file={}",
        folder.path().join("p").display()
    );
    let generate = |records| {
        let args = ["generate", "--to", &stream, "--records", records];
        let run = baler(&[&args[..], &["--chunk-records", "10"]].concat()).success();
        String::from_utf8_lossy(&run.get_output().stderr).into_owned()
    };
    let receive = [
        "receive",
        "--from",
        &from,
        "--format",
        "json",
        "--idle-timeout",
        "2s",
    ];
    let created = "note: creating the stream queue s ";
    assert!(generate("2000").contains(created));
    assert_eq!(json_lines(&output(&receive)).len(), 2000);
    assert_eq!(json_lines(&output(&receive)).len(), 0);
    node.control(&["delete_queue", "s"]).unwrap();
    assert!(generate("100").contains(created));
    let anew = baler(&receive).code(65);
    let told = String::from_utf8_lossy(&anew.get_output().stderr).into_owned();
    assert!(told.contains("the stream was made anew"), "{told}");
    assert!(!told.contains(created), "{told}");
    let text = String::from_utf8(anew.get_output().stdout.clone()).unwrap();
    assert_eq!(json_lines(&text).len(), 100);
    assert_eq!(json_lines(&output(&receive)).len(), 0);
}
