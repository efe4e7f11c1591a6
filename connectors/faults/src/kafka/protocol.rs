//! The few responses of Kafka's protocol that name brokers, and how other names get into them.
//!
//! After the message definitions of Kafka's protocol guide and KIP-482 (flexible versions).

/// `Produce`: from version 10 on an answer may name brokers (KIP-951).
const PRODUCE: i16 = 0;
/// `Fetch`: from version 16 on an answer may name brokers (KIP-951).
const FETCH: i16 = 1;
const METADATA: i16 = 3;
const FIND_COORDINATOR: i16 = 10;
const API_VERSIONS: i16 = 18;

/// The newest versions whose answers are understood, or do not name brokers.
const NEWEST: [(i16, i16); 4] = [
    (PRODUCE, 9),
    (FETCH, 15),
    (METADATA, 12),
    (FIND_COORDINATOR, 4),
];

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

/// The number of the request that a frame answers.
pub(super) fn answered(response: &[u8]) -> Option<i32> {
    Splice::new(response).i32()
}

/// Yields the host and port to name instead of one.
pub(super) type Other<'a> = &'a mut dyn FnMut(&str, i32) -> Option<Name>;

/// A host and a port.
type Name = (String, u16);

/// The answer with other brokers in it; nothing if it is malformed.
pub(super) fn rewrite(asked: Asked, response: &[u8], other: Other<'_>) -> Option<Vec<u8>> {
    let mut splice = Splice::new(response);
    splice.i32()?;
    match asked.key {
        API_VERSIONS => versions(&mut splice, asked.version)?,
        METADATA => metadata(&mut splice, asked.version, other)?,
        _ => coordinator(&mut splice, asked.version, other)?,
    }
    Some(splice.rest())
}

fn versions(splice: &mut Splice<'_>, version: i16) -> Option<()> {
    // An answer that says only that the question was too new comes in any shape.
    if splice.i16()? == UNSUPPORTED_VERSION {
        return Some(());
    }
    let flexible = version >= 3;
    for _ in 0..splice.count(flexible)? {
        let key = splice.i16()?;
        splice.i16()?;
        let newest = NEWEST.iter().find(|(known, _)| *known == key);
        splice.i16_at_most(newest.map_or(i16::MAX, |(_, newest)| *newest))?;
        splice.tags(flexible)?;
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

/// Goes through a message and copies it, but for what is replaced.
struct Splice<'a> {
    left: &'a [u8],
    out: Vec<u8>,
}

impl<'a> Splice<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            left: bytes,
            out: Vec::with_capacity(bytes.len()),
        }
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(bytes)?;
        self.left = left;
        Some(taken)
    }

    fn copy(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let taken = self.take(bytes)?;
        self.out.extend_from_slice(taken);
        Some(taken)
    }

    fn i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.copy(2)?.try_into().ok()?))
    }

    fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.copy(4)?.try_into().ok()?))
    }

    fn i16_at_most(&mut self, most: i16) -> Option<()> {
        let found = i16::from_be_bytes(self.take(2)?.try_into().ok()?);
        self.out.extend_from_slice(&found.min(most).to_be_bytes());
        Some(())
    }

    fn take_varint(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        for shift in (0..35).step_by(7) {
            let byte = *self.take(1)?.first()?;
            value |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn put_varint(&mut self, mut value: usize) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                return self.out.push(low & 0x7f);
            }
            self.out.push(low | 0x80);
        }
    }

    fn varint(&mut self) -> Option<usize> {
        let value = self.take_varint()?;
        self.put_varint(value);
        Some(value)
    }

    /// How many elements an array has; none if it is null.
    fn count(&mut self, flexible: bool) -> Option<usize> {
        if flexible {
            return Some(self.varint()?.saturating_sub(1));
        }
        Some(usize::try_from(self.i32()?).unwrap_or(0))
    }

    fn take_string(&mut self, flexible: bool) -> Option<Option<&'a [u8]>> {
        let bytes = if flexible {
            self.take_varint()?.checked_sub(1)
        } else {
            let bytes = i16::from_be_bytes(self.take(2)?.try_into().ok()?);
            usize::try_from(bytes).ok()
        };
        match bytes {
            None => Some(None),
            Some(bytes) => self.take(bytes).map(Some),
        }
    }

    fn put_string(&mut self, flexible: bool, text: Option<&[u8]>) -> Option<()> {
        if flexible {
            self.put_varint(text.map_or(0, |text| text.len() + 1));
        } else {
            let bytes = text.map_or(Ok(-1), |text| i16::try_from(text.len())).ok()?;
            self.out.extend_from_slice(&bytes.to_be_bytes());
        }
        self.out.extend_from_slice(text.unwrap_or_default());
        Some(())
    }

    fn string(&mut self, flexible: bool) -> Option<()> {
        let text = self.take_string(flexible)?;
        self.put_string(flexible, text)
    }

    /// A host and a port.
    fn broker(&mut self, flexible: bool, other: Other<'_>) -> Option<()> {
        let host = self.take_string(flexible)?;
        let port = i32::from_be_bytes(self.take(4)?.try_into().ok()?);
        let name = host.and_then(|host| std::str::from_utf8(host).ok());
        // An answer that knows no broker names none.
        let name = name.filter(|name| !name.is_empty() && port > 0);
        match name.and_then(|name| other(name, port)) {
            Some((host, port)) => {
                self.put_string(flexible, Some(host.as_bytes()))?;
                self.out.extend_from_slice(&i32::from(port).to_be_bytes());
            }
            None => {
                self.put_string(flexible, host)?;
                self.out.extend_from_slice(&port.to_be_bytes());
            }
        }
        Some(())
    }

    fn tags(&mut self, flexible: bool) -> Option<()> {
        if flexible {
            for _ in 0..self.varint()? {
                self.varint()?;
                let bytes = self.varint()?;
                self.copy(bytes)?;
            }
        }
        Some(())
    }

    fn rest(mut self) -> Vec<u8> {
        self.out.extend_from_slice(self.left);
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(key: i16, version: i16, response: &[u8]) -> Option<Vec<u8>> {
        let mut other = |host: &str, port| {
            assert_eq!((host, port), ("a", 9092));
            Some(("proxy".to_owned(), 7))
        };
        rewrite(Asked { key, version }, response, &mut other)
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
    fn torn_answer_is_malformed_wherever_it_ends() {
        let whole = b"\0\0\0\x01\0\0\0\0\0\x02\0\0\0\x05\x02a\0\0\x23\x84\x02r\x01\x05\x01x";
        for end in 0..whole.len() {
            assert_eq!(rewritten(METADATA, 9, &whole[..end]), None, "{end}");
        }
    }
}
