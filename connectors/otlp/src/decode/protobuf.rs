//! Requests in protobuf.
//!
//! All envelopes have the same numbers: 1 for the head, 2 for the items and 3 for the schema. The
//! request has 1 for its items, and no head.

use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use serde::de::DeserializeOwned;

use super::{Envelope, Form, Names};
use crate::error::BadRequest;

/// Protobuf.
pub(crate) enum Protobuf {}

impl Form for Protobuf {
    type Items<'a> = Items<'a>;

    fn open<'a>(bytes: &'a [u8], names: Names) -> Result<Envelope<'a, Items<'a>>, BadRequest> {
        let mut envelope = Envelope {
            head: None,
            items: Items {
                rest: bytes,
                number: if names.head.is_empty() { 1 } else { 2 },
            },
            schema_url: String::new(),
        };
        if names.head.is_empty() {
            return Ok(envelope);
        }
        let mut rest = bytes;
        while let Some(field) = next_field(&mut rest)? {
            match field {
                // As protobuf demands, the last one counts.
                (1, head) => envelope.head = Some(head),
                (3, url) => {
                    let url = str::from_utf8(url).map_err(|_| BadRequest::Message)?;
                    envelope.schema_url = url.to_owned();
                }
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn message<M: Message + Default + DeserializeOwned>(bytes: &[u8]) -> Option<M> {
        M::decode(bytes).ok()
    }
}

/// The fields of an envelope with one number.
pub(crate) struct Items<'a> {
    rest: &'a [u8],
    number: u32,
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<&'a [u8], BadRequest>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match next_field(&mut self.rest) {
                Ok(Some((number, bytes))) if number == self.number => return Some(Ok(bytes)),
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(error) => {
                    self.rest = &[];
                    return Some(Err(error));
                }
            }
        }
    }
}

/// Takes the next field: its number, and its bytes if it has a length.
fn next_field<'a>(rest: &mut &'a [u8]) -> Result<Option<(u32, &'a [u8])>, BadRequest> {
    if rest.is_empty() {
        return Ok(None);
    }
    let damaged = |_| BadRequest::Message;
    let (number, wire_type) = decode_key(rest).map_err(damaged)?;
    let length = match wire_type {
        WireType::LengthDelimited => decode_varint(rest).map_err(damaged)?,
        WireType::Varint => {
            decode_varint(rest).map_err(damaged)?;
            return Ok(Some((number, &[])));
        }
        WireType::SixtyFourBit => 8,
        WireType::ThirtyTwoBit => 4,
        WireType::StartGroup | WireType::EndGroup => return Err(BadRequest::Message),
    };
    let length = usize::try_from(length).map_err(|_| BadRequest::Message)?;
    let (bytes, behind) = rest.split_at_checked(length).ok_or(BadRequest::Message)?;
    *rest = behind;
    match wire_type {
        WireType::LengthDelimited => Ok(Some((number, bytes))),
        _ => Ok(Some((number, &[]))),
    }
}
