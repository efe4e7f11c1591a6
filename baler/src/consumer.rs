//! The consumer's side: records come back as values of Rust types.

mod batch;
mod open;
#[cfg(feature = "stream")]
mod stream;

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_analysis::{Parcel, Source, SourceReport, Step};
use baler_common::number::to_u64;
use baler_common::record::Records;
pub use batch::{Batch, RecordIdentity};
#[cfg(feature = "stream")]
pub use stream::BatchStream;

use crate::config::ConsumerConfig;
use crate::error::Error;

/// How long the consumer waits at a time before it checks whether it should stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The time limit for closing a consumer that is dropped.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long [`Consumer::for_each`] waits after an error of the handler: the first time, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Reads records of one type from a medium, or of the types of an enum ([`Records`]).
///
/// ```
/// use std::time::Duration;
/// use baler::Record;
///
/// #[derive(Record)]
/// struct Order { id: u64, item: String }
///
/// # let folder = tempfile::tempdir()?;
/// # let uri = format!("file://{}", folder.path().display());
/// # let controller = baler::Controller::to(&uri)?;
/// # controller.emit(&Order { id: 1, item: "tea".into() });
/// # controller.shutdown(Duration::from_secs(5));
/// for batch in baler::consume::<Order>(&uri)? {
///     let batch = batch?;
///     for order in &batch {
///         println!("{} {}", order.id, order.item);
///     }
///     batch.ack()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The text is not a URI, no medium of this build has its scheme, a setting is wrong, or the medium
/// cannot be opened.
pub fn consume<T: Records>(
    medium: impl TryInto<ConsumerConfig, Error: Into<Error>>,
) -> Result<Consumer<T>, Error> {
    let config = medium.try_into().map_err(Into::into)?;
    let opened = open::source(&config)?;
    Ok(Consumer {
        source: SharedSource(Arc::new(Mutex::new(Some(opened.source)))),
        listens_on: opened.listens_on,
        warning: opened.warning,
        puts_failures_aside: config.quarantine.is_some() && config.max_attempts > 0,
        skipped: 0,
        has_failed: false,
        stop: StopHandle::default(),
        records: PhantomData,
    })
}

/// Returns a source of untyped records with the same settings. It feeds
/// [stages](baler_analysis::Stage), such as a sink that writes Parquet, until
/// [`ConsumerConfig::idle_timeout`] or the end of the medium.
///
/// # Errors
///
/// As [`consume`].
pub fn source(medium: impl TryInto<ConsumerConfig, Error: Into<Error>>) -> Result<Source, Error> {
    let config = medium.try_into().map_err(Into::into)?;
    open::source(&config).map(|opened| opened.source)
}

/// Iterates over batches of typed records; made by [`consume`].
///
/// It waits for the next batch. It ends at the end of the medium, after
/// [`ConsumerConfig::idle_timeout`], or when it is [stopped](Self::stop_handle). Chunks without a
/// record of `T` are acknowledged and counted ([`skipped`](Self::skipped)).
///
/// An error ends it, except [`Error::Read`]: then the chunk is given back and may come again. When
/// it is dropped, acknowledged batches are settled, and all others are given back.
pub struct Consumer<T> {
    source: SharedSource,
    listens_on: Option<SocketAddr>,
    warning: Option<Box<str>>,
    /// Whether the source moves chunks to quarantine after too many failures.
    puts_failures_aside: bool,
    skipped: u64,
    has_failed: bool,
    stop: StopHandle,
    records: PhantomData<fn() -> T>,
}

/// An open source.
struct Opened {
    source: Source,
    listens_on: Option<SocketAddr>,
    warning: Option<Box<str>>,
}

/// The source of a consumer and of its batches; `None` after the consumer has ended.
#[derive(Clone)]
struct SharedSource(Arc<Mutex<Option<Source>>>);

impl SharedSource {
    fn lock(&self) -> MutexGuard<'_, Option<Source>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a consumer from another thread, for example a thread that waits for signals.
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Ends the consumer within about 50 ms, at its next batch.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl<T: Records> Consumer<T> {
    /// Passes each record to a handler, and acknowledges a batch when the handler has taken all of
    /// its records. It ends like the iterator.
    ///
    /// After an error of the handler the batch is given back. With a quarantine the consumer
    /// continues after a pause, and the batch comes again. After [`ConsumerConfig::max_attempts`]
    /// it goes to the quarantine with the last error. Without a quarantine the error ends the
    /// consumer.
    ///
    /// ```
    /// # use baler::Record;
    /// # #[derive(Record)]
    /// # struct Order { id: u64 }
    /// # let folder = tempfile::tempdir()?;
    /// # let uri = format!("file://{}", folder.path().display());
    /// # drop(baler::Controller::to(&uri)?.shutdown(std::time::Duration::from_secs(5)));
    /// let mut config: baler::ConsumerConfig = uri.parse()?;
    /// config.quarantine = Some("quarantine".into());
    /// let report = baler::consume::<Order>(config)?.for_each(|order| match order.id {
    ///     0 => Err("an order needs a number"),
    ///     _ => Ok(()),
    /// })?;
    /// assert_eq!(report.quarantined, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The consumer failed, or the handler failed without a quarantine.
    pub fn for_each<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        self,
        mut handler: impl FnMut(&T) -> Result<(), E>,
    ) -> Result<SourceReport, Error> {
        self.for_each_batch(|batch| batch.iter().try_for_each(&mut handler))
    }

    /// As [`for_each`](Self::for_each), with whole batches: for handlers that need the identity of
    /// records, or write many records at once.
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each).
    pub fn for_each_batch<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        mut self,
        mut handler: impl FnMut(&Batch<T>) -> Result<(), E>,
    ) -> Result<SourceReport, Error> {
        let mut pause = FIRST_PAUSE;
        while let Some(batch) = self.next() {
            let batch = batch?;
            let Err(error) = handler(&batch) else {
                batch.ack()?;
                pause = FIRST_PAUSE;
                continue;
            };
            let error = error.into();
            batch.give_back(error.to_string());
            if !self.puts_failures_aside {
                return Err(Error::Handler(error));
            }
            self.pause(pause);
            pause = LONGEST_PAUSE.min(pause * 2);
        }
        self.close(CLOSE_TIMEOUT)
    }

    /// Converts it to an asynchronous stream. A thread of its own reads one batch ahead.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    #[cfg(feature = "stream")]
    pub fn into_stream(self) -> Result<BatchStream<T>, Error>
    where
        T: Send + 'static,
    {
        BatchStream::start(self)
    }

    /// Returns the records of a chunk; `None` if there are none of `T`, or if the source will move
    /// it to quarantine.
    fn batch(&mut self, parcel: Parcel) -> Option<Result<Batch<T>, Error>> {
        let mut typed = parcel.chunk().batch.read::<T>();
        let mut records = Vec::new();
        let mut positions = Vec::new();
        while let Some(record) = typed.next() {
            let position = typed.last_position().and_then(|it| u32::try_from(it).ok());
            let position = position.unwrap_or(u32::MAX);
            match record {
                Ok(record) => {
                    records.push(record);
                    positions.push(position);
                }
                Err(source) => {
                    let origin = parcel.origin().map(ToString::to_string);
                    let error = Error::Read {
                        origin: origin.unwrap_or_else(|| "a chunk".to_owned()).into(),
                        position,
                        source,
                    };
                    parcel.fail_because(error.to_string());
                    return (!self.puts_failures_aside).then_some(Err(error));
                }
            }
        }
        // The source selects all records of a chunk, and none is read twice.
        self.skipped += to_u64(parcel.len() - records.len());
        let source = self.source.clone();
        (!records.is_empty()).then(|| Ok(Batch::new(records, positions, parcel, source)))
    }
}

impl<T> Consumer<T> {
    /// Returns the address on which the medium listens for senders, if it does.
    pub fn listens_on(&self) -> Option<SocketAddr> {
        self.listens_on
    }

    /// Returns a warning for the operator, for example that any peer can connect.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Returns how many records of other types were acknowledged unread.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Waits for this time, or until the consumer is stopped.
    fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if self.stop.is_stopped() {
                return;
            }
            std::thread::park_timeout(POLL_INTERVAL.min(left));
        }
    }

    /// Returns a handle to end the consumer from another thread.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Whether nothing more will arrive: it failed, was stopped, or has no batch in use.
    #[cfg(feature = "stream")]
    fn has_ended(&self) -> bool {
        self.has_failed || self.stop.is_stopped() || self.report().in_work == 0
    }

    /// The figures so far.
    pub fn report(&self) -> SourceReport {
        self.source
            .lock()
            .as_ref()
            .map_or_else(SourceReport::default, Source::report)
    }

    /// Settles acknowledged chunks, gives back the rest, and ends within `timeout`.
    ///
    /// # Errors
    ///
    /// The medium failed while it was closed. Unsettled chunks come again.
    pub fn close(self, timeout: Duration) -> Result<SourceReport, Error> {
        let source = self.source.lock().take();
        match source {
            Some(source) => Ok(source.close(Instant::now() + timeout)?),
            None => Ok(SourceReport::default()),
        }
    }
}

impl<T: Records> Iterator for Consumer<T> {
    type Item = Result<Batch<T>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.has_failed && !self.stop.is_stopped() {
            let mut guard = self.source.lock();
            let source = guard.as_mut()?;
            let step = source.step(Instant::now() + POLL_INTERVAL);
            let is_idle = source.is_idle();
            drop(guard);
            match step {
                Ok(Step::Chunk(parcel)) => {
                    if let Some(batch) = self.batch(parcel) {
                        return Some(batch);
                    }
                }
                Ok(Step::End) => return None,
                Ok(Step::Idle) if is_idle => return None,
                Ok(Step::Idle) => {}
                Err(error) => {
                    self.has_failed = true;
                    return Some(Err(error.into()));
                }
            }
        }
        None
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        let source = self.source.lock().take();
        if let Some(source) = source {
            // Chunks that are not settled in time come again.
            source.close(Instant::now() + CLOSE_TIMEOUT).ok();
        }
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("listens_on", &self.listens_on)
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}
