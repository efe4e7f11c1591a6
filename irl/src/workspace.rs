//! Reads files together: parses each, and resolves their names.

use crate::finding::MAX_FINDINGS;
use crate::{Finding, Record, Settings, Severity, Source, parser, resolve, too_large};

/// The result of [`read`].
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    /// The events, sorted by name. They are complete if there is no error.
    pub records: Vec<Record>,
    /// Errors and warnings, in order of the files.
    pub findings: Vec<Finding>,
}

impl Workspace {
    /// Returns the first error.
    pub fn error(&self) -> Option<&Finding> {
        let mut findings = self.findings.iter();
        findings.find(|it| it.severity == Severity::Error)
    }
}

/// Reads files, which may refer to each other's definitions.
pub fn read(sources: &[Source<'_>], settings: &Settings<'_>) -> Workspace {
    if let Some(error) = too_large(sources.iter().map(|it| it.text.len()).sum()) {
        return Workspace {
            records: Vec::new(),
            findings: vec![error],
        };
    }
    let parsed = sources.iter().enumerate();
    let parsed = parsed.map(|(at, it)| parser::parse(it.text, at, settings.edition));
    let (files, found): (Vec<_>, Vec<_>) = parsed.unzip();
    let mut findings: Vec<_> = found.into_iter().flatten().collect();
    let (records, found) = resolve::resolve(&files, settings);
    findings.extend(found);
    findings.sort_by_key(|it| (it.file, it.span));
    let mut counts = std::collections::HashMap::new();
    findings.retain(|it| {
        let count = counts.entry((it.file, it.severity)).or_insert(0_usize);
        *count += 1;
        *count <= MAX_FINDINGS
    });
    Workspace { records, findings }
}
