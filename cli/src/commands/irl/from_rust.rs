//! `baler irl from-rust`: writes the record types that chunks have as `.irl` files.
//!
//! chunks -> schemas -> `record::irl::write` -> one file for each package

use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use baler_common::record::Schema;
use baler_common::record::irl::{WrittenTypes, write};
use baler_common::transport::Received;
use baler_connector_kieker::types;

use crate::args::FromRustArgs;
use crate::commands::inspect;
use crate::decoding;
use crate::exit::{Code, Failure};
use crate::output;
use crate::shutdown::Shutdown;

/// The types that were found.
#[derive(Debug, Default)]
struct FoundTypes {
    schemas: Vec<Arc<Schema>>,
    chunks: usize,
    /// Chunks that do not decode.
    broken: usize,
}

/// Writes the types of all chunks up to the end, `--count` or the idle timeout.
pub(super) fn run(args: &FromRustArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let (found, is_whole) = find(args, quiet, shutdown)?;
    let written = write(&found.schemas, &args.package);
    match &args.output {
        Some(folder) => write_files(folder, &written)?,
        None => print(&written)?,
    }
    if found.schemas.is_empty() {
        output::say("no record type beside Kieker's own was found");
    }
    if !quiet {
        for (name, new) in &written.renamed {
            output::say(format_args!("{name} becomes {new}"));
        }
    }
    for (name, reason) in &written.left_out {
        output::say(format_args!("{name} is left out: {reason}"));
    }
    if found.broken > 0 {
        let broken = output::counted(found.broken as u64, "chunk");
        output::say(format_args!("{broken} did not decode"));
    }
    Ok(if !written.left_out.is_empty() || found.broken > 0 {
        Code::Data
    } else if !is_whole {
        Code::Incomplete
    } else {
        Code::Done
    })
}

fn print(written: &WrittenTypes) -> Result<(), Failure> {
    if written.files.len() > 1 {
        let packages = written.files.keys().map(String::as_str);
        let packages = packages.collect::<Vec<_>>().join(", ");
        let message = format!("a file has one package, and there are {packages}: use --output DIR");
        return Err(Failure::configuration(message));
    }
    written.files.values().try_for_each(|it| output::print(it))
}

/// Writes a file for each package. A file that exists may have documentation, and stays.
fn write_files(folder: &Path, written: &WrittenTypes) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::output(folder.display(), &error))?;
    let files = written.files.iter();
    let files = files.map(|(package, text)| (folder.join(format!("{package}.irl")), text));
    let files: Vec<_> = files.collect();
    if let Some((path, _)) = files.iter().find(|it| it.0.exists()) {
        let message = format!("{} exists already: name another folder", path.display());
        return Err(Failure::configuration(message));
    }
    for (path, text) in files {
        output::whole_file(&path, text)?;
        output::print(&format!("{}\n", path.display()))?;
    }
    Ok(())
}

/// Returns the types, sorted by name and without Kieker's own, and whether no signal came.
fn find(
    args: &FromRustArgs,
    quiet: bool,
    shutdown: &Shutdown,
) -> Result<(FoundTypes, bool), Failure> {
    let (_, readers) = inspect::open(&args.what, &args.decoding.schemas)?;
    let mut decoder = decoding::decoder(&args.decoding, NonZeroUsize::MIN)?;
    let mut found = FoundTypes::default();
    let mut is_whole = true;
    for mut open in readers {
        output::listening(open.listens_on, None, quiet)?;
        open.reader.set_demand(args.count);
        let idle_timeout = args.idle_timeout;
        let give_up = args.give_up.limit(Some(idle_timeout));
        is_whole &= open.look_through(idle_timeout, give_up, quiet, shutdown, |received| {
            match received {
                Received::Chunk(it) => match decoder.decode(&it.bytes) {
                    Ok(chunk) => found.add(chunk.batch.tables().iter().map(|it| it.schema())),
                    Err(_) => found.broken += 1,
                },
                Received::Damaged(_) => found.broken += 1,
                _ => return Ok(ControlFlow::Continue(())),
            }
            found.chunks += 1;
            Ok(match found.chunks >= args.count {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        })?;
        if found.chunks >= args.count || !is_whole {
            break;
        }
    }
    found.schemas.sort_by(|one, two| one.name().cmp(two.name()));
    Ok((found, is_whole))
}

impl FoundTypes {
    fn add<'a>(&mut self, schemas: impl Iterator<Item = &'a Arc<Schema>>) {
        for schema in schemas {
            let is_kiekers = types::shared_catalog().get(schema.name()) == Some(schema);
            if !is_kiekers && !self.schemas.contains(schema) {
                self.schemas.push(Arc::clone(schema));
            }
        }
    }
}
