//! Baler's probes, with more and more of what is behind them.

use std::time::Duration;

use baler_connector_file::{FileWriter, FileWriterConfig};
use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::{Clock, Controller, ControllerBuilder, Overflow, probe};

use super::application::Outer;
use super::ends::{Discarding, Receiver, Refusing};
use super::variant::{End, Running, Variant};
use crate::failure::Failure;
use crate::monitored;

/// How long what is in the queues may take to be delivered at the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a thread waits with `block-timeout` before its record is dropped.
const BLOCK_TIMEOUT: Duration = Duration::from_millis(1);

/// The variants with a probe of Baler's.
pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        name: "deactivated",
        about: "the probe of an operation, while monitoring is switched off",
        set_up: |_| Baler::start(null().enabled(false), Taken::Nothing),
    },
    Variant {
        name: "deactivated-pattern",
        about: "the probe of an operation that a pattern deactivates, while monitoring is on",
        set_up: |_| Baler::start(null(), Taken::Deactivated),
    },
    Variant {
        name: "collection",
        about: "records are made and put into the thread's queue, which nobody empties: they are \
                overwritten",
        set_up: |_| {
            let stalled = Controller::builder(Box::new(Refusing::default())).unconfirmed_chunks(1);
            Baler::start(stalled.overflow(Overflow::DropOldest), Taken::Stalled)
        },
    },
    Variant {
        name: "queue",
        about: "queue and collector, which discards records without encoding them",
        set_up: |_| lossless(null().serializer(Discarding)),
    },
    Variant {
        name: "operation",
        about: "operation execution records through queue, collector and encoding to a writer that \
                discards; blocking when the queue is full",
        set_up: |_| lossless(null()),
    },
    Variant {
        name: "operation-system-clock",
        about: "as operation, with the clock of systems whose processor's counter cannot be trusted",
        set_up: |_| lossless(null().clock(Clock::System)),
    },
    Variant {
        name: "operation-drop-newest",
        about: "as operation, but what finds the queue full is dropped",
        set_up: |_| Baler::start(null().overflow(Overflow::DropNewest), Taken::All),
    },
    Variant {
        name: "operation-drop-oldest",
        about: "as operation, but a full queue is overwritten: the circular queue",
        set_up: |_| Baler::start(null().overflow(Overflow::DropOldest), Taken::All),
    },
    Variant {
        name: "operation-block-timeout",
        about: "as operation, but what waited for 1 ms is dropped",
        set_up: |_| {
            let overflow = Overflow::BlockTimeout(BLOCK_TIMEOUT);
            Baler::start(null().overflow(overflow), Taken::All)
        },
    },
    Variant {
        name: "chunk-1",
        about: "as operation, with a chunk for each record",
        set_up: |_| lossless(null().chunk_records(1)),
    },
    Variant {
        name: "chunk-16",
        about: "as operation, with 16 records a chunk, Kieker's default",
        set_up: |_| lossless(null().chunk_records(16)),
    },
    Variant {
        name: "chunk-128",
        about: "as operation, with 128 records a chunk",
        set_up: |_| lossless(null().chunk_records(128)),
    },
    Variant {
        name: "chunk-8192",
        about: "as operation, with 8,192 records a chunk",
        set_up: |_| lossless(null().chunk_records(8_192)),
    },
    Variant {
        name: "file",
        about: "as operation, but to files in the temporary folder, without fsync",
        set_up: |_| {
            let folder = tempfile::tempdir().map_err(Failure::cannot("make a folder"))?;
            let writer = FileWriter::new(FileWriterConfig::new(folder.path()));
            let builder = Controller::builder(Box::new(writer));
            Baler::with_end(builder, Other::Folder(folder))
        },
    },
    Variant {
        name: "tcp",
        about: "as operation, but over loopback to a receiver in the same process, which settles \
                and discards",
        set_up: |_| {
            let receiver = Receiver::start()?;
            let builder = Controller::builder(receiver.writer());
            Baler::with_end(builder, Other::Receiver(receiver))
        },
    },
];

monitored! { #[probe] fn operation {} }

fn null() -> ControllerBuilder {
    Controller::builder(Box::new(NullWriter::new(NullConfig::default())))
}

fn lossless(builder: ControllerBuilder) -> Result<Box<dyn Running>, Failure> {
    Baler::start(builder.overflow(Overflow::Block), Taken::All)
}

/// Which records the controller is to have taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// That of every call; every one of them is delivered or counted as lost.
    All,
    /// None: a pattern deactivates all probes.
    Deactivated,
    /// None: monitoring is off.
    Nothing,
    /// That of every call, but its writer takes nothing, so that there is nothing to wait for.
    Stalled,
}

/// What is at the other end of the writer, and ends after it.
enum Other {
    Folder(tempfile::TempDir),
    Nothing,
    Receiver(Receiver),
}

/// A controller that probes use.
struct Baler {
    controller: Controller,
    outer: Outer,
    taken: Taken,
    end: Other,
}

impl Baler {
    fn start(builder: ControllerBuilder, taken: Taken) -> Result<Box<dyn Running>, Failure> {
        Self::build(builder, taken, Other::Nothing)
    }

    fn with_end(builder: ControllerBuilder, end: Other) -> Result<Box<dyn Running>, Failure> {
        Self::build(builder.overflow(Overflow::Block), Taken::All, end)
    }

    fn build(
        builder: ControllerBuilder,
        taken: Taken,
        end: Other,
    ) -> Result<Box<dyn Running>, Failure> {
        // The only records are those of the calls.
        let builder = builder.metadata_record(false).application("overhead");
        let controller = builder
            .start()
            .map_err(Failure::cannot("start a controller"))?;
        controller.install();
        if taken == Taken::Deactivated {
            controller
                .deactivate("*")
                .map_err(Failure::cannot("deactivate probes"))?;
        }
        Ok(Box::new(Self {
            controller,
            outer: operation,
            taken,
            end,
        }))
    }
}

impl Running for Baler {
    fn outer(&self) -> Outer {
        self.outer
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        let patience = match self.taken {
            Taken::Stalled => Duration::ZERO,
            Taken::All | Taken::Deactivated | Taken::Nothing => PATIENCE,
        };
        let report = self.controller.shutdown(patience);
        match self.end {
            Other::Folder(folder) => drop(folder),
            Other::Nothing => {}
            Other::Receiver(receiver) => receiver.end()?,
        }
        let emitted = match self.taken {
            Taken::Deactivated | Taken::Nothing => 0,
            Taken::All | Taken::Stalled => calls,
        };
        if !report.adds_up() || report.emitted() != emitted {
            let reason = format!("{emitted} records were to be emitted: {report}");
            return Err(Failure::new(reason));
        }
        Ok(End {
            lost: report.dropped().total(),
        })
    }
}
