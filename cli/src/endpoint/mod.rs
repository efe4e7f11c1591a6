//! URIs to the ends of connectors, and to logs: the only place that names every medium.

use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use baler_analysis::kieker_log::{LogReader, LogSettings, OnBadLine};
use baler_analysis::workers::fan_out;
use baler_common::transport::uri::{Uri, UriError};
use baler_common::transport::{ChunkReader, ChunkWriter};
#[cfg(feature = "amqp")]
use baler_connector_amqp::{AmqpConfig, AmqpReader, AmqpWriter};
use baler_connector_file::{
    FileReader, FileReaderConfig, FileWriter, FileWriterConfig, Start as FileStart, SyncPolicy,
};
#[cfg(feature = "kafka")]
use baler_connector_kafka::{KafkaConfig, KafkaReader, KafkaWriter};
use baler_connector_null::{NullConfig, NullReader, NullWriter};
use baler_connector_tcp::{TcpConfig, TcpReader, TcpWriter};

use baler_spool::{Spool, SpoolConfig, SpoolWatch};

use crate::args::{SpoolArgs, SpoolSyncChoice};
use crate::exit::{Code, Failure};

/// The schemes of media.
const MEDIA: &[&str] = &[
    #[cfg(feature = "amqp")]
    "amqp",
    #[cfg(feature = "amqp")]
    "amqps",
    "file",
    #[cfg(feature = "kafka")]
    "kafka",
    #[cfg(feature = "kafka")]
    "kafka+mock",
    "null",
    "tcp",
];

/// The schemes of everything that records come from.
const SOURCES: &[&str] = &[
    #[cfg(feature = "amqp")]
    "amqp",
    #[cfg(feature = "amqp")]
    "amqps",
    "file",
    #[cfg(feature = "kafka")]
    "kafka",
    #[cfg(feature = "kafka")]
    "kafka+mock",
    KIEKER_LOG,
    "null",
    "tcp",
];

const KIEKER_LOG: &str = "kieker-log";

/// The setting that makes a reader a static member of its group.
#[cfg(feature = "kafka")]
const STATIC_MEMBER: &str = "group.instance.id";

/// A reader, opened.
pub(crate) struct OpenReader {
    pub(crate) reader: Box<dyn ChunkReader>,
    /// The address on which it waits for senders, if it does.
    pub(crate) listens_on: Option<SocketAddr>,
    /// The URI without its secrets.
    pub(crate) endpoint: String,
}

/// Several readers of one endpoint, opened.
pub(crate) struct OpenReaders {
    pub(crate) readers: Vec<Box<dyn ChunkReader>>,
    /// The address on which they wait for senders, if they do.
    pub(crate) listens_on: Option<SocketAddr>,
    /// The URI without its secrets.
    pub(crate) endpoint: String,
}

/// A writer; its owner opens it.
pub(crate) struct Writer {
    pub(crate) writer: Box<dyn ChunkWriter>,
    /// The URI without its secrets.
    pub(crate) endpoint: String,
    /// What its spool does, if it has one.
    pub(crate) spool: Option<SpoolWatch>,
}

/// Where records come from.
pub(crate) enum RecordSource {
    /// A text log of Kieker.
    Log {
        reader: Box<LogReader>,
        endpoint: String,
    },
    /// A medium with chunks.
    Medium(OpenReader),
}

/// Opens the receiving end of a medium. `follow` makes a source that would end wait for more.
///
/// # Errors
///
/// The URI is wrong, or the medium cannot be opened.
pub(crate) fn open_reader(text: &str, follow: bool) -> Result<OpenReader, Failure> {
    let (uri, endpoint) = parse(text)?;
    reader(uri, endpoint, follow, MEDIA)
}

/// Opens several readers of a medium: as many members of a group, or consumers of a queue, where
/// there can be more than one; else one reader whose lanes are handed to several.
///
/// # Errors
///
/// As [`open_reader`].
pub(crate) fn open_readers(
    text: &str,
    follow: bool,
    count: NonZeroUsize,
) -> Result<OpenReaders, Failure> {
    let (uri, endpoint) = parse(text)?;
    if count.get() > 1 && MEDIA.contains(&uri.scheme()) {
        match uri.scheme() {
            #[cfg(feature = "amqp")]
            "amqp" | "amqps" => return consumers_of_a_queue(uri, endpoint, count),
            #[cfg(feature = "kafka")]
            "kafka" | "kafka+mock" => {
                if text.contains(STATIC_MEMBER) {
                    return Err(Failure::configuration(format!(
                        "{STATIC_MEMBER} names one member of the group, --workers {count} makes \
                         {count}: leave one of them out"
                    )));
                }
                return members_of_a_group(uri, endpoint, count);
            }
            _ => {}
        }
    }
    let open = reader(uri, endpoint, follow, MEDIA)?;
    let readers = match count.get() {
        1 => vec![open.reader],
        _ => fan_out(open.reader, count).map_err(|error| {
            Failure::new(Code::Internal, format!("cannot start a thread: {error}"))
        })?,
    };
    Ok(OpenReaders {
        readers,
        listens_on: open.listens_on,
        endpoint: open.endpoint,
    })
}

#[cfg(feature = "amqp")]
fn consumers_of_a_queue(
    uri: Uri,
    endpoint: String,
    count: NonZeroUsize,
) -> Result<OpenReaders, Failure> {
    let config = AmqpConfig::from_uri(uri).map_err(|error| bad_uri(&endpoint, &error))?;
    let one = |_| Ok(Box::new(AmqpReader::new(config.clone())?) as Box<dyn ChunkReader>);
    Ok(OpenReaders {
        readers: (0..count.get()).map(one).collect::<Result<_, Failure>>()?,
        listens_on: None,
        endpoint,
    })
}

#[cfg(feature = "kafka")]
fn members_of_a_group(
    uri: Uri,
    endpoint: String,
    count: NonZeroUsize,
) -> Result<OpenReaders, Failure> {
    let config = KafkaConfig::from_uri(uri).map_err(|error| bad_uri(&endpoint, &error))?;
    let listens_on = embedded_address(&config);
    let one = |_| Ok(Box::new(KafkaReader::open(config.clone())?) as Box<dyn ChunkReader>);
    Ok(OpenReaders {
        readers: (0..count.get()).map(one).collect::<Result<_, Failure>>()?,
        listens_on,
        endpoint,
    })
}

/// Opens a medium for looking only: nothing is committed, nobody else gets less or is held up.
///
/// # Errors
///
/// The URI is wrong, the medium cannot be opened, or whoever reads from it takes from others.
pub(crate) fn open_tap(text: &str, from_start: bool) -> Result<OpenReader, Failure> {
    let (uri, endpoint) = parse(text)?;
    let wrong = |error| bad_uri(&endpoint, &error);
    let reader: Box<dyn ChunkReader> = match uri.scheme() {
        "file" => {
            let mut config = FileReaderConfig::from_uri(uri).map_err(wrong)?;
            // Reading alone leaves no trace; a named consumer's position would move.
            config.consumer = None;
            config.follow = true;
            config.from = if from_start {
                FileStart::Oldest
            } else {
                FileStart::End
            };
            Box::new(FileReader::open(config)?)
        }
        #[cfg(feature = "kafka")]
        "kafka" => {
            let config = KafkaConfig::from_uri(uri).map_err(|error| bad_uri(&endpoint, &error))?;
            Box::new(KafkaReader::open(config.tap(from_start))?)
        }
        #[cfg(feature = "amqp")]
        "amqp" | "amqps" => {
            let config = AmqpConfig::from_uri(uri).and_then(|config| config.tap(from_start));
            Box::new(AmqpReader::new(config.map_err(wrong)?)?)
        }
        "tcp" => {
            return Err(Failure::configuration(format!(
                "{endpoint}: what is on a connection cannot be looked at from outside; start the \
                 sender, relay or receiver with --metrics 9464 and use baler tap \
                 http://127.0.0.1:9464"
            )));
        }
        scheme @ ("null" | "kafka+mock") => {
            return Err(Failure::configuration(format!(
                "{endpoint}: nothing of another process passes at {scheme}:; tap a medium, or a \
                 running command by http://host:port"
            )));
        }
        scheme => return Err(unknown_scheme(scheme, MEDIA)),
    };
    Ok(OpenReader {
        reader,
        listens_on: None,
        endpoint,
    })
}

/// Opens a log, or the receiving end of a medium.
///
/// # Errors
///
/// As [`open_reader`].
pub(crate) fn open_source(text: &str) -> Result<RecordSource, Failure> {
    let (uri, endpoint) = parse(text)?;
    if uri.scheme() != KIEKER_LOG {
        return reader(uri, endpoint, false, SOURCES).map(RecordSource::Medium);
    }
    let (folder, settings) = log_settings(uri).map_err(|error| bad_uri(&endpoint, &error))?;
    let reader = LogReader::open(folder, settings)
        .map_err(|error| Failure::new(Code::Unavailable, error.to_string()))?;
    Ok(RecordSource::Log {
        reader: Box::new(reader),
        endpoint,
    })
}

/// Checks the URI of a log or of a medium's receiving end; nothing is opened.
///
/// # Errors
///
/// The URI is wrong.
pub(crate) fn check_source(text: &str) -> Result<(), Failure> {
    let (uri, endpoint) = parse(text)?;
    let checked = match uri.scheme() {
        #[cfg(feature = "amqp")]
        "amqp" | "amqps" => AmqpConfig::from_uri(uri).map(drop),
        "file" => FileReaderConfig::from_uri(uri).map(drop),
        #[cfg(feature = "kafka")]
        "kafka" | "kafka+mock" => {
            let config = KafkaConfig::from_uri(uri);
            return config.map(drop).map_err(|error| bad_uri(&endpoint, &error));
        }
        "null" => NullConfig::from_uri(uri).map(drop),
        "tcp" => TcpConfig::from_uri(uri).map(drop),
        KIEKER_LOG => log_settings(uri).map(drop),
        scheme => return Err(unknown_scheme(scheme, SOURCES)),
    };
    checked.map_err(|error| bad_uri(&endpoint, &error))
}

/// A URI without its secrets.
pub(crate) fn shown(text: &str) -> String {
    parse(text).map_or_else(|failure| failure.message, |(_, endpoint)| endpoint)
}

/// The URI with the setting that `--create-topic` stands for; media without topics refuse it.
pub(crate) fn with_topic(text: &str, create_topic: Option<&str>) -> String {
    let Some(shape) = create_topic else {
        return text.to_owned();
    };
    let joint = if text.contains('?') { '&' } else { '?' };
    format!("{text}{joint}create_topic={shape}")
}

/// Makes the sending end of a medium; it is not opened yet.
///
/// # Errors
///
/// The URI is wrong.
pub(crate) fn writer(text: &str) -> Result<Writer, Failure> {
    let (uri, endpoint) = parse(text)?;
    let wrong = |error| bad_uri(&endpoint, &error);
    let writer: Box<dyn ChunkWriter> = match uri.scheme() {
        #[cfg(feature = "amqp")]
        "amqp" | "amqps" => Box::new(AmqpWriter::new(AmqpConfig::from_uri(uri).map_err(wrong)?)),
        "file" => {
            let config = FileWriterConfig::from_uri(uri).map_err(wrong)?;
            Box::new(FileWriter::new(config))
        }
        #[cfg(feature = "kafka")]
        "kafka" | "kafka+mock" => {
            let config = KafkaConfig::from_uri(uri).map_err(|error| bad_uri(&endpoint, &error))?;
            Box::new(KafkaWriter::new(config))
        }
        "null" => Box::new(NullWriter::new(NullConfig::from_uri(uri).map_err(wrong)?)),
        "tcp" => Box::new(TcpWriter::new(TcpConfig::from_uri(uri).map_err(wrong)?)),
        scheme => return Err(unknown_scheme(scheme, MEDIA)),
    };
    Ok(Writer {
        writer,
        endpoint,
        spool: None,
    })
}

/// Puts a spool before the writer, if the flags ask for one. Nothing is touched before it is opened.
pub(crate) fn wrap(writer: Writer, args: &SpoolArgs) -> Writer {
    let Some(folder) = &args.spool else {
        return writer;
    };
    let mut config = SpoolConfig::new(folder);
    config.retry.seed = u64::from(std::process::id());
    if let Some(spool_after) = args.spool_after {
        config.spool_after = spool_after;
    }
    if let Some(bytes) = args.spool_bytes {
        config.max_bytes = NonZeroU64::try_from(bytes).unwrap_or(NonZeroU64::MAX);
    }
    config.sync = match args.spool_sync {
        None | Some(SpoolSyncChoice::Fsync) => SyncPolicy::Chunk,
        Some(SpoolSyncChoice::None) => SyncPolicy::None,
    };
    let spool = Spool::new(writer.writer, config);
    Writer {
        spool: Some(spool.watch()),
        writer: Box::new(spool),
        endpoint: writer.endpoint,
    }
}

/// Whether a text is meant as a URI rather than as a path: it begins with a known scheme, or looks
/// like `scheme://`.
pub(crate) fn is_uri(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(scheme, rest)| SOURCES.contains(&scheme) || rest.starts_with("//"))
}

fn reader(
    uri: Uri,
    endpoint: String,
    follow: bool,
    schemes: &[&str],
) -> Result<OpenReader, Failure> {
    let wrong = |error| bad_uri(&endpoint, &error);
    let mut listens_on = None;
    let reader: Box<dyn ChunkReader> = match uri.scheme() {
        #[cfg(feature = "amqp")]
        "amqp" | "amqps" => Box::new(AmqpReader::new(AmqpConfig::from_uri(uri).map_err(wrong)?)?),
        "file" => {
            let mut config = FileReaderConfig::from_uri(uri).map_err(wrong)?;
            config.follow |= follow;
            Box::new(FileReader::open(config)?)
        }
        #[cfg(feature = "kafka")]
        "kafka" | "kafka+mock" => {
            let config = KafkaConfig::from_uri(uri).map_err(|error| bad_uri(&endpoint, &error))?;
            listens_on = embedded_address(&config);
            Box::new(KafkaReader::open(config)?)
        }
        "null" => Box::new(NullReader::new(NullConfig::from_uri(uri).map_err(wrong)?)),
        "tcp" => {
            let reader = TcpReader::bind(TcpConfig::from_uri(uri).map_err(wrong)?)?;
            listens_on = Some(reader.local_addr());
            Box::new(reader)
        }
        // Asked for where only media can be: it is known, but not there.
        KIEKER_LOG => {
            return Err(Failure::configuration(format!(
                "{endpoint}: a log has no chunks; send it to a medium with send --from {KIEKER_LOG}:DIR"
            )));
        }
        scheme => return Err(unknown_scheme(scheme, schemes)),
    };
    Ok(OpenReader {
        reader,
        listens_on,
        endpoint,
    })
}

/// Where the cluster inside this process listens, if there is one.
#[cfg(feature = "kafka")]
fn embedded_address(config: &KafkaConfig) -> Option<SocketAddr> {
    let cluster = config.embedded_cluster()?;
    cluster.bootstrap_servers().parse().ok()
}

fn log_settings(mut uri: Uri) -> Result<(PathBuf, LogSettings), UriError> {
    uri.no_host()?;
    let mut settings = LogSettings::default();
    let choices = [("skip", OnBadLine::Skip), ("stop", OnBadLine::Stop)];
    if let Some(on_bad_line) = uri.take_choice("on_bad_line", &choices)? {
        settings.on_bad_line = on_bad_line;
    }
    let folder = PathBuf::from(uri.path());
    if folder.as_os_str().is_empty() {
        return Err(UriError::missing("the folder of the log"));
    }
    uri.finish()?;
    Ok((folder, settings))
}

/// Takes a URI apart, and shows it without its secrets.
fn parse(text: &str) -> Result<(Uri, String), Failure> {
    let uri = Uri::parse(text).map_err(|error| Failure::configuration(error.to_string()))?;
    let endpoint = uri.to_string();
    Ok((uri, endpoint))
}

fn bad_uri(endpoint: &str, error: &impl fmt::Display) -> Failure {
    Failure::configuration(format!("{endpoint}: {error}"))
}

/// Names the scheme, those that there are, and the nearest of them.
fn unknown_scheme(scheme: &str, schemes: &[&str]) -> Failure {
    let nearest = schemes
        .iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(scheme, known), known))
        .filter(|(similarity, _)| *similarity >= 0.4)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(String::new, |(_, nearest)| {
            format!("; did you mean {nearest}:?")
        });
    let known: Vec<_> = schemes.iter().map(|known| format!("{known}:")).collect();
    Failure::configuration(format!(
        "byte 0 of the URI: {scheme}: is no known scheme, use one of {}{nearest}",
        known.join(", "),
    ))
}
