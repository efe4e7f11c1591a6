//! Writes schemas as files of the language.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::record::{EnumType, FieldType, Schema};

/// Words that a name of the language must escape.
const KEYWORDS: [&str; 26] = [
    "KIEKER_VERSION",
    "abstract",
    "alias",
    "as",
    "author",
    "by",
    "changeable",
    "const",
    "default",
    "entity",
    "enum",
    "event",
    "extends",
    "false",
    "grouped",
    "import",
    "model",
    "package",
    "pattern",
    "since",
    "struct",
    "sub",
    "tag",
    "template",
    "transient",
    "true",
];

/// The result of [`write()`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenTypes {
    /// The text of a file for each package, by the package's name.
    pub files: BTreeMap<String, String>,
    /// Types that have another name in the files: the old and the new name. A path of Rust has
    /// points there.
    pub renamed: Vec<(String, String)>,
    /// Types that the language cannot represent: the name and the reason.
    pub left_out: Vec<(String, String)>,
}

/// Writes record types as files of the language, one for each package. A type whose name has no
/// package gets the package `package`.
///
/// ```
/// use baler_common::record::{Record, irl};
///
/// #[derive(Record)]
/// #[record(name = "app::orders::Order")]
/// struct Order {
///     id: i64,
///     items: Vec<String>,
/// }
///
/// let written = irl::write([Order::schema()], "app");
/// assert_eq!(
///     written.files["app.orders"],
///     "package app.orders\n\nevent Order {\n\tlong id\n\tstring[] items\n}\n"
/// );
/// assert!(written.left_out.is_empty());
/// ```
///
/// The language has signed numbers, `f32`, `f64`, `bool`, `char`, strings, enums without data, and
/// lists of them. It has no unsigned numbers, no bytes, no optional values, no records in records,
/// and no names with other characters than letters, digits and `_`. A type with one of these is left
/// out, because a part of it would have other bytes.
///
/// An enum gets the package of the record type. Roles and aliases of fields are not written.
pub fn write<'a>(
    schemas: impl IntoIterator<Item = &'a Arc<Schema>>,
    package: &str,
) -> WrittenTypes {
    let mut written = WrittenTypes::default();
    let mut seen: HashMap<String, &Schema> = HashMap::new();
    let mut enums: HashMap<String, Arc<EnumType>> = HashMap::new();
    for schema in schemas {
        let event = Event::of(schema, package).and_then(|event| {
            let full = event.name.full();
            match seen.get(&full) {
                Some(known) if **known == **schema => Ok(None),
                _ if seen.contains_key(&full) || enums.contains_key(&full) => {
                    Err("another type has its name".to_owned())
                }
                _ => match event
                    .enums
                    .iter()
                    .find(|it| !it.is_free(&event, &seen, &enums))
                {
                    Some(of) => Err(format!("another type has the name of its enum {}", of.name)),
                    None => Ok(Some(event)),
                },
            }
        });
        let event = match event {
            Ok(None) => continue,
            Ok(Some(event)) => event,
            Err(reason) => {
                written.left_out.push((schema.name().to_owned(), reason));
                continue;
            }
        };
        let full = event.name.full();
        if full != schema.name() {
            written
                .renamed
                .push((schema.name().to_owned(), full.clone()));
        }
        seen.insert(full, schema);
        let package = escaped(&event.name.package);
        let file = written.files.entry(event.name.package);
        let text = file.or_insert_with(|| format!("package {package}\n"));
        for of in event.enums {
            if let Entry::Vacant(entry) = enums.entry(of.name.clone()) {
                text.push_str(&of.text());
                entry.insert(of.of);
            }
        }
        text.push_str(&event.text);
    }
    written
}

/// A name of the language.
#[derive(Debug)]
struct Name {
    package: String,
    last: String,
}

impl Name {
    /// Returns the name for that of a record type or enum. A path of Rust is possible.
    fn of(name: &str, package: &str) -> Result<Self, String> {
        let mut name = Cow::Borrowed(name);
        if !name.contains("::") && !name.contains('.') {
            name = format!("{package}.{name}").into();
        }
        let full = name.replace("::", ".");
        if let Some(wrong) = full.split('.').find(|it| !is_word(it)) {
            return Err(format!(
                "{wrong:?} in the name {name} is no name of the language"
            ));
        }
        let (package, last) = full.rsplit_once('.').unwrap_or((package, &full));
        Ok(Self {
            package: package.to_owned(),
            last: last.to_owned(),
        })
    }

    fn full(&self) -> String {
        format!("{}.{}", self.package, self.last)
    }
}

/// An enum with its name in the files: it has the package of the record type.
#[derive(Debug)]
struct EnumOf {
    name: String,
    of: Arc<EnumType>,
}

impl EnumOf {
    /// Whether no other type has this name.
    fn is_free(
        &self,
        event: &Event,
        seen: &HashMap<String, &Schema>,
        enums: &HashMap<String, Arc<EnumType>>,
    ) -> bool {
        let mut same = event.enums.iter().filter(|it| it.name == self.name);
        same.all(|it| it.of.variants() == self.of.variants())
            && self.name != event.name.full()
            && !seen.contains_key(&self.name)
            && enums
                .get(&self.name)
                .is_none_or(|it| it.variants() == self.of.variants())
    }

    fn text(&self) -> String {
        let literals: Vec<_> = self.of.variants().iter().map(|it| escaped(it)).collect();
        let last = self.name.rsplit('.').next().unwrap_or(&self.name);
        format!(
            "\nenum {} {{\n\t{}\n}}\n",
            escaped(last),
            literals.join(",\n\t")
        )
    }
}

/// A record type as an event.
#[derive(Debug)]
struct Event {
    name: Name,
    text: String,
    enums: Vec<EnumOf>,
}

impl Event {
    fn of(schema: &Schema, package: &str) -> Result<Self, String> {
        let name = Name::of(schema.name(), package)?;
        let mut enums = Vec::new();
        let mut fields = String::new();
        for field in schema.fields() {
            let refused = |reason: String| format!("its field {}: {reason}", field.name());
            if !is_word(field.name()) {
                return Err(refused("this is no name of the language".to_owned()));
            }
            let found = type_name(field.field_type(), &name.package, &mut enums);
            let found = found.map_err(refused)?;
            fields.push_str(&format!("\t{found} {}\n", escaped(field.name())));
        }
        let last = escaped(&name.last);
        let text = match fields.is_empty() {
            true => format!("\nevent {last}\n"),
            false => format!("\nevent {last} {{\n{fields}}}\n"),
        };
        Ok(Self { name, text, enums })
    }
}

fn type_name(
    field_type: &FieldType,
    package: &str,
    enums: &mut Vec<EnumOf>,
) -> Result<String, String> {
    let name = match field_type {
        FieldType::Bool => "boolean",
        FieldType::Char => "char",
        FieldType::Enum(of) => {
            let mut name = Name::of(of.name(), package)?;
            package.clone_into(&mut name.package);
            if let Some(wrong) = of.variants().iter().find(|it| !is_word(it)) {
                return Err(format!("the variant {wrong} is no name of the language"));
            }
            enums.push(EnumOf {
                name: name.full(),
                of: Arc::clone(of),
            });
            return Ok(escaped(&name.last));
        }
        FieldType::F32 => "float",
        FieldType::F64 => "double",
        FieldType::I16 => "short",
        FieldType::I32 => "int",
        FieldType::I64 => "long",
        FieldType::I8 => "byte",
        FieldType::List(item) => return Ok(type_name(item, package, enums)? + "[]"),
        FieldType::String => "string",
        FieldType::Bytes => return Err("the language has no bytes".to_owned()),
        FieldType::Optional(_) => return Err("the language has no optional values".to_owned()),
        FieldType::Record(_) => return Err("the language has no records in records".to_owned()),
        FieldType::Map(_) => return Err("the language has no maps".to_owned()),
        FieldType::U16 | FieldType::U32 | FieldType::U64 | FieldType::U8 => {
            return Err("the language has no unsigned numbers".to_owned());
        }
    };
    Ok(name.to_owned())
}

fn is_word(text: &str) -> bool {
    let mut bytes = text.bytes();
    let starts = bytes
        .next()
        .is_some_and(|it| it.is_ascii_alphabetic() || it == b'_');
    starts && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

/// Returns a name in which each part that is a keyword is escaped.
fn escaped(name: &str) -> String {
    let parts = name.split('.').map(|part| match KEYWORDS.contains(&part) {
        true => format!("^{part}"),
        false => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join(".")
}
