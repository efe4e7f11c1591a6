//! The few responses of Kafka's protocol that name brokers, and how other names get into them.
//!
//! After the message definitions of Kafka's protocol guide and KIP-482 (flexible versions).

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

/// What a proxy that has clients authenticate answers itself: the key, the oldest and the newest
/// version.
const SASL: [(i16, i16, i16); 2] = [(SASL_HANDSHAKE, 1, 1), (SASL_AUTHENTICATE, 0, 1)];

/// `UNSUPPORTED_VERSION`.
const UNSUPPORTED_VERSION: i16 = 35;

/// A request whose answer names brokers or versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    key: i16,
    version: i16,
}

/// What the request in a frame asks, and its number, if its answer is to be rewritten.
pub(super) fn asked(request: &[u8]) -> Option<(i32, Asked)> {
    let mut request = Splice::new(request);
    let key = request.i16()?;
    let version = request.i16()?;
    let number = request.i32()?;
    let names = matches!(key, METADATA | FIND_COORDINATOR | API_VERSIONS);
    names.then_some((number, Asked { key, version }))
}

/// A request that quotas count, and its number: one that brings or fetches messages, of a version
/// whose answer says for how long the client is held back.
pub(super) fn counted(request: &[u8]) -> Option<(i32, Asked)> {
    let mut request = Splice::new(request);
    let key = request.i16()?;
    let version = request.i16()?;
    let number = request.i32()?;
    let counts = matches!(key, PRODUCE | FETCH) && version >= 1;
    counts.then_some((number, Asked { key, version }))
}

/// The answer to such a request that says for how many milliseconds the client is held back.
pub(super) fn throttled(asked: Asked, answer: &[u8], millis: i32) -> Option<Vec<u8>> {
    let place = match asked.key {
        // The number, and tags: none.
        FETCH if asked.version >= 12 => 5,
        FETCH => 4,
        // At the end, but for tags: none, since there are some only from version 10 on.
        _ if asked.version >= 9 => answer.len().checked_sub(5)?,
        _ => answer.len().checked_sub(4)?,
    };
    let mut answer = answer.to_vec();
    let told = answer.get_mut(place..)?.first_chunk_mut::<4>()?;
    *told = millis.to_be_bytes();
    Some(answer)
}

/// The number of the request that a frame answers.
pub(super) fn answered(response: &[u8]) -> Option<i32> {
    Splice::new(response).i32()
}

/// Yields the host and port to name instead of one.
pub(super) type Other<'a> = &'a mut dyn FnMut(&str, i32) -> Option<Name>;

/// A host and a port.
type Name = (String, u16);

/// The answer with other brokers in it, and with SASL if the proxy answers its requests; nothing if
/// the answer is malformed.
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
    // An answer that says only that the question was too new comes in any shape.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(key: i16, version: i16, response: &[u8]) -> Option<Vec<u8>> {
        let mut other = |host: &str, port| {
            assert_eq!((host, port), ("a", 9092));
            Some(("proxy".to_owned(), 7))
        };
        rewrite(Asked { key, version }, response, false, &mut other)
    }

    #[test]
    fn request_says_what_it_asks() {
        let request = [0, 3, 0, 12, 0, 0, 0, 9, 1, 2];
        let asks = Asked {
            key: 3,
            version: 12,
        };
        assert_eq!(asked(&request), Some((9, asks)));
        assert_eq!(asked(&[0, 0, 0, 9, 0, 0, 0, 9]), None, "nothing to rewrite");
        assert_eq!(asked(&request[..7]), None);
    }

    #[test]
    fn brokers_of_metadata_get_other_names() {
        // Number, brokers: one, its id, host, port, rack: null; the rest.
        let old = b"\0\0\0\x01\0\0\0\x01\0\0\0\x05\0\x01a\0\0\x23\x84\xff\xff rest";
        let new = b"\0\0\0\x01\0\0\0\x01\0\0\0\x05\0\x05proxy\0\0\0\x07\xff\xff rest";
        assert_eq!(rewritten(METADATA, 1, old).unwrap(), new);
        // Flexible: tags, throttle; compact lengths are one more; rack "r", a tag.
        let old = b"\0\0\0\x01\0\0\0\0\0\x02\0\0\0\x05\x02a\0\0\x23\x84\x02r\x01\x05\x01x rest";
        let new = b"\0\0\0\x01\0\0\0\0\0\x02\0\0\0\x05\x06proxy\0\0\0\x07\x02r\x01\x05\x01x rest";
        assert_eq!(rewritten(METADATA, 9, old).unwrap(), new);
    }

    #[test]
    fn coordinator_gets_another_name() {
        let old = b"\0\0\0\x01\0\0\0\0\0\0\xff\xff\0\0\0\x05\0\x01a\0\0\x23\x84";
        let new = b"\0\0\0\x01\0\0\0\0\0\0\xff\xff\0\0\0\x05\0\x05proxy\0\0\0\x07";
        assert_eq!(rewritten(FIND_COORDINATOR, 2, old).unwrap(), new);
        let old = b"\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x05\x02a\0\0\x23\x84\0";
        let new = b"\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x05\x06proxy\0\0\0\x07\0";
        assert_eq!(rewritten(FIND_COORDINATOR, 3, old).unwrap(), new);
        // None is known.
        let none = b"\0\0\0\x01\0\x0f\xff\xff\xff\xff\0\0\xff\xff\xff\xff";
        assert_eq!(rewritten(FIND_COORDINATOR, 0, none).unwrap(), none);
    }

    #[test]
    fn versions_that_name_brokers_elsewhere_are_not_offered() {
        let old = b"\0\0\0\x01\0\0\0\0\0\x02\0\0\0\0\0\x0a\0\x02\0\0\0\x07";
        let new = b"\0\0\0\x01\0\0\0\0\0\x02\0\0\0\0\0\x09\0\x02\0\0\0\x07";
        assert_eq!(rewritten(API_VERSIONS, 2, old).unwrap(), new);
        let old = b"\0\0\0\x01\0\0\x02\0\x01\0\0\0\x10\0\0\0\0\0\0";
        let new = b"\0\0\0\x01\0\0\x02\0\x01\0\0\0\x0f\0\0\0\0\0\0";
        assert_eq!(rewritten(API_VERSIONS, 3, old).unwrap(), new);
        for refused in [
            b"\0\0\0\x01\0\x23\0\0\0\x01\0\x12\0\0\0\x03".as_slice(),
            b"\0\0\0\x01\0\x23\x01\0\x12\0\0\0\x02\0\0\0\0",
        ] {
            assert_eq!(rewritten(API_VERSIONS, 4, refused).unwrap(), refused);
        }
    }

    #[test]
    fn what_authenticates_is_offered_beside_what_brokers_offer() {
        let with_sasl = |version, answer: &[u8]| {
            let key = API_VERSIONS;
            rewrite(Asked { key, version }, answer, true, &mut |_, _| None)
        };
        // A broker that knows the handshake, up to a version that the proxy does not.
        let old = b"\0\0\0\x01\0\0\0\0\0\x01\0\x11\0\0\0\x02";
        let new = b"\0\0\0\x01\0\0\0\0\0\x02\0\x11\0\0\0\x01\0\x24\0\0\0\x01";
        assert_eq!(with_sasl(0, old).unwrap(), new);
        // One that knows neither; flexible.
        let old = b"\0\0\0\x01\0\0\x01\0\0\0\x05\0";
        let new = b"\0\0\0\x01\0\0\x03\0\x11\0\x01\0\x01\0\0\x24\0\0\0\x01\0\0\0\0\x05\0";
        assert_eq!(with_sasl(3, old).unwrap(), new);
    }

    #[test]
    fn answer_says_for_how_long_the_client_is_held_back() {
        let throttled =
            |key, version, answer: &[u8]| throttled(Asked { key, version }, answer, 258);
        let cases: [(i16, i16, &[u8], &[u8]); 4] = [
            (PRODUCE, 8, b"numb rest\0\0\0\0", b"numb rest\0\0\x01\x02"),
            (
                PRODUCE,
                9,
                b"numb rest\0\0\0\0\0",
                b"numb rest\0\0\x01\x02\0",
            ),
            (FETCH, 11, b"numb\0\0\0\0rest", b"numb\0\0\x01\x02rest"),
            (FETCH, 12, b"numb\0\0\0\0\0rest", b"numb\0\0\0\x01\x02rest"),
        ];
        for (key, version, old, new) in cases {
            assert_eq!(
                throttled(key, version, old).unwrap(),
                new,
                "{key} {version}"
            );
            assert_eq!(throttled(key, version, &old[..3]), None);
        }
        assert!(counted(b"\0\0\0\x09\0\0\0\x01").is_some());
        assert_eq!(counted(b"\0\x03\0\x09\0\0\0\x01"), None);
    }

    #[test]
    fn torn_answer_is_malformed_wherever_it_ends() {
        let whole = b"\0\0\0\x01\0\0\0\0\0\x02\0\0\0\x05\x02a\0\0\x23\x84\x02r\x01\x05\x01x";
        for end in 0..whole.len() {
            assert_eq!(rewritten(METADATA, 9, &whole[..end]), None, "{end}");
        }
    }
}
