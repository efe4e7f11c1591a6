use super::*;

#[test]
fn doubles_are_those_of_java() {
    // From Java: Double.toString.
    for (value, text) in [
        (0.25, "0.25"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
        (1.0, "1.0"),
        (-12.5, "-12.5"),
        (0.001, "0.001"),
        (0.00123, "0.00123"),
        (9.99e-4, "9.99E-4"),
        (1e-7, "1.0E-7"),
        (1e7, "1.0E7"),
        (9_999_999.5, "9999999.5"),
        (1_234_567.0, "1234567.0"),
        (1e21, "1.0E21"),
        (f64::MAX, "1.7976931348623157E308"),
        (f64::NAN, "NaN"),
        (f64::NEG_INFINITY, "-Infinity"),
        (f64::INFINITY, "Infinity"),
    ] {
        let mut out = String::new();
        push_value(ValueRef::F64(value), &mut out).unwrap();
        assert_eq!(out, format!(";{text}"));
    }
    let mut out = String::new();
    push_value(ValueRef::F32(0.1), &mut out).unwrap();
    assert_eq!(out, ";0.1");
}

/// As Kieker's `TextValueDeserializer.readValue`: the first field, and what follows it.
fn read_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => {
                value.push(char);
                value.push(chars.next().unwrap().1);
            }
            ';' => return (value, text.split_at(at).1),
            other => value.push(other),
        }
    }
    (value, "")
}

#[test]
fn no_string_ends_its_field_or_its_line_before_kiekers_reader() {
    for (text, read) in [
        ("plain", "plain"),
        ("C:\\dir\\x", "C:\\dir\\x"),
        ("a;b", "a\\;b"),
        ("a\\;b", "a\\\\\\;b"),
        ("a\\", "a\\\\"),
        ("a\\\\", "a\\\\"),
        ("two\r\nlines", "two\\r\\nlines"),
        ("", ""),
    ] {
        let mut out = String::new();
        push_string(text, &mut out);
        out.push_str(";next");
        assert_eq!(read_value(&out), (read.to_owned(), ";next"), "{text}");
        assert!(!out.contains(['\r', '\n']));
    }
}

#[test]
fn separators_as_chars_are_refused() {
    let refused = push_value(ValueRef::Char(';'), &mut String::new());
    assert_eq!(refused, Err("a separator as a char"));
    assert_eq!(push_value(ValueRef::Char('x'), &mut String::new()), Ok(0));
}
