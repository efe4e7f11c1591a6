//! `baler irl generate`: source code of record types in other languages.

use std::fs;
use std::path::Path;

use baler_irl::read_files;

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
    let texts = read_files(&files.files).map_err(super::unreadable)?;
    let sources = super::sources(&texts);
    let workspace = super::read_all(files.reading, &sources);
    if !super::is_valid(&workspace, &sources, quiet) {
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
