//! The receiving end of a medium: one reader, several, or one that only looks.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
#[cfg(feature = "kieker")]
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_analysis::workers::fan_out;
use baler_common::transport::{
    Browse, ChunkReader, ReaderCapability, ReaderCloseReport, ReaderFactory, ReaderStats,
    Readership, Received, Settled, Token, TransportError, Verdict,
};
#[cfg(feature = "kieker")]
use baler_connector_kieker::{self as kieker, SCHEME, adaptive::Bridge};

use super::{media, parse, wrong};
use crate::exit::Failure;
use crate::output;
use crate::patience::Patience;
use crate::shutdown::Shutdown;

/// The setting that makes a reader a static member of its group.
const STATIC_MEMBER: &str = "group.instance.id";

/// A reader, opened; or several of one endpoint.
pub(crate) struct OpenReader<R = Box<dyn ChunkReader>> {
    pub(crate) reader: R,
    /// The address on which it listens for senders, if it does.
    pub(crate) listens_on: Option<SocketAddr>,
    /// The URI without its secrets.
    pub(crate) endpoint: String,
    pub(crate) readership: Readership,
    /// Whether settling a chunk changes nothing at the medium.
    pub(crate) only_looks: bool,
}

impl OpenReader {
    /// Passes the chunks and events of the medium to `take`, as [`Patience::receive_all`] does, then
    /// closes the reader, which gives unsettled chunks back. It settles chunks only if that changes
    /// nothing at the medium; the reader then reaches its end. Returns whether no signal ended it.
    ///
    /// # Errors
    ///
    /// The medium was given up or failed for good, or `take` failed.
    pub(crate) fn look_through(
        mut self,
        idle_timeout: Duration,
        give_up: Option<Duration>,
        quiet: bool,
        shutdown: &Shutdown,
        mut take: impl FnMut(Received) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<bool, Failure> {
        let mut patience = Patience::new(&self.endpoint, give_up, quiet);
        let reader = self.reader.as_mut();
        let looked = patience.receive_all(reader, idle_timeout, shutdown, |reader, received| {
            let token = match &received {
                Received::Chunk(it) => Some(it.token),
                Received::Damaged(it) => it.token,
                _ => None,
            };
            if let Some(token) = token.filter(|_| self.only_looks) {
                reader.settle(token, Verdict::Ack)?;
            }
            take(received)
        });
        let closed = self.reader.close(shutdown.deadline());
        let is_complete = looked?;
        closed.error.map_or(Ok(is_complete), |it| Err(it.into()))
    }
}

/// The receiving end of a medium, which is not opened yet.
pub(crate) struct Receiver {
    factory: ReaderFactory,
    /// The URI without its secrets.
    endpoint: String,
}

/// Opens the receiving end of a medium. `follow` makes a source that would end wait for more.
///
/// # Errors
///
/// The URI is wrong, or the medium cannot be opened.
pub(crate) fn open_reader(text: &str, follow: bool) -> Result<OpenReader, Failure> {
    receiver(text, follow)?.open()
}

/// Reads the settings of the receiving end of a medium; nothing is opened.
///
/// # Errors
///
/// The URI is wrong.
pub(crate) fn receiver(text: &str, follow: bool) -> Result<Receiver, Failure> {
    let (uri, endpoint) = parse(text)?;
    let factory = media().receiver(uri, follow).map_err(wrong(&endpoint))?;
    Ok(Receiver { factory, endpoint })
}

/// As [`receiver`], of streams of Kieker's records. The patterns of `bridge` switch the probes of
/// their senders.
///
/// # Errors
///
/// The URI is wrong, or of another medium.
#[cfg(feature = "kieker")]
pub(crate) fn adaptive_receiver(text: &str, bridge: Arc<Bridge>) -> Result<Receiver, Failure> {
    let (uri, endpoint) = parse(text)?;
    if uri.scheme() != SCHEME {
        return Err(Failure::configuration(format!(
            "{endpoint}: --adaptive and --probes-token are for {SCHEME}:, where programs send the \
             signatures of their probes"
        )));
    }
    let factory = kieker::adaptive_receiver(uri, bridge).map_err(wrong(&endpoint))?;
    Ok(Receiver { factory, endpoint })
}

impl Receiver {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// The medium cannot be opened.
    pub(crate) fn open(self) -> Result<OpenReader, Failure> {
        open(&self.factory, self.endpoint)
    }

    /// Opens it for several workers. If the medium allows it, each worker has a reader: a member of
    /// a group, or a consumer of a queue. Otherwise, one reader distributes its lanes among the
    /// workers.
    ///
    /// # Errors
    ///
    /// The medium cannot be opened, or its settings allow one reader.
    pub(crate) fn open_for(
        self,
        count: NonZeroUsize,
    ) -> Result<OpenReader<Vec<Box<dyn ChunkReader>>>, Failure> {
        let Self { factory, endpoint } = self;
        let count_of_others = count.get() - 1;
        if count_of_others > 0 && endpoint.contains(STATIC_MEMBER) {
            return Err(Failure::configuration(format!(
                "{STATIC_MEMBER} names one member of the group, --workers {count} makes {count}: \
                 leave one of them out"
            )));
        }
        let first = open(&factory, endpoint.clone())?;
        let reader = match factory.readership {
            Readership::OneProcess if count_of_others > 0 => {
                fan_out(first.reader, count).map_err(Failure::thread)?
            }
            _ => {
                let mut readers = vec![first.reader];
                for _ in 0..count_of_others {
                    readers.push(factory.open()?.reader);
                }
                readers
            }
        };
        Ok(OpenReader {
            reader,
            listens_on: first.listens_on,
            endpoint,
            readership: first.readership,
            only_looks: first.only_looks,
        })
    }
}

/// Opens a medium only to look: nothing is committed, and other readers lose nothing and do not
/// wait.
///
/// # Errors
///
/// The URI is wrong, the medium cannot be opened, or each reader takes chunks from others.
pub(crate) fn open_tap(text: &str, browse: Browse) -> Result<OpenReader, Failure> {
    let (uri, endpoint) = parse(text)?;
    let media = media();
    let medium = media.of(&uri).map_err(wrong(&endpoint))?;
    let receiver = match medium.browser {
        Some(browser) => browser(uri, browse),
        // Its senders keep unacknowledged chunks, and there is no other reader.
        None if browse == Browse::UntilNow => (medium.receiver)(uri, false),
        None => {
            return Err(Failure::configuration(format!(
                "{endpoint}: what passes there cannot be looked at from outside; start the sender, \
                 relay or receiver with --metrics 9464 and use baler tap http://127.0.0.1:9464"
            )));
        }
    };
    open(&receiver.map_err(wrong(&endpoint))?, endpoint)
}

fn open(receiver: &ReaderFactory, endpoint: String) -> Result<OpenReader, Failure> {
    let open = receiver.open()?;
    if let Some(warning) = open.warning {
        output::say(format_args!("warning: {warning}"));
    }
    let (name, mut reported) = (endpoint.clone(), 0);
    // Removals are reported on standard error when they are found.
    let reader = watched(open.reader, move |reader, received| {
        if let Err(error) = received {
            let removals = reader.stats().removals;
            if removals > reported {
                reported = removals;
                output::say(format_args!("warning: {name}: {}", error.message));
            }
        }
    });
    Ok(OpenReader {
        reader,
        listens_on: open.listens_on,
        endpoint,
        readership: receiver.readership,
        only_looks: receiver.only_looks,
    })
}

/// Returns the reader, with a function that gets each result of [`ChunkReader::receive`] before the
/// owner of the reader.
pub(crate) fn watched(
    reader: Box<dyn ChunkReader>,
    look: impl FnMut(&dyn ChunkReader, &Result<Received, TransportError>) + Send + 'static,
) -> Box<dyn ChunkReader> {
    Box::new(Watched { reader, look })
}

/// A reader whose results are looked at.
struct Watched<F> {
    reader: Box<dyn ChunkReader>,
    look: F,
}

impl<F> ChunkReader for Watched<F>
where
    F: FnMut(&dyn ChunkReader, &Result<Received, TransportError>) + Send,
{
    fn capability(&self) -> &ReaderCapability {
        self.reader.capability()
    }

    fn set_demand(&mut self, chunks: usize) {
        self.reader.set_demand(chunks);
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        let received = self.reader.receive(by);
        (self.look)(&*self.reader, &received);
        received
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        self.reader.settle(token, verdict)
    }

    fn waits_for(&self) -> Option<&'static str> {
        self.reader.waits_for()
    }

    fn stats(&self) -> ReaderStats {
        self.reader.stats()
    }

    fn close(self: Box<Self>, by: Instant) -> ReaderCloseReport {
        self.reader.close(by)
    }
}
