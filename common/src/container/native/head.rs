//! The header between prefix and body; FORMAT.md, "Header".

use super::prefix::{PREFIX_BYTES, declared_bytes, unknown};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::header::{ChunkHeader, ClockMapping, LostChunks};
use crate::container::limits::Limits;
use crate::container::varint::{self, prefixed_by_length};
use crate::number::{to_u64, to_usize};
use crate::transport::{ChunkIdentity, Epoch, ProducerId};

/// The required features that this version knows: none yet.
const KNOWN_REQUIRED: u16 = 0;

/// The approximate length of a header's fields.
const USUAL_BYTES: usize = 64;

const LAST_OF_EPOCH: u16 = 1 << 0;
const CLOCK_JUMPED: u16 = 1 << 1;
const HAS_CLOCK: u16 = 1 << 2;
const HAS_TIME_SPAN: u16 = 1 << 3;
const HAS_LOSSES: u16 = 1 << 4;
const HAS_LOST_CHUNKS: u16 = 1 << 5;

/// The contents of the header; a writer borrows its own part.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Head<H = ChunkHeader> {
    pub(super) header: H,
    pub(super) records: usize,
    pub(super) types: usize,
    pub(super) strings: usize,
    pub(super) time_span: Option<(i64, i64)>,
}

impl Head<&ChunkHeader> {
    /// Appends the header.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let header = self.header;
        let optional = [
            (LAST_OF_EPOCH, header.last_of_epoch),
            (CLOCK_JUMPED, header.clock_jumped),
            (HAS_CLOCK, header.clock.is_some()),
            (HAS_TIME_SPAN, self.time_span.is_some()),
            (HAS_LOSSES, !header.losses.is_empty()),
            (HAS_LOST_CHUNKS, !header.lost_chunks.is_empty()),
        ];
        let optional = optional
            .into_iter()
            .filter(|(_, set)| *set)
            .fold(0, |flags, (flag, _)| flags | flag);
        out.extend_from_slice(&KNOWN_REQUIRED.to_le_bytes());
        out.extend_from_slice(&u16::to_le_bytes(optional));
        prefixed_by_length(out, USUAL_BYTES, |out| self.write_fields(out));
    }

    fn write_fields(&self, out: &mut Vec<u8>) {
        let header = self.header;
        let identity = &header.identity;
        out.extend_from_slice(&identity.producer.as_u128().to_le_bytes());
        out.extend_from_slice(&identity.epoch.start_unix_ns.to_le_bytes());
        out.extend_from_slice(&identity.epoch.random.to_le_bytes());
        varint::write(out, identity.lane.into());
        varint::write(out, identity.sequence);
        varint::write(out, to_u64(self.records));
        varint::write(out, to_u64(self.types));
        varint::write(out, to_u64(self.strings));
        if let Some(clock) = &header.clock {
            out.extend_from_slice(&clock.anchor_ticks.to_le_bytes());
            out.extend_from_slice(&clock.anchor_unix_ns.to_le_bytes());
            out.extend_from_slice(&clock.multiplier.to_le_bytes());
            out.push(clock.shift);
        }
        if let Some((first, last)) = self.time_span {
            varint::write_signed(out, first);
            varint::write(out, last.wrapping_sub(first) as u64);
        }
        if !header.losses.is_empty() {
            varint::write(out, to_u64(header.losses.iter().len()));
            for (reason, records) in header.losses.iter() {
                out.push(reason);
                varint::write(out, records);
            }
        }
        if !header.lost_chunks.is_empty() {
            varint::write(out, to_u64(header.lost_chunks.len()));
            for lost in &header.lost_chunks {
                varint::write(out, lost.first_sequence);
                varint::write(out, lost.chunks);
            }
        }
    }
}

impl Head {
    /// Reads the header. Skips fields that later versions may have appended.
    pub(super) fn read(cursor: &mut Cursor<'_>, limits: &Limits) -> Result<Self, DecodeError> {
        let at = cursor.clone();
        let required = cursor.u16("the required features")?;
        if required & !KNOWN_REQUIRED != 0 {
            let number = u64::from(required & !KNOWN_REQUIRED);
            let what = "required feature";
            return Err(unknown(&at, "the required features", what, number));
        }
        let optional = cursor.u16("the optional features")?;
        let has = |flag: u16| optional & flag != 0;
        let fields = &mut cursor.section("the header")?;

        let identity = read_identity(fields)?;
        // Positions in a batch have 32 bits.
        let most_records = limits.records.min(to_usize(u32::MAX));
        let records = fields.count(most_records, "the number of records")?;
        let types = fields.count(limits.types, "the number of types")?;
        let strings = fields.count(limits.strings, "the number of strings")?;
        let mut header = ChunkHeader::new(identity);
        header.last_of_epoch = has(LAST_OF_EPOCH);
        header.clock_jumped = has(CLOCK_JUMPED);
        if has(HAS_CLOCK) {
            header.clock = Some(read_clock(fields)?);
        }
        let mut time_span = None;
        if has(HAS_TIME_SPAN) {
            let first = fields.signed("the first time")?;
            let at = fields.clone();
            let length = fields.varint("the last time")?;
            let last = first.checked_add_unsigned(length).ok_or_else(|| {
                at.error("the last time", DecodeErrorKind::Invalid { found: length })
            })?;
            time_span = Some((first, last));
        }
        if has(HAS_LOSSES) {
            // A reason is one byte, so there are at most 256.
            for _ in 0..fields.count(256, "the number of losses")? {
                let reason = fields.u8("the reason of a loss")?;
                header.losses.add_code(reason, fields.varint("a loss")?);
            }
        }
        if has(HAS_LOST_CHUNKS) {
            // A range takes at least two bytes in the chunk, and more in memory.
            let most = limits.decoded_bytes / size_of::<LostChunks>();
            let most = most.min(fields.left() / 2);
            let ranges = fields.count(most, "the number of lost ranges")?;
            header.lost_chunks.reserve_exact(ranges);
            for _ in 0..ranges {
                header.lost_chunks.push(read_lost(fields)?);
            }
        }
        Ok(Self {
            header,
            records,
            types,
            strings,
            time_span,
        })
    }
}

/// Returns the identity in a chunk. Only the prefix is checked, not the chunk.
pub fn native_identity(chunk: &[u8]) -> Option<ChunkIdentity> {
    declared_bytes(chunk)?;
    let mut cursor = Cursor::new(chunk.get(PREFIX_BYTES..)?);
    cursor.u16("the required features").ok()?;
    cursor.u16("the optional features").ok()?;
    read_identity(&mut cursor.section("the header").ok()?).ok()
}

fn read_identity(fields: &mut Cursor<'_>) -> Result<ChunkIdentity, DecodeError> {
    let producer = ProducerId::new(u128::from_le_bytes(fields.array("the producer")?));
    let epoch = Epoch {
        start_unix_ns: fields.u64("the epoch's start")?,
        random: fields.u32("the epoch's random number")?,
    };
    let at = fields.clone();
    let lane = fields.varint("the lane")?;
    let lane = u32::try_from(lane)
        .map_err(|_| at.error("the lane", DecodeErrorKind::Invalid { found: lane }))?;
    Ok(ChunkIdentity {
        producer,
        epoch,
        lane,
        sequence: fields.varint("the sequence number")?,
    })
}

fn read_clock(fields: &mut Cursor<'_>) -> Result<ClockMapping, DecodeError> {
    let anchor_ticks = fields.u64("the clock's anchor in ticks")?;
    let anchor_unix_ns = i64::from_le_bytes(fields.array("the clock's anchor in nanoseconds")?);
    let multiplier = fields.u32("the clock's multiplier")?;
    let at = fields.clone();
    let shift = fields.u8("the clock's shift")?;
    if shift > 63 {
        let found = shift.into();
        return Err(at.error("the clock's shift", DecodeErrorKind::Invalid { found }));
    }
    Ok(ClockMapping {
        anchor_ticks,
        anchor_unix_ns,
        multiplier,
        shift,
    })
}

fn read_lost(fields: &mut Cursor<'_>) -> Result<LostChunks, DecodeError> {
    let first_sequence = fields.varint("the first lost chunk")?;
    let at = fields.clone();
    let chunks = fields.varint("the number of lost chunks")?;
    if chunks == 0 || first_sequence.checked_add(chunks - 1).is_none() {
        let kind = DecodeErrorKind::Invalid { found: chunks };
        return Err(at.error("the number of lost chunks", kind));
    }
    Ok(LostChunks {
        first_sequence,
        chunks,
    })
}
