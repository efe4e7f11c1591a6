//! Operations by number: host, component, and signature.

use std::sync::Arc;

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

/// The most operations, and the most texts, that are distinguished; further ones count as
/// `(other)`.
const MAX_OPERATIONS: usize = 100_000;

/// The most bytes of all texts together; further texts become `(other)`.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// The name of everything beyond the limits.
const OTHER: &str = "(other)";

/// The modifier that marks an asynchronous call, at the beginning of its signature. No signature in
/// Java or of `#[probe]` has it.
pub(super) const ASYNC: &str = "async ";

/// The number of an operation on a host, in [`Operations`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OperationId(pub(super) u32);

/// An operation on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation<'a> {
    /// Its host.
    pub host: &'a str,
    /// Its class or module.
    pub component: &'a str,
    /// Its signature, as in the records.
    pub signature: &'a str,
}

impl Operation<'_> {
    /// Returns its name and, in short, its parameters: `getBook(..)`, `getOffers()`.
    pub fn name(&self) -> String {
        split(self.signature).1
    }

    /// Returns its signature with its component. The signature in an event can have another one: the
    /// class that declares the operation, instead of the object's.
    pub(super) fn full_signature(&self) -> String {
        let (signature, component) = (self.signature, self.component);
        let (own, _) = split(signature);
        let head = signature
            .split_once('(')
            .map_or(signature, |(head, _)| head);
        let path_start = head.trim_end().rfind(' ').map_or(0, |space| space + 1);
        let (before, path) = signature.split_at(path_start);
        let (_, name) = path.split_at(own.len());
        match own {
            _ if own == component => signature.to_owned(),
            "" => format!("{before}{component}.{name}"),
            _ => format!("{before}{component}{name}"),
        }
    }
}

/// The number of an operation, whatever the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct KindId(pub(super) u32);

impl OperationId {
    pub(super) fn position(self) -> usize {
        self.0 as usize
    }
}

impl KindId {
    pub(super) fn position(self) -> usize {
        self.0 as usize
    }
}

/// The number of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TextId(u32);

/// All operations that were seen.
#[derive(Debug)]
pub struct Operations {
    texts: Texts,
    /// The class if the signature has another one, and the signature.
    kinds: Vec<(Option<TextId>, TextId)>,
    kind_ids: HashMap<(Option<TextId>, TextId), KindId>,
    /// Host, and operation without a host.
    list: Vec<(TextId, KindId)>,
    ids: HashMap<(TextId, KindId), OperationId>,
}

/// Texts by number. Number 0 stands for the texts beyond the limits.
#[derive(Debug)]
pub(super) struct Texts {
    list: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, TextId>,
    bytes: usize,
}

impl Default for Operations {
    fn default() -> Self {
        let mut operations = Self {
            texts: Texts::default(),
            kinds: Vec::new(),
            kind_ids: HashMap::default(),
            list: Vec::new(),
            ids: HashMap::default(),
        };
        // Number 0 of each list stands for the items beyond the limits.
        let other = operations.text(OTHER);
        let kind = operations.kind(None, other);
        operations.id(other, kind);
        operations
    }
}

impl Operations {
    /// The operation with this number.
    pub fn get(&self, id: OperationId) -> Option<Operation<'_>> {
        let (host, kind) = *self.list.get(id.position())?;
        Some(Operation {
            host: self.texts.get(host),
            ..self.of_kind(kind)
        })
    }

    /// An operation whose number is from these operations.
    pub(super) fn operation(&self, id: OperationId) -> Operation<'_> {
        self.get(id).expect("the number is from these operations")
    }

    /// Returns the same number for the same operation on all hosts.
    pub(super) fn kind_of(&self, id: OperationId) -> KindId {
        self.list[id.position()].1
    }

    /// All operations by number: host, and operation without a host.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, KindId)> {
        let list = self.list.iter();
        list.map(|(host, kind)| (self.texts.get(*host), *kind))
    }

    /// All operations without hosts, by number.
    pub(super) fn kinds(&self) -> impl Iterator<Item = Operation<'_>> {
        self.kinds.iter().map(|kind| self.without_host(*kind))
    }

    /// The operation of this kind, without a host.
    pub(super) fn of_kind(&self, kind: KindId) -> Operation<'_> {
        self.without_host(self.kinds[kind.position()])
    }

    fn without_host(&self, (class, signature): (Option<TextId>, TextId)) -> Operation<'_> {
        let signature = self.texts.get(signature);
        Operation {
            host: "",
            component: match class {
                Some(class) => self.texts.get(class),
                None => split(signature).0,
            },
            signature,
        }
    }

    pub(super) fn text_of(&self, text: TextId) -> &str {
        self.texts.get(text)
    }

    pub(super) fn text(&mut self, text: &str) -> TextId {
        self.texts.id(text)
    }

    /// Returns the number of an operation by its signature, and by the class of the object if it is
    /// known.
    pub(super) fn kind(&mut self, class: Option<TextId>, signature: TextId) -> KindId {
        if let Some(known) = self.kind_ids.get(&(class, signature)) {
            return *known;
        }
        // The class adds nothing if the signature contains it, too.
        let (component, _) = split(self.texts.get(signature));
        let named = class.map(|class| self.texts.get(class));
        if named.is_some_and(|named| named.is_empty() || named == component) {
            let kind = self.kind(None, signature);
            return self.remember(class, signature, kind);
        }
        let Some(kind) = next_number(self.kinds.len()).map(KindId) else {
            return KindId(0);
        };
        self.kinds.push((class, signature));
        self.remember(class, signature, kind)
    }

    fn remember(&mut self, class: Option<TextId>, signature: TextId, kind: KindId) -> KindId {
        if self.kind_ids.len() < MAX_OPERATIONS * 2 {
            self.kind_ids.insert((class, signature), kind);
        }
        kind
    }

    /// The number of an operation on a host.
    pub(super) fn id(&mut self, host: TextId, kind: KindId) -> OperationId {
        if let Some(known) = self.ids.get(&(host, kind)) {
            return *known;
        }
        let Some(id) = next_number(self.list.len()).map(OperationId) else {
            return OperationId(0);
        };
        self.list.push((host, kind));
        self.ids.insert((host, kind), id);
        id
    }
}

impl Default for Texts {
    fn default() -> Self {
        let mut texts = Self {
            list: Vec::new(),
            ids: HashMap::default(),
            bytes: 0,
        };
        texts.id(OTHER);
        texts
    }
}

impl Texts {
    pub(super) fn id(&mut self, text: &str) -> TextId {
        if let Some(known) = self.ids.get(text) {
            return *known;
        }
        let has_room = self.bytes + text.len() <= MAX_TEXT_BYTES;
        let number = next_number(self.list.len()).filter(|_| has_room);
        let Some(id) = number.map(TextId) else {
            return TextId(0);
        };
        self.bytes += text.len();
        let text: Arc<str> = text.into();
        self.list.push(Arc::clone(&text));
        self.ids.insert(text, id);
        id
    }

    pub(super) fn get(&self, id: TextId) -> &str {
        &self.list[id.0 as usize]
    }
}

/// Returns the number of the next item of a list, unless the list is full.
fn next_number(items: usize) -> Option<u32> {
    (items < MAX_OPERATIONS).then(|| u32::try_from(items).expect("the limit has 32 bits"))
}

/// Returns a signature without the mark of asynchronous calls, and whether it had the mark.
pub(super) fn without_async(signature: &str) -> (&str, bool) {
    match signature.strip_prefix(ASYNC) {
        Some(signature) => (signature, true),
        None => (signature, false),
    }
}

/// Splits a signature into component and short name, such as
/// `public void org.shop.Cart.add(java.lang.String, int)` or `bool shop::cart::add(&mut Cart)`.
fn split(signature: &str) -> (&str, String) {
    let (head, parameters) = match signature.split_once('(') {
        Some((head, rest)) if rest.starts_with(')') => (head, "()"),
        Some((head, _)) => (head, "(..)"),
        None => (signature, ""),
    };
    let path = head.trim_end().rsplit(' ').next().unwrap_or(head);
    let (component, name) = match (path.rfind("::"), path.rfind('.')) {
        (Some(colons), dot) if dot.is_none_or(|dot| dot < colons) => path
            .split_at_checked(colons)
            .map_or(("", path), |(head, tail)| {
                (head, tail.trim_start_matches(':'))
            }),
        _ => path.rsplit_once('.').unwrap_or(("", path)),
    };
    (component, format!("{name}{parameters}"))
}

#[cfg(test)]
mod tests;
