//! Requests in JSON.

use std::fmt;

use prost::Message;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Envelope, Form, Names};
use crate::error::BadRequest;

/// JSON.
pub(crate) enum Json {}

type Items<'a> = std::iter::Map<
    std::vec::IntoIter<&'a RawValue>,
    fn(&'a RawValue) -> Result<&'a [u8], BadRequest>,
>;

impl Form for Json {
    /// They take 16 bytes each, which are at least three bytes of the body.
    type Items<'a> = Items<'a>;

    fn open<'a>(bytes: &'a [u8], names: Names) -> Result<Envelope<'a, Items<'a>>, BadRequest> {
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let opened = names.deserialize(&mut json).and_then(|it| {
            json.end()?;
            Ok(it)
        });
        opened.map_err(|_| BadRequest::Message)
    }

    fn message<M: Message + Default + DeserializeOwned>(bytes: &[u8]) -> Option<M> {
        serde_json::from_slice(bytes).ok()
    }
}

impl<'a> DeserializeSeed<'a> for Names {
    type Value = Envelope<'a, Items<'a>>;

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Names {
    type Value = Envelope<'a, Items<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with {}", self.items)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let bytes: fn(&'a RawValue) -> _ = |it| Ok(it.get().as_bytes());
        let (mut head, mut items, mut schema_url) = (None, None, None);
        while let Some(name) = map.next_key::<String>()? {
            if name == self.items {
                items = map.next_value::<Option<Vec<&RawValue>>>()?;
            } else if name == "schemaUrl" {
                schema_url = map.next_value::<Option<String>>()?;
            } else if name == self.head {
                head = map.next_value::<Option<&RawValue>>()?;
            } else {
                // The specification demands that unknown names are ignored.
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Envelope {
            head: head.map(|it| it.get().as_bytes()),
            items: items.unwrap_or_default().into_iter().map(bytes),
            schema_url: schema_url.unwrap_or_default(),
        })
    }
}
