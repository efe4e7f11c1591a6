//! Chunks made by hand, and a reader that plays a script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use baler_analysis::{AnalysisError, Parcel, Stage};
use baler_common::container::{ChunkHeader, ChunkSerializer, Compression, NativeSerializer};
use baler_common::record::{
    BatchBuilder, DynamicRecord, Field, FieldType, RecordBatch, Schema, Value,
};
use baler_common::transport::{
    ChunkIdentity, ChunkReader, Damaged, Delivery, Epoch, LaneLag, LaneName, Order, Origin,
    ProducerId, ReaderCapability, ReaderCloseReport, ReaderStats, Received, Settled, Token,
    TransportError, Verdict,
};
use baler_connector_kieker::container;
use bytes::Bytes;

pub(crate) fn identity(sequence: u64) -> ChunkIdentity {
    ChunkIdentity {
        producer: ProducerId::new(7),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 2,
        },
        lane: 0,
        sequence,
    }
}

pub(crate) fn schema(name: &str, fields: &[(&str, FieldType)]) -> Arc<Schema> {
    let fields: Vec<Field> = fields
        .iter()
        .map(|(name, kind)| Field::new(*name, kind.clone()))
        .collect();
    Arc::new(Schema::new(name, fields).unwrap())
}

pub(crate) fn batch(records: &[DynamicRecord]) -> RecordBatch {
    let mut builder = BatchBuilder::new();
    records
        .iter()
        .for_each(|record| builder.push_dynamic(record).unwrap());
    builder.take()
}

/// A record of type `t` with one number.
pub(crate) fn numbered(number: i64) -> DynamicRecord {
    let schema = schema("t", &[("number", FieldType::I64)]);
    DynamicRecord::new(schema, Some(number), vec![Value::Signed(number)]).unwrap()
}

pub(crate) fn encode(header: &ChunkHeader, records: &[DynamicRecord]) -> Bytes {
    let mut bytes = Vec::new();
    let mut serializer = NativeSerializer::new(Compression::None).unwrap();
    serializer
        .serialize(&batch(records), header, &mut bytes)
        .unwrap();
    bytes.into()
}

/// The chunk with this sequence number; its one record has the same number.
pub(crate) fn chunk(sequence: u64) -> Bytes {
    let number = i64::try_from(sequence).unwrap();
    encode(&ChunkHeader::new(identity(sequence)), &[numbered(number)])
}

pub(crate) fn parcel(records: &[DynamicRecord]) -> Parcel {
    let bytes = encode(&ChunkHeader::new(identity(0)), records);
    Parcel::new(container::decoder().decode(&bytes).unwrap())
}

/// The next event of the script.
pub(crate) enum Play {
    Chunk(Bytes),
    Damaged(Bytes),
    /// Damage that the medium has not skipped.
    UnsettledDamage(Bytes),
    Error(TransportError),
    Assigned(&'static [&'static str]),
    /// An assignment of a lane in which earlier readers settled a producer's chunks up to this one.
    SettledBefore(ChunkIdentity),
    Revoked(&'static [&'static str]),
    /// The reader is not at its end for this time, and delivers nothing.
    Joins(Duration),
    Panic,
}

fn names(lanes: &[&str]) -> Vec<LaneName> {
    lanes.iter().map(|lane| (*lane).into()).collect()
}

/// Plays a script, then ends. Keeps the verdicts, and redelivers chunks after a retry.
pub(crate) struct Scripted {
    capability: ReaderCapability,
    script: VecDeque<Play>,
    handed_out: Vec<(Token, Bytes)>,
    next_token: u64,
    demand: usize,
    verdicts: Verdicts,
    ends: bool,
    joined_at: Option<Instant>,
}

pub(crate) type Verdicts = Arc<Mutex<Vec<(Token, Verdict)>>>;

impl Scripted {
    pub(crate) fn new(script: impl IntoIterator<Item = Play>) -> (Box<Self>, Verdicts) {
        let verdicts = Verdicts::default();
        let reader = Self {
            capability: ReaderCapability::new("script", Order::PerLane),
            script: script.into_iter().collect(),
            handed_out: Vec::new(),
            next_token: 0,
            demand: 0,
            verdicts: Arc::clone(&verdicts),
            ends: true,
            joined_at: None,
        };
        (Box::new(reader), verdicts)
    }

    fn hand_out(&mut self, bytes: &Bytes) -> Token {
        let token = Token(self.next_token);
        self.next_token += 1;
        self.handed_out.push((token, bytes.clone()));
        token
    }

    pub(crate) fn endless(mut self: Box<Self>) -> Box<Self> {
        self.ends = false;
        self
    }
}

fn origin() -> Origin {
    Origin {
        endpoint: "script:".into(),
        lane: "0".into(),
        position: 0,
    }
}

fn damaged(token: Option<Token>, bytes: Bytes) -> Received {
    Received::Damaged(Damaged {
        token,
        bytes,
        origin: origin(),
        reason: "torn".into(),
        peer: None,
    })
}

impl ChunkReader for Scripted {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        if self.handed_out.len() >= self.demand {
            return Ok(Received::Idle);
        }
        if let Some(Play::Joins(time)) = self.script.front() {
            let joined_at = *self.joined_at.get_or_insert_with(|| Instant::now() + *time);
            thread::park_timeout(joined_at.min(by).saturating_duration_since(Instant::now()));
            if Instant::now() < joined_at {
                return Ok(Received::Idle);
            }
            self.script.pop_front();
        }
        match self.script.pop_front() {
            Some(Play::Joins(_)) => Ok(Received::Idle),
            Some(Play::Chunk(bytes)) => {
                let token = self.hand_out(&bytes);
                Ok(Received::Chunk(Delivery {
                    token,
                    bytes,
                    meta: None,
                    origin: origin(),
                    redelivered: false,
                    attempts: 0,
                }))
            }
            Some(Play::Damaged(bytes)) => Ok(damaged(None, bytes)),
            Some(Play::UnsettledDamage(bytes)) => {
                let token = self.hand_out(&bytes);
                Ok(damaged(Some(token), bytes))
            }
            Some(Play::Error(error)) => Err(error),
            Some(Play::Assigned(lanes)) => Ok(Received::Assigned {
                lanes: names(lanes),
                settled: Vec::new(),
            }),
            Some(Play::SettledBefore(last)) => Ok(Received::Assigned {
                lanes: names(&["0"]),
                settled: vec![last],
            }),
            Some(Play::Revoked(lanes)) => Ok(Received::Revoked {
                lanes: names(lanes),
                by,
            }),
            Some(Play::Panic) => panic!("as the script wants it"),
            None if self.handed_out.is_empty() && self.ends => Ok(Received::End),
            None => Ok(Received::Idle),
        }
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        let at = self
            .handed_out
            .iter()
            .position(|(out, _)| *out == token)
            .unwrap();
        let (_, bytes) = self.handed_out.remove(at);
        if verdict == Verdict::Retry {
            self.script.push_back(Play::Chunk(bytes));
        }
        self.verdicts.lock().unwrap().push((token, verdict));
        Ok(Settled::Done)
    }

    fn waits_for(&self) -> Option<&'static str> {
        matches!(self.script.front(), Some(Play::Joins(_))).then_some("its part")
    }

    fn stats(&self) -> ReaderStats {
        let mut stats = ReaderStats::default();
        stats.lag = vec![LaneLag {
            lane: "0".into(),
            chunks: u64::try_from(self.script.len()).unwrap(),
        }];
        stats
    }

    fn close(self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        ReaderCloseReport {
            unsettled: self.handed_out.len(),
            error: None,
            unreported: 0,
        }
    }
}

/// Keeps the numbers of its records; fails according to its rule.
pub(crate) struct Keep {
    numbers: Numbers,
    rule: Box<dyn FnMut(i64) -> Result<(), AnalysisError> + Send>,
}

pub(crate) type Numbers = Arc<Mutex<Vec<i64>>>;

impl Stage for Keep {
    fn name(&self) -> &'static str {
        "keep"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        for (_, record) in parcel.records() {
            let number = record.timestamp().unwrap();
            (self.rule)(number)?;
            self.numbers.lock().unwrap().push(number);
        }
        Ok(())
    }
}

pub(crate) fn keep_all() -> (Keep, Numbers) {
    keep_by(|_| Ok(()))
}

pub(crate) fn keep_by(
    rule: impl FnMut(i64) -> Result<(), AnalysisError> + Send + 'static,
) -> (Keep, Numbers) {
    let numbers = Numbers::default();
    (
        Keep {
            numbers: Arc::clone(&numbers),
            rule: Box::new(rule),
        },
        numbers,
    )
}
