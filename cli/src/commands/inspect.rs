//! `baler inspect`: shows the chunks of a file, a folder or a live endpoint.
//!
//! It takes nothing. It reads a topic, a stream or a folder beside the consumers, and their
//! positions do not move. A queue and the senders of a live endpoint get their chunks back when the
//! command ends.

mod chunk;

use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use baler_analysis::sinks::{broken_document, chunk_document};
use baler_common::transport::{Browse, Readership, Received};
use baler_connector_file::{FileReader, FileReaderConfig, chunk_files};
use serde_json::{Value, json};

use crate::args::{InspectArgs, SchemasArgs};
use crate::decoding;
use crate::endpoint::{self, OpenReader};
use crate::exit::{Code, Failure};
use crate::output;
use crate::shutdown::Shutdown;

/// The chunks that were found.
#[derive(Debug, Default)]
struct Listing {
    chunks: Vec<Value>,
    /// The first records of each chunk as text.
    records: Vec<String>,
    /// Bytes that are not a chunk, or that do not decode.
    broken: Vec<Value>,
    /// Whether there may be more chunks than `--count` allows.
    more: bool,
    /// Whether a signal came before the end.
    is_partial: bool,
}

/// Looks at chunks until the end, `--count` or the idle timeout.
pub(super) fn run(args: &InspectArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let (from, readers) = open(&args.what, &args.decoding.schemas)?;
    let mut found = Listing::default();
    for open in readers {
        output::listening(open.listens_on, args.port_file.as_deref(), quiet)?;
        let ends = open.reader.capability().ends;
        found.is_partial = !look(args, open, &mut found, quiet, shutdown)? && ends;
        if found.more || found.is_partial {
            break;
        }
    }
    // The names are part of the program's interface.
    let document = json!({
        "from": from,
        "chunks": found.chunks,
        "broken": found.broken,
        "more": found.more,
    });
    output::result(args.format, &document, || text(&from, &found))?;
    Ok(if !found.broken.is_empty() {
        Code::Data
    } else if found.is_partial {
        Code::Incomplete
    } else {
        Code::Done
    })
}

/// Formats one block of text for each chunk, then the broken chunks.
fn text(from: &str, found: &Listing) -> String {
    let mut text = format!("{from}\n");
    for (chunk, records) in found.chunks.iter().zip(&found.records) {
        text.push('\n');
        text.push_str(&chunk::text(chunk, records));
    }
    let broken = found.broken.iter().map(|it| {
        let (lane, position) = (output::text_of(it, "lane"), &it["position"]);
        let size = output::bytes(output::count_of(it, "bytes"));
        let reason = output::text_of(it, "reason");
        ("broken", format!("{lane}@{position}, {size}: {reason}"))
    });
    let broken: Vec<_> = broken.collect();
    if !broken.is_empty() {
        text.push('\n');
        text.push_str(&output::two_columns(&broken));
    }
    let chunks = output::counts(&[(found.chunks.len(), "chunk")]);
    text.push_str(&format!("\n{chunks}, {} broken", found.broken.len()));
    if found.more {
        text.push_str("; there may be more: see --count");
    }
    text.push('\n');
    text
}

/// Opens a URI, a file or a folder. A folder without segments is a folder of chunk files. Also
/// returns the name without secrets.
pub(super) fn open(
    what: &str,
    schemas: &SchemasArgs,
) -> Result<(String, Vec<OpenReader>), Failure> {
    let path = Path::new(what);
    if !path.exists() && endpoint::is_uri(what) {
        let uri = endpoint::with_schemas(what, schemas);
        let open = endpoint::open_tap(&uri, Browse::UntilNow)?;
        return Ok((open.endpoint.clone(), vec![open]));
    }
    let metadata = fs::metadata(path).map_err(|error| {
        let message = format!("{error}; a URI would start with a scheme such as file: or tcp:");
        Failure::unavailable(what, message)
    })?;
    let mut files = match metadata.is_dir() {
        true => chunk_files(path).map_err(|error| Failure::unavailable(what, error))?,
        false => Vec::new(),
    };
    if files.is_empty() {
        files.push(path.to_owned());
    }
    let readers: Result<Vec<_>, Failure> = files.iter().map(|path| open_file(path)).collect();
    Ok((what.to_owned(), readers?))
}

fn open_file(path: &Path) -> Result<OpenReader, Failure> {
    Ok(OpenReader {
        reader: Box::new(FileReader::open(FileReaderConfig::new(path))?),
        listens_on: None,
        endpoint: path.display().to_string(),
        readership: Readership::OneProcess,
        only_looks: true,
    })
}

/// Adds the reader's chunks to the listing, and closes it. Returns whether no signal ended it.
fn look(
    args: &InspectArgs,
    mut open: OpenReader,
    found: &mut Listing,
    quiet: bool,
    shutdown: &Shutdown,
) -> Result<bool, Failure> {
    let mut decoder = decoding::decoder(&args.decoding, NonZeroUsize::MIN)?;
    let ends = open.reader.capability().ends;
    let is_full = |found: &Listing| found.chunks.len() + found.broken.len() >= args.count;
    // One chunk more than is shown, to find out whether there are more. A user may ask for
    // `usize::MAX` chunks.
    open.reader.set_demand(args.count.saturating_add(1));
    let give_up = args.give_up.limit(Some(args.idle_timeout));
    open.look_through(args.idle_timeout, give_up, quiet, shutdown, |received| {
        let is_chunk = matches!(received, Received::Chunk(_) | Received::Damaged(_));
        if is_full(found) && is_chunk {
            found.more = true;
            return Ok(ControlFlow::Break(()));
        }
        match received {
            Received::Chunk(it) => match decoder.decode_with_layout(&it.bytes) {
                Ok((chunk, layout)) => {
                    let (strings, records) = (args.strings, args.records);
                    let document = chunk_document(&it, &chunk, &layout, strings, records)
                        .map_err(|error| Failure::output("a record as JSON", &error.into()))?;
                    found.chunks.push(document);
                    found.records.push(chunk::records(chunk, args.records)?);
                }
                Err(error) => {
                    let broken = broken_document(&it.origin, &it.bytes, &error.to_string());
                    found.broken.push(broken);
                }
            },
            Received::Damaged(it) => {
                let broken = broken_document(&it.origin, &it.bytes, &it.reason);
                found.broken.push(broken);
            }
            _ => {}
        }
        if is_full(found) && !ends {
            // A live endpoint may always get further chunks.
            found.more = true;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })
}
