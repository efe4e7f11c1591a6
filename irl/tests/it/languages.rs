//! The generated source code of Kieker's types and of odd ones, with the compilers of each language.
//!
//! A small program of each language reads the bytes of records, which the encoder of this file made,
//! and writes them again. It also writes records with default values.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use baler_irl::{
    Base, Edition, LANGUAGES, Literal, Property, Record, Settings, Type, Value, generate, read,
};

use crate::kieker;

/// The strings of records; their ids are `7 * index - 5`.
const TEXTS: [&str; 8] = [
    "",
    "plain",
    "Grüße 😀 \u{10ffff}",
    "line\n\"quote\" \\ $x @y",
    "<no-session-id>",
    "a",
    "é",
    "2.0.3",
];

fn records() -> Vec<Record> {
    let mut texts = kieker::texts();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for name in [
        "languages.irl",
        "languages_other.irl",
        "languages_payload.irl",
    ] {
        let text = fs::read_to_string(fixtures.join(name)).unwrap();
        texts.push((name.to_owned(), text));
    }
    let sources = crate::fixtures::sources(&texts);
    let settings = Settings {
        edition: Edition::Legacy,
        ..Settings::default()
    };
    let workspace = read(&sources, &settings);
    assert_eq!(workspace.error(), None);
    let mut records = workspace.records;
    records.retain(|it| !it.is_abstract);
    records
}

/// Whether the names of the type and its package are the same in all languages.
fn is_plain(record: &Record) -> bool {
    !record.name.starts_with("odd.other")
}

fn id(text: &str) -> i32 {
    let index = TEXTS.iter().position(|it| *it == text);
    let index = index.unwrap_or_else(|| panic!("{text} is missing"));
    i32::try_from(index).unwrap() * 7 - 5
}

/// The texts of all records: those of this file and the default values.
fn texts(records: &[Record]) -> Vec<String> {
    let mut texts: Vec<String> = TEXTS.iter().map(|it| (*it).to_owned()).collect();
    for record in records {
        let values = record.constants.iter().map(|it| &it.value);
        let values = values.chain(
            record
                .properties
                .iter()
                .filter_map(|it| it.default.as_ref()),
        );
        let values = values.filter_map(|it| match &it.value {
            Value::Text(it) => Some(it.clone()),
            _ => None,
        });
        texts.extend(values);
    }
    let mut known = std::collections::HashSet::new();
    texts.retain(|it| known.insert(it.clone()));
    texts
}

/// Appends a value: the lowest, the highest, or one of the middle.
fn put(out: &mut Vec<u8>, base: &Base, turn: usize) {
    let pick = |all: [i64; 4]| all[turn % 4];
    match base {
        Base::Boolean => out.push((turn % 2) as u8),
        Base::Byte => out.push(pick([-128, 127, 0, -1]) as u8),
        Base::Char => out.extend(([0xd800, 0xffff, 0, 0x41][turn % 4] as u16).to_be_bytes()),
        Base::Double => out.extend([f64::MIN, f64::MAX, 5e-324, -0.0][turn % 4].to_be_bytes()),
        Base::Enum(it) => out.extend(((turn % it.literals.len()) as i32).to_be_bytes()),
        Base::Float => out.extend([f32::MIN, f32::INFINITY, 1e-45, -0.0][turn % 4].to_be_bytes()),
        Base::Int => out.extend((pick([-1 << 31, (1 << 31) - 1, 0, -1]) as i32).to_be_bytes()),
        Base::Long => out.extend(pick([i64::MIN, i64::MAX, 0, -1]).to_be_bytes()),
        Base::Payload(_) => panic!("there are no payloads"),
        Base::Short => out.extend((pick([-32768, 32767, 0, -1]) as i16).to_be_bytes()),
        Base::String => out.extend(id(TEXTS[turn % TEXTS.len()]).to_be_bytes()),
    }
}

/// The lengths of any length first, then the items in row-major order.
fn put_array(out: &mut Vec<u8>, of: &Type, turn: usize) {
    let mut items = 1;
    for (number, length) in of.dimensions.iter().enumerate() {
        items *= length.map_or((turn + number) % 4, |it| it as usize);
        if length.is_none() {
            out.extend((((turn + number) % 4) as i32).to_be_bytes());
        }
    }
    (0..items).for_each(|it| put(out, &of.base, turn + it));
}

fn golden(record: &Record, turn: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, property) in record.wire().enumerate() {
        put_array(&mut out, &property.property_type, turn + number);
    }
    out
}

/// The bytes of a record with the default values.
fn default_bytes(record: &Record, texts: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    record
        .wire()
        .for_each(|it| put_default(&mut out, record, it, texts));
    out
}

fn put_default(out: &mut Vec<u8>, record: &Record, property: &Property, texts: &[String]) {
    let of = &property.property_type;
    match &property.default {
        Some(literal) => {
            let (mut lengths, mut items) = (Vec::new(), Vec::new());
            flatten(record, literal, &mut lengths, &mut items, 0);
            for (length, _) in lengths
                .iter()
                .zip(&of.dimensions)
                .filter(|it| it.1.is_none())
            {
                out.extend((*length as i32).to_be_bytes());
            }
            items
                .iter()
                .for_each(|it| put_value(out, &of.base, Some(it), texts));
        }
        None => {
            let mut items = 1;
            for length in &of.dimensions {
                items *= length.unwrap_or(0);
                if length.is_none() {
                    out.extend([0; 4]);
                }
            }
            (0..items).for_each(|_| put_value(out, &of.base, None, texts));
        }
    }
}

fn flatten(
    record: &Record,
    literal: &Literal,
    lengths: &mut Vec<usize>,
    items: &mut Vec<Value>,
    depth: usize,
) {
    match &literal.value {
        Value::Array(all) => {
            if lengths.len() == depth {
                lengths.push(all.len());
            }
            all.iter()
                .for_each(|it| flatten(record, it, lengths, items, depth + 1));
        }
        Value::Name(name) => match record.constants.iter().find(|it| *it.name == **name) {
            Some(constant) => flatten(record, &constant.value, lengths, items, depth),
            None => items.push(literal.value.clone()),
        },
        value => items.push(value.clone()),
    }
}

fn put_value(out: &mut Vec<u8>, base: &Base, value: Option<&Value>, texts: &[String]) {
    let int = match value {
        Some(Value::Int(it)) => *it,
        Some(Value::Bool(it)) => i64::from(*it),
        Some(Value::Text(it)) if *base == Base::Char => it.encode_utf16().next().unwrap().into(),
        _ => 0,
    };
    let float = match value {
        Some(Value::Float(it)) => *it,
        _ => int as f64,
    };
    match (base, value) {
        (Base::Boolean | Base::Byte, _) => out.push(int as u8),
        (Base::Char | Base::Short, _) => out.extend((int as u16).to_be_bytes()),
        (Base::Int, _) => out.extend((int as i32).to_be_bytes()),
        (Base::Long, _) => out.extend(int.to_be_bytes()),
        (Base::Float, _) => out.extend((float as f32).to_be_bytes()),
        (Base::Double, _) => out.extend(float.to_be_bytes()),
        (Base::Enum(of), Some(Value::Name(name))) => {
            let ordinal = of.literals.iter().position(|it| *it.0 == **name).unwrap();
            out.extend((ordinal as i32).to_be_bytes());
        }
        (Base::Enum(_), _) => out.extend([0; 4]),
        (Base::String, value) => {
            let text = match value {
                Some(Value::Text(it)) => it.as_str(),
                Some(Value::KiekerVersion) => "2.0.3",
                _ => "",
            };
            let index = texts.iter().position(|it| it == text).unwrap();
            out.extend((index as i32 * 7 - 5).to_be_bytes());
        }
        (Base::Payload(_), _) => panic!("there are no payloads"),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    bytes
        .iter()
        .for_each(|it| write!(text, "{it:02x}").unwrap());
    text
}

/// Runs a program in a folder, and returns its standard output.
fn run(folder: &Path, program: &str, package: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .current_dir(folder)
        .env("GOFLAGS", "-mod=mod")
        .env("PYTHONPYCACHEPREFIX", folder.join("pycache"))
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; install the Debian package {package}"));
    let (text, errors) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(
        output.status.success(),
        "{program} {args:?}\n{text}\n{errors}"
    );
    // A compiler of correct source code has nothing to say.
    assert_eq!(errors, "", "{program} {args:?}");
    text
}

/// Writes the source code and the program's input, runs the program that `build` makes, and compares.
fn check(language: &str, build: impl FnOnce(&Path, &[Record]) -> String) {
    let records = records();
    let folder = tempfile::tempdir().unwrap();
    for file in generate(&records, language).unwrap() {
        let path = folder.path().join("records").join(&file.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file.text).unwrap();
    }
    let texts = texts(&records);
    let (mut input, mut expected) = (String::new(), String::new());
    for (index, text) in texts.iter().enumerate() {
        writeln!(
            input,
            "S {} {}.",
            index as i32 * 7 - 5,
            hex(text.as_bytes())
        )
        .unwrap();
    }
    let plain: Vec<Record> = records.into_iter().filter(is_plain).collect();
    let mut count = 0;
    for record in &plain {
        let default = hex(&default_bytes(record, &texts));
        writeln!(input, "D {} .", record.name).unwrap();
        writeln!(expected, "{} {default}.", record.name).unwrap();
        for turn in 0..4 {
            let bytes = hex(&golden(record, turn));
            writeln!(input, "R {} {bytes}.", record.name).unwrap();
            writeln!(expected, "{} {bytes}.", record.name).unwrap();
        }
        count += 1;
    }
    assert_eq!(count, 72 + 5);
    fs::write(folder.path().join("input"), input).unwrap();
    let found = build(folder.path(), &plain);
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "{language}");
    }
    assert_eq!(
        found.lines().count(),
        expected.lines().count(),
        "{language}"
    );
}

/// Writes a program: the file of this language with lines of code for each record.
fn program(
    path: &Path,
    text: &str,
    records: &[Record],
    line: impl Fn(&str, &str, &str) -> [String; 2],
) {
    let (mut head, mut cases) = (Vec::new(), Vec::new());
    for record in records {
        let (package, name) = record.name.rsplit_once('.').unwrap();
        let [in_head, case] = line(&record.name, package, name);
        head.push(in_head);
        cases.push(case);
    }
    head.sort_unstable();
    head.dedup();
    let text = text
        .replace("/* HEAD */", &head.join("\n"))
        .replace("/* CASES */", &cases.join("\n"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn rust_reads_and_writes_each_record() {
    check("rust", |folder, records| {
        let text = include_str!("languages/driver.rs.txt");
        program(
            &folder.join("main.rs"),
            text,
            records,
            |full, package, name| {
                let package = package.replace('.', "_");
                [
                    String::new(),
                    format!("case!(\"{full}\", records::{package}::{name});"),
                ]
            },
        );
        run(
            folder,
            "rustc",
            "rustc",
            &["--edition", "2021", "-Dwarnings", "main.rs"],
        );
        run(folder, "./main", "", &[])
    });
}

#[test]
fn c_reads_and_writes_each_record() {
    check("c", |folder, records| {
        let text = include_str!("languages/driver.c.txt");
        program(&folder.join("main.c"), text, records, |full, _, _| {
            let flat = full.replace('.', "_");
            [format!("#include \"{flat}.h\""), format!("CASE({flat})")]
        });
        let mut every = String::new();
        for entry in fs::read_dir(folder.join("records")).unwrap() {
            let name = entry.unwrap().file_name();
            writeln!(every, "#include \"{}\"", name.to_str().unwrap()).unwrap();
        }
        fs::write(folder.join("every.c"), every).unwrap();
        let flags = [
            "-std=c99",
            "-pedantic",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Irecords",
            "-g",
        ];
        let sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover"];
        run(
            folder,
            "gcc",
            "gcc",
            &[&flags[..], &["-c", "every.c"]].concat(),
        );
        run(
            folder,
            "gcc",
            "gcc",
            &[&flags[..], &sanitize, &["-o", "main", "main.c"]].concat(),
        );
        run(folder, "./main", "", &[])
    });
}

#[test]
fn java_reads_and_writes_each_record() {
    check("java", |folder, _| {
        fs::write(
            folder.join("Driver.java"),
            include_str!("languages/driver.java.txt"),
        )
        .unwrap();
        let mut files = vec!["Driver.java".to_owned()];
        let mut open = vec![folder.join("records")];
        while let Some(path) = open.pop() {
            match path.is_dir() {
                true => open.extend(fs::read_dir(path).unwrap().map(|it| it.unwrap().path())),
                false => files.push(path.display().to_string()),
            }
        }
        fs::write(folder.join("files"), files.join("\n")).unwrap();
        run(
            folder,
            "javac",
            "default-jdk-headless",
            &["-Xlint:all", "-Werror", "-d", "classes", "@files"],
        );
        run(
            folder,
            "java",
            "default-jre-headless",
            &["-cp", "classes", "Driver"],
        )
    });
}

#[test]
fn go_reads_and_writes_each_record() {
    check("go", |folder, records| {
        let text = include_str!("languages/driver.go.txt");
        program(
            &folder.join("records/driver/main.go"),
            text,
            records,
            |full, package, name| {
                let alias = package.replace('.', "_");
                let import = format!("{alias} \"records/{}\"", package.replace('.', "/"));
                [
                    import,
                    format!("\"{full}\": func() record {{ return {alias}.New{name}() }},"),
                ]
            },
        );
        let records = folder.join("records");
        run(&records, "go", "golang", &["vet", "./..."]);
        run(
            &records,
            "go",
            "golang",
            &["build", "-o", "../main", "./driver"],
        );
        run(folder, "./main", "", &[])
    });
}

#[test]
fn python_reads_and_writes_each_record() {
    check("python", |folder, _| {
        fs::write(
            folder.join("driver.py"),
            include_str!("languages/driver.py.txt"),
        )
        .unwrap();
        let all = "import glob, py_compile\nfor it in glob.glob('records/*.py'): py_compile.compile(it, doraise=True)";
        run(folder, "python3", "python3", &["-W", "error", "-c", all]);
        run(folder, "python3", "python3", &["-W", "error", "driver.py"])
    });
}

#[test]
fn perl_reads_and_writes_each_record() {
    check("perl", |folder, _| {
        fs::write(
            folder.join("driver.pl"),
            include_str!("languages/driver.pl.txt"),
        )
        .unwrap();
        run(folder, "perl", "perl", &["-Irecords", "driver.pl"])
    });
}

#[test]
fn a_language_that_is_unknown_and_a_type_without_a_form_are_refused() {
    assert_eq!(
        LANGUAGES,
        ["baler", "c", "go", "java", "perl", "python", "rust"]
    );
    assert_eq!(
        generate(&[], "cobol").unwrap_err(),
        "no language is called cobol"
    );
    for (text, message) in [
        (
            "package p use m 'u' event E { m.T it { a } }",
            "p.E: it: m.T is a class that no file describes; name a file with a template m.T, too",
        ),
        (
            "package p event E { int[][2] it }",
            "p.E: it: int[][2] has several dimensions, and source code has arrays of one; write int[]",
        ),
        (
            "package p event E { float it = 1e39 }",
            "p.E: it: the value is out of the range of float",
        ),
        (
            "package p event E { int[2147483648] it }",
            "p.E: it: int[2147483648] has too many items",
        ),
    ] {
        let source = baler_irl::Source {
            name: "a.irl",
            text,
        };
        let settings = Settings {
            edition: Edition::Legacy,
            ..Settings::default()
        };
        let workspace = read(&[source], &settings);
        assert_eq!(workspace.error(), None, "{text}");
        for language in LANGUAGES {
            assert_eq!(generate(&workspace.records, language).unwrap_err(), message);
        }
    }
}
