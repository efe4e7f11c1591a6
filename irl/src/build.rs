//! For build scripts: Rust source code of the record types of an application.

use std::fs;
use std::path::Path;

use crate::{
    Edition, Finding, Settings, Source, TextFile, generate, line_and_column, read, read_files,
};

/// Writes the record types of an `.irl` file, or of all `.irl` files below a folder, as Rust types
/// with `#[derive(Record)]`. `baler::include_irl!()` includes them.
///
/// Call it in the build script `build.rs`:
///
/// ```no_run
/// baler_irl::build::compile("schemas");
/// ```
///
/// Cargo runs the script again when a file changes. An error in the files fails the build, with its
/// place; a construct of the legacy edition is a warning. A record has no `transient` properties,
/// because Baler sends all fields.
#[expect(
    clippy::print_stdout,
    reason = "Cargo reads the output of a build script"
)]
pub fn compile(schemas: impl AsRef<Path>) {
    let schemas = schemas.as_ref();
    println!("cargo::rerun-if-changed={}", schemas.display());
    for line in write(schemas) {
        println!("cargo::{}", line.replace('\n', " "));
    }
}

/// Writes the files. Returns errors and warnings, in Cargo's words.
fn write(schemas: &Path) -> Vec<String> {
    let error = |text: String| vec![format!("error={text}")];
    let texts = match read_files(&[schemas]) {
        Ok(texts) => texts,
        Err(problem) => return error(problem.to_string()),
    };
    let sources: Vec<_> = texts.iter().map(TextFile::source).collect();
    let settings = Settings {
        edition: Edition::Legacy,
        ..Settings::default()
    };
    let workspace = read(&sources, &settings);
    let findings = workspace.findings.iter().map(|it| shown(it, &sources));
    let findings = findings.collect();
    if workspace.error().is_some() {
        return findings;
    }
    let generated = match generate(&workspace.records, "baler") {
        Ok(generated) => generated,
        Err(problem) => return error(problem),
    };
    let Some(out) = std::env::var_os("OUT_DIR") else {
        return error("OUT_DIR is not set; call this function in the build script".to_owned());
    };
    let folder = Path::new(&out).join("irl");
    for file in generated {
        let path = folder.join(file.path);
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, file.text));
        if let Err(problem) = written {
            return error(format!("cannot write {}: {problem}", path.display()));
        }
    }
    findings
}

fn shown(finding: &Finding, sources: &[Source<'_>]) -> String {
    let kind = finding.severity.name();
    let hint = finding.hint.iter().map(|it| format!("; {it}"));
    let hint: String = hint.collect();
    match sources.get(finding.file) {
        Some(source) => {
            let (line, column) = line_and_column(source.text, finding.span.start);
            let place = format!("{}:{line}:{column}", source.name);
            format!("{kind}={place}: {}{hint}", finding.message)
        }
        None => format!("{kind}={}{hint}", finding.message),
    }
}
