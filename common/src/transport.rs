//! The two ends of a connector, and the contract between them.
//!
//! ```text
//! collector -> ChunkWriter::offer ~~ medium ~~ ChunkReader::receive -> decode -> process
//!           <- confirmations                   settle <- done
//! ```
//!
//! Both ends are small, synchronous and object-safe. An application must not be forced into an
//! async runtime, and a connector with an asynchronous client keeps its runtime to itself. Every
//! call can fail, and its error says whether a retry can help ([`RetryClass`]). The owner of the
//! writer owns the policy. Retry, metering and fault injection wrap a writer or reader; they are
//! not inside one. [`Outbox`] is the policy for go-back-N, without a thread or a clock. [`WriterState`]
//! is the half of a writer that is the same for each medium.

mod backoff;
mod chunk;
mod error;
#[cfg(feature = "uri")]
mod media;
mod outbox;
mod reader;
mod settled_prefix;
#[cfg(feature = "tls")]
#[doc(hidden)]
pub mod tls;
#[cfg(feature = "uri")]
pub mod uri;
mod waiting;
mod window;
mod writer;
mod writer_state;

pub use backoff::{Backoff, RetryPolicy};
pub use chunk::{
    Chunk, ChunkIdentity, ChunkMeta, ContainerKind, Epoch, ParseIdentityError, ProducerId,
};
pub use error::{Failure, RetryClass, TransportError, WrongData, panic_text};
#[cfg(feature = "uri")]
pub use media::{Browse, BrowserSettings, Media, Medium, OpenReader, ReaderFactory};
pub use outbox::{Connection, End, Fate, Outbox, OutboxSettings, OutboxStats, guarded};
pub use reader::{
    ChunkReader, Damaged, Delivery, LaneLag, LaneName, Origin, ReaderCapability, ReaderCloseReport,
    ReaderStats, Readership, Received, Settled, Token, Verdict,
};
pub use settled_prefix::SettledPrefix;
pub use waiting::Waiting;
pub use window::{Window, WindowLimits};
pub use writer::{
    Capability, ChunkWriter, CloseReport, DeliveryReport, Durability, Notify, NotifyCell, Order,
    Outcome, Probes, RejectReason, Rejected, SpoolStats, WriterStats,
};
pub use writer_state::{Sending, WriterState};
