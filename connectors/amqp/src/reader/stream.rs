//! What of a stream was delivered and what became of it; and the position, kept in a file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use baler_common::transport::{Failure, Settled, Token, Verdict};

use super::book::Arrived;
use crate::config::Start;

/// What of a stream was delivered and what became of it.
///
/// A stream's messages are numbered (RabbitMQ's `x-stream-offset`), and the broker keeps no
/// position of AMQP 0.9.1 consumers: an acknowledgement only lets it send more. So the contiguous
/// watermark is kept here, and what is to be delivered again is held here.
#[derive(Debug, Default)]
pub(super) struct StreamLedger {
    /// Everything below is settled. Nothing is known of it before the first delivery, unless it
    /// was kept.
    next: Option<u64>,
    /// What was delivered at or above the watermark, and whether it is settled.
    delivered: BTreeMap<u64, bool>,
    /// What is handed out and not settled.
    held: HashMap<Token, Arrived>,
    /// What was handed out over earlier connections and not settled.
    stale: HashSet<Token>,
    /// How many were handed out so far.
    tokens: u64,
    /// The highest number that ever came.
    highest: Option<u64>,
    /// Whether it begins with the oldest message that is kept.
    begins_first: bool,
    /// Everything below is known to be gone, by the stream's limits.
    base: u64,
}

/// What a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The next one. So many before it should have come and are gone, by the stream's limits.
    New {
        gone: u64,
        /// It came over an earlier connection.
        again: bool,
    },
    /// One below the watermark, or a repetition: the broker begins with whole batches.
    Known,
}

impl StreamLedger {
    /// A reader that begins at this number, or with the oldest message that is kept.
    pub(super) fn from(start: Start) -> Self {
        let next = match start {
            Start::Offset(next) => Some(next),
            _ => None,
        };
        Self {
            next,
            begins_first: start == Start::First,
            ..Self::default()
        }
    }

    /// Everything below is settled.
    pub(super) fn position(&self) -> Option<u64> {
        self.next
    }

    /// The number that is due.
    fn due(&self) -> Option<u64> {
        match self.delivered.last_key_value() {
            Some((last, _)) => Some(last.saturating_add(1)),
            None => self.next,
        }
    }

    pub(super) fn arrive(&mut self, offset: u64) -> Arrival {
        let due = self.due();
        if due.is_some_and(|due| offset < due) {
            return Arrival::Known;
        }
        if due.map_or(self.begins_first, |due| due < offset) {
            self.base = offset;
        }
        self.next.get_or_insert(offset);
        self.delivered.insert(offset, false);
        let gone = due.map_or(0, |due| offset.saturating_sub(due));
        let again = self.highest.is_some_and(|highest| offset <= highest);
        self.highest = self.highest.max(Some(offset));
        Arrival::New { gone, again }
    }

    /// How many of a stream's messages are not settled, if it holds so many in all. Its limits may
    /// have removed some that nobody told us of; then there are more.
    pub(super) fn lag(&self, messages: u64) -> Option<u64> {
        match self.next {
            Some(next) => Some(messages.saturating_add(self.base).saturating_sub(next)),
            None => self.begins_first.then_some(messages),
        }
    }

    pub(super) fn hand_out(&mut self, arrived: Arrived) -> Token {
        self.tokens += 1;
        let token = Token(self.tokens);
        self.held.insert(token, arrived);
        token
    }

    /// Yields what is to be delivered again, too.
    pub(super) fn settle(&mut self, token: Token, verdict: Verdict) -> (Settled, Option<Arrived>) {
        let Some(mut arrived) = self.held.remove(&token) else {
            self.stale.remove(&token);
            return (Settled::Stale, None);
        };
        if verdict == Verdict::Retry {
            arrived.redelivered = true;
            return (Settled::Done, Some(arrived));
        }
        self.pass(arrived.position);
        (Settled::Done, None)
    }

    /// A delivery is done with.
    pub(super) fn pass(&mut self, offset: u64) {
        if let Some(settled) = self.delivered.get_mut(&offset) {
            *settled = true;
        }
        while let Some(first) = self.delivered.first_entry() {
            if !*first.get() {
                break;
            }
            self.next = Some(first.key().saturating_add(1));
            first.remove();
        }
    }

    /// How many deliveries are handed out and not settled.
    pub(super) fn handed(&self) -> usize {
        self.held.len() + self.stale.len()
    }

    /// The connection is gone: everything above the watermark comes again.
    pub(super) fn reset(&mut self) {
        self.stale.extend(self.held.drain().map(|(token, _)| token));
        self.delivered.clear();
    }
}

/// Where a reader of a stream is, kept in a file: RabbitMQ keeps no position of AMQP 0.9.1
/// consumers.
///
/// The file is replaced as a whole and synced, so that after a crash it holds the old position or
/// the new one. One reader at a time has it.
#[derive(Debug)]
pub(super) struct PositionFile {
    path: PathBuf,
    /// Of which stream.
    stream: Box<str>,
    saved: Option<u64>,
    /// Held as long as this value; the file itself is replaced, so it cannot be locked.
    _lock: File,
}

/// What the file begins with.
const MAGIC: &str = "baler-stream-position 1";

impl PositionFile {
    /// Opens the file, which need not be there yet, for a stream.
    pub(super) fn open(path: &Path, stream: &str) -> Result<Self, Failure> {
        let failed = |error: io::Error| told(path, &error);
        // The lock file is never emptied: its name may lead to a file of somebody else.
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(beside(path, ".lock"))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("position_file {}: another reader has it", path.display());
                return Err(Failure::retry("read from", message));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let saved = match fs::read_to_string(path) {
            Ok(text) => Some(parse(&text, stream).map_err(|what| {
                let message = format!("position_file {}: {what}", path.display());
                Failure::last("read from", message)
            })?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        Ok(Self {
            path: path.into(),
            stream: stream.into(),
            saved,
            _lock: lock,
        })
    }

    /// What was saved last.
    pub(super) fn saved(&self) -> Option<u64> {
        self.saved
    }

    /// Saves a position, on disk when this returns.
    pub(super) fn save(&mut self, position: u64) -> Result<(), Failure> {
        if self.saved == Some(position) {
            return Ok(());
        }
        self.replace(position)
            .map_err(|error| told(&self.path, &error))?;
        self.saved = Some(position);
        Ok(())
    }

    fn replace(&self, position: u64) -> io::Result<()> {
        let new = beside(&self.path, ".new");
        let mut file = File::create(&new)?;
        let text = format!("{MAGIC}\nstream {}\nnext {position}\n", self.stream);
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        let folder = self
            .path
            .parent()
            .filter(|path| !path.as_os_str().is_empty());
        File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
    }
}

fn told(path: &Path, error: &io::Error) -> Failure {
    let message = format!("position_file {}: {error}", path.display());
    Failure::retry("read from", message)
}

/// A file beside this one.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn parse(text: &str, stream: &str) -> Result<u64, String> {
    let mut lines = text.lines();
    if lines.next() != Some(MAGIC) {
        return Err("it holds no position".into());
    }
    let of = lines.next().and_then(|line| line.strip_prefix("stream "));
    match of {
        Some(of) if of == stream => {}
        of => {
            let of = of.unwrap_or_default();
            return Err(format!("it holds the position in {of}, not in {stream}"));
        }
    }
    let next = lines.next().and_then(|line| line.strip_prefix("next "));
    next.and_then(|next| next.parse().ok())
        .ok_or_else(|| "it holds no position".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use baler_common::transport::RetryClass;
    use bytes::Bytes;

    fn arrived(position: u64) -> Arrived {
        Arrived {
            tag: position,
            position,
            bytes: Bytes::new(),
            meta: None,
            redelivered: false,
            attempts: 0,
        }
    }

    const NEXT: Arrival = Arrival::New {
        gone: 0,
        again: false,
    };

    #[test]
    fn position_stops_at_what_is_not_settled() {
        let mut ledger = StreamLedger::from(Start::First);
        let tokens: Vec<_> = (7..12)
            .map(|offset| {
                assert_eq!(ledger.arrive(offset), NEXT);
                ledger.hand_out(arrived(offset))
            })
            .collect();
        assert_eq!(ledger.position(), Some(7));
        for at in [4, 1, 0] {
            ledger.settle(tokens[at], Verdict::Ack);
        }
        assert_eq!(ledger.position(), Some(9));
        ledger.settle(tokens[2], Verdict::Reject);
        ledger.settle(tokens[3], Verdict::Ack);
        assert_eq!((ledger.position(), ledger.handed()), (Some(12), 0));
    }

    #[test]
    fn what_is_retried_comes_again_by_another_name_and_holds_the_position() {
        let mut ledger = StreamLedger::from(Start::Offset(3));
        ledger.arrive(3);
        let first = ledger.hand_out(arrived(3));
        let (settled, again) = ledger.settle(first, Verdict::Retry);
        let again = again.unwrap();
        assert!(settled == Settled::Done && again.redelivered);
        assert_eq!(ledger.position(), Some(3));
        let second = ledger.hand_out(again);
        assert_eq!(ledger.settle(first, Verdict::Ack).0, Settled::Stale);
        assert_eq!(ledger.position(), Some(3));
        assert_eq!(ledger.settle(second, Verdict::Ack).0, Settled::Done);
        assert_eq!(ledger.position(), Some(4));
    }

    #[test]
    fn after_a_lost_connection_it_begins_at_the_watermark() {
        let mut ledger = StreamLedger::from(Start::First);
        let tokens: Vec<_> = (0..3)
            .map(|offset| {
                ledger.arrive(offset);
                ledger.hand_out(arrived(offset))
            })
            .collect();
        ledger.settle(tokens[0], Verdict::Ack);
        ledger.settle(tokens[2], Verdict::Ack);
        ledger.reset();
        assert_eq!((ledger.position(), ledger.handed()), (Some(1), 1));
        // The broker begins with the batch that holds it.
        assert_eq!(ledger.arrive(0), Arrival::Known);
        let again = true;
        assert_eq!(ledger.arrive(1), Arrival::New { gone: 0, again });
        assert_eq!(ledger.settle(tokens[1], Verdict::Ack).0, Settled::Stale);
        assert_eq!(ledger.position(), Some(1));
        assert_eq!(ledger.handed(), 0);
    }

    #[test]
    fn what_the_stream_no_longer_holds_is_counted() {
        let mut ledger = StreamLedger::from(Start::Offset(10));
        let again = false;
        assert_eq!(ledger.arrive(25), Arrival::New { gone: 15, again });
        let token = ledger.hand_out(arrived(25));
        ledger.settle(token, Verdict::Ack);
        assert_eq!(ledger.position(), Some(26));
        assert_eq!(ledger.lag(40), Some(39));
    }

    #[test]
    fn lag_is_what_follows_the_watermark() {
        let mut ledger = StreamLedger::from(Start::First);
        assert_eq!(ledger.lag(9), Some(9));
        // The first ones were removed before anybody read them.
        ledger.arrive(100);
        ledger.pass(100);
        assert_eq!(ledger.lag(9), Some(8));
        assert_eq!(StreamLedger::from(Start::Next).lag(9), None);
    }

    fn folder(name: &str) -> PathBuf {
        let name = format!("baler-amqp-position-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn position_outlives_its_reader_and_is_that_of_one_stream() {
        let folder = folder("kept");
        let path = folder.join("p");
        let mut file = PositionFile::open(&path, "/ q").unwrap();
        assert_eq!(file.saved(), None);
        file.save(17).unwrap();
        file.save(4).unwrap();
        drop(file);
        assert_eq!(PositionFile::open(&path, "/ q").unwrap().saved(), Some(4));
        let other = PositionFile::open(&path, "/ other").unwrap_err();
        assert_eq!(other.class, RetryClass::Final);
        assert!(other.message.contains("/ q"), "{other:?}");
        fs::write(&path, "something else").unwrap();
        let damaged = PositionFile::open(&path, "/ q").unwrap_err();
        assert_eq!(damaged.class, RetryClass::Final);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn two_readers_do_not_share_a_position() {
        let folder = folder("shared");
        let path = folder.join("p");
        let first = PositionFile::open(&path, "/ q").unwrap();
        let second = PositionFile::open(&path, "/ q").unwrap_err();
        assert_eq!(second.class, RetryClass::Retry);
        drop(first);
        PositionFile::open(&path, "/ q").unwrap();
        fs::remove_dir_all(folder).unwrap();
    }
}
