//! What a child process of a measuring program is for.

use baler_rig::child::Child;
use baler_rig::lines::{line, understand};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::mock::{self, Mock};
use crate::soak::{self, Reading, Sending};

/// What a child process is for; its second argument, as JSON, behind the word `child`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Role {
    /// To be a cluster.
    Mock(Mock),
    /// To read numbered records without end.
    Read(Reading),
    /// To send numbered records without end.
    Send(Sending),
}

impl Role {
    /// Starts a process for it.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub(crate) fn start(&self) -> Result<Child, Failure> {
        let role = line(self)?;
        Child::of_this_program(&["child", &role]).map_err(Failure::cannot("start a process"))
    }

    fn play(self) -> Result<(), Failure> {
        match self {
            Self::Mock(mock) => mock::serve(&mock),
            Self::Read(reading) => soak::read(&reading),
            Self::Send(sending) => soak::send(&sending),
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
    Some(understand(&role).and_then(Role::play))
}
