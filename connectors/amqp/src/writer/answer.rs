//! What became of a published chunk.

use baler_common::transport::{Failure, Outcome};
use lapin::Confirmation;

/// What became of a published chunk.
#[derive(Debug)]
pub(super) enum Answer {
    Confirmed,
    Nacked,
    Returned(Box<str>),
    /// It was not published, since the one before it was refused.
    Behind,
}

impl From<Confirmation> for Answer {
    /// What an answer of the broker means. An unroutable message is returned first and confirmed
    /// then.
    fn from(confirmation: Confirmation) -> Self {
        match confirmation {
            Confirmation::Ack(Some(returned)) | Confirmation::Nack(Some(returned)) => {
                Self::Returned(format!("{} {}", returned.reply_code, returned.reply_text).into())
            }
            Confirmation::Ack(None) => Self::Confirmed,
            // Without confirms nothing is known, which must never count as confirmed.
            Confirmation::Nack(None) | Confirmation::NotRequested => Self::Nacked,
        }
    }
}

impl Answer {
    pub(super) fn outcome(self, endpoint: &str) -> Outcome {
        let refusal = match self {
            Self::Confirmed => return Outcome::Confirmed,
            Self::Nacked => Failure::retry("publish to", "the broker refused it (basic.nack)"),
            Self::Behind => Failure::retry(
                "publish to",
                "the broker refused one before it (basic.nack)",
            ),
            Self::Returned(why) => Failure::last("publish to", format!("no queue takes it: {why}")),
        };
        Outcome::Refused(refusal.at(endpoint))
    }
}
