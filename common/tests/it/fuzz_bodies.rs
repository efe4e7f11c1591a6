//! The bodies of the fuzz targets of `common/fuzz`; `corpus` replays them on stable.

use std::sync::{Arc, LazyLock};

use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer, Compression, Limits, NativeSerializer,
};
use baler_common::record::{
    BatchBuilder, Catalog, DynamicRecord, EnumType, Field, FieldType, RecordBatch, Role, Schema,
    Value,
};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_connector_kieker::types::{self, WELL_KNOWN_TYPES};

/// Decodes the bytes as they are, and once more with corrected length and checksums of a native
/// chunk. An accepted chunk must survive being encoded again.
pub(crate) fn container(bytes: &[u8]) {
    let mut decoder = decoder(small_limits());
    decode(&mut decoder, bytes);
    if let Some(sealed) = sealed(bytes) {
        decode(&mut decoder, &sealed);
    }
}

fn decoder(limits: Limits) -> ChunkDecoder {
    ChunkDecoder::new(limits).with_well_known_types(&WELL_KNOWN_TYPES)
}

fn small_limits() -> Limits {
    let mut limits = Limits::default();
    limits.chunk_bytes = 1 << 20;
    limits.body_bytes = 1 << 20;
    limits.records = 1 << 14;
    limits.strings = 1 << 14;
    limits.types = 64;
    limits.decoded_bytes = 2 << 20;
    limits
}

/// Makes a chunk around the bytes. Everything in it is correct except the columns or the strings,
/// so that every input reaches their decoders.
pub(crate) fn columns(bytes: &[u8]) {
    if let Some(chunk) = chunk_of_columns(bytes) {
        decode(&mut decoder(small_limits()), &chunk);
    }
}

/// Returns the encodings of the columns that [`columns`] makes of the bytes; none if it is refused.
pub(crate) fn encodings(bytes: &[u8]) -> Vec<Box<str>> {
    let chunk = chunk_of_columns(bytes).unwrap();
    let decoded = decoder(Limits::default()).decode_with_layout(&chunk);
    let layout = decoded.map(|(_, layout)| layout).unwrap_or_default();
    let columns = layout.columns.into_iter();
    columns.map(|column| column.encoding).collect()
}

/// Returns the chunk that [`columns`] makes of the bytes, and the one that [`container`] corrects.
pub(crate) fn chunks(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    chunk_of_columns(bytes).into_iter().chain(sealed(bytes))
}

fn chunk_of_columns(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut source = Source(bytes);
    let kind = source.byte();
    let counts = match kind % 3 {
        // Strings alone, of words or plain.
        0 => [0, 0, u64::from(source.byte())],
        // Records, and as many strings as fit into a byte.
        _ => [source.short() % 256 + 1, 1, u64::from(source.byte())],
    };
    let body = match kind % 3 {
        0 => source.0.to_vec(),
        1 => calls_body(&mut source, counts),
        _ => fields_body(&mut source, counts),
    };
    sealed(&around(&body, counts))
}

/// A table of calls, whose columns are of the source.
fn calls_body(source: &mut Source<'_>, [records, _, strings]: [u64; 3]) -> Vec<u8> {
    let mut table = vec![0, 1];
    varint(records, &mut table);
    varint(source.short() % (records + 1), &mut table);
    for _ in 0..3 {
        source.column(&mut table);
    }
    table.push(source.byte() % 2);
    while !source.0.is_empty() {
        source.column(&mut table);
    }
    let mut body = vec![2];
    empty_strings(strings, &mut body);
    varint(table.len() as u64, &mut body);
    body.extend(table);
    body
}

/// A table of fields of any type, whose columns are of the source.
fn fields_body(source: &mut Source<'_>, [records, _, strings]: [u64; 3]) -> Vec<u8> {
    // A type that follows, of this name.
    let mut body = vec![0, 1, b't'];
    let fields = source.byte() % 6;
    body.push(fields);
    for number in 0..fields {
        body.extend([1, b'a' + number]);
        // The codes of types, of which optional and list take another one.
        let outer = source.byte() % 4;
        body.extend(match outer {
            0 => Some(0x10),
            1 => Some(0x11),
            _ => None,
        });
        body.extend([1 + source.byte() % 14, 0]);
    }
    empty_strings(strings, &mut body);
    let mut table = Vec::new();
    varint(records, &mut table);
    while !source.0.is_empty() {
        source.column(&mut table);
    }
    varint(table.len() as u64, &mut body);
    body.extend(table);
    body
}

/// This number of empty strings.
fn empty_strings(count: u64, body: &mut Vec<u8>) {
    if count > 0 {
        // Plain; the lengths are constant.
        body.extend([0, 0, 1, 0]);
    }
}

/// Prefix, header with a clock, and the body as one block.
fn around(body: &[u8], counts: [u64; 3]) -> Vec<u8> {
    let mut fields = vec![7; 28];
    fields.extend([0, 0]);
    for count in counts {
        varint(count, &mut fields);
    }
    // Ticks of 10 ns since 1970, but for a moment.
    fields.extend(100_u64.to_le_bytes());
    fields.extend(500_i64.to_le_bytes());
    fields.extend(40_u32.to_le_bytes());
    fields.push(2);
    let mut chunk = vec![0; 16];
    chunk.extend([0, 0, 1 << 2, 0]);
    varint(fields.len() as u64, &mut chunk);
    chunk.extend(fields);
    if !body.is_empty() {
        chunk.push(0);
        varint(body.len() as u64, &mut chunk);
        chunk.extend(body);
    }
    chunk.extend([0; 4]);
    chunk
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn decode(decoder: &mut ChunkDecoder, chunk: &[u8]) {
    let summary = decoder.summarize(chunk);
    let Ok((decoded, _)) = decoder.decode_with_layout(chunk) else {
        return;
    };
    assert_eq!(summary.as_ref(), Ok(&decoded.summary));
    if let Some(records) = decoded.summary.records {
        assert_eq!(decoded.batch.len(), records);
    }
    let header = decoded.summary.header.unwrap_or_else(plain_header);
    survives(&decoded.batch, &header, Compression::None);
}

/// Returns the bytes with the length and the checksums of a native chunk.
pub(crate) fn sealed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut chunk = bytes.to_vec();
    let total = u32::try_from(chunk.len()).ok()?;
    let (content, checksum) = chunk.split_last_chunk_mut::<4>()?;
    let prefix = content.first_chunk_mut::<16>()?;
    prefix[..6].copy_from_slice(b"BALR\x01\x01");
    prefix[8..12].copy_from_slice(&total.to_le_bytes());
    let prefix_checksum = crc32c::crc32c(&prefix[..12]);
    prefix[12..].copy_from_slice(&prefix_checksum.to_le_bytes());
    *checksum = crc32c::crc32c(content).to_le_bytes();
    Some(chunk)
}

/// Makes records of the bytes; decode(encode(x)) must be x.
pub(crate) fn roundtrip(bytes: &[u8]) {
    let mut source = Source(bytes);
    let compression = match source.byte() % 3 {
        0 => Compression::None,
        1 => Compression::Lz4,
        _ => Compression::Zstd { level: 1 },
    };
    let types = source.byte();
    let mut schemas: Vec<_> = (0..1 + types % 3)
        .map(|number| Arc::new(source.schema(&format!("t{number}"), 0)))
        .collect();
    if types >= 128 {
        schemas.extend(KIEKER.get(CALL).cloned());
    }
    let mut builder = BatchBuilder::new();
    let mut records = Vec::new();
    while !source.0.is_empty() && records.len() < 200 {
        let Some(schema) = schemas.get(usize::from(source.byte()) % schemas.len()) else {
            return;
        };
        let time = source.number() as i64;
        let values = source.fields(schema, 0);
        let record = DynamicRecord::new(Arc::clone(schema), Some(time), values).unwrap();
        builder.push_dynamic(&record).unwrap();
        records.push(record);
    }
    let mut header = plain_header();
    header.identity.sequence = source.number();
    let decoded = survives(&builder.take(), &header, compression);
    let decoded: Vec<_> = decoded.records().map(DynamicRecord::from).collect();
    assert_eq!(decoded, records);
}

fn survives(batch: &RecordBatch, header: &ChunkHeader, compression: Compression) -> RecordBatch {
    let Ok(mut serializer) = NativeSerializer::new(compression) else {
        return batch.clone();
    };
    serializer.set_well_known_types(&WELL_KNOWN_TYPES);
    let mut chunk = Vec::new();
    serializer.serialize(batch, header, &mut chunk).unwrap();
    let decoded = decoder(Limits::default()).decode(&chunk).unwrap();
    assert_eq!(&decoded.batch, batch);
    assert_eq!(decoded.summary.header.as_ref(), Some(header));
    decoded.batch
}

fn plain_header() -> ChunkHeader {
    ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 2,
            random: 3,
        },
        lane: 4,
        sequence: 5,
    })
}

/// Made once: it takes as long as a small chunk.
static KIEKER: LazyLock<Catalog> = LazyLock::new(types::catalog);

/// A type whose rows follow from one another.
const CALL: &str = "kieker.common.record.controlflow.OperationExecutionRecord";

/// The parts of some strings.
const WORDS: [&str; 8] = [
    "public ",
    "org.",
    "shop.",
    "Order17",
    "find",
    "(java.lang.String, int)",
    "0123456789abcdef",
    "\u{6f22}",
];

/// Takes schemas and values out of bytes; zeros when they end.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((byte, rest)) => {
                self.0 = rest;
                *byte
            }
            None => 0,
        }
    }

    fn short(&mut self) -> u64 {
        u16::from_le_bytes([self.byte(), self.byte()]).into()
    }

    /// Appends a column of integers: an encoding, and a payload of the length that stands before it.
    fn column(&mut self, out: &mut Vec<u8>) {
        let encoding = self.byte();
        let length = usize::from(self.byte()).min(self.0.len());
        let (payload, rest) = self.0.split_at(length);
        self.0 = rest;
        out.push(encoding);
        varint(length as u64, out);
        out.extend(payload);
    }

    /// Small numbers are more likely than large ones, as in practice.
    fn number(&mut self) -> u64 {
        let bytes = self.byte() % 12;
        match bytes {
            9 => u64::MAX,
            10 => 1 << 63,
            11 => i64::MAX as u64,
            _ => (0..bytes).fold(0, |number, _| number << 8 | u64::from(self.byte())),
        }
    }

    fn schema(&mut self, name: &str, depth: u8) -> Schema {
        let count = self.byte() % 6;
        let fields: Vec<Field> = (0..count)
            .map(|number| {
                let role = Role::from_code(self.byte() % 3).unwrap();
                Field::new(format!("f{number}"), self.field_type(depth + 1)).with_role(role)
            })
            .collect();
        Schema::new(name, fields).unwrap()
    }

    fn field_type(&mut self, depth: u8) -> FieldType {
        let plain = [
            FieldType::Bool,
            FieldType::I8,
            FieldType::I16,
            FieldType::I32,
            FieldType::I64,
            FieldType::U8,
            FieldType::U16,
            FieldType::U32,
            FieldType::U64,
            FieldType::F32,
            FieldType::F64,
            FieldType::Char,
            FieldType::String,
            FieldType::Bytes,
        ];
        let byte = usize::from(self.byte()) % 19;
        if let Some(kind) = plain.into_iter().nth(byte) {
            return kind;
        }
        match byte {
            _ if depth > 4 => FieldType::String,
            14 => {
                let variants = (0..=self.byte() % 5).map(|number| format!("v{number}"));
                FieldType::Enum(Arc::new(EnumType::new("e", variants).unwrap()))
            }
            15 => match self.field_type(depth + 1) {
                optional @ FieldType::Optional(_) => optional,
                kind => kind.optional(),
            },
            16 => self.field_type(depth + 1).list(),
            18 => self.field_type(depth + 1).map(),
            _ => FieldType::Record(Arc::new(self.schema("n", depth))),
        }
    }

    fn fields(&mut self, schema: &Schema, depth: u8) -> Vec<Value> {
        let fields = schema.fields().iter();
        fields
            .map(|field| self.value(field.field_type(), depth))
            .collect()
    }

    fn value(&mut self, kind: &FieldType, depth: u8) -> Value {
        let unused = 64 - kind.integer_bits().unwrap_or(64);
        match kind {
            FieldType::Bool => Value::Bool(self.byte() % 2 == 1),
            FieldType::I8 | FieldType::I16 | FieldType::I32 | FieldType::I64 => {
                Value::Signed(((self.number() << unused) as i64) >> unused)
            }
            FieldType::U8 | FieldType::U16 | FieldType::U32 | FieldType::U64 => {
                Value::Unsigned((self.number() << unused) >> unused)
            }
            FieldType::F32 => {
                let bits = u32::try_from(self.number() >> 32);
                Value::F32(f32::from_bits(bits.unwrap()))
            }
            FieldType::F64 => Value::F64(f64::from_bits(self.number())),
            FieldType::Char => {
                let code = u32::try_from(self.number() % 0x11_0000).unwrap();
                Value::Char(char::from_u32(code).unwrap_or('?'))
            }
            FieldType::String => {
                let kind = self.byte();
                let bytes = (0..kind % 12).map(|_| self.byte());
                if kind >= 128 {
                    let word = |byte| WORDS.get(usize::from(byte) % WORDS.len());
                    Value::from(bytes.filter_map(word).copied().collect::<String>())
                } else {
                    let bytes: Vec<u8> = bytes.collect();
                    Value::from(String::from_utf8_lossy(&bytes).into_owned())
                }
            }
            FieldType::Bytes => {
                let bytes: Vec<u8> = (0..self.byte() % 12).map(|_| self.byte()).collect();
                Value::Bytes(bytes.into())
            }
            FieldType::Enum(enum_type) => {
                let variants = u32::try_from(enum_type.variants().len()).unwrap();
                Value::Variant(u32::from(self.byte()) % variants)
            }
            FieldType::Optional(inner) => match self.byte() % 2 {
                0 => Value::Null,
                _ => self.value(inner, depth),
            },
            FieldType::List(inner) | FieldType::Map(inner) => {
                // Fewer the deeper, so that lists of lists stay small.
                let most = 8_u8.checked_shr(depth.into()).unwrap_or(0);
                let count = self.byte() % (most + 1);
                Value::List((0..count).map(|_| self.value(inner, depth + 1)).collect())
            }
            FieldType::Record(schema) => Value::Record(self.fields(schema, depth)),
        }
    }
}
