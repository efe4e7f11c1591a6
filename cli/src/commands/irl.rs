//! `baler irl`: checks, formats and shows files of Kieker's record language.

mod generate;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use baler_irl::{Edition, Finding, Severity, Source, Workspace, line_and_column, read, render};
use serde_json::{Value, json};

use crate::args::{DocumentFormat, IrlArgs, IrlCommand, IrlFiles};
use crate::exit::{Code, Failure};
use crate::output;

/// One byte more than all files may have.
const LIMIT: u64 = baler_irl::MAX_BYTES as u64 + 1;

/// Runs a command of `baler irl`.
pub(super) fn run(args: &IrlArgs, quiet: bool) -> Result<Code, Failure> {
    match &args.command {
        IrlCommand::Check { files, json } => check(files, *json),
        IrlCommand::Fmt { files, check } => fmt(files, *check),
        IrlCommand::Dump { files, json } => dump(files, *json, quiet),
        IrlCommand::Generate {
            files,
            language,
            out,
        } => generate::run(files, language, out, quiet),
    }
}

/// Shows all findings.
fn check(files: &IrlFiles, json: bool) -> Result<Code, Failure> {
    let texts = texts(&files.files)?;
    let sources = sources(&texts);
    let workspace = read_all(files, &sources);
    let count = |severity| {
        let findings = workspace.findings.iter();
        findings.filter(|it| it.severity == severity).count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    // The names are part of the program's interface.
    let document = json!({
        "files": sources.len(),
        "records": workspace.records.len(),
        "errors": errors,
        "warnings": warnings,
        "findings": workspace.findings.iter().map(|it| row(it, &sources)).collect::<Vec<_>>(),
    });
    output::result(format(json), &document, || {
        let findings = workspace.findings.iter();
        let text: String = findings.map(|it| render(it, &sources) + "\n\n").collect();
        let counts = [
            (sources.len(), "file"),
            (workspace.records.len(), "record type"),
            (errors, "error"),
            (warnings, "warning"),
        ];
        let counts = counts.map(|(count, noun)| match count {
            1 => format!("1 {noun}"),
            _ => format!("{count} {noun}s"),
        });
        text + &counts.join(", ") + "\n"
    })?;
    Ok(match errors {
        0 => Code::Done,
        _ => Code::Data,
    })
}

/// Lays the files out. A file with a syntax error stays as it is.
fn fmt(paths: &[PathBuf], check: bool) -> Result<Code, Failure> {
    let mut code = Code::Done;
    for path in paths {
        let (name, text) = (path.display().to_string(), text(path, LIMIT)?);
        let source = Source {
            name: &name,
            text: &text,
        };
        // Legacy constructs have a layout, too.
        match baler_irl::format(&text, Edition::Legacy) {
            Ok(laid_out) if laid_out == text => {}
            Ok(_) if check => {
                output::print(&format!("{name}\n"))?;
                code = Code::Data;
            }
            Ok(laid_out) => output::whole_file(path, &laid_out)?,
            Err(findings) => {
                code = Code::Data;
                for finding in findings {
                    output::say(render(&finding, &[source]));
                }
            }
        }
    }
    Ok(code)
}

/// Shows the record types, unless there is an error.
fn dump(files: &IrlFiles, json: bool, quiet: bool) -> Result<Code, Failure> {
    let texts = texts(&files.files)?;
    let sources = sources(&texts);
    let workspace = read_all(files, &sources);
    for finding in &workspace.findings {
        if finding.severity == Severity::Error || !quiet {
            output::say(render(finding, &sources));
        }
    }
    if workspace.error().is_some() {
        return Ok(Code::Data);
    }
    // The names are part of the program's interface.
    let records = workspace.records.iter().map(|record| {
        let fields = record
            .wire()
            .map(|it| json!({ "name": &*it.name, "type": it.property_type.to_string() }));
        json!({
            "name": &*record.name,
            "abstract": record.is_abstract,
            "fields": fields.collect::<Vec<_>>(),
        })
    });
    let document = json!({ "records": records.collect::<Vec<_>>() });
    output::result(format(json), &document, || {
        let mut text = String::new();
        for record in &workspace.records {
            let kind = if record.is_abstract {
                " (abstract)"
            } else {
                ""
            };
            writeln!(text, "{}{kind}", record.name).expect("a string takes everything");
            for field in record.wire() {
                writeln!(text, "  {} {}", field.property_type, field.name)
                    .expect("a string takes everything");
            }
        }
        text
    })?;
    Ok(Code::Done)
}

fn row(finding: &Finding, sources: &[Source<'_>]) -> Value {
    let source = sources[finding.file];
    let (line, column) = line_and_column(source.text, finding.span.start);
    let mut row = json!({
        "severity": finding.severity.name(),
        "rule": finding.rule,
        "file": source.name,
        "line": line,
        "column": column,
        "message": finding.message,
    });
    if let Some(hint) = &finding.hint {
        output::insert(&mut row, "hint", hint.as_str());
    }
    if let Some(text) = finding.replacement {
        output::insert(&mut row, "replacement", text);
    }
    row
}

fn format(json: bool) -> DocumentFormat {
    match json {
        true => DocumentFormat::Json,
        false => DocumentFormat::Table,
    }
}

fn read_all(files: &IrlFiles, sources: &[Source<'_>]) -> Workspace {
    let settings = baler_irl::Settings {
        edition: files.edition.into(),
        lenient: files.lenient,
        known: None,
    };
    read(sources, &settings)
}

fn sources(texts: &[(String, String)]) -> Vec<Source<'_>> {
    let sources = texts.iter().map(|(name, text)| Source { name, text });
    sources.collect()
}

/// Reads the files: names and texts. Reads no more than the language allows.
fn texts(paths: &[PathBuf]) -> Result<Vec<(String, String)>, Failure> {
    let mut left = LIMIT;
    let mut texts = Vec::new();
    for path in paths {
        let text = text(path, left)?;
        left = left.saturating_sub(text.len() as u64);
        texts.push((path.display().to_string(), text));
    }
    Ok(texts)
}

fn text(path: &Path, left: u64) -> Result<String, Failure> {
    let failed = |error| Failure::unavailable(path.display(), error);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(left).read_to_end(&mut bytes).map_err(failed)?;
    String::from_utf8(bytes).or_else(|error| {
        let (sound, cut) = (
            error.utf8_error().valid_up_to(),
            error.as_bytes().len() as u64 == left,
        );
        // The limit may cut a character. The file is too large then, which is said elsewhere.
        match cut && error.utf8_error().error_len().is_none() {
            true => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned()),
            false => {
                let path = path.display();
                let message = format!("{path} is not UTF-8 from byte {sound} on");
                Err(Failure::new(Code::Data, message))
            }
        }
    })
}
