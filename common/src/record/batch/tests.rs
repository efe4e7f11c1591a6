//! A builder that keeps memory and one that adds value by value make the same batch.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::string_index::StringIndex;
use super::*;
use crate::container::{ChunkHeader, ChunkSerializer as _, NativeSerializer};
use crate::record::{EnumType, Field, FieldType, Interned, Record, RowWriter};
use crate::transport::{ChunkIdentity, Epoch, ProducerId};

/// Fills a batch value by value, whatever the type.
#[derive(Default)]
struct General {
    batch: RecordBatch,
    index: StringIndex,
    rows: Vec<u32>,
    /// Whether a row was added while there were several tables, even empty ones.
    several: bool,
}

impl General {
    fn push(&mut self, schema: &Arc<Schema>, time: i64, row: &[u8]) -> Result<(), PushError> {
        let RecordBatch {
            strings, tables, ..
        } = &mut self.batch;
        let known = tables.iter().position(|table| table.schema == *schema);
        let number = known.unwrap_or_else(|| {
            tables.push(Table::new(Arc::clone(schema)));
            tables.len() - 1
        });
        nested::push(&mut tables[number], time, row, strings, &mut self.index)?;
        self.several |= tables.len() > 1;
        self.rows.push(u32::try_from(number).unwrap());
        Ok(())
    }

    fn take(mut self) -> RecordBatch {
        if self.several {
            self.batch.order = self.rows;
        }
        self.batch
    }
}

fn field_type() -> impl Strategy<Value = FieldType> {
    let variants = ["a", "b", "c"];
    let choice = FieldType::Enum(Arc::new(EnumType::new("choice", variants).unwrap()));
    prop_oneof![
        4 => Just(FieldType::String),
        2 => Just(FieldType::I64),
        1 => prop_oneof![
            Just(FieldType::Bool), Just(FieldType::Char), Just(choice),
            Just(FieldType::I8), Just(FieldType::I16), Just(FieldType::I32),
            Just(FieldType::U8), Just(FieldType::U16), Just(FieldType::U32), Just(FieldType::U64),
            Just(FieldType::F32), Just(FieldType::F64),
        ],
    ]
}

/// Types of which most are flat.
fn schemas() -> impl Strategy<Value = Vec<Arc<Schema>>> {
    let nested = prop_oneof![
        6 => Just(None),
        1 => Just(Some(FieldType::String.optional())),
        1 => Just(Some(FieldType::I64.list())),
    ];
    let schema = (vec(field_type(), 0..9), nested);
    vec(schema, 1..4).prop_map(|schemas| {
        let schema = |(number, (types, nested)): (usize, (Vec<FieldType>, Option<FieldType>))| {
            let fields = types.into_iter().chain(nested).enumerate();
            let fields = fields.map(|(field, kind)| Field::new(format!("f{field}"), kind));
            let name = format!("type{number}");
            Arc::new(Schema::new(name, fields.collect::<Vec<_>>()).unwrap())
        };
        schemas.into_iter().enumerate().map(schema).collect()
    })
}

/// The type, the timestamp, the seed of the values, and the defect.
type Recipe = (usize, i64, u64, Option<(u8, usize)>);

fn recipes() -> impl Strategy<Value = Vec<Recipe>> {
    let broken = proptest::option::weighted(0.1, (0_u8..3, any::<usize>()));
    vec((any::<usize>(), -1_i64..9, any::<u64>(), broken), 0..300)
}

/// A row of the type; strings are interned, inline, or empty.
fn row(schema: &Schema, mut seed: u64, broken: Option<(u8, usize)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut row = RowWriter::new(&mut bytes);
    for field in schema.fields() {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let noise = seed >> 32;
        match field.field_type() {
            FieldType::Bool => row.bool(noise % 2 == 1),
            FieldType::Char => {
                row.char(char::from_u32(u32::try_from(noise % 0xd800).unwrap()).unwrap())
            }
            FieldType::Enum(_) => row.variant(u32::try_from(noise % 3).unwrap()),
            FieldType::String => match noise % 8 {
                0 => row.str(""),
                1 | 2 => row.str(&format!("operation {}", noise % 11)),
                _ => row.interned(Interned::leaked(&format!("operation {}", noise % 13))),
            },
            FieldType::Optional(_) if noise.is_multiple_of(2) => row.none(),
            FieldType::Optional(_) => {
                row.some();
                row.str("value");
            }
            FieldType::List(_) => {
                row.list(2);
                row.i64(1);
                row.u64(noise);
            }
            number => {
                let bytes = number.integer_bits().map_or(8, |bits| bits / 8);
                let bytes = if *number == FieldType::F32 { 4 } else { bytes };
                noise
                    .to_le_bytes()
                    .iter()
                    .take(bytes.try_into().unwrap())
                    .for_each(|it| row.u8(*it));
            }
        }
    }
    match broken {
        // Ends early, goes on, or has another byte.
        Some((0, at)) => bytes.truncate(at % (bytes.len() + 1)),
        Some((1, _)) => bytes.push(0),
        Some((_, at)) if !bytes.is_empty() => {
            let at = at % bytes.len();
            bytes[at] ^= 1 << (at % 8);
        }
        _ => {}
    }
    bytes
}

fn chunk(batch: &RecordBatch) -> Vec<u8> {
    let header = ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 1,
        },
        lane: 0,
        sequence: 0,
    });
    let mut chunk = Vec::new();
    let mut serializer = NativeSerializer::default();
    serializer.serialize(batch, &header, &mut chunk).unwrap();
    chunk
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn rows_make_the_same_batch_and_bytes_as_value_by_value(
        schemas in schemas(),
        chunks in vec(recipes(), 1..4),
        looks in vec(any::<usize>(), 0..4),
    ) {
        // One builder for all chunks: its kept memory must not have an effect.
        let mut builder = BatchBuilder::new();
        for (number, recipes) in chunks.iter().enumerate() {
            let mut general = General::default();
            for (position, (schema, time, seed, broken)) in recipes.iter().enumerate() {
                // Equal types come at several addresses.
                let schema = &schemas[schema % schemas.len()];
                let copy = Arc::new(Schema::clone(schema));
                let schema = if seed.is_multiple_of(50) { &copy } else { schema };
                let row = row(schema, *seed, *broken);
                let pushed = builder.push_row(schema, *time, &row);
                prop_assert_eq!(pushed, general.push(schema, *time, &row));
                prop_assert_eq!(builder.len(), general.rows.len());
                // Looking at a batch in the middle changes nothing.
                if looks.contains(&position) {
                    prop_assert_eq!(builder.batch().len(), builder.len());
                }
            }
            let expected = general.take();
            prop_assert_eq!(builder.batch(), &expected);
            prop_assert_eq!(chunk(builder.batch()), chunk(&expected));
            let text = expected.strings().text_bytes();
            prop_assert!(builder.estimated_bytes() >= text + 8 * expected.len());
            if number.is_multiple_of(2) {
                builder.clear();
            } else {
                prop_assert_eq!(builder.take(), expected);
            }
            prop_assert!(builder.is_empty() && builder.batch() == &RecordBatch::default());
        }
    }
}

#[derive(Debug, Record)]
struct Execution {
    operation: String,
    session: String,
    trace: i64,
    begin: i64,
    end: i64,
    host: String,
    order: i32,
    depth: i32,
}

#[test]
fn columns_that_do_not_fit_their_type_add_no_row() {
    let schema = Execution::schema();
    let name = Interned::new("shop.Catalog.find()");
    let [three, two] = [vec![1_i64; 3], vec![1_i64; 2]];
    let push = |batch: &mut BatchBuilder, traces: &[i64], orders: FieldColumn<'_>| {
        let columns = [
            FieldColumn::Strings(&[name; 3]),
            FieldColumn::SameString(name),
            FieldColumn::I64(traces),
            FieldColumn::I64(&three),
            FieldColumn::I64(&three),
            FieldColumn::SameString(name),
            orders,
            FieldColumn::I32(&[5; 3]),
        ];
        batch.push_columns(schema, &three, &columns)
    };
    let mut batch = BatchBuilder::new();
    let malformed = (0, Err(PushError::Malformed));
    assert_eq!(push(&mut batch, &two, FieldColumn::I32(&[4; 3])), malformed);
    assert_eq!(
        push(&mut batch, &three, FieldColumn::I64(&three)),
        malformed
    );
    assert_eq!(batch.push_columns(schema, &three, &[]), malformed);
    assert_eq!((batch.len(), batch.estimated_bytes()), (0, 0));
    assert_eq!(
        push(&mut batch, &three, FieldColumn::I32(&[4; 3])),
        (3, Ok(()))
    );
    let batch = batch.take();
    let records = batch.read().collect::<Result<Vec<Execution>, _>>();
    let records = records.unwrap();
    assert_eq!(records.len(), 3);
    let fields = |record: &Execution| (record.trace, record.order, record.depth);
    assert!(records.iter().all(|record| fields(record) == (1, 4, 5)));
    assert_eq!(batch.strings().len(), 1);
}
