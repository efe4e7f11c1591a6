//! Sends the records of one chunk: divides them into requests, repeats requests, and adds up answers.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baler_common::random::random;
use baler_common::transport::{
    Backoff, Chunk, Failure, Outcome, RetryClass, RetryPolicy, TransportError,
};
use tokio::sync::Semaphore;
use tokio::time::{self, Instant};

use super::calls::Calls;
use super::records::ChunkRecords;
use crate::client::{Answer, Client};
use crate::config::{OtlpWriterConfig, Target};
use crate::error::Refusal;
use crate::limits::Counts;
use crate::mapping::{self, Encoding};
use crate::protocol::Signal;
use crate::types::Telemetry;

/// How often a request is sent before the owner gets the chunk back, to send it later again.
const MAX_ATTEMPTS: u32 = 5;

/// The longest time that a receiver can ask to wait for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

/// The most records of a request.
const MAX_RECORDS: usize = 8_192;

/// The count of numbers that are not in a file as they are in the records.
pub(super) const ALTERED: &str = "altered_numbers";

/// Sends the records of chunks.
#[derive(Debug)]
pub(super) struct Exporter {
    config: OtlpWriterConfig,
    endpoint: Box<str>,
    output: Output,
    counts: Arc<Counts>,
    retry: RetryPolicy,
    /// The chunks that may still be sent at the same time.
    requests: Semaphore,
    /// The calls in the chunks that are not sent.
    calls: Calls,
    /// The time before which the receiver wants no request.
    not_before: Mutex<Option<Instant>>,
}

#[derive(Debug)]
enum Output {
    Client(Client),
    File(Mutex<File>),
}

/// Why a chunk was not sent completely.
enum Unsent {
    /// The connection broke.
    Broken(Failure),
    /// The receiver, or this crate, refuses records.
    Refused(RetryClass, String),
}

impl From<Failure> for Unsent {
    fn from(failure: Failure) -> Self {
        Self::Broken(failure)
    }
}

impl Exporter {
    /// Connects to the receiver, or opens the file.
    pub(super) async fn open(
        config: OtlpWriterConfig,
        endpoint: Box<str>,
        counts: Arc<Counts>,
    ) -> Result<Self, Failure> {
        let output = match &config.target {
            Target::File(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                let file = file.map_err(|error| Failure::of_io("open", &error))?;
                Output::File(Mutex::new(file))
            }
            Target::Grpc(host) => Output::Client(Client::connect(host, "", &config).await?),
            Target::Http(host, path) => Output::Client(Client::connect(host, path, &config).await?),
        };
        let mut retry = RetryPolicy::default();
        retry.min_delay = Duration::from_millis(200);
        retry.seed = random();
        let max_requests = match config.target {
            Target::File(_) => 1,
            Target::Grpc(_) | Target::Http(..) => config.max_requests.get(),
        };
        Ok(Self {
            requests: Semaphore::new(max_requests.min(Semaphore::MAX_PERMITS)),
            calls: Calls::default(),
            config,
            endpoint,
            output,
            counts,
            retry,
            not_before: Mutex::new(None),
        })
    }

    /// Sends the records of a chunk.
    ///
    /// # Errors
    ///
    /// The connection broke.
    pub(super) async fn export(&self, chunk: &Chunk) -> Result<Outcome, Failure> {
        let (class, message) = match self.send_all(chunk).await {
            Ok(()) => return Ok(Outcome::Confirmed),
            Err(Unsent::Broken(failure)) => return Err(failure),
            Err(Unsent::Refused(class, message)) => (class, message),
        };
        let endpoint = self.endpoint.clone();
        let error = TransportError::new("write to", endpoint, class, message);
        Ok(Outcome::Refused(error))
    }

    async fn send_all(&self, chunk: &Chunk) -> Result<(), Unsent> {
        let refused = |message| {
            self.counts
                .add("refused_records", chunk.meta.records.into());
            Unsent::Refused(RetryClass::Final, message)
        };
        let hold = Instant::now() + self.config.hold;
        let mut place = self.requests.acquire().await;
        let decode = || ChunkRecords::of(chunk, self.config.others).map_err(refused);
        let mut records = decode()?;
        let (places, origins) = (records.places(), records.origins());
        let registered = self.calls.register(chunk.ticket, places, origins);
        if !registered.is_complete() {
            // Chunks that wait take no memory but that of their calls.
            drop((records, place));
            registered.completed(hold).await;
            place = self.requests.acquire().await;
            records = decode()?;
        }
        let (identity, service) = (chunk.meta.identity, self.config.service.as_deref());
        let made = records.make(&self.calls, identity, service);
        let without_parent = made.map_err(refused)?;
        self.counts.add("skipped_records", records.skipped());
        self.counts.add("spans_without_parent", without_parent);
        // The first refusal; the other requests are sent all the same.
        let mut first = None;
        for signal in Signal::ALL {
            let all = records.len(signal);
            // The last range is sent first.
            let starts = (0..all).step_by(MAX_RECORDS).rev();
            let mut ranges: Vec<_> = starts.map(|it| it..all.min(it + MAX_RECORDS)).collect();
            while let Some(range) = ranges.pop() {
                match self
                    .send(&records, signal, range.clone(), &mut ranges)
                    .await
                {
                    Err(Unsent::Refused(RetryClass::Final, message)) => {
                        first.get_or_insert(message);
                    }
                    sent => sent?,
                }
            }
        }
        self.finish()?;
        drop(place);
        match first {
            None => Ok(()),
            Some(message) => Err(Unsent::Refused(RetryClass::Final, message)),
        }
    }

    /// Sends a range of the records of a signal, or divides it if it is too large for one request.
    async fn send(
        &self,
        records: &ChunkRecords,
        signal: Signal,
        range: Range<usize>,
        ranges: &mut Vec<Range<usize>>,
    ) -> Result<(), Unsent> {
        let count = range.len() as u64;
        let refused = |message: String| {
            self.counts.add("refused_records", count);
            Unsent::Refused(RetryClass::Final, message)
        };
        let request_of = |records, encoding| {
            let request = mapping::request(signal, records, encoding);
            request.map_err(|error| refused(error.to_string()))
        };
        let records = records.read(signal, range.clone()).map_err(refused)?;
        let answer = match &self.output {
            Output::File(file) => {
                let not_finite = records.iter().map(Telemetry::not_finite).sum();
                let mut line = request_of(records, Encoding::Json)?;
                line.push(b'\n');
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let written = file.write_all(&line);
                written.map_err(|error| Failure::of_io("write to", &error))?;
                self.counts.add("sent_records", count);
                self.counts.add(ALTERED, not_finite);
                return Ok(());
            }
            Output::Client(client) => {
                let body = request_of(records, Encoding::Protobuf)?;
                if body.len() > self.config.max_request_bytes.get() && range.len() > 1 {
                    divide(range, ranges);
                    return Ok(());
                }
                self.answer(client, signal, body).await?
            }
        };
        match answer {
            Answer::Taken(success) if success.rejected > 0 => {
                let rejected = success.rejected.unsigned_abs().min(count);
                self.counts.add("sent_records", count - rejected);
                self.counts.add("rejected_records", rejected);
                let reason = success.error_message;
                let message =
                    format!("the receiver rejected {rejected} of {count} records: {reason}");
                Err(Unsent::Refused(RetryClass::Final, message))
            }
            Answer::Taken(_) => {
                self.counts.add("sent_records", count);
                Ok(())
            }
            Answer::Refused {
                refusal: Refusal::TooLarge,
                ..
            } if range.len() > 1 => {
                self.counts.add("divided_requests", 1);
                divide(range, ranges);
                Ok(())
            }
            Answer::Refused {
                refusal: Refusal::Class(RetryClass::Retry),
                message,
                ..
            } => Err(Unsent::Refused(RetryClass::Retry, message)),
            Answer::Refused { message, .. } => Err(refused(message)),
        }
    }

    /// Sends a request until it has a final answer, or was sent too often.
    async fn answer(
        &self,
        client: &Client,
        signal: Signal,
        body: Vec<u8>,
    ) -> Result<Answer, Failure> {
        let mut backoff = Backoff::default();
        for _ in 1..MAX_ATTEMPTS {
            self.wait().await;
            let answer = client.send(signal, body.clone()).await?;
            let Answer::Refused {
                refusal: Refusal::Class(RetryClass::Retry),
                retry_after,
                ..
            } = answer
            else {
                return Ok(answer);
            };
            self.counts.add("repeated_requests", 1);
            let pause = retry_after.unwrap_or_else(|| backoff.pause(&self.retry));
            let until = Instant::now() + pause.min(MAX_RETRY_AFTER);
            let mut not_before = self.lock_not_before();
            *not_before = not_before.max(Some(until));
        }
        self.wait().await;
        client.send(signal, body).await
    }

    /// Waits until the receiver wants requests again.
    async fn wait(&self) {
        let not_before = *self.lock_not_before();
        if let Some(time) = not_before {
            time::sleep_until(time).await;
        }
    }

    fn lock_not_before(&self) -> MutexGuard<'_, Option<Instant>> {
        self.not_before
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Forces what was written to disk, if the output is a file.
    fn finish(&self) -> Result<(), Failure> {
        let Output::File(file) = &self.output else {
            return Ok(());
        };
        let file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let synced = file.sync_data();
        synced.map_err(|error| Failure::of_io("write to", &error))
    }
}

/// Puts the halves of a range where the next range is taken.
fn divide(range: Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let middle = range.start + range.len() / 2;
    ranges.push(middle..range.end);
    ranges.push(range.start..middle);
}
