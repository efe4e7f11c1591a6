//! `baler inspect`: what is in the chunks of a file, a folder or a live endpoint.
//!
//! Nothing is taken: a topic, a stream and a folder are read beside their consumers, whose positions
//! stay where they are. A queue and the senders of a live endpoint get their chunks back when the
//! command ends.

mod chunk;
mod text;

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, Received, Verdict, Waiting};
use baler_connector_file::{FileReader, FileReaderConfig, parse_segment_name};
use chunk::{ChunkFigures, Shown};
use serde::Serialize;

use crate::args::{DocumentFormat, InspectArgs};
use crate::decoding;
use crate::endpoint::{self, OpenReader, Readership, TapRange};
use crate::exit::{Code, Failure};
use crate::output;
use crate::patience::Patience;
use crate::shutdown::Shutdown;

/// How long it waits at a time before it looks at signals.
const TICK: Duration = Duration::from_millis(50);

/// What files with one or more chunks are called: by hand, in the quarantine, by Kieker.
const CHUNK_EXTENSIONS: [&str; 4] = ["balr", "bin", "chunk", "kika"];

/// What was found. The names are part of the program's interface.
#[derive(Debug, Serialize)]
struct Document {
    from: String,
    chunks: Vec<ChunkFigures>,
    /// What is no chunk, or does not decode.
    broken: Vec<Broken>,
    /// Whether there may be more than `--count` allowed.
    more: bool,
}

/// Bytes that are no chunk, or one that does not decode.
#[derive(Debug, Serialize)]
struct Broken {
    lane: String,
    position: u64,
    bytes: usize,
    reason: String,
}

/// Looks at chunks until the end, `--count` or the idle timeout.
pub(super) fn run(args: &InspectArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let (from, readers) = open(args)?;
    let mut document = Document {
        from,
        chunks: Vec::new(),
        broken: Vec::new(),
        more: false,
    };
    for open in readers {
        if let Some(address) = open.listens_on {
            if !quiet {
                output::say(format_args!("listening on {address}"));
            }
            if let Some(path) = &args.port_file {
                output::whole_file(path, &format!("{address}\n"))?;
            }
        }
        let OpenReader {
            mut reader,
            only_looks,
            endpoint,
            ..
        } = open;
        let give_up = args.give_up.limit(Some(args.idle_timeout));
        let patience = Patience::new(&endpoint, give_up, quiet);
        let looking = (patience, shutdown);
        let looked = look(args, reader.as_mut(), only_looks, &mut document, looking);
        // Closing gives back what was not settled.
        let closed = reader.close(shutdown.deadline());
        looked?;
        if let Some(error) = closed.error {
            return Err(error.into());
        }
        if document.more {
            break;
        }
    }
    match args.format {
        DocumentFormat::Json => output::json(&document)?,
        DocumentFormat::Table => output::print(&text::text(&document))?,
    }
    Ok(if document.broken.is_empty() {
        Code::Done
    } else {
        Code::Data
    })
}

/// Opens a URI, or a path of any kind: a folder without segments is one of chunks, each a file.
/// Tells its name without secrets, too.
fn open(args: &InspectArgs) -> Result<(String, Vec<OpenReader>), Failure> {
    let path = Path::new(&args.what);
    if !path.exists() && endpoint::is_uri(&args.what) {
        let open = endpoint::open_tap(&args.what, TapRange::UntilNow)?;
        return Ok((open.endpoint.clone(), vec![open]));
    }
    let metadata = fs::metadata(path).map_err(|error| {
        let message = format!("{error}; a URI would start with a scheme such as file: or tcp:");
        Failure::unavailable(&args.what, message)
    })?;
    let files = if metadata.is_dir() {
        chunk_files(path).map_err(|error| Failure::unavailable(&args.what, error))?
    } else {
        Vec::new()
    };
    let files = if files.is_empty() {
        vec![path.to_owned()]
    } else {
        files
    };
    let readers: Result<Vec<_>, Failure> = files.iter().map(|path| open_file(path)).collect();
    Ok((args.what.clone(), readers?))
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

/// The files of chunks in a folder, by name; none in a folder of segments.
fn chunk_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.and_then(parse_segment_name).is_some() {
            return Ok(Vec::new());
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        if extension.is_some_and(|it| CHUNK_EXTENSIONS.contains(&it)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Adds what the reader has to the document. Chunks are settled where that changes nothing, so that
/// the reader sees its end.
fn look(
    args: &InspectArgs,
    reader: &mut dyn ChunkReader,
    only_looks: bool,
    document: &mut Document,
    (mut patience, shutdown): (Patience, &Shutdown),
) -> Result<(), Failure> {
    let shown = Shown {
        records: args.records,
        strings: args.strings,
    };
    let mut decoder = decoding::decoder(&args.decoding, NonZeroUsize::MIN)?;
    let ends = reader.capability().ends;
    // One more than is shown, to tell whether there are more.
    reader.set_demand(args.count.saturating_add(1));
    let mut last_chunk = Instant::now();
    let mut waiting = Waiting::default();
    while !shutdown.is_requested() && last_chunk.elapsed() < args.idle_timeout {
        let full = document.chunks.len().saturating_add(document.broken.len()) >= args.count;
        if full && !ends {
            // A live endpoint has more to come whenever somebody sends.
            document.more = true;
            break;
        }
        let received = reader.receive(Instant::now() + TICK);
        waiting.received(&received, || reader.waits_for(), Instant::now);
        patience.look(&waiting)?;
        if waiting.since().is_some() {
            last_chunk = Instant::now();
        }
        match received {
            Ok(Received::Chunk(_) | Received::Damaged(_)) if full => {
                document.more = true;
                break;
            }
            Ok(Received::Chunk(delivery)) => {
                last_chunk = Instant::now();
                match decoder.decode_with_layout(&delivery.bytes) {
                    Ok((chunk, layout)) => {
                        let figures = ChunkFigures::new(&delivery, &chunk, &layout, shown)?;
                        document.chunks.push(figures);
                    }
                    Err(error) => document.broken.push(Broken {
                        lane: delivery.origin.lane.to_string(),
                        position: delivery.origin.position,
                        bytes: delivery.bytes.len(),
                        reason: error.to_string(),
                    }),
                }
                if only_looks {
                    reader.settle(delivery.token, Verdict::Ack)?;
                }
            }
            Ok(Received::Damaged(damaged)) => {
                last_chunk = Instant::now();
                document.broken.push(Broken {
                    lane: damaged.origin.lane.to_string(),
                    position: damaged.origin.position,
                    bytes: damaged.bytes.len(),
                    reason: damaged.reason.into(),
                });
            }
            Ok(Received::End) => break,
            Ok(Received::Assigned { .. } | Received::Idle | Received::Revoked { .. }) => {}
            Err(error) if error.is_retryable() => tracing::info!(%error, "the medium failed"),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
