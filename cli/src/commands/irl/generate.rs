//! `baler irl generate`: source code of record types in other languages.

use std::fs;
use std::path::{Path, PathBuf};

use baler_irl::Severity;

use crate::args::IrlFiles;
use crate::exit::{Code, Failure};
use crate::output;

/// Writes the source code, unless the files have an error. Writes nothing if a type has no form in
/// the language.
pub(super) fn run(
    files: &IrlFiles,
    language: &str,
    out: &Path,
    quiet: bool,
) -> Result<Code, Failure> {
    let texts = super::texts(&irl_files(&files.files)?)?;
    let sources = super::sources(&texts);
    let workspace = super::read_all(files, &sources);
    for finding in &workspace.findings {
        if finding.severity == Severity::Error || !quiet {
            output::say(baler_irl::render(finding, &sources));
        }
    }
    if workspace.error().is_some() {
        return Ok(Code::Data);
    }
    let generated = baler_irl::generate(&workspace.records, language)
        .map_err(|message| Failure::new(Code::Data, message))?;
    for file in generated {
        let path = out.join(file.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .map_err(|error| Failure::output(folder.display(), &error))?;
        }
        output::whole_file(&path, &file.text)?;
    }
    Ok(Code::Done)
}

/// Returns the files, in place of each folder the `.irl` files in it and below it.
fn irl_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let failed = |error| Failure::unavailable(path.display(), error);
        let entries = fs::read_dir(path).map_err(failed)?;
        let mut inner = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            // A link to a folder could lead back.
            let is_folder = entry.file_type().map_err(failed)?.is_dir();
            if is_folder || entry.path().extension().is_some_and(|it| it == "irl") {
                inner.push(entry.path());
            }
        }
        inner.sort();
        files.extend(irl_files(&inner)?);
    }
    Ok(files)
}
