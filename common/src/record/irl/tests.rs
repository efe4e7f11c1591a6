//! Small files, right and wrong. Kieker's own are read by the tests of its connector.

use std::sync::Arc;

use super::*;

/// A catalog with one type.
fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    let fields = vec![Field::new("timestamp", FieldType::I64)];
    catalog.register(Arc::new(Schema::new(KNOWN, fields).unwrap()));
    catalog
}

/// The name of the type.
const KNOWN: &str = "kieker.common.record.misc.TimestampRecord";

fn read_all(texts: &[&str]) -> Result<Catalog, String> {
    let mut catalog = catalog();
    let names = ["a.irl", "b.irl"];
    let sources = names.iter().zip(texts);
    let sources: Vec<_> = sources
        .map(|(name, text)| IrlSource { name, text })
        .collect();
    read(&mut catalog, &sources).map_err(|error| error.to_string())?;
    Ok(catalog)
}

/// Fields and types of a record type of a file.
fn fields(text: &str, name: &str) -> String {
    let catalog = read_all(&[text]).unwrap();
    let schema = catalog.get(name).unwrap();
    let fields = schema.fields().iter();
    let fields = fields.map(|it| format!("{}:{}", it.name(), it.field_type()));
    fields.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_type_and_modifier_is_read() {
    let text = "package p /* a comment
        of two lines */
        enum Colour { RED = 04, GREEN, BLUE = -1 }
        enum More : Colour { WHITE }
        @author 'A \\' B' @since \"1\"
        event E { // the base types
            boolean a = true byte b char c = 'x' double d = 1.5e-3 float e = 1f
            int f = -1 long g = NO short h string i = \"\\\"\" int[] j = { 1, { 2 } }
            More k  changeable long l transient auto-increment int m  alias l as n
            const string NO = 'no'  string ^interface  string operation : operationSignature
        }";
    assert_eq!(
        fields(text, "p.E"),
        "a:bool b:i8 c:char d:f64 e:f32 f:i32 g:i64 h:i16 i:string j:list<i32> k:enum p.More \
         l:i64 interface:string operation:string"
    );
    let catalog = read_all(&[text]).unwrap();
    let FieldType::Enum(more) = catalog.get("p.E").unwrap().fields()[10].field_type() else {
        panic!("k is an enum");
    };
    assert_eq!(more.variants().join(" "), "WHITE RED GREEN BLUE");
}

#[test]
fn parent_comes_before_templates_and_a_property_comes_once() {
    let text = "package p
        import kieker.common.record.misc.*
        template A { int x } template B : A { string x2 int y }
        abstract entity P : A { long z }
        event E extends P : B, A { int own }
        event F extends TimestampRecord : A
        event G { grouped by E.z w }";
    assert_eq!(fields(text, "p.E"), "x:i32 z:i64 x2:string y:i32 own:i32");
    assert_eq!(fields(text, "p.F"), "timestamp:i64 x:i32");
    assert_eq!(fields(text, "p.G"), "w:i64");
    assert!(
        read_all(&[text]).unwrap().get("p.P").is_none(),
        "it is abstract"
    );
}

#[test]
fn a_payload_is_its_values() {
    let text = "package p
        import kieker.common.record.misc.*
        template Customer { string name Address address Customer[] friends transient int tries }
        template Address { string city Customer owner }
        event E { long id Customer customer { address } string last }
        event F { TimestampRecord it E[] all }";
    assert_eq!(
        fields(text, "p.E"),
        "id:i64 customer.name:string customer.address.city:string customer.address.owner:i64 \
         customer.friends:list<i64> last:string"
    );
    assert_eq!(fields(text, "p.F"), "it.timestamp:i64 all:list<i64>");
}

#[test]
fn a_type_that_the_language_lacks_stays_itself_in_a_payload() {
    let own = vec![
        Field::new("count", FieldType::U32),
        Field::new("next", FieldType::I64.optional()),
    ];
    let mut catalog = catalog();
    catalog.register(Arc::new(Schema::new("app.Own", own).unwrap()));
    let text = "package app event E extends Own { Own it { next } }";
    let name = "a.irl";
    read(&mut catalog, &[IrlSource { name, text }]).unwrap();
    let fields = catalog.get("app.E").unwrap().fields().iter();
    let fields = fields.map(|it| format!("{}:{}", it.name(), it.field_type()));
    assert_eq!(
        fields.collect::<Vec<_>>().join(" "),
        "count:u32 next:optional<i64> it.count:u32 it.next:optional<i64>"
    );
    let text = "package app template C { Own own } event E { C it { own { count } } u32 bad {} }";
    let error = read(&mut catalog, &[IrlSource { name, text }]).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("bad is a u32, a class that no file describes"),
        "{error}"
    );
}

#[test]
fn files_name_definitions_of_each_other() {
    let first = "package p.one template T { int a }";
    let second = "package p.two import p.one.T event E : T { int b }";
    let catalog = read_all(&[second, first]).unwrap();
    assert_eq!(catalog.get("p.two.E").unwrap().fields().len(), 2);
}

#[test]
fn a_known_type_stays_unless_it_is_another() {
    let name = KNOWN;
    let same = "package kieker.common.record.misc entity TimestampRecord { long timestamp = 0 }";
    let mut catalog = catalog();
    let known = Arc::clone(catalog.get(name).unwrap());
    let read = |catalog: &mut Catalog, text: &str| {
        let name = "a.irl";
        read(catalog, &[IrlSource { name, text }]).unwrap();
    };
    read(&mut catalog, same);
    assert!(Arc::ptr_eq(catalog.get(name).unwrap(), &known));
    read(&mut catalog, &same.replace("long", "int"));
    assert_ne!(catalog.get(name), Some(&known));
}

#[test]
fn wrong_files_are_refused_with_the_line() {
    for (text, message) in [
        ("", "a.irl:1:1: the end where package should be"),
        (
            "package p\nevent E {",
            "a.irl:2:10: the end where a type or } should be",
        ),
        (
            "package p\n\nevent E { int }",
            "a.irl:3:15: } where the name of a property should be",
        ),
        ("package p /* x", "a comment without an end where event"),
        (
            "package p event E { string a = 'x",
            "a string without an end where a value should be",
        ),
        (
            "package p event E { wrong a }",
            "a.irl:1:21: wrong is not defined; define it, or name the file or folder",
        ),
        ("package p event E extends Nobody", "Nobody is not defined"),
        ("package p event E extends E", "E inherits from itself"),
        (
            "package p template A : B template B : A event E : A",
            "inherits from itself",
        ),
        ("package p event E {} event E {}", "p.E is defined twice"),
        ("package p event E { int a long a }", "p.E has a twice"),
        (
            "package p event E { int[3] a }",
            "an array of a fixed length cannot be read here",
        ),
        (
            "package p event E { int[][] a }",
            "an array of several dimensions cannot be read",
        ),
        (
            "package p\nevent E { m.C it { a } u32 other {} }",
            "a.irl:2:7: it is a m.C, a class that no file describes; name a file",
        ),
        (
            "package p event E { C it { a } } template C { u32 b }",
            "u32 is not defined",
        ),
        (
            "package p event E { C it { b } } template C { int a }",
            "a.irl:1:23: it: p.C sends no property b",
        ),
        ("package p model M E", "E is not defined"),
        (
            "package p enum X {} event E { X a }",
            "} where the name of a literal should be",
        ),
        (
            "package p enum X : X { A } event E { grouped by E.b c X d }",
            "inherits from itself",
        ),
        (
            "package p event E { grouped by F.b c } event F",
            "p.F.b is not defined",
        ),
        (
            "package p record S",
            "record where event, entity, template, enum, model or sub should be",
        ),
    ] {
        let error = read_all(&[text]).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn hostile_files_end_soon() {
    let many = 5_000;
    let diamond = |kind: &str, body: &str| {
        let mut text = format!("package p {kind} T0 {body}");
        for number in 1..60 {
            let before = number - 1;
            text.push_str(&format!(" {kind} T{number} : T{before}, T{before} {{ }}"));
        }
        text
    };
    let templates = diamond("template", "{ int a }") + " event E : T59";
    assert_eq!(fields(&templates, "p.E"), "a:i32");
    let enums = diamond("enum", "{ A }").replace("{ }", "{ B }") + " event E { T59 e }";
    assert_eq!(fields(&enums, "p.E"), "e:enum p.T59");
    let mut chain = String::from("package p template T0");
    for number in 1..many {
        chain.push_str(&format!(" template T{number} : T{}", number - 1));
    }
    let error = read_all(&[&format!("{chain} event E : T{}", many - 1)]).unwrap_err();
    assert!(
        error.contains("through more than 64 definitions"),
        "{error}"
    );
    let braces = format!("package p event E {{ int a = {} }}", "{".repeat(1 << 19));
    assert!(read_all(&[&braces]).is_err());
    let wide: String = (0..many).map(|number| format!(" int f{number}")).collect();
    let error = read_all(&[&format!("package p event E {{ {wide} }}")]).unwrap_err();
    assert!(error.contains("has 5000 fields"), "{error}");
    let error = read_all(&[&"x".repeat(MAX_BYTES + 1)]).unwrap_err();
    assert!(
        error.contains("1048577 bytes, more than 1048576"),
        "{error}"
    );
}

#[test]
fn written_types_are_read_again() {
    let own = "package app.orders
        enum State { OPEN, PAID }
        event Order { boolean a byte b char c double d float e int f long g short h string i
            int[] j State k State[] ^event string interface }
        event Empty";
    let before = read_all(&[own]).unwrap();
    let names = ["app.orders.Order", "app.orders.Empty"];
    let schemas = names.map(|it| before.get(it).unwrap());
    let written = write(schemas, "none");
    let text = &written.files["app.orders"];
    assert_eq!((written.files.len(), written.left_out.len()), (1, 0));
    assert_eq!(written.renamed, []);
    assert!(
        text.contains("\nenum State {\n\tOPEN,\n\tPAID\n}\n"),
        "{text}"
    );
    assert!(text.contains("\n\tState[] ^event\n"), "{text}");
    assert_eq!(&baler_irl::format(text, Edition::Current).unwrap(), text);
    let after = read_all(&[text]).unwrap();
    for schema in schemas {
        assert_eq!(after.get(schema.name()), Some(schema));
    }
}

#[test]
fn a_package_that_is_no_name_writes_no_file() {
    let plain = Arc::new(Schema::new("Plain", Vec::<Field>::new()).unwrap());
    let written = write(&[plain], "../x");
    assert!(written.files.is_empty());
    let reason = "\"\" in the name ../x.Plain is no name of the language";
    assert_eq!(written.left_out, [("Plain".to_owned(), reason.to_owned())]);
}

#[test]
fn types_that_the_language_lacks_are_left_out_with_the_reason() {
    let schema = |name: &str, fields: &[(&str, FieldType)]| {
        let fields = fields.iter().map(|it| Field::new(it.0, it.1.clone()));
        Arc::new(Schema::new(name, fields.collect::<Vec<_>>()).unwrap())
    };
    let of = |name: &str, variant: &str| {
        FieldType::Enum(Arc::new(EnumType::new(name, [variant]).unwrap()))
    };
    let plain = schema("Plain", &[("a", FieldType::I32)]);
    let schemas = [
        plain.clone(),
        plain.clone(),
        schema("records::Plain", &[]),
        schema("a::Unsigned", &[("b", FieldType::U8.list())]),
        schema("a::Bytes", &[("b", FieldType::Bytes)]),
        schema("a::Optional", &[("b", FieldType::I8.optional())]),
        schema("a::Nested", &[("b", FieldType::Record(plain))]),
        schema("a::Field", &[("http.id", FieldType::I8)]),
        schema("a::Name<u8>", &[]),
        schema("a::First", &[("b", of("x::E", "A"))]),
        schema("a::Second", &[("b", of("E", "A")), ("c", of("F", "b c"))]),
        schema("a::Third", &[("b", of("E", "B"))]),
        schema("a::E", &[]),
        schema("a::Own", &[("b", of("Own", "A"))]),
    ];
    let written = write(&schemas, "records");
    let left_out: Vec<_> = written
        .left_out
        .iter()
        .map(|(name, reason)| format!("{name}: {reason}"))
        .collect();
    assert_eq!(
        left_out,
        [
            "records::Plain: another type has its name",
            "a::Unsigned: its field b: the language has no unsigned numbers",
            "a::Bytes: its field b: the language has no bytes",
            "a::Optional: its field b: the language has no optional values",
            "a::Nested: its field b: the language has no records in records",
            "a::Field: its field http.id: this is no name of the language",
            "a::Name<u8>: \"Name<u8>\" in the name a::Name<u8> is no name of the language",
            "a::Second: its field c: the variant b c is no name of the language",
            "a::Third: another type has the name of its enum a.E",
            "a::E: another type has its name",
            "a::Own: another type has the name of its enum a.Own",
        ]
    );
    let renamed = [("Plain", "records.Plain"), ("a::First", "a.First")];
    assert_eq!(
        written.renamed,
        renamed.map(|it| (it.0.to_owned(), it.1.to_owned()))
    );
    let files: Vec<_> = written.files.values().collect();
    assert_eq!(
        files,
        [
            "package a\n\nenum E {\n\tA\n}\n\nevent First {\n\tE b\n}\n",
            "package records\n\nevent Plain {\n\tint a\n}\n",
        ]
    );
}
