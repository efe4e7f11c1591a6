//! Source code of record types in other languages.
//!
//! A language is one file in `templates`. Its head names the words that cannot be identifiers, the
//! spelling of names and the escapes of strings. Its body writes all files. Everything that
//! languages have in common is computed here: identifiers, values, and the shape of arrays.

mod comments;
mod head;

use std::collections::{BTreeMap, HashMap};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value as Data;
use minijinja::{Environment, UndefinedBehavior, context};

use self::comments::{about, documented, field_about};
use self::head::{Head, Names};
use crate::model::{Base, Constant, EnumType, Literal, Property, Record, Type, Value};

/// The languages: their names and templates.
const TEMPLATES: [(&str, &str); 7] = [
    ("baler", include_str!("../templates/rust.jinja")),
    ("c", include_str!("../templates/c.jinja")),
    ("go", include_str!("../templates/go.jinja")),
    ("java", include_str!("../templates/java.jinja")),
    ("perl", include_str!("../templates/perl.jinja")),
    ("python", include_str!("../templates/python.jinja")),
    ("rust", include_str!("../templates/rust.jinja")),
];

/// The names of the languages for [`generate`].
///
/// `rust` is Rust without a library. `baler` is Rust with the derive macro of the crate `baler`.
pub const LANGUAGES: [&str; TEMPLATES.len()] = {
    let mut names = [""; TEMPLATES.len()];
    let mut position = 0;
    while position < names.len() {
        names[position] = TEMPLATES[position].0;
        position += 1;
    }
    names
};

/// The text of `KIEKER_VERSION`.
const KIEKER_VERSION: &str = "2.0.3";

/// Begins the line of a rendered template that names the next file.
const FILE_MARK: &str = ">>> ";

/// A file of source code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// The path below the target folder, with `/`.
    pub path: String,
    /// The text.
    pub text: String,
}

/// Writes the types of records that are not abstract, and the enums that they use, in a language.
///
/// The records must come from a [`Workspace`](crate::Workspace) without errors.
///
/// # Errors
///
/// A message, if the language is none of [`LANGUAGES`] or a record has no form in it.
pub fn generate(records: &[Record], language: &str) -> Result<Vec<GeneratedFile>, String> {
    let template = TEMPLATES.iter().find(|it| it.0 == language);
    let (_, template) = template.ok_or_else(|| format!("no language is called {language}"))?;
    let (head, body) = template
        .split_once("\n---\n")
        .expect("a template has a head");
    let head = Head::parse(head);
    let packages = Writer::new(&head, records).packages()?;
    if language == "baler" {
        records.iter().try_for_each(fits_baler)?;
    }
    render(body, context! { packages, language })
        .map_err(|error| format!("the template of {language} is wrong: {error:#}"))
}

/// Refuses types that no record of Baler has.
fn fits_baler(record: &Record) -> Result<(), String> {
    let is_array = |it: &&Property| it.property_type.dimensions.iter().any(Option::is_some);
    match record.wire().find(is_array) {
        Some(it) => Err(format!(
            "{}: {}: a record of Baler has no array of a fixed length; write {}[]",
            record.name, it.name, it.property_type.base
        )),
        None => Ok(()),
    }
}

fn render(body: &str, data: Data) -> Result<Vec<GeneratedFile>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .keep_trailing_newline(true)
            .build()?,
    );
    let text = environment.render_str(body, data)?;
    let mut files: Vec<GeneratedFile> = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix(FILE_MARK) {
            files.push(GeneratedFile {
                path: path.to_owned(),
                text: String::new(),
            });
        } else if let Some(file) = files.last_mut() {
            file.text.push_str(line);
            file.text.push('\n');
        }
    }
    Ok(files)
}

/// An enum and its identifiers.
struct NamedEnum<'a> {
    enum_type: &'a EnumType,
    id: String,
    flat: String,
    literals: Vec<String>,
    /// Its package, which has the same identifiers for all its types.
    package: NamedPackage,
}

#[derive(Clone)]
struct NamedPackage {
    segments: Vec<String>,
    /// All segments as one name.
    module: String,
}

struct Writer<'a> {
    head: &'a Head<'a>,
    /// Records that are not abstract, by package.
    records: BTreeMap<&'a str, Vec<&'a Record>>,
    packages: BTreeMap<&'a str, NamedPackage>,
    /// The identifiers of types: alone, and with the package.
    types: HashMap<&'a str, (String, String)>,
    enums: BTreeMap<&'a str, NamedEnum<'a>>,
}

impl<'a> Writer<'a> {
    fn new(head: &'a Head<'a>, all: &'a [Record]) -> Self {
        let mut records: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut enum_types: BTreeMap<&str, &EnumType> = BTreeMap::new();
        for record in all.iter().filter(|it| !it.is_abstract) {
            records
                .entry(package_of(&record.name))
                .or_default()
                .push(record);
            let properties = record.properties.iter().map(|it| &it.property_type);
            let constants = record.constants.iter().map(|it| &it.constant_type);
            for item_type in properties.chain(constants) {
                if let Base::Enum(enum_type) = &item_type.base {
                    enum_types.insert(&enum_type.name, enum_type);
                }
            }
        }
        let mut packages: BTreeMap<&str, NamedPackage> = BTreeMap::new();
        let mut types = HashMap::new();
        let mut scopes: HashMap<&str, Names> = HashMap::new();
        let (mut modules, mut flats) = (head.names("packages"), head.names("types"));
        let names = records.values().flatten().map(|it| &*it.name);
        for name in names.chain(enum_types.keys().copied()) {
            let package = package_of(name);
            packages.entry(package).or_insert_with(|| {
                let claim = |it: &str| head.names("packages").claim(it.to_owned());
                NamedPackage {
                    segments: package.split('.').map(claim).collect(),
                    module: modules.claim(package.replace('.', "_")),
                }
            });
            let scope = scopes.entry(package).or_insert_with(|| head.names("types"));
            let id = scope.claim(head.spelled("spelling_of_types", simple(name)));
            types.insert(name, (id, flats.claim(name.replace('.', "_"))));
        }
        let mut enums = BTreeMap::new();
        for (name, enum_type) in enum_types {
            let mut scope = head.names("literals");
            let literals = enum_type
                .literals
                .iter()
                .map(|it| scope.claim(it.0.to_string()))
                .collect();
            let (id, flat) = types[name].clone();
            let package = packages[package_of(name)].clone();
            let it = NamedEnum {
                enum_type,
                id,
                flat,
                literals,
                package,
            };
            enums.insert(name, it);
        }
        Self {
            head,
            records,
            packages,
            types,
            enums,
        }
    }

    fn packages(&self) -> Result<Data, String> {
        let mut packages = Vec::new();
        for (name, package) in &self.packages {
            let mut records = Vec::new();
            for record in self.records.get(name).into_iter().flatten() {
                records.push(
                    self.record(record)
                        .map_err(|it| format!("{}: {it}", record.name))?,
                );
            }
            let own = self.enums.iter().filter(|it| package_of(it.0) == *name);
            let enums = own.map(|(name, it)| {
                let literals = it.enum_type.literals.iter().zip(&it.literals);
                let literals = literals.map(|((name, value), id)| {
                    context! { name => &**name, id => &**id, value => *value }
                });
                context! { name => *name, id => &*it.id, flat => &*it.flat,
                count => it.literals.len(), literals => literals.collect::<Data>(),
                ..about(&[format!("The enum {name}.")], &it.enum_type.about) }
            });
            let records_here = self.records.get(name).into_iter().flatten();
            let mut uses: Vec<_> = records_here.flat_map(|it| self.enums_of(it)).collect();
            uses.sort_by_key(|it| &it.package.module);
            uses.dedup_by_key(|it| &it.package.module);
            let uses = uses.iter().map(|it| package_data(&it.package));
            packages.push(context! { name => *name, uses => uses.collect::<Data>(),
                enums => enums.collect::<Data>(), records => list(records),
            ..package_data(package) });
        }
        Ok(list(packages))
    }

    fn enums_of<'b>(&'b self, record: &'b Record) -> impl Iterator<Item = &'b NamedEnum<'a>> {
        let properties = record.properties.iter().map(|it| &it.property_type);
        let constants = record.constants.iter().map(|it| &it.constant_type);
        properties
            .chain(constants)
            .filter_map(|it| self.enum_of(&it.base))
    }

    fn enum_of(&self, base: &Base) -> Option<&NamedEnum<'a>> {
        match base {
            Base::Enum(it) => Some(&self.enums[&*it.name]),
            _ => None,
        }
    }

    fn record(&self, record: &Record) -> Result<Data, String> {
        let mut names = self.head.names("members");
        // A member with the first name of a package would hide the package.
        for it in self.enums_of(record) {
            names.0.extend(it.package.segments.first().cloned());
        }
        let constants: HashMap<&str, &Constant> = record
            .constants
            .iter()
            .map(|it| (&*it.name, &**it))
            .collect();
        let mut fields = Vec::new();
        for property in &record.properties {
            // A value of a payload has points between the names on the way to it.
            let name = property.name.replace('.', "_");
            let id = names.claim(self.head.spelled("spelling_of_fields", &name));
            let about = field_about(record, property);
            let default = property.default.as_ref();
            let item = self.item(&property.property_type, default, &constants);
            let item = item.map_err(|it| format!("{}: {it}", property.name))?;
            // A language may have the length of an array in a field beside it.
            let suffix = self.head.words("length_of_an_array").first();
            let is_open = property.property_type.dimensions == [None];
            let length = suffix.filter(|_| is_open).map(|suffix| {
                let name = format!("{name}{suffix}");
                names.claim(self.head.spelled("spelling_of_fields", &name))
            });
            fields.push(context! { name => &*property.name, id, length,
            transient => property.is_transient, ..context! { ..item, ..about } });
        }
        let mut written = Vec::new();
        for constant in &record.constants {
            let id = names.claim(constant.name.to_string());
            let value = Some(&constant.value);
            let item = self.item(&constant.constant_type, value, &constants);
            let item = item.map_err(|it| format!("{}: {it}", constant.name))?;
            let about = about(
                &[format!("`{}`", constant.name)],
                &documented(&constant.doc),
            );
            written.push(context! { name => &*constant.name, id, ..context! { ..item, ..about } });
        }
        let (id, flat) = &self.types[&*record.name];
        let mut headers: Vec<_> = self.enums_of(record).map(|it| &*it.flat).collect();
        headers.sort_unstable();
        headers.dedup();
        let has_open = record
            .wire()
            .any(|it| it.property_type.dimensions == [None]);
        Ok(context! {
            name => &*record.name, id => &**id, flat => &**flat, has_open,
            headers => headers.into_iter().collect::<Data>(),
            fields => list(fields), constants => list(written),
            ..about(&[format!("The record type {}.", record.name)], &record.about)
        })
    }

    /// Returns type and value of a property or constant.
    fn item(
        &self,
        item_type: &Type,
        literal: Option<&Literal>,
        constants: &HashMap<&str, &Constant>,
    ) -> Result<Data, String> {
        let (base, width) = match &item_type.base {
            Base::Boolean => ("boolean", 1),
            Base::Byte => ("byte", 1),
            Base::Char => ("char", 2),
            Base::Double => ("double", 8),
            Base::Enum(_) => ("enum", 4),
            Base::Float => ("float", 4),
            Base::Int => ("int", 4),
            Base::Long => ("long", 8),
            Base::Payload(it) => {
                return Err(format!(
                    "{0} is a class that no file describes; name a file with a template {0}, too",
                    it.type_name
                ));
            }
            Base::Short => ("short", 2),
            Base::String => ("string", 4),
        };
        let fixed = match *item_type.dimensions {
            [] | [None] => 0,
            [Some(length)] if length < 1 << 31 => length,
            [Some(_)] => return Err(format!("{item_type} has too many items")),
            _ => {
                let base = &item_type.base;
                return Err(format!(
                    "{item_type} has several dimensions, and source code has arrays of one; write {base}[]"
                ));
            }
        };
        let zero = match &item_type.base {
            Base::Boolean => "false".to_owned(),
            Base::Double | Base::Float => "0.0".to_owned(),
            Base::Enum(it) => {
                let first = self.enums[&*it.name].literals.first();
                first.expect("an enum has literals").clone()
            }
            Base::String => self.head.quoted(""),
            _ => "0".to_owned(),
        };
        let mut items = Vec::new();
        if let Some(literal) = literal {
            self.values(literal, &item_type.base, constants, &mut items, 0)?;
        }
        let of_enum = self.enum_of(&item_type.base).map(|it| {
            context! { id => &*it.id, flat => &*it.flat, count => it.literals.len(),
            ..package_data(&it.package) }
        });
        Ok(context! {
            base, width, fixed,
            is_open => *item_type.dimensions == [None],
            is_array => !item_type.dimensions.is_empty(),
            has_value => literal.is_some(),
            // The value of a single item, the zero if it has none.
            value => items.first().unwrap_or(&zero).clone(),
            zero,
            // The items of an array.
            items => items.into_iter().collect::<Data>(),
            enum => of_enum,
        })
    }

    /// Collects the single values of a literal.
    fn values(
        &self,
        literal: &Literal,
        base: &Base,
        constants: &HashMap<&str, &Constant>,
        out: &mut Vec<String>,
        depth: usize,
    ) -> Result<(), String> {
        // A constant can name a constant.
        if depth > crate::MAX_DEPTH {
            return Err("its value refers to itself".to_owned());
        }
        let depth = depth + 1;
        match &literal.value {
            Value::Array(all) => {
                for item in all {
                    self.values(item, base, constants, out, depth)?;
                }
            }
            Value::Name(name) => match constants.get(&**name) {
                Some(constant) => self.values(&constant.value, base, constants, out, depth)?,
                None => out.push(self.literal_of_enum(base, name)?),
            },
            single => out.push(self.single(single, base)?),
        }
        Ok(())
    }

    fn literal_of_enum(&self, base: &Base, name: &str) -> Result<String, String> {
        let found = self.enum_of(base).and_then(|it| {
            let literals = it.enum_type.literals.iter().zip(&it.literals);
            literals
                .filter(|found| &*found.0.0 == name)
                .map(|found| found.1.clone())
                .next()
        });
        found.ok_or_else(|| format!("{name} is unknown"))
    }

    fn single(&self, value: &Value, base: &Base) -> Result<String, String> {
        let number = match value {
            Value::Float(it) => format!("{it:?}"),
            Value::Int(it) => it.to_string(),
            Value::Bool(it) => return Ok(it.to_string()),
            Value::KiekerVersion => return Ok(self.head.quoted(KIEKER_VERSION)),
            Value::Text(it) if *base == Base::Char => {
                let unit = it.encode_utf16().next();
                return Ok(unit.ok_or("a char is empty")?.to_string());
            }
            Value::Text(it) => return Ok(self.head.quoted(it)),
            Value::Array(_) | Value::Name(_) => return Err("it has no single value".to_owned()),
        };
        // The shortest text of the number in its own precision.
        let (text, is_finite) = match base {
            Base::Float => {
                let it: f32 = number
                    .parse()
                    .map_err(|_| format!("{number} is no float"))?;
                // As f64 the shortest text of the largest float is more than it.
                let text = match it.abs() == f32::MAX {
                    true => format!("{:?}", f64::from(it)),
                    false => format!("{it:?}"),
                };
                (text, it.is_finite())
            }
            Base::Double => {
                let it: f64 = number
                    .parse()
                    .map_err(|_| format!("{number} is no double"))?;
                (format!("{it:?}"), it.is_finite())
            }
            _ => (number, true),
        };
        match is_finite {
            true => Ok(text),
            false => Err(format!("the value is out of the range of {base}")),
        }
    }
}

fn list(items: Vec<Data>) -> Data {
    items.into_iter().collect()
}

fn package_data(package: &NamedPackage) -> Data {
    let segments: Data = package.segments.iter().map(|it| &**it).collect();
    context! { segments, module => &*package.module }
}

fn package_of(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |it| it.0)
}

fn simple(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |it| it.1)
}
