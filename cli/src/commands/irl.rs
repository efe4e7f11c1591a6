//! `baler irl`: checks, formats, shows, compares and writes files of Kieker's record language.

mod compat;
mod from_rust;
mod generate;

use std::path::PathBuf;
use std::sync::Arc;

use baler_irl::{
    Edition, FileError, Finding, Severity, Source, TextFile, Workspace, find_files,
    line_and_column, read, read_file, read_files, render,
};
use serde_json::{Value, json};

use crate::args::{DocumentFormat, IrlArgs, IrlCommand, IrlFiles, IrlReading};
use crate::exit::{Code, Failure};
use crate::output;
use crate::shutdown::Shutdown;

/// Runs a command of `baler irl`.
pub(super) fn run(args: &IrlArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    match &args.command {
        IrlCommand::Check { files, format } => check(files, format.choice),
        IrlCommand::Fmt { files, check } => fmt(files, *check),
        IrlCommand::Dump {
            files,
            format,
            json,
        } => {
            let format = match json {
                true => DocumentFormat::Json,
                false => format.choice,
            };
            dump(files, format, quiet)
        }
        IrlCommand::Compat {
            old,
            new,
            reading,
            format,
        } => compat::run(old, new, *reading, format.choice, quiet),
        IrlCommand::FromRust(args) => from_rust::run(args, quiet, shutdown),
        IrlCommand::Generate {
            files,
            language,
            output,
        } => generate::run(files, language, output, quiet),
    }
}

/// Shows all findings.
fn check(args: &IrlFiles, format: DocumentFormat) -> Result<Code, Failure> {
    let files = read_files(&args.files).map_err(unreadable)?;
    let sources = sources(&files);
    let workspace = read_all(args.reading, &sources);
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
    output::result(format, &document, || {
        let findings = workspace.findings.iter();
        let text: String = findings.map(|it| render(it, &sources) + "\n\n").collect();
        let counts = [
            (sources.len(), "file"),
            (workspace.records.len(), "record type"),
            (errors, "error"),
            (warnings, "warning"),
        ];
        text + &output::counts(&counts) + "\n"
    })?;
    Ok(Code::data_if(errors > 0))
}

/// Lays the files out. A file with a syntax error stays as it is.
fn fmt(paths: &[PathBuf], check: bool) -> Result<Code, Failure> {
    let mut code = Code::Done;
    for path in find_files(paths).map_err(unreadable)? {
        let file = read_file(&path).map_err(unreadable)?;
        // Legacy constructs have a layout, too.
        match baler_irl::format(&file.text, Edition::Legacy) {
            Ok(laid_out) if laid_out == file.text => {}
            Ok(_) if check => {
                output::print(&format!("{}\n", file.name))?;
                code = Code::Data;
            }
            Ok(laid_out) => output::whole_file(&path, &laid_out)?,
            Err(findings) => {
                code = Code::Data;
                for finding in findings {
                    output::say(render(&finding, &[file.source()]));
                }
            }
        }
    }
    Ok(code)
}

/// Shows the record types, unless there is an error.
fn dump(args: &IrlFiles, format: DocumentFormat, quiet: bool) -> Result<Code, Failure> {
    let files = read_files(&args.files).map_err(unreadable)?;
    let sources = sources(&files);
    let workspace = read_all(args.reading, &sources);
    if !is_valid(&workspace, &sources, quiet) {
        return Ok(Code::Data);
    }
    // The names are part of the program's interface.
    let records = workspace.records.iter().map(|record| {
        let fields = record.wire().map(|it| {
            let row = json!({ "name": &*it.name, "type": it.property_type.to_string() });
            with(row, [("doc", &it.doc)])
        });
        let row = json!({
            "name": &*record.name,
            "abstract": record.is_abstract,
            "fields": fields.collect::<Vec<_>>(),
        });
        let about = &record.about;
        let texts = [
            ("author", &about.author),
            ("since", &about.since),
            ("doc", &about.doc),
        ];
        with(row, texts)
    });
    let document = json!({ "records": records.collect::<Vec<_>>() });
    output::result(format, &document, || {
        let mut text = String::new();
        for record in &workspace.records {
            let kind = if record.is_abstract {
                " (abstract)"
            } else {
                ""
            };
            text += &format!("{}{kind}\n", record.name);
            for field in record.wire() {
                text += &format!("  {} {}\n", field.property_type, field.name);
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

/// Adds the members that have a text.
fn with<const N: usize>(mut row: Value, texts: [(&str, &Option<Arc<str>>); N]) -> Value {
    for (name, text) in texts {
        if let Some(text) = text {
            output::insert(&mut row, name, &**text);
        }
    }
    row
}

fn read_all(reading: IrlReading, sources: &[Source<'_>]) -> Workspace {
    let settings = baler_irl::Settings {
        edition: reading.edition.into(),
        lenient: reading.lenient,
        known: None,
    };
    read(sources, &settings)
}

/// Shows the findings, and returns whether none is an error.
fn is_valid(workspace: &Workspace, sources: &[Source<'_>], quiet: bool) -> bool {
    for finding in &workspace.findings {
        if finding.severity == Severity::Error || !quiet {
            output::say(render(finding, sources));
        }
    }
    workspace.error().is_none()
}

fn sources(files: &[TextFile]) -> Vec<Source<'_>> {
    files.iter().map(TextFile::source).collect()
}

fn unreadable(error: FileError) -> Failure {
    let code = match &error {
        FileError::Io(..) => Code::Unavailable,
        _ => Code::Data,
    };
    Failure::new(code, error.to_string())
}
