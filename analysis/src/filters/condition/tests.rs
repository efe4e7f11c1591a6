use baler_common::record::{
    AnyValue, BatchBuilder, DynamicRecord, Field, FieldType, Record, Schema, Value as FieldOf,
};
use baler_common::transport::{Epoch, ProducerId};
use baler_connector_kieker::types::OperationExecutionRecord;

use super::value::Map;
use super::*;

#[derive(Record)]
#[record(name = "shop.Thing")]
struct Thing {
    id: i64,
    small: u16,
    big: u64,
    ratio: f64,
    half: f32,
    letter: char,
    text: String,
    blob: Vec<u8>,
    flag: bool,
    colour: Colour,
    tags: Vec<String>,
    numbers: Vec<i64>,
    inner: Inner,
    inners: Vec<Deep>,
    absent: Option<i64>,
    present: Option<i64>,
}

#[derive(Record, Clone, Copy)]
enum Colour {
    Red,
    Green,
}

#[derive(Record)]
struct Inner {
    name: String,
    deep: Deep,
}

#[derive(Record)]
struct Deep {
    value: i64,
}

/// Runs a function on a record with fields of all types.
fn with_thing<T>(run: impl FnOnce(RecordRef<'_>, ChunkIdentity) -> T) -> T {
    let thing = Thing {
        id: 17,
        small: 5,
        big: u64::MAX,
        ratio: 1.5,
        half: 0.25,
        letter: 'é',
        text: "void shop.Cart.add(int)".into(),
        blob: vec![0, 255],
        flag: true,
        colour: Colour::Green,
        tags: vec!["a".into(), "b".into()],
        numbers: vec![1, 2, 3],
        inner: Inner {
            name: "n".into(),
            deep: Deep { value: 5 },
        },
        inners: vec![Deep { value: 1 }, Deep { value: 2 }],
        absent: None,
        present: Some(5),
    };
    let chunk = ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 1,
        },
        lane: 3,
        sequence: 9,
    };
    let mut batch = BatchBuilder::new();
    batch.push(&thing).unwrap();
    let batch = batch.take();
    run(batch.records().next().unwrap(), chunk)
}

/// Evaluates an expression, and returns its value as the table writes it.
fn evaluated(text: &str, record: RecordRef<'_>, chunk: ChunkIdentity) -> String {
    let Ok(expression) = parse::parse(text) else {
        return "syntax".to_owned();
    };
    let mut scope = Scope::new(record, Some(chunk));
    let value = expression.evaluate(&mut scope);
    let shown = match &value {
        Ok(value) => shown(value),
        Err(EvaluationError::Failed { .. }) => "error".to_owned(),
        Err(EvaluationError::Missing) => "missing".to_owned(),
    };
    assert!(scope.locals.is_empty(), "{text}");
    shown
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => format!("{value}u"),
        Value::Double(value) => format!("{value:?}"),
        Value::String(value) => format!("{value:?}"),
        Value::Bytes(value) => format!("b{value:?}"),
        Value::List(list) => format!(
            "[{}]",
            list.iter().map(shown).collect::<Vec<_>>().join(", ")
        ),
        Value::Map(map) => format!("{{{}}}", entries(map).join(", ")),
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Optional(Some(value)) => format!("optional.of({})", shown(value)),
        Value::Type(name) => format!("{name:?}"),
        Value::Unreadable(_) => "unreadable".to_owned(),
    }
}

/// Returns the entries of a map, sorted.
fn entries(map: &Map<'_>) -> Vec<String> {
    let entries = map
        .iter()
        .map(|(key, value)| format!("{}: {}", shown(&key), shown(&value)));
    let mut entries: Vec<_> = entries.collect();
    entries.sort();
    entries
}

fn with_execution<T>(run: impl FnOnce(RecordRef<'_>) -> T) -> T {
    let record = OperationExecutionRecord {
        operation_signature: "void shop.Cart.add(int)".into(),
        trace_id: 17,
        tin: 5,
        session_id: "s".into(),
        tout: 6,
        hostname: "h".into(),
        eoi: 0,
        ess: 0,
    };
    let mut batch = BatchBuilder::new();
    batch.push(&record).unwrap();
    let batch = batch.take();
    run(batch.records().next().unwrap())
}

fn holds(text: &str) -> Result<bool, String> {
    let holds =
        with_execution(|record| Condition::new("--where", text).unwrap().holds(record, None));
    holds.map_err(|(reason, _)| reason)
}

/// Returns the value of an expression for a line that is kept as JSON text.
fn of_line(text: &str, line: &str) -> String {
    let field = |name, of| Schema::new(name, vec![Field::new("json", of)]).unwrap();
    let kept = field("baler.Json", FieldType::String);
    let schema = field("line", FieldType::Record(kept.into()));
    let line = FieldOf::Record(vec![line.into()]);
    let record = DynamicRecord::new(schema.into(), None, vec![line]).unwrap();
    with_thing(|_, chunk| evaluated(text, record.as_ref(), chunk))
}

#[test]
fn maps_have_the_last_value_of_a_key_and_plain_values() {
    let any = FieldType::Record(Arc::clone(AnyValue::schema()));
    let schema = Schema::new("t", [Field::new("attributes", any.map())]).unwrap();
    let attributes = [
        ("http.status", AnyValue::I64(1)),
        ("route", AnyValue::String("/tea".into())),
        ("tags", AnyValue::Json("[\"a\"]".into())),
        ("http.status", AnyValue::I64(504)),
    ];
    let attributes = attributes.map(|(key, value)| (key, value.to_value()));
    let record = DynamicRecord::new(schema.into(), None, [FieldOf::map(attributes)]).unwrap();
    let condition = |text| Condition::new("--where", text).unwrap();
    for text in [
        "attributes['http.status'] >= 500",
        "attributes.route == '/tea' && attributes.tags[0] == 'a'",
        "size(attributes) == 4 && !('absent' in attributes)",
        "attributes.exists(key, key == 'tags')",
    ] {
        assert!(condition(text).passes(record.as_ref(), None), "{text}");
    }
    assert!(!condition("attributes.absent == 1").passes(record.as_ref(), None));
}

#[test]
fn fields_of_lines_that_are_kept_as_text_have_their_values() {
    let line = r#"{"level":"error","n":7,"big":18446744073709551615,"ratio":0.5,"huge":1e400,
        "precise":0.12345678901234567890,"flag":true,"none":null,"mixed":[1,"a",{"b":[2]}],
        "in":{"a":{"b":"c"},"a b":1},"half":"x\ud800y","twice":1,"twice":"two","":"nameless",
        "json":"own","\u0061":"escaped"}"#;
    for (text, value) in [
        ("level", "\"error\""),
        ("n + 1", "8"),
        ("big", "18446744073709551615u"),
        ("ratio", "0.5"),
        ("huge > 1", "true"),
        ("precise > 0.1", "true"),
        ("flag && none == null", "true"),
        ("mixed[1]", "\"a\""),
        ("mixed[2].b[0]", "2"),
        ("mixed.exists(it, it == 'a')", "true"),
        ("in.a.b", "syntax"),
        ("fields['in'].a.b", "\"c\""),
        ("fields['in']['a b']", "1"),
        ("half.startsWith('x') && half.endsWith('y')", "true"),
        ("twice", "\"two\""),
        ("fields['']", "\"nameless\""),
        ("json", "\"own\""),
        ("a", "\"escaped\""),
        ("nothing", "missing"),
        ("has(level) && !has(nothing)", "true"),
        ("'level' in fields", "true"),
        ("type", "\"line\""),
        ("level > 5", "error"),
    ] {
        assert_eq!(of_line(text, line), value, "{text}");
    }
}

#[test]
fn json_text_that_cannot_be_read_has_no_answer() {
    let deep = |depth| format!(r#"{{"a":{}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert_eq!(of_line("a == a", &deep(64)), "true");
    for text in ["a == a", "a != 1", "a in [1]", "size(a) == 1", "a[0] == 1"] {
        let text = &text.replace('a', &format!("a{}", "[0]".repeat(64)));
        assert_eq!(of_line(text, &deep(5_000)), "error", "{text}");
    }
    assert_eq!(of_line("a", "no JSON"), "missing");
}

#[test]
fn a_value_that_cannot_be_judged_has_a_field_a_type_and_an_example() {
    let long = "x".repeat(100);
    for (text, field, type_name, example) in [
        ("traceId > 'x'", "traceId", "int", "17"),
        ("fields.traceId > 'x'", "traceId", "int", "17"),
        ("fields['traceId'] > 'x'", "traceId", "int", "17"),
        ("hostname && true", "hostname", "string", "\"h\""),
        ("1 + eoi + 'a' == 1", "eoi", "int", "0"),
        ("tin.contains('5')", "tin", "int", "5"),
        ("'5'.contains(tin)", "tin", "int", "5"),
        ("int(hostname) == 1", "hostname", "string", "\"h\""),
        ("hostname", "hostname", "string", "\"h\""),
        ("hostname ? true : false", "hostname", "string", "\"h\""),
    ] {
        let condition = Condition::new("--where", text).unwrap();
        with_execution(|record| assert!(!condition.passes(record, None)));
        let undecided = condition.undecided();
        assert_eq!((condition.filtered(), undecided.records), (1, 1));
        let kinds: Vec<_> = undecided.kinds.iter().collect();
        let [((name, kind), values)] = kinds[..] else {
            panic!("{text}: {kinds:?}");
        };
        assert_eq!((&**name, *kind), (field, type_name), "{text}");
        assert_eq!((&*values.example, values.records), (example, 1), "{text}");
    }
    let value = Value::String(long.into());
    assert_eq!(value.example().chars().count(), 60 + 3);
}

#[test]
fn fields_that_some_record_must_have_are_those_of_which_nothing_else_is_said() {
    for (text, needed) in [
        ("a > 1 && b.c == d[e]", "a b d e"),
        ("fields.a == fields['b c']", "a b c"),
        (
            "type == 'x' && timestamp > 1 && lane == 1 && int(a) == 1",
            "a",
        ),
        ("has(a) && a > 1", ""),
        ("has(fields.a) && a > 1 && b", "b"),
        ("fields.?a.orValue(1) == 1 || fields[?'b'] == c", "c"),
        ("[a].all(x, x > b) && {c: d}[e] == -f", "a b c d e f"),
        ("!(a ? b : c)", "a b c"),
        ("type(a) == string", "a"),
        ("true", ""),
    ] {
        let expression = parse::parse(text).unwrap();
        let mut names = Names::default();
        names.add(&expression);
        assert_eq!(
            names.needed().collect::<Vec<_>>().join(" "),
            needed,
            "{text}"
        );
    }
}

#[test]
fn expressions_see_fields_type_and_timestamp() {
    for (text, expected) in [
        ("traceId == 17", true),
        ("traceId > 17", false),
        ("traceId < 17.5 && tin + 1 == 6", true),
        ("operationSignature.contains('Cart')", true),
        ("operationSignature.startsWith('int')", false),
        ("type.endsWith('OperationExecutionRecord')", true),
        ("timestamp == null || timestamp > 0", true),
        ("fields['traceId'] == 17", true),
        ("has(fields.eoi) && !has(fields.nothing)", true),
        ("traceId in [1, 17]", true),
    ] {
        assert_eq!(holds(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_record_that_lacks_a_field_does_not_match() {
    for text in ["nothing == 1", "fields.nothing == 1", "producer == 'x'"] {
        assert_eq!(holds(text), Ok(false), "{text}");
    }
    assert_eq!(holds("traceId == 17 || nothing == 1"), Ok(true));
}

#[test]
fn what_cannot_be_said_tells_why() {
    let error = holds("traceId").unwrap_err();
    assert_eq!(error, "the result is int, not a bool");
    assert!(holds("traceId + 'x' == 'y'").is_err());
    assert!(holds("traceId / 0 == 1").is_err());
}

#[test]
fn what_is_no_expression_is_told_with_its_place() {
    let error = Condition::new("--where", "traceId ==")
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("--where `traceId ==`: line 1, column "),
        "{error}"
    );
    assert!(Condition::new("--where", "").is_err());
}

#[test]
fn expressions_have_the_values_of_the_table() {
    with_thing(|record, chunk| {
        let mut rows = 0;
        for row in include_str!("expressions.txt").lines() {
            if row.is_empty() || row.starts_with("# ") {
                continue;
            }
            let (text, value) = row.rsplit_once("  ->  ").unwrap();
            assert_eq!(evaluated(text, record, chunk), value, "{text}");
            rows += 1;
        }
        assert!(rows > 800, "{rows}");
    });
}

#[test]
fn texts_of_several_lines_have_line_ends_of_one_letter() {
    with_thing(|record, chunk| {
        for text in [
            "'''a\r\nb\rc'''",
            "r\"\"\"a\nb\nc\"\"\"",
            "\n// x\n 'a\\nb\\nc' // y",
        ] {
            assert_eq!(evaluated(text, record, chunk), r#""a\nb\nc""#, "{text}");
        }
    });
}

#[test]
fn errors_tell_line_column_and_reason() {
    for (text, reason) in [
        (
            "id =",
            "line 1, column 4: `=` has no meaning here; write `==`",
        ),
        (
            "id ==",
            "line 1, column 6: expected a value instead of the end",
        ),
        (
            "id == 1\n  & flag",
            "line 2, column 3: `&` has no meaning here; write `&&`",
        ),
        ("'é' # 1", "line 1, column 5: `#` has no meaning here"),
        ("(id", "line 1, column 4: expected `)` instead of the end"),
        (
            "id 5",
            "line 1, column 4: expected an operator or the end instead of `5`",
        ),
        ("'a", "line 1, column 1: the text has no ' at its end"),
        (
            "'a\nb'",
            "line 1, column 3: a text of several lines has three quotes at each end",
        ),
        (
            r"'a\q'",
            "line 1, column 3: this escape sequence has no meaning",
        ),
        (
            "99999999999999999999",
            "`99999999999999999999` does not fit into 64 bits",
        ),
        (
            "9223372036854775808",
            "line 1, column 1: the number does not fit into 64 bits",
        ),
        (
            "text.matches('a')",
            "line 1, column 6: there is no method `matches`",
        ),
        (
            "1 + lower('a')",
            "line 1, column 5: there is no function `lower`",
        ),
        (
            "size()",
            "line 1, column 1: the number of arguments of `size` is 1",
        ),
        (
            "has(type)",
            "line 1, column 1: has() takes one field, as in has(name)",
        ),
        (
            "tags.all(1, true)",
            "line 1, column 10: expected a name instead of `1`",
        ),
        (
            "package == 1",
            "`package` is a reserved word; for a field write fields.package",
        ),
    ] {
        let error = Condition::new("--where", text).err().unwrap().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn undecided_records_have_a_reason() {
    for (text, reason) in [
        ("traceId < 'x'", "`<` does not take (int, string)"),
        ("!traceId", "`!` does not take (int)"),
        ("[1][1] == 1", "the index is beyond the list"),
        ("1 / 0 == 1", "`/` by zero"),
        (
            "9223372036854775807 + 1 == 1",
            "the result of `+` does not fit into 64 bits",
        ),
        ("int('x') == 1", "`int` has no result for this string"),
        ("0.0 / 0.0 < 1.0", "NaN has no order"),
    ] {
        assert_eq!(holds(text).unwrap_err(), reason);
    }
}

/// A test has the stack of an ordinary thread.
#[test]
fn an_expression_is_as_deep_as_the_limit_at_most_and_as_long_as_one_likes() {
    for (open, inner, close) in [
        ("(", "1", ")"),
        ("(true || false && 1 < 1 + 1 * ", "1", ")"),
        ("[", "1", "]"),
        ("[0][", "0", "]"),
        ("{'a': ", "1", "}"),
        ("dyn(", "1", ")"),
        ("[1].all(x, ", "true", ")"),
        ("optional.of(1).optFlatMap(x, ", "1", ")"),
        ("false ? 1 : ", "1", ""),
        ("!", "true", ""),
        ("-", "id", ""),
    ] {
        let nested = |depth| [&open.repeat(depth), inner, &close.repeat(depth)].concat();
        with_thing(|record, chunk| assert_ne!(evaluated(&nested(63), record, chunk), "syntax"));
        for depth in [64, 100_000] {
            let error = Condition::new("--where", &nested(depth))
                .err()
                .unwrap()
                .to_string();
            assert!(error.contains("is more than 64 levels deep"), "{open}");
        }
    }
    with_thing(|record, chunk| {
        for (first, rest) in [
            ("true", " && true"),
            ("1", " + 1"),
            ("id", " == id"),
            ("fields", ".a"),
            ("tags", ".filter(t, true)"),
        ] {
            let text = format!("{first}{}", rest.repeat(10_000));
            assert_ne!(evaluated(&text, record, chunk), "syntax", "{first}{rest}");
        }
    });
}

#[test]
fn no_sequence_of_tokens_makes_it_panic() {
    let tokens: Vec<_> = "( ) [ ] { } . , : ? ! - + * / % < <= == != in && || = # ' \" ''' \\ \
         b'\\xff' r'a' 'ä' 1 0 2u 0x1F 9223372036854775808 1.5 1e308 true null id tags inner fields \
         absent nothing x .?a [? has( .all(x, .exists(x, .map(x, .filter(x, .exists_one(x, size( int( \
         string( type( optional.of( optional.none() .optMap(x, .orValue( .contains( .size() .name // \n"
        .split(' ')
        .collect();
    let mut state = 7_u64;
    // Knuth's linear congruential generator; the upper bits are the good ones.
    let mut below = |count: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005);
        state = state.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % count
    };
    let mut expressions = 0;
    with_thing(|record, chunk| {
        for _ in 0..30_000 {
            let count = 1 + below(12);
            let text: Vec<_> = (0..count).map(|_| tokens[below(tokens.len())]).collect();
            expressions += usize::from(evaluated(&text.join(" "), record, chunk) != "syntax");
            evaluated(&text.concat(), record, chunk);
        }
    });
    assert!(expressions > 100, "{expressions}");
}
