//! SIGTERM of a relay to RabbitMQ under load, with the broker up, frozen and killed.

use std::fs;
use std::path::Path;

use baler_connector_testkit::faults::RabbitMqNode;

use crate::observability::{get, sum};
use crate::relay::{RelayProcess, adds_up};
use crate::sigterm::{Broker, Other, STATES, generate_for_ever, terminate};
use crate::support::wait_for;

/// The address to which applications send.
const LOCAL: &str = "tcp://127.0.0.1:0";

/// Figures that are the same at this number of looks, each some milliseconds after the one before,
/// stay the same.
const STUCK_LOOKS: u32 = 30;

#[test]
fn a_relay_to_rabbitmq_ends_in_time_and_adds_up() {
    let folder = tempfile::tempdir().unwrap();
    let broker = RabbitMqNode::start().unwrap();
    for (number, state) in STATES.into_iter().enumerate() {
        let path = folder.path().join(number.to_string());
        let queue = broker.uri(&format!("?queue=sigterm-{number}"));
        // The last one, whose broker stays away, has a spool beside it.
        for spool in [false, true] {
            if spool && state != Broker::Killed {
                continue;
            }
            ends(&broker, state, &queue, &path.join(spool.to_string()), spool);
        }
    }
}

/// Runs a relay to this queue, and asks it to end while the broker is in this state.
fn ends(broker: &RabbitMqNode, state: Broker, queue: &str, folder: &Path, spool: bool) {
    let disk = folder.join("spool");
    let deadline = state.deadline_text();
    let mut flags = vec!["--shutdown-timeout", &deadline];
    flags.extend(["--metrics", "127.0.0.1:0"]);
    let port = folder.join("metrics-port");
    flags.extend(["--metrics-port-file", port.to_str().unwrap()]);
    if spool {
        flags.extend(["--spool", disk.to_str().unwrap(), "--spool-after", "50ms"]);
    }
    let relay = RelayProcess::start(LOCAL, queue, folder, &flags);
    let metrics = wait_for("an address", || fs::read_to_string(&port).ok());
    let figure = |name: &str| sum(&get(&metrics, "/metrics").1, name);
    let _sender = generate_for_ever(&relay.uri, state);
    let frozen = if spool {
        wait_for("chunks on disk", || {
            (figure("baler_spool_chunks_total") > 10.0).then_some(())
        });
        None
    } else {
        let sent = "baler_chunks_confirmed_total";
        wait_for("chunks", || (figure(sent) > 10.0).then_some(()));
        let frozen = broker.set(state);
        if state != Broker::Up {
            // The load is on, and new chunks cannot leave. Confirmations of earlier chunks may
            // still arrive; for a moment, no chunk would then wait.
            let (mut confirmed, mut looks) = (f64::NAN, 0);
            wait_for("chunks to wait", || {
                let before = std::mem::replace(&mut confirmed, figure(sent));
                let is_stuck = before.total_cmp(&confirmed).is_eq()
                    && figure("baler_chunks_unconfirmed") > 10.0;
                looks = if is_stuck { looks + 1 } else { 0 };
                (looks > STUCK_LOOKS).then_some(())
            });
        }
        frozen
    };
    let what = format!("relay to amqp, {state:?}, spool: {spool}");
    let (code, summary, _) = terminate(relay.process, &what, state);
    adds_up(&summary);
    drop(frozen);
    assert_eq!(summary["ended_by"], "signal");
    let given_back = summary["given_back"].as_u64().unwrap();
    if state == Broker::Up || spool {
        assert_eq!((given_back, code), (0, Some(0)), "{what}: {summary}");
    } else {
        assert!(given_back > 0, "{what}: {summary}");
        assert_eq!(code, Some(75), "{what}: {summary}");
    }
    assert_eq!(
        summary["spooled"].as_u64() > Some(0),
        spool,
        "{what}: {summary}"
    );
}
