//! `baler probes`: lists and switches the probes of programs that are connected to a relay or receiver.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::{ProbesArgs, ProbesCommand, SwitchArgs, ViaArgs};
use crate::exit::{Code, Failure};
use crate::http_client::{self, base_url};
use crate::observe::authorization;
use crate::output;

/// How long the process may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The largest answer that is read.
const MAX_BYTES: usize = 64 << 20;

/// Sends one request, and shows the answer.
pub(super) fn run(args: &ProbesArgs, quiet: bool) -> Result<Code, Failure> {
    match &args.command {
        ProbesCommand::List { via, format } => {
            let answer: Value = ask(via, Method::GET, "/probes", "")?;
            output::result(*format, &answer, || programs(&answer))?;
        }
        ProbesCommand::Activate(args) => switch(args, "/probes/activate", quiet)?,
        ProbesCommand::Deactivate(args) => switch(args, "/probes/deactivate", quiet)?,
    }
    Ok(Code::Done)
}

/// The effect of a pattern.
#[derive(Deserialize)]
struct Change {
    programs: u64,
    slots: u64,
}

fn switch(args: &SwitchArgs, path: &str, quiet: bool) -> Result<(), Failure> {
    let Change { programs, slots } = ask(&args.via, Method::POST, path, &args.pattern)?;
    if !quiet {
        output::say(format_args!(
            "{} of {} switched",
            output::counted(slots, "probe"),
            output::counted(programs, "program"),
        ));
    }
    Ok(())
}

fn ask<T: DeserializeOwned>(
    via: &ViaArgs,
    method: Method,
    path: &str,
    body: &str,
) -> Result<T, Failure> {
    let url = format!("{}{path}", base_url(&via.via)?);
    let failed = |error: String| Failure::new(Code::Unavailable, format!("{url}: {error}"));
    let token = authorization(&via.token_file)?;
    let headers = [("authorization", token.as_str())];
    let by = Instant::now() + TIMEOUT;
    let answer = http_client::send(method, &url, &headers, body, TIMEOUT).map_err(failed)?;
    let status = answer.status;
    let text = answer.text(MAX_BYTES, by).map_err(failed)?;
    match status {
        StatusCode::OK => serde_json::from_str(&text)
            .map_err(|error| failed(format!("that is no answer of a relay or receiver: {error}"))),
        // The pattern is wrong.
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE => {
            Err(Failure::configuration(text.trim().to_owned()))
        }
        // The refusal names the next step.
        _ => Err(failed(format!("{status}: {}", text.trim()))),
    }
}

/// A line a program, and a line with `+` or `-` a probe.
fn programs(answer: &Value) -> String {
    let mut text = String::new();
    for program in output::items(answer, "programs") {
        let count = |name: &str| program[name].as_u64().unwrap_or_default();
        let slots = count("slots");
        text += &format!(
            "{} at {}: {}, {} active\n",
            word(program, "agent"),
            word(program, "address"),
            output::counted(slots, "probe"),
            output::number(count("active")),
        );
        for signature in output::items(program, "signatures") {
            let sign = match signature["active"] == true {
                true => '+',
                false => '-',
            };
            text += &format!("  {sign} {}\n", word(signature, "signature"));
        }
        let shown = output::items(program, "signatures").count() as u64;
        if slots > shown {
            text += &format!("  and {} more\n", output::number(slots - shown));
        }
    }
    if text.is_empty() {
        text.push_str("no program is connected that speaks the adaptive protocol\n");
    }
    text
}

/// A text of a program, which must not look like another line.
fn word<'a>(of: &'a Value, name: &str) -> Cow<'a, str> {
    output::escape(of[name].as_str().unwrap_or_default())
}
