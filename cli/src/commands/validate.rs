//! `baler validate`: finds wrong settings and endpoints before anything is sent.
//!
//! settings by themselves and with each other -> with `--connect`: the endpoints

mod connect;
mod finding;
mod settings;

use finding::Findings;

use crate::args::ValidateArgs;
use crate::config::ConfigFile;
use crate::endpoint::{self, Writer};
use crate::exit::{Code, Failure};
use crate::output;
use crate::shutdown::Shutdown;

/// An endpoint to check, and the flag or section that names it.
#[derive(Debug)]
struct End {
    uri: String,
    /// `--to`, or `[send] to`.
    named: String,
    writes: bool,
}

/// Checks everything that is named, and reports each finding.
pub(super) fn run(
    args: &ValidateArgs,
    config: Option<&std::path::Path>,
    shutdown: &Shutdown,
) -> Result<Code, Failure> {
    let file = config.map(ConfigFile::load).transpose()?;
    let mut findings = Findings::default();
    if let Some(path) = config {
        // The file is readable and its values are valid: otherwise every command ends earlier.
        findings.ok("configuration", format!("{} is valid", path.display()));
    }
    let ends = ends(args, file.as_ref());
    if ends.is_empty() {
        let fix = "name one by --from or --to, or in a section of --config";
        findings.warn("endpoints", "none is named", fix);
    }
    settings::check_times(args, shutdown, &mut findings);
    settings::check_spool(&args.spool, &mut findings);
    for end in &ends {
        check_end(end, args, shutdown, &mut findings);
    }
    output::result(args.format, &findings.document(), || findings.text())?;
    Ok(findings.code())
}

fn check_end(end: &End, args: &ValidateArgs, shutdown: &Shutdown, findings: &mut Findings) {
    let checked = if end.writes {
        endpoint::writer(&end.uri).map(Some)
    } else {
        endpoint::receiver(&end.uri, false).map(|_| None)
    };
    let writer = match checked {
        Ok(writer) => writer,
        Err(failure) => {
            findings.failed(&end.named, failure.message, "correct the URI");
            return;
        }
    };
    let endpoint = endpoint::shown(&end.uri);
    findings.ok(&end.named, format!("the URI {endpoint} is valid"));
    if let Some(Writer { writer, .. }) = &writer {
        let origin = "by its settings";
        settings::check_sizes(&end.named, args, writer.capability(), origin, findings);
    }
    if !args.connect || shutdown.is_requested() {
        return;
    }
    findings.connecting = true;
    match writer {
        Some(writer) => connect::writer(end, writer, args, findings),
        None => connect::reader(end, args, findings),
    }
    findings.connecting = false;
}

/// Returns the endpoints of the command line, or otherwise all endpoints of the file.
fn ends(args: &ValidateArgs, file: Option<&ConfigFile>) -> Vec<End> {
    let typed = [(&args.from, "--from", false), (&args.to, "--to", true)];
    let mut ends: Vec<End> = typed
        .into_iter()
        .filter_map(|(uri, named, writes)| {
            Some(End {
                uri: uri.clone()?,
                named: named.to_owned(),
                writes,
            })
        })
        .collect();
    if ends.is_empty()
        && let Some(file) = file
    {
        for entry in file.entries() {
            let writes = match &*entry.key {
                "from" => false,
                "to" => true,
                _ => continue,
            };
            ends.extend(entry.values.first().map(|uri| End {
                uri: uri.clone(),
                named: format!("[{}] {}, line {}", entry.section, entry.key, entry.line),
                writes,
            }));
        }
    }
    ends
}
