//! Switching the probes of running programs over the connection that carries their records.
//!
//! program: signatures of its probes -> bridge: patterns -> verdicts -> program
//!
//! [`wire`] has the bytes, [`Bridge`] the end that decides. The other end is a
//! [writer](crate::KiekerTcpWriterConfig::adaptive). `docs/adaptive.md` describes the protocol.

mod bridge;
mod error;
mod program;
pub mod wire;

pub(crate) use bridge::PeerId;
pub use bridge::{Bridge, Change, Program};
pub use error::{ErrorCode, WireError};
pub(crate) use program::ProgramEnd;
