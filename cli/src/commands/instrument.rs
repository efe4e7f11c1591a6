//! `baler instrument`: probes for the functions of a source tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use baler_connector_kieker::pattern::Pattern;
use baler_instrument::{Change, Function, Problem, State, Tree, remove_all};
use serde_json::json;

use crate::args::{DocumentFormat, FunctionsArgs, InstrumentArgs, InstrumentCommand};
use crate::exit::{Code, Failure};
use crate::output;

/// Runs a command of `baler instrument`.
pub(super) fn run(args: &InstrumentArgs, quiet: bool) -> Result<Code, Failure> {
    match &args.command {
        InstrumentCommand::Insert {
            functions,
            attribute,
            dependency,
            writing,
        } => {
            let selection = selection(functions)?;
            let dependency = dependency.as_deref().map(dependency_line).transpose()?;
            let mut tree = read(&functions.path)?;
            let mut changes = tree.insert(|it| selection.selects(it), attribute);
            let probes = changes.iter().map(Change::count).sum();
            if let Some(line) = dependency {
                changes.extend(tree.insert_dependency(&line));
            }
            let code = write(&changes, &tree.problems, &functions.path, writing.dry_run)?;
            if !quiet {
                let verbs = ["inserted", "would insert"];
                say_counts(verbs, writing.dry_run, probes, changes.len());
                say_reasons(&tree, &selection);
            }
            Ok(code)
        }
        InstrumentCommand::Remove { functions, writing } => {
            let selection = selection(functions)?;
            let (changes, problems) = if selection.is_everything() {
                remove_all(&functions.path).map_err(unreadable)?
            } else {
                let mut tree = read(&functions.path)?;
                (tree.remove(|it| selection.selects(it)), tree.problems)
            };
            let code = write(&changes, &problems, &functions.path, writing.dry_run)?;
            if !quiet {
                let is_source = |it: &&Change| it.path.extension().is_some_and(|it| it == "rs");
                let sources = changes.iter().filter(is_source);
                let probes = sources.map(Change::count).sum();
                let verbs = ["removed", "would remove"];
                say_counts(verbs, writing.dry_run, probes, changes.len());
            }
            Ok(code)
        }
        InstrumentCommand::List { functions, format } => list(functions, format.choice),
        InstrumentCommand::Check { functions } => check(functions),
    }
}

/// Shows all functions.
fn list(args: &FunctionsArgs, format: DocumentFormat) -> Result<Code, Failure> {
    let selection = selection(args)?;
    let tree = read(&args.path)?;
    let code = say_problems(&tree.problems);
    let state = |function: &Function| match (function.state, selection.selects(function)) {
        (State::Without, true) => "selected".to_owned(),
        (State::Without, false) => "not selected".to_owned(),
        (state, _) => state.to_string(),
    };
    // The names are part of the program's interface.
    let rows = tree.functions.iter().map(|function| {
        let mut row = json!({
            "file": function.file.display().to_string(),
            "line": function.line,
            "name": function.name,
            "signatures": function.signatures,
            "state": state(function),
            "selected": selection.selects(function),
        });
        if let State::Skipped(reason) = function.state {
            output::insert(&mut row, "state", "skipped");
            output::insert(&mut row, "reason", reason);
        }
        if is_estimate(function) {
            output::insert(&mut row, "estimate", true);
        }
        row
    });
    let unreached = tree.unreached.iter().map(|it| it.display().to_string());
    let document = json!({
        "functions": rows.collect::<Vec<_>>(),
        "unreached": unreached.collect::<Vec<_>>(),
    });
    output::result(format, &document, || {
        let mut text = String::new();
        for function in &tree.functions {
            text += &line(function, &state(function));
        }
        for file in &tree.unreached {
            text += &format!("{}: no `mod` was found that names it\n", file.display());
        }
        text
    })?;
    Ok(code)
}

/// Shows the functions that `insert` would change.
fn check(args: &FunctionsArgs) -> Result<Code, Failure> {
    let selection = selection(args)?;
    let tree = read(&args.path)?;
    let mut code = say_problems(&tree.problems);
    let missing = tree.missing(|it| selection.selects(it));
    let missing = missing.map(|it| line(it, "no probe"));
    let advice = "an outdated name: remove the probe and insert it again";
    let outdated = tree.outdated(|it| selection.selects(it));
    let outdated = outdated.map(|it| line(it, advice));
    let text: String = missing.chain(outdated).collect();
    if !text.is_empty() {
        code = Code::Data;
    }
    output::print(&text)?;
    Ok(code)
}

/// A line for a function: `src/till.rs:12: selected: public void shop.till.Till.close()`.
fn line(function: &Function, state: &str) -> String {
    let signature = match function.signatures.is_empty() {
        true => function.name.clone(),
        false => function.signatures.join(" | "),
    };
    let estimate = if is_estimate(function) {
        " (estimate)"
    } else {
        ""
    };
    let file = function.file.display();
    format!("{file}:{}: {state}: {signature}{estimate}\n", function.line)
}

/// Whether the signature may differ from the one at run time. `insert` gives an estimate to the probe
/// as its name, so that both are equal; a probe by hand has none.
fn is_estimate(function: &Function) -> bool {
    function.state == State::ByHand && !function.is_certain
}

fn read(path: &Path) -> Result<Tree, Failure> {
    Tree::read(path).map_err(unreadable)
}

fn unreadable(problem: Problem) -> Failure {
    let code = match problem.is_unreadable {
        true => Code::Unavailable,
        false => Code::Data,
    };
    Failure::new(code, problem.to_string())
}

/// The selected functions: those that any pattern includes, or all if there is none, except those
/// that a pattern excludes.
#[derive(Debug)]
struct Selection {
    /// Patterns of signatures.
    include: Vec<Pattern>,
    /// Patterns of signatures.
    exclude: Vec<Pattern>,
}

impl Selection {
    /// Whether no pattern restricts it.
    fn is_everything(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Whether it selects a function.
    fn selects(&self, function: &Function) -> bool {
        let any = |patterns: &[Pattern]| {
            let signatures = &function.signatures;
            patterns
                .iter()
                .any(|pattern| signatures.iter().any(|it| pattern.matches(it)))
        };
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }
}

fn selection(args: &FunctionsArgs) -> Result<Selection, Failure> {
    let parse = |patterns: &[String]| {
        let patterns = patterns.iter();
        let patterns = patterns.map(|pattern| Pattern::parse(pattern, args.dialect));
        patterns
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| Failure::configuration(error.to_string()))
    };
    Ok(Selection {
        include: parse(&args.include)?,
        exclude: parse(&args.exclude)?,
    })
}

/// Returns the line of a dependency's table.
fn dependency_line(text: &str) -> Result<String, Failure> {
    if !text.contains(['/', '\\']) && !text.starts_with('.') {
        return Ok(format!("version = {}", json!(text)));
    }
    let folder = fs::canonicalize(text).map_err(|error| Failure::unavailable(text, error))?;
    // A JSON text is a TOML text, too.
    Ok(format!("path = {}", json!(folder)))
}

/// Writes changes, or shows them. Goes on after an error, so that all are reported.
fn write(
    changes: &[Change],
    problems: &[Problem],
    folder: &Path,
    dry_run: bool,
) -> Result<Code, Failure> {
    let mut code = say_problems(problems);
    let folder =
        fs::canonicalize(folder).map_err(|error| Failure::unavailable(folder.display(), error))?;
    for change in changes {
        if dry_run {
            let name = change.path.strip_prefix(&folder).unwrap_or(&change.path);
            output::print(&change.diff(&name.display().to_string()))?;
        } else if let Err(failure) = output::whole_file(&change.path, &change.after()) {
            output::say(format_args!("error: {failure}"));
            code = failure.code;
        }
    }
    Ok(code)
}

fn say_problems(problems: &[Problem]) -> Code {
    for problem in problems {
        output::say(format_args!("error: {problem}"));
    }
    Code::data_if(!problems.is_empty())
}

fn say_counts([done, planned]: [&str; 2], dry_run: bool, probes: usize, files: usize) {
    let verb = if dry_run { planned } else { done };
    let counts = output::counts(&[(probes, "probe"), (files, "file")]);
    output::say(format_args!("{verb} {}", counts.replace(", ", " in ")));
}

/// Counts the selected functions that cannot have a probe.
fn say_reasons(tree: &Tree, selection: &Selection) {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for function in &tree.functions {
        if let State::Skipped(reason) = function.state
            && selection.selects(function)
        {
            *counts.entry(reason).or_default() += 1;
        }
    }
    for (reason, count) in counts {
        let count = output::counts(&[(count, "function")]);
        output::say(format_args!("skipped {count}: {reason}"));
    }
}
