//! What the fuzz target `pattern` does with its bytes; a test does the same with generated ones.
#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "positions are counted in what they are used on, and its characters are single bytes"
)]

use baler_common::pattern::{Dialect, Pattern, PatternList};

const DIALECTS: [Dialect; 3] = [Dialect::Kieker, Dialect::Strict, Dialect::Rust];

/// Takes the bytes as a pattern, a signature and a list, and once more as choices of which pattern and
/// signature are made whose match a naive matcher knows.
pub(crate) fn pattern(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (first, second) = text.split_once('\n').unwrap_or((&text, ""));
    for dialect in DIALECTS {
        if let Ok(pattern) = Pattern::parse(first, dialect) {
            let matches = pattern.matches(second);
            assert_eq!(matches, pattern.matches(second), "`{first}` `{second}`");
            // What a pattern is told as means the same.
            let again = Pattern::parse(pattern.as_str(), dialect);
            assert_eq!(again.map(|it| it.matches(second)), Ok(matches), "`{first}`");
            assert!(!pattern.is_everything() || pattern.matches("void a.C.d()"));
        }
        let (list, _) = PatternList::parse(&text, dialect);
        list.decide(second);
    }
    agrees(bytes);
}

/// A pattern of the strict dialect and a signature, in parts.
fn agrees(bytes: &[u8]) {
    let mut choices = bytes.iter().copied();
    let mut choose = |of: u8| choices.next().map_or(0, |byte| byte % of);
    let name = |choose: &mut dyn FnMut(u8) -> u8| {
        let pieces = ["a", "b", "ab", "*"];
        let length = choose(3) + 1;
        (0..length)
            .map(|_| pieces[usize::from(choose(4))])
            .collect::<String>()
            .replace("**", "*")
    };
    // `None` stands for any packages.
    let mut class: Vec<Option<String>> = Vec::new();
    for _ in 0..=choose(4) {
        if choose(3) == 0 && class.last() != Some(&None) {
            class.push(None);
        } else {
            class.push(Some(name(&mut choose)));
        }
    }
    class.push(Some(name(&mut choose)));
    let method = name(&mut choose);
    let kinds = ["..", "*", "int", "long"];
    let wanted: Vec<_> = (0..choose(4))
        .map(|_| kinds[usize::from(choose(4))])
        .collect();

    let plain = |choose: &mut dyn FnMut(u8) -> u8| {
        let length = choose(3) + 1;
        (0..length)
            .map(|_| ["a", "b", "ab"][usize::from(choose(3))])
            .collect::<String>()
    };
    let path: Vec<_> = (0..=choose(5)).map(|_| plain(&mut choose)).collect();
    let called = plain(&mut choose);
    let given: Vec<_> = (0..choose(4))
        .map(|_| ["int", "long", "a.B"][usize::from(choose(3))])
        .collect();

    let mut text = String::from("void ");
    for (number, part) in class.iter().enumerate() {
        match part {
            None => text.push_str(".."),
            Some(name) => {
                if number > 0 && class[number - 1].is_some() {
                    text.push('.');
                }
                text.push_str(name);
            }
        }
    }
    text.push_str(&format!(".{method}({})", wanted.join(", ")));
    let signature = format!("void {}.{called}({})", path.join("."), given.join(", "));

    let pattern = Pattern::parse(&text, Dialect::Strict);
    let matches = pattern.map(|it| it.matches(&signature));
    let naive = names(&class, &path) && glob(&method, &called) && list(&wanted, &given);
    assert_eq!(matches, Ok(naive), "`{text}` `{signature}`");
}

fn names(pattern: &[Option<String>], path: &[String]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        ([None, rest @ ..], _) => (0..=path.len()).any(|taken| names(rest, &path[taken..])),
        ([Some(first), rest @ ..], [name, path @ ..]) => glob(first, name) && names(rest, path),
        _ => false,
    }
}

fn glob(pattern: &str, name: &str) -> bool {
    match pattern.split_at_checked(1) {
        None => name.is_empty(),
        Some(("*", rest)) => (0..=name.len()).any(|taken| glob(rest, &name[taken..])),
        Some((first, rest)) => name
            .strip_prefix(first)
            .is_some_and(|name| glob(rest, name)),
    }
}

fn list(pattern: &[&str], given: &[&str]) -> bool {
    match (pattern, given) {
        ([], []) => true,
        (["..", rest @ ..], _) => (0..=given.len()).any(|taken| list(rest, &given[taken..])),
        (["*", rest @ ..], [_, given @ ..]) => list(rest, given),
        ([first, rest @ ..], [one, given @ ..]) => first == one && list(rest, given),
        _ => false,
    }
}
