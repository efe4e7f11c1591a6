//! The few responses of Kafka's protocol that name brokers, and the replacement of these names.
//!
//! Follows the message definitions of Kafka's protocol guide and KIP-482 (flexible versions).

use super::splice::Splice;

/// `Produce`: from version 10 on an answer may name brokers (KIP-951).
const PRODUCE: i16 = 0;
/// `Fetch`: from version 16 on an answer may name brokers (KIP-951).
const FETCH: i16 = 1;
const METADATA: i16 = 3;
const FIND_COORDINATOR: i16 = 10;
pub(super) const API_VERSIONS: i16 = 18;
pub(super) const SASL_HANDSHAKE: i16 = 17;
pub(super) const SASL_AUTHENTICATE: i16 = 36;

/// The newest versions whose answers are understood, or do not name brokers.
const NEWEST: [(i16, i16); 6] = [
    (PRODUCE, 9),
    (FETCH, 15),
    (METADATA, 12),
    (FIND_COORDINATOR, 4),
    (SASL_HANDSHAKE, 1),
    (SASL_AUTHENTICATE, 1),
];

/// The requests that a proxy with authentication answers itself: the key, the oldest and the newest
/// version.
const SASL: [(i16, i16, i16); 2] = [(SASL_HANDSHAKE, 1, 1), (SASL_AUTHENTICATE, 0, 1)];

/// `UNSUPPORTED_VERSION`.
const UNSUPPORTED_VERSION: i16 = 35;

/// A request whose answer is changed: the answer names brokers or versions, or quotas count the
/// request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    key: i16,
    version: i16,
}

impl Asked {
    /// Whether quotas count it: it brings or fetches messages, and the answer to its version states
    /// how long the client is held back.
    pub(super) fn is_counted(self) -> bool {
        matches!(self.key, PRODUCE | FETCH) && self.version >= 1
    }
}

/// Returns the number of the request in a frame and its kind, if its answer must be changed.
pub(super) fn asked(request: &[u8]) -> Option<(i32, Asked)> {
    let mut request = Splice::new(request);
    let (key, version) = (request.i16()?, request.i16()?);
    let number = request.i32()?;
    let asked = Asked { key, version };
    let names = matches!(key, METADATA | FIND_COORDINATOR | API_VERSIONS);
    (names || asked.is_counted()).then_some((number, asked))
}

/// Returns the answer to a request that quotas count, with the milliseconds for which the client is
/// held back.
pub(super) fn throttled(asked: Asked, answer: &[u8], millis: i32) -> Option<Vec<u8>> {
    let place = match asked.key {
        // After the number and a byte for no tags.
        FETCH if asked.version >= 12 => 5,
        FETCH => 4,
        // At the end, before a byte for no tags: there are tags only from version 10 on.
        _ if asked.version >= 9 => answer.len().checked_sub(5)?,
        _ => answer.len().checked_sub(4)?,
    };
    let mut answer = answer.to_vec();
    let told = answer.get_mut(place..)?.first_chunk_mut::<4>()?;
    *told = millis.to_be_bytes();
    Some(answer)
}

/// Returns the number of the request that a frame answers.
pub(super) fn answered(response: &[u8]) -> Option<i32> {
    Splice::new(response).i32()
}

/// A function that returns the host and port to name instead of the given ones.
pub(super) type Other<'a> = &'a mut dyn FnMut(&str, i32) -> Option<Name>;

/// A host and a port.
type Name = (String, u16);

/// Returns the answer with other brokers, and with SASL if the proxy answers its requests. Returns
/// nothing if the answer is malformed.
pub(super) fn rewrite(
    asked: Asked,
    response: &[u8],
    offers_sasl: bool,
    other: Other<'_>,
) -> Option<Vec<u8>> {
    let mut splice = Splice::new(response);
    splice.i32()?;
    match asked.key {
        API_VERSIONS => versions(&mut splice, asked.version, offers_sasl)?,
        METADATA => metadata(&mut splice, asked.version, other)?,
        _ => coordinator(&mut splice, asked.version, other)?,
    }
    Some(splice.rest())
}

fn versions(splice: &mut Splice<'_>, version: i16, offers_sasl: bool) -> Option<()> {
    // An answer that only rejects the version of the request can have any form.
    if splice.i16()? == UNSUPPORTED_VERSION {
        return Some(());
    }
    let flexible = version >= 3;
    let count = splice.take_count(flexible)?;
    let mut told = splice.clone();
    let mut missing = if offers_sasl {
        SASL.to_vec()
    } else {
        Vec::new()
    };
    for _ in 0..count {
        let key = told.i16()?;
        told.i32()?;
        told.tags(flexible)?;
        missing.retain(|(known, ..)| *known != key);
    }
    splice.put_count(flexible, count.checked_add(missing.len())?)?;
    for _ in 0..count {
        let key = splice.i16()?;
        splice.i16()?;
        let newest = NEWEST.iter().find(|(known, _)| *known == key);
        splice.i16_at_most(newest.map_or(i16::MAX, |(_, newest)| *newest))?;
        splice.tags(flexible)?;
    }
    for (key, oldest, newest) in missing {
        for number in [key, oldest, newest] {
            splice.put(&number.to_be_bytes());
        }
        if flexible {
            splice.put(&[0]);
        }
    }
    Some(())
}

fn metadata(splice: &mut Splice<'_>, version: i16, other: Other<'_>) -> Option<()> {
    let flexible = version >= 9;
    splice.tags(flexible)?;
    if version >= 3 {
        splice.i32()?;
    }
    for _ in 0..splice.count(flexible)? {
        splice.i32()?;
        splice.broker(flexible, other)?;
        if version >= 1 {
            splice.string(flexible)?;
        }
        splice.tags(flexible)?;
    }
    Some(())
}

fn coordinator(splice: &mut Splice<'_>, version: i16, other: Other<'_>) -> Option<()> {
    let flexible = version >= 3;
    splice.tags(flexible)?;
    if version >= 1 {
        splice.i32()?;
    }
    if version < 4 {
        splice.i16()?;
        if version >= 1 {
            splice.string(flexible)?;
        }
        splice.i32()?;
        return splice.broker(flexible, other);
    }
    for _ in 0..splice.count(flexible)? {
        splice.string(flexible)?;
        splice.i32()?;
        splice.broker(flexible, other)?;
        splice.i16()?;
        splice.string(flexible)?;
        splice.tags(flexible)?;
    }
    Some(())
}
