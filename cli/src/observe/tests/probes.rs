//! The endpoint that lists and switches probes.

use baler_connector_kieker::pattern::Action;
use hyper::{Method, StatusCode};
use serde_json::json;

use super::*;
use crate::observe::observed::Probes;

/// Accepts every pattern but an empty one.
struct Fake;

impl Probes for Fake {
    fn list(&self) -> Value {
        json!({"programs": []})
    }

    fn switch(&self, action: Action, pattern: &str) -> Result<Value, String> {
        match pattern {
            "" => Err("no pattern".to_owned()),
            _ => Ok(json!({"action": format!("{action:?}"), "pattern": pattern})),
        }
    }
}

fn ask(server: &Server, method: Method, path: &str, token: &str, body: &str) -> (u16, String) {
    let url = format!("http://{}{path}", server.address());
    let headers = [("authorization", token)];
    let limit = Duration::from_secs(10);
    let answer = http_client::send(method, &url, &headers, body, limit).unwrap();
    let status = answer.status.as_u16();
    (
        status,
        answer.text(1 << 20, Instant::now() + limit).unwrap(),
    )
}

#[test]
fn probes_are_listed_and_switched_with_the_token_alone() {
    let access = ProbesAccess {
        probes: Arc::new(Fake),
        authorization: "Bearer secret".into(),
    };
    let shutdown = observed().1;
    let observed = Arc::new(Observed::new("test", &shutdown, Some(access)));
    let server = serve(&observed, Taps::Open);
    let list = |token: &str| ask(&server, Method::GET, "/probes", token, "").0;
    assert_eq!(list("Bearer other"), StatusCode::UNAUTHORIZED);
    assert_eq!(list("Bearer secret"), StatusCode::OK);
    let switch = |path: &str, body: &str| ask(&server, Method::POST, path, "Bearer secret", body);
    let (status, answer) = switch("/probes/deactivate", "a *.b(..)");
    assert_eq!(status, StatusCode::OK);
    assert_eq!(answer, r#"{"action":"Deactivate","pattern":"a *.b(..)"}"#);
    assert_eq!(switch("/probes/activate", "").0, StatusCode::BAD_REQUEST);
    let long = "x".repeat(4_096);
    assert_eq!(
        switch("/probes/activate", &long).0,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    assert_eq!(switch("/probes", "x").0, StatusCode::NOT_FOUND);
    assert_eq!(
        ask(&server, Method::POST, "/metrics", "", "").0,
        StatusCode::METHOD_NOT_ALLOWED
    );
}
