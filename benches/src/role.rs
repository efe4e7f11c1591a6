//! What a child process of a measuring program is for.

use std::io::{self, Write as _};

use baler_rig::child::Child;
use serde::{Deserialize, Serialize};

use crate::brokers::Writing;
use crate::failure::Failure;
use crate::mock::{self, Mock};
use crate::scaling::{self, Consuming};
use crate::soak::{self, Reading, Sending};

/// What a child process is for; its second argument, as JSON, behind the word `child`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Role {
    /// To read chunks as fast as they come, and say what it cost.
    Consume(Consuming),
    /// To be a cluster.
    Mock(Mock),
    /// To read numbered records without end.
    Read(Reading),
    /// To send numbered records without end.
    Send(Sending),
    /// To write so many records, and say what it cost.
    Write(Writing),
}

impl Role {
    /// Starts a process for it.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub(crate) fn start(&self) -> Result<Child, Failure> {
        let role = serde_json::to_string(self).map_err(Failure::cannot("write JSON"))?;
        Child::of_this_program(&["child", &role]).map_err(Failure::cannot("start a process"))
    }

    fn play(self) -> Result<(), Failure> {
        match self {
            Self::Consume(consuming) => scaling::consume(&consuming),
            Self::Mock(mock) => mock::serve(&mock),
            Self::Read(reading) => soak::read(&reading),
            Self::Send(sending) => soak::send(&sending),
            Self::Write(writing) => say(&crate::brokers::write(&writing)?),
        }
    }
}

/// Does what the parent process wants, if this is a child of a measuring program; else `None`.
pub fn child() -> Option<Result<(), Failure>> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some("child") {
        return None;
    }
    let role = arguments.next().unwrap_or_default();
    let role: Result<Role, _> = serde_json::from_str(&role);
    let role = role.map_err(Failure::cannot("understand its role"));
    Some(role.and_then(Role::play))
}

/// Tells the parent process something, as a line of JSON.
pub(crate) fn say(value: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string(value).map_err(Failure::cannot("write JSON"))?;
    let mut out = io::stdout().lock();
    let said = writeln!(out, "{line}").and_then(|()| out.flush());
    said.map_err(Failure::cannot("answer"))
}

/// What a child process said.
pub(crate) fn understand<T: for<'a> Deserialize<'a>>(line: &str) -> Result<T, Failure> {
    serde_json::from_str(line).map_err(Failure::cannot("understand a child process"))
}
