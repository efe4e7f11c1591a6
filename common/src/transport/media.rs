//! Media that are named by URI: their descriptions by the connectors, and their list.

use std::fmt;
use std::net::SocketAddr;

use super::uri::{Uri, UriError};
use super::{ChunkReader, ChunkWriter, Readership, TransportError};

/// The description of a connector for programs that open media by URI: a constant of its crate.
///
/// Its functions only read settings. [`ChunkWriter::reopen`] and [`ReaderFactory::open`] open the
/// medium.
#[derive(Debug, Clone, Copy)]
pub struct Medium {
    /// The schemes of its URIs.
    pub schemes: &'static [&'static str],
    /// Makes the sending end.
    pub writer: fn(Uri) -> Result<Box<dyn ChunkWriter>, UriError>,
    /// Makes the receiving end. `true`: a source with an end waits for more.
    pub receiver: fn(Uri, bool) -> Result<ReaderFactory, UriError>,
    /// Makes a receiving end that takes nothing from other readers; `None` if the medium has none.
    pub browser: Option<BrowserSettings>,
}

/// Reads the settings of a receiving end that takes nothing from other readers.
pub type BrowserSettings = fn(Uri, Browse) -> Result<ReaderFactory, UriError>;

/// The chunks that a browsing reader sees. Such a reader takes nothing from other readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Browse {
    /// Chunks that arrive from now on.
    FromNow,
    /// Chunks that the medium still has, and then new ones.
    FromOldest,
    /// Chunks that the medium has now. If the medium knows their end, the reader ends there.
    UntilNow,
}

/// Opens readers of a medium. Its settings are correct, but nothing is open yet.
pub struct ReaderFactory {
    /// The other processes that read the medium.
    pub readership: Readership,
    /// Whether settling a chunk changes nothing at the medium.
    pub only_looks: bool,
    open: Box<dyn Fn() -> Result<OpenReader, TransportError> + Send>,
}

impl ReaderFactory {
    /// Creates a receiving end. Each call of `open` opens a reader.
    pub fn new<R: Into<OpenReader>>(
        readership: Readership,
        open: impl Fn() -> Result<R, TransportError> + Send + 'static,
    ) -> Self {
        Self {
            readership,
            only_looks: false,
            open: Box::new(move || open().map(Into::into)),
        }
    }

    /// Creates a receiving end whose readers only look: their chunks are given back, whatever the
    /// verdict.
    pub fn browser<R: Into<OpenReader>>(
        open: impl Fn() -> Result<R, TransportError> + Send + 'static,
    ) -> Self {
        Self {
            only_looks: true,
            ..Self::new(Readership::OneProcess, open)
        }
    }

    /// Opens a reader. With [`Readership::Shared`] there can be several at the same time.
    ///
    /// # Errors
    ///
    /// The medium cannot be opened.
    pub fn open(&self) -> Result<OpenReader, TransportError> {
        (self.open)()
    }
}

impl fmt::Debug for ReaderFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderFactory")
            .field("readership", &self.readership)
            .field("only_looks", &self.only_looks)
            .finish_non_exhaustive()
    }
}

/// An open reader.
pub struct OpenReader {
    /// The reader.
    pub reader: Box<dyn ChunkReader>,
    /// The address on which it listens for senders, if it does.
    pub listens_on: Option<SocketAddr>,
    /// A warning for the operator, for example that any peer can connect.
    pub warning: Option<Box<str>>,
}

impl<R: ChunkReader + 'static> From<R> for OpenReader {
    fn from(reader: R) -> Self {
        Self {
            reader: Box::new(reader),
            listens_on: None,
            warning: None,
        }
    }
}

impl fmt::Debug for OpenReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenReader")
            .field("listens_on", &self.listens_on)
            .field("warning", &self.warning)
            .finish_non_exhaustive()
    }
}

/// The media known to a program.
///
/// ```
/// use baler_common::transport::uri::Uri;
/// use baler_common::transport::{Media, Medium, Readership, ReaderFactory};
/// use baler_connector_testkit::{MemoryLimits, MemoryMedium};
///
/// /// A connector's crate exports this.
/// const MEMORY: Medium = Medium {
///     schemes: &["memory"],
///     writer: |uri| {
///         uri.finish()?;
///         Ok(Box::new(MemoryMedium::new(MemoryLimits::default()).writer()))
///     },
///     receiver: |uri, _follow| {
///         uri.finish()?;
///         let medium = MemoryMedium::new(MemoryLimits::default());
///         Ok(ReaderFactory::new(Readership::OneProcess, move || Ok(medium.reader())))
///     },
///     browser: None,
/// };
///
/// // A program names the connectors that it links.
/// let media = Media::default().with(MEMORY);
/// let reader = media.receiver(Uri::parse("memory:")?, false)?.open()?.reader;
/// let wrong = media.writer(Uri::parse("memroy:")?).map(drop).unwrap_err();
/// assert!(wrong.to_string().ends_with("use one of memory:; did you mean memory:?"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Media {
    known: Vec<Medium>,
    /// Missing schemes, and the reasons.
    absent: Vec<(&'static str, Box<str>)>,
}

impl Media {
    /// Adds a medium.
    #[must_use]
    pub fn with(mut self, medium: Medium) -> Self {
        self.known.push(medium);
        self
    }

    /// Names schemes that this build lacks; `why` explains how to get them.
    #[must_use]
    pub fn without(mut self, schemes: &[&'static str], why: &str) -> Self {
        let absent = schemes.iter().map(|scheme| (*scheme, why.into()));
        self.absent.extend(absent);
        self
    }

    /// Whether a text begins with a known scheme, even one that is absent from this build.
    pub fn is_named_by(&self, text: &str) -> bool {
        let absent = self.absent.iter().map(|(scheme, _)| *scheme);
        let scheme = text.split_once(':').map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| self.schemes().chain(absent).any(|known| known == scheme))
    }

    /// Returns the medium of a URI.
    ///
    /// # Errors
    ///
    /// No medium has its scheme. The error explains why this build lacks it, or names the existing
    /// schemes and the nearest one.
    pub fn of(&self, uri: &Uri) -> Result<&Medium, UriError> {
        let scheme = uri.scheme();
        let known = self.known.iter().find(|it| it.schemes.contains(&scheme));
        known.ok_or_else(
            || match self.absent.iter().find(|(absent, _)| *absent == scheme) {
                Some((_, why)) => UriError::absent_scheme(scheme, why),
                None => UriError::unknown_scheme(scheme, self.schemes()),
            },
        )
    }

    /// Makes the sending end of the medium that a URI names.
    ///
    /// # Errors
    ///
    /// No medium has its scheme, or a setting is wrong.
    pub fn writer(&self, uri: Uri) -> Result<Box<dyn ChunkWriter>, UriError> {
        (self.of(&uri)?.writer)(uri)
    }

    /// Makes the receiving end of the medium that a URI names. `follow`: a source with an end waits
    /// for more.
    ///
    /// # Errors
    ///
    /// As [`writer`](Self::writer).
    pub fn receiver(&self, uri: Uri, follow: bool) -> Result<ReaderFactory, UriError> {
        (self.of(&uri)?.receiver)(uri, follow)
    }

    fn schemes(&self) -> impl Iterator<Item = &'static str> {
        self.known.iter().flat_map(|it| it.schemes.iter().copied())
    }
}

#[cfg(test)]
mod tests;
