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
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use baler_common::transport::{Browse, ChunkReader, Readership, Received, Verdict};
use baler_connector_file::{FileReader, FileReaderConfig, parse_segment_name};
use chunk::{ChunkFigures, Shown};
use serde::Serialize;

use crate::args::InspectArgs;
use crate::decoding;
use crate::endpoint::{self, OpenReader};
use crate::exit::{Code, Failure};
use crate::output;
use crate::patience::Patience;
use crate::shutdown::Shutdown;

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
        output::listening(open.listens_on, args.port_file.as_deref(), quiet)?;
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
    output::result(args.format, &document, || text::text(&document))?;
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
        let open = endpoint::open_tap(&args.what, Browse::UntilNow)?;
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
    let is_full = |document: &Document| {
        document.chunks.len().saturating_add(document.broken.len()) >= args.count
    };
    // One more than is shown, to tell whether there are more.
    reader.set_demand(args.count.saturating_add(1));
    patience.receive_all(reader, args.idle_timeout, shutdown, |reader, received| {
        let is_chunk = matches!(received, Received::Chunk(_) | Received::Damaged(_));
        if is_full(document) && is_chunk {
            document.more = true;
            return Ok(ControlFlow::Break(()));
        }
        match received {
            Received::Chunk(delivery) => {
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
            Received::Damaged(damaged) => document.broken.push(Broken {
                lane: damaged.origin.lane.to_string(),
                position: damaged.origin.position,
                bytes: damaged.bytes.len(),
                reason: damaged.reason.into(),
            }),
            _ => {}
        }
        if is_full(document) && !ends {
            // A live endpoint has more to come whenever somebody sends.
            document.more = true;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })
}
