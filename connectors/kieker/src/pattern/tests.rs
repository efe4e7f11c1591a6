//! Patterns compared with Kieker's own parser, and the same patterns in the other dialects.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

const GOLDEN: &str = include_str!("../../tests/golden/pattern-golden.json");

fn strings(value: &Value) -> Vec<&str> {
    let array = value.as_array().unwrap();
    array.iter().map(|it| it.as_str().unwrap()).collect()
}

#[test]
fn kieker_dialect_is_that_of_kiekers_parser() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let signatures = strings(&golden["signatures"]);
    let cases = golden["patterns"].as_array().unwrap();
    assert!(cases.len() > 30 && signatures.len() > 40);
    for case in cases {
        let text = case["pattern"].as_str().unwrap();
        let parsed = Pattern::parse(text, Dialect::Kieker);
        if case.get("error").is_some() {
            assert!(parsed.is_err(), "`{text}` is an error in Kieker");
            continue;
        }
        let pattern = parsed.unwrap();
        let wanted = case["matches"].as_array().unwrap();
        let wanted: Vec<_> = wanted.iter().map(|it| it.as_u64().unwrap()).collect();
        let found: Vec<_> = (0_u64..)
            .zip(&signatures)
            .filter(|(_, signature)| pattern.matches(signature))
            .map(|(number, _)| number)
            .collect();
        assert_eq!(found, wanted, "`{text}`");
    }
}

#[test]
fn kieker_dialect_keeps_what_else_is_odd() {
    let kieker = |text: &str| Pattern::parse(text, Dialect::Kieker);
    // Empty items at the end of a list are dropped, but not at its start.
    assert!(
        kieker("void a.C.d(int,)")
            .unwrap()
            .matches("void a.C.d(int)")
    );
    assert!(kieker("void a.C.d(, int)").is_err());
    // Exceptions are not trimmed.
    assert!(kieker("void a.C.d() throws A, B").is_err());
    let both = kieker("void a.C.d() throws A,B").unwrap();
    assert!(both.matches("void a.C.d() throws A, B"));
    // Refused, because Kieker reads it as something else.
    assert!(kieker("void a.C.d() throwsA").is_err());
    assert!(kieker("public private void a.C.d()").is_err());
    assert!(kieker("final native native void a.C.d()").is_err());
    let seven = "public abstract default static final synchronized native void a.C.d()";
    assert!(kieker(seven).unwrap().matches(seven));
    assert!(kieker(&format!("public {seven}")).is_err());
    assert!(kieker("public public abstract default static final native void a.C.d()").is_err());
    // A dollar at the start is the end of the text in Java.
    assert!(!kieker("void a.$C.d()").unwrap().matches("void a.$C.d()"));
    // A blank is one blank: the golden file shows `\s` in Kieker's expressions.
    assert!(!kieker("void a.C.d()").unwrap().matches("void  a.C.d()"));
    // A star at the start may be nothing.
    assert!(kieker("* a.C.d()").unwrap().matches(" a.C.d()"));
    assert!(kieker("int[*] a.C.d()").is_err());
    assert!(!kieker("*").unwrap().matches("two\nlines"));
}

#[test]
fn strict_dialect_means_what_it_says() {
    let strict = |text| Pattern::parse(text, Dialect::Strict).unwrap();
    let cases = [
        // The comma is required, and lists are lists.
        ("void a.b.C.f(int, ..)", "void a.b.C.f(int)", true),
        (
            "void a.b.C.f(int, ..)",
            "void a.b.C.f(int, long, a.B)",
            true,
        ),
        ("void a.b.C.f(int, ..)", "void a.b.C.f(integer)", false),
        ("void a.b.C.f(int, *)", "void a.b.C.f(int)", false),
        (
            "void a.b.C.f(int, *)",
            "void a.b.C.f(int,java.util.List)",
            true,
        ),
        ("void a.b.C.f(.., int)", "void a.b.C.f(int)", true),
        (
            "void a.b.C.f(.., int)",
            "void a.b.C.f(long , a.B, int)",
            true,
        ),
        ("void a.b.C.f(.., int)", "void a.b.C.f(point)", false),
        (
            "void a.b.C.f(.., int, ..)",
            "void a.b.C.f(long, int, long)",
            true,
        ),
        (
            "void a.b.C.f(.., int, ..)",
            "void a.b.C.f(long, long)",
            false,
        ),
        ("void a.b.C.f(..)", "void a.b.C.f()", true),
        ("void a.b.C.f()", "void a.b.C.f( )", true),
        ("void a.b.C.f()", "void a.b.C.f(int)", false),
        ("void a.b.C.f(*)", "void a.b.C.f(u8[])", true),
        // Modifiers, in any order and whether named or not.
        ("..* ..*.*(..)", "public default void a.I.m()", true),
        (
            "static public void a.C.d()",
            "public native static void a.C.d()",
            true,
        ),
        (
            "non_static ..* ..*.*(..)",
            "public static void a.C.d()",
            false,
        ),
        ("package ..* ..*.*(..)", "public void a.C.d()", false),
        ("package ..* ..*.*(..)", "void a.C.d()", true),
        ("public ..* ..*.*(..)", "void a.C.d()", false),
        // Stars.
        ("* a.*.d()", "void a.C.d()", true),
        ("* *.d()", "void a.C.d()", false),
        ("* ..*.d()", "void a.C.d()", true),
        ("* ..C.d()", "void C.d()", true),
        ("* a..C.d()", "void a.x.y.C.d()", true),
        ("* a.*C.d()", "void a.x.C.d()", false),
        ("* a.C.get*()", "void a.C.get()", true),
        ("* a.C.*()", "void a.C.()", false),
        ("*List a.C.d()", "ArrayList a.C.d()", true),
        ("Array* a.C.d()", "ArrayList[] a.C.d()", true),
        ("* a.C.d()", "byte[] a.C.d()", true),
        ("byte[] a.C.d()", "byte[] a.C.d()", true),
        ("byte[] a.C.d()", "byte a.C.d()", false),
        ("void a.$C.d()", "void a.$C.d()", true),
        // Results.
        ("a.C.d()", "a.C.d()", true),
        ("a.C.d()", "public void a.C.d()", true),
        ("..* ..*.*(..)", "warehouse.pack()", true),
        ("void a.C.d()", "a.C.d()", false),
        ("new ..*.<init>(..)", "public a.C.<init>(int)", true),
        ("..* ..*.*(..)", "public a.C.<init>(int)", false),
        // Exceptions.
        ("* a.C.d() throws A, B", "void a.C.d() throws A,B", true),
        ("* a.C.d()", "void a.C.d() throws A", false),
        ("* a.C.d() throws ..", "void a.C.d() throws A", true),
        ("* a.C.d() throws ..", "void a.C.d()", true),
        // Signatures made by `#[probe]`.
        (
            "public * shop.till..*.*(..)",
            "public Result shop.till.Till.order(str, u32)",
            true,
        ),
        (
            "..* shop..*.order(str, *)",
            "public Result shop.till.Till.order(str, u32)",
            true,
        ),
        (
            "public * shop..*.*(..)",
            "public tuple shop.Cart.split(u8[], Fn)",
            true,
        ),
        // Without parameters any will do.
        (
            "com.shop..*",
            "public void com.shop.Till.order(int, a.B) throws C",
            true,
        ),
        ("com.shop..*", "com.shop.Till.order", true),
        (
            "com.shop..*",
            "public void com.shopping.Till.order()",
            false,
        ),
        (
            "com.shop..*",
            "public void org.com.shop.Till.order()",
            false,
        ),
        (
            "static com.shop.*.order",
            "static int com.shop.Till.order()",
            true,
        ),
        (
            "static com.shop.*.order",
            "int com.shop.Till.order()",
            false,
        ),
        ("*", "whatever\nit is", true),
        ("%CPU::[0-2]", "%CPU::1", true),
        ("%MEM.*", "%MEM_SWAP", true),
    ];
    for (pattern, signature, wanted) in cases {
        assert_eq!(
            strict(pattern).matches(signature),
            wanted,
            "`{pattern}` on `{signature}`"
        );
    }
}

#[test]
fn strict_dialect_refuses_what_kieker_overlooks() {
    let cases = [
        ("", 0, "a pattern"),
        ("   ", 0, "a pattern"),
        ("a.C.", 4, "the name of a type"),
        ("void a.C.d(", 11, "`)`"),
        ("void a.C.d)(", 10, "in front of"),
        ("void a.C.d()()", 12, "no second pair"),
        ("void a.C.d(,)", 11, "a type"),
        ("void a.C.d(int,)", 15, "a type"),
        ("void a...C.d()", 6, "one or two dots"),
        ("void .a.C.d()", 5, "the name of a type"),
        ("void doIt()", 5, "a class and an operation"),
        ("void a.C.()", 9, "the name of an operation"),
        ("1void a.C.d()", 0, "a letter"),
        ("java.util.List<String> a.C.d()", 14, "letters"),
        ("new a.B.foo()", 8, "<init>"),
        ("public private void a.C.d()", 7, "one modifier of a kind"),
        ("publik void a.C.d()", 0, "a modifier"),
        ("non-native void a.C.d()", 0, "a modifier"),
        ("void a.C.d() throwsA", 13, "a blank"),
        ("void a.C.d() tosses A", 13, "`throws`"),
        ("int[ a.C.d()", 3, "`[]`"),
        ("fn my_crate::module::func()", 3, "a class and an operation"),
        ("%CPU::[", 0, "unclosed character class"),
        ("  %CPU::(?=1)", 9, "without `?`"),
    ];
    for (pattern, position, expected) in cases {
        let error = Pattern::parse(pattern, Dialect::Strict).unwrap_err();
        assert_eq!(error.position(), position, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let long = format!("void a.C.{}()", "d".repeat(MAX_PATTERN_BYTES));
    let error = Pattern::parse(&long, Dialect::Strict)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("longer than 2048 bytes") && error.len() < 300,
        "{error}"
    );
}

#[test]
fn rust_dialect_matches_paths_in_every_form_of_signature() {
    let rust = |text| Pattern::parse(text, Dialect::Rust).unwrap();
    let order = "public Result shop.till.Till.order(str, u32)";
    let cases = [
        ("shop::till::Till::order", order, true),
        ("shop::till::*::order", order, true),
        ("shop::*::order", order, false),
        ("shop::**", order, true),
        ("shop::**::order", order, true),
        ("**::order", order, true),
        ("**::ord*", order, true),
        ("shop::**::till::**::order", order, true),
        ("till::**", order, false),
        ("fn shop::**(..)", order, true),
        ("pub fn shop::**(str, ..)", order, true),
        ("pub fn shop::**()", order, false),
        ("shop::**(.., u32)", order, true),
        ("shop::**(u32, ..)", order, false),
        ("shop::** -> Result", order, true),
        ("shop::** -> Receipt", order, false),
        ("shop::** -> *", order, true),
        ("pub shop::**", "void shop.Till.close()", false),
        ("shop::** -> ()", "void shop.Till.close()", true),
        ("shop::**() -> u8[]", "u8[] shop.Till.dump()", true),
        (
            "shop::order",
            "pub fn shop::order(str) -> shop::Result",
            true,
        ),
        (
            "shop::order(str) -> shop::Result",
            "pub fn shop::order(str) -> shop::Result",
            true,
        ),
        (
            "shop::order -> Other",
            "pub fn shop::order(str) -> shop::Result",
            false,
        ),
        ("warehouse::pack", "warehouse.pack()", true),
        ("warehouse::pack()", "warehouse.pack()", true),
        ("warehouse::pack", "warehouse::pack", true),
        ("pack", "pack", true),
        ("**", "pack", true),
        ("*", order, true),
        ("%CPU", "%CPU", true),
    ];
    for (pattern, signature, wanted) in cases {
        assert_eq!(
            rust(pattern).matches(signature),
            wanted,
            "`{pattern}` on `{signature}`"
        );
    }
    let refused = [
        ("", 0),
        ("shop::", 6),
        ("::shop", 0),
        ("shop::a**", 7),
        ("shop::Till<T>", 10),
        ("shop.till", 4),
        ("shop::order(", 12),
        ("shop::order(,)", 12),
        ("shop::order() ->", 16),
        ("shop::order(str) x", 12),
    ];
    for (pattern, position) in refused {
        let error = Pattern::parse(pattern, Dialect::Rust).unwrap_err();
        assert_eq!(error.position(), position, "{error}");
    }
}

#[test]
fn patterns_of_sensors_mean_what_they_mean_in_java() {
    let cases = [
        (r"%CPU", "%CPU", "%CPU::0"),
        (r"%CPU::.*", "%CPU::12", "%CPU"),
        (r"%CPU::[0-2]", "%CPU::2", "%CPU::3"),
        (r"%CPU::[^0-2]", "%CPU::3", "%CPU::1"),
        (r"%CPU::\d+", "%CPU::10", "%CPU::x"),
        (r"%(CPU|MEM_SWAP)(::.+)?", "%MEM_SWAP", "%LOAD_AVERAGE"),
        (r"%CPU::(?:1|2){2}", "%CPU::12", "%CPU::1"),
        (r"%CPU::\d{1,2}?", "%CPU::12", "%CPU::123"),
        (r"%CPU::[\d_-]+", "%CPU::1_-", "%CPU::a"),
        (r"%\S*\.x", "%ab.x", "%ab,x"),
        (r"%a\s\W", "%a !", "%a b"),
        (r"%a\++", "%a++", "%a"),
        ("%|%CPU", "%CPU", "%CP"),
        ("%*", "%%%", "%a"),
    ];
    let refused = [
        "%(?=x)",
        "%(?<name>x)",
        "%(?i)x",
        r"%(x)\1",
        r"%\p{Lu}",
        r"%\Qx\E",
        "%[a&&[b]]",
        "%[a[b]]",
        "%x++",
        "%x**",
        "%CPU::[",
        "%[b-a]",
        "%(x",
        "%x)",
        "%x)|(y",
        "%x{2",
        "%x{2,1}",
        "%((x{1000}){1000}){1000}",
        "%x\\",
    ];
    for dialect in Dialect::ALL {
        for (expression, yes, no) in cases {
            let pattern = Pattern::parse(expression, dialect).unwrap();
            assert!(pattern.matches(yes), "{expression} {yes}");
            assert!(!pattern.matches(no), "{expression} {no}");
        }
        for expression in refused {
            assert!(Pattern::parse(expression, dialect).is_err(), "{expression}");
        }
        let deep = format!("%{}x{}", "(".repeat(1_000), ")".repeat(1_000));
        assert!(Pattern::parse(&deep, dialect).is_err());
        // A backtracking matcher would not end.
        let nested = format!("%{}a{}b", "(".repeat(20), "*)".repeat(20));
        let nested = Pattern::parse(&nested, dialect).unwrap();
        assert!(!nested.matches(&format!("%{}", "a".repeat(10_000))));
    }
}

#[test]
fn a_file_is_read_line_by_line() {
    let text = "\u{feff}# patterns\r\n\n+ *\n  - public * a.C.*(..)  \n\
                - x\nnonsense\n- a.C.d()\n~ a.C.d()\n-\n";
    let (list, errors) = PatternList::parse(text, Dialect::Strict);
    let shown = "+ *\n- public * a.C.*(..)\n- a.C.d()\n";
    assert_eq!(list.to_string(), shown);
    let lines: Vec<_> = errors.iter().map(|error| error.line).collect();
    assert_eq!(lines, [5, 6, 8, 9], "{errors:?}");
    assert!(
        errors[0]
            .to_string()
            .starts_with("line 5: pattern ` x`: expected a class and an operation")
    );
    // The written text is read again.
    assert_eq!(
        PatternList::parse(shown, Dialect::Strict),
        (list, Vec::new())
    );
}

#[test]
fn the_example_of_kieker_is_read_but_for_its_mistake() {
    let text = "+ ..* ..*.*(..) throws ..\n\
                - public java.util.List package.subpackage.AnyClass.any*()\n\
                + non_static non-native ..* ..*.*(..) throws IOException\n\
                - ..* ..*.*(..String, .. , int) throws ..\n- %CPU::.*\n-%CPU\n";
    for dialect in [Dialect::Kieker, Dialect::Strict] {
        let (list, errors) = PatternList::parse(text, dialect);
        assert_eq!(list.rules().len(), 5);
        let lines: Vec<_> = errors.iter().map(|error| error.line).collect();
        assert_eq!(lines, [3]);
    }
}

#[test]
fn a_repeated_pattern_does_not_make_a_list_longer() {
    let mut list = PatternList::new();
    for number in 0..100 {
        let sign = if number % 2 == 0 { '-' } else { '+' };
        let line = format!("{sign} a.C.d()");
        list.push(Rule::parse(&line, Dialect::Strict).unwrap())
            .unwrap();
        list.push(Rule::parse("- b.C.*()", Dialect::Strict).unwrap())
            .unwrap();
    }
    assert_eq!(list.to_string(), "+ a.C.d()\n- b.C.*()\n");
    for number in 0..MAX_RULES + 1 {
        let rule = Rule::parse(&format!("- a.C.d{number}()"), Dialect::Strict).unwrap();
        let pushed = list.push(rule);
        assert_eq!(pushed.is_err(), number >= MAX_RULES - 2, "{number}");
    }
    list.push(Rule::parse("+ *", Dialect::Strict).unwrap())
        .unwrap();
    assert_eq!(list.rules().len(), 1);
}

/// The oracle: Kieker's result for its list, which is never shortened.
fn last_match(rules: &[Rule], signature: &str) -> Action {
    let mut action = Action::Activate;
    for rule in rules {
        if rule.pattern.matches(signature) {
            action = rule.action;
        }
    }
    action
}

fn rule() -> impl Strategy<Value = Rule> {
    let pattern = prop_oneof![
        1 => Just("*".to_owned()),
        6 => "(void |\\* |)([ab*]|\\.\\.[ab*])\\.[cd*]\\((|\\.\\.|int)\\)",
        1 => "%CPU(::[0-9])?",
    ];
    let sign = prop_oneof![Just("+"), Just("-")];
    let dialect = prop_oneof![Just(Dialect::Kieker), Just(Dialect::Strict)];
    (sign, pattern, dialect)
        .prop_filter_map("a pattern of this dialect", |(sign, text, dialect)| {
            Rule::parse(&format!("{sign} {text}"), dialect).ok()
        })
}

proptest! {
    #[test]
    fn the_last_match_wins_whatever_was_folded(
        rules in prop::collection::vec(rule(), 0..40),
        signatures in prop::collection::vec("(void |)([ab]\\.)?[ab]\\.[cd]\\((|int|int, int)\\)|%CPU(::[0-9])?", 1..20),
    ) {
        let mut list = PatternList::new();
        for rule in &rules {
            list.push(rule.clone()).unwrap();
        }
        for signature in &signatures {
            prop_assert_eq!(list.decide(signature), last_match(&rules, signature), "{}", signature);
            for Rule { pattern, .. } in &rules {
                let fits = pattern.fits(signature);
                prop_assert_eq!(pattern.matches(signature), fits, "{} {}", pattern, signature);
            }
        }
    }

    #[test]
    fn no_text_does_harm_and_every_error_has_a_place(text in "[%*.(),a-z \\[\\]{}|\\\\:<>ä$?+-]{0,60}|\\PC{0,40}", signature in "\\PC{0,60}") {
        for dialect in Dialect::ALL {
            match Pattern::parse(&text, dialect) {
                Ok(pattern) => {
                    pattern.matches(&signature);
                    prop_assert_eq!(&Pattern::parse(pattern.as_str(), dialect).unwrap(), &pattern);
                }
                Err(error) => prop_assert!(text.is_char_boundary(error.position()), "{}", error),
            }
        }
        PatternList::parse(&text, Dialect::Strict);
    }
}
