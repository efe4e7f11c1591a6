//! The file with the committed figures, and its comparison with new ones.

use std::collections::BTreeMap;

use baler_rig::{Failure, Outcome};

/// A figure may rise or fall by this many percent without a word.
const TOLERANCE: f64 = 3.0;

/// Instructions of a case.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    name: &'static str,
    instructions: f64,
    unit: &'static str,
}

impl Figure {
    pub(super) fn new(name: &'static str, instructions: f64, unit: &'static str) -> Self {
        Self {
            name,
            instructions,
            unit,
        }
    }
}

/// Returns the file with these figures: one line a case.
pub(super) fn file(tools: &str, figures: &[Figure]) -> String {
    let mut text = format!(
        "# Instructions, counted by callgrind. scripts/guard compares them, and its --accept writes \
         this file.\n# {tools}\n"
    );
    for figure in figures {
        let Figure {
            name,
            instructions,
            unit,
        } = figure;
        text.push_str(&format!("{name:<20} {instructions:>9.2} {unit}\n"));
    }
    text
}

/// Compares figures with the committed ones. The outcome is right if none rose by more than the
/// tolerance.
///
/// # Errors
///
/// The committed file has another form.
pub(super) fn compare(
    committed: &str,
    tools: &str,
    figures: &[Figure],
) -> Result<Outcome, Failure> {
    let (committed_tools, mut committed) = read(committed)?;
    let mut text = format!(
        "{:<20} {:>9} {:>9} {:>9}\n",
        "case", "committed", "now", "change"
    );
    let (mut failures, mut falls) = (String::new(), String::new());
    for figure in figures {
        let (name, now, unit) = (figure.name, figure.instructions, figure.unit);
        let Some(before) = committed.remove(name) else {
            failures.push_str(&format!("FAIL: {name} has no committed figure\n"));
            continue;
        };
        let percent = (now / before - 1.0) * 100.0;
        text.push_str(&format!(
            "{name:<20} {before:>9.2} {now:>9.2} {percent:>+7.1} %\n"
        ));
        let change = format!(
            "{name} takes {now:.2} instructions {unit}, {before:.2} before: {percent:+.1} %"
        );
        if percent > TOLERANCE {
            failures.push_str(&format!("FAIL: {change}, and {TOLERANCE} % are allowed\n"));
        } else if percent < -TOLERANCE {
            falls.push_str(&format!("better: {change}\n"));
        }
    }
    for name in committed.keys() {
        failures.push_str(&format!("FAIL: {name} is committed and was not counted\n"));
    }
    let is_right = failures.is_empty();
    if !is_right {
        failures.push_str(
            "To accept this, run `scripts/guard --accept`, and say in the commit why it is worth it.\n",
        );
    }
    if !falls.is_empty() {
        falls.push_str("To keep this lead, run `scripts/guard --accept` and commit the figures.\n");
    }
    if committed_tools != tools {
        text.push_str(&format!(
            "\nThe committed figures are of {committed_tools}.\nThese figures are of {tools}.\n\
             Changes may come from there.\n"
        ));
    }
    for part in [failures, falls] {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(&part);
        }
    }
    Ok(Outcome { text, is_right })
}

/// Returns the tools of a file, and its figures by name.
fn read(text: &str) -> Result<(&str, BTreeMap<&str, f64>), Failure> {
    let (comments, lines): (Vec<_>, Vec<_>) = text.lines().partition(|it| it.starts_with('#'));
    let tools = comments.last().and_then(|it| it.strip_prefix("# "));
    let tools = tools.ok_or_else(|| Failure::new("the committed figures name no tools"))?;
    let mut figures = BTreeMap::new();
    for line in lines {
        let mut words = line.split_ascii_whitespace();
        let figure = words.next().zip(words.next());
        let figure = figure.and_then(|(name, count)| Some((name, count.parse().ok()?)));
        let (name, count) =
            figure.ok_or_else(|| Failure::new(format!("not a committed figure: {line:?}")))?;
        figures.insert(name, count);
    }
    Ok((tools, figures))
}

#[cfg(test)]
mod tests {
    use super::{Figure, compare, file};

    fn compared(now: f64) -> (bool, String) {
        let figures = |count| [Figure::new("emit", count, "a record")];
        let outcome = compare(&file("rustc 1", &figures(100.0)), "rustc 1", &figures(now)).unwrap();
        (outcome.is_right, outcome.text)
    }

    #[test]
    fn only_a_rise_beyond_the_tolerance_fails() {
        let (is_right, text) = compared(103.1);
        assert!(!is_right);
        let failure = "FAIL: emit takes 103.10 instructions a record, 100.00 before: +3.1 %";
        assert!(
            text.contains(failure) && text.contains("--accept"),
            "{text}"
        );
        for quiet in [97.1, 102.9] {
            let (is_right, text) = compared(quiet);
            assert!(is_right && text.lines().count() == 2, "{text}");
        }
        let (is_right, text) = compared(96.9);
        assert!(
            is_right && text.contains("better: emit") && text.contains("--accept"),
            "{text}"
        );
    }

    #[test]
    fn a_case_without_a_partner_fails_and_other_tools_are_named() {
        let committed = file("rustc 1", &[Figure::new("emit", 1.0, "a record")]);
        let now = [Figure::new("decode", 1.0, "a record")];
        let outcome = compare(&committed, "rustc 2", &now).unwrap();
        assert!(!outcome.is_right);
        for part in [
            "emit is committed",
            "decode has no",
            "of rustc 1",
            "of rustc 2",
        ] {
            assert!(outcome.text.contains(part), "{}", outcome.text);
        }
        assert!(compare("emit\n", "rustc 1", &now).is_err());
    }
}
