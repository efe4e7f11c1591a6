//! The bytes of files or of a pipe.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use crate::follow::{Event, FileKey, Fill, Follower, Mark, Pattern, Settings, Stream};

use crate::lines::config::LinesConfig;

/// How often files are looked at while nothing is read, so that they stay readable.
const WATCH_EVERY: Duration = Duration::from_millis(250);

/// How long to wait at the end of followed files before the next look.
const POLL: Duration = Duration::from_millis(100);

/// The input of a reader.
#[derive(Debug)]
pub(crate) enum Input {
    /// A thread looks at them, too, while the reader's owner waits for its target.
    Files(Arc<Mutex<Follower>>),
    Pipe(Stream),
}

/// The input while lines are cut.
pub(crate) enum OpenInput<'a> {
    Files(MutexGuard<'a, Follower>),
    Pipe(&'a mut Stream),
}

impl Input {
    /// Opens what the settings name.
    ///
    /// # Errors
    ///
    /// The operating system refuses, or the position cannot be read.
    pub(crate) fn open(config: &LinesConfig) -> io::Result<Self> {
        if config.is_standard_input() {
            return Stream::standard_input().map(Self::Pipe);
        }
        let metadata = std::fs::metadata(&config.path);
        if metadata.is_ok_and(|it| !it.is_file() && !it.is_dir()) {
            return Stream::open(&config.path, config.follow).map(Self::Pipe);
        }
        let settings = Settings {
            follow: config.follow,
            from_now: config.from_now,
            position_file: config.position_file.clone(),
            ..Settings::default()
        };
        let follower = Follower::open(Pattern::of(&config.path), settings)?;
        let follower = Arc::new(Mutex::new(follower));
        if config.follow {
            let watched = Arc::downgrade(&follower);
            let thread = thread::Builder::new().name("baler-lines".to_owned());
            thread.spawn(move || watch(&watched))?;
        }
        Ok(Self::Files(follower))
    }

    pub(crate) fn lock(&mut self) -> OpenInput<'_> {
        match self {
            Self::Files(follower) => OpenInput::Files(lock(follower)),
            Self::Pipe(stream) => OpenInput::Pipe(stream),
        }
    }

    /// Waits until there may be more to read, for this time at most.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub(crate) fn wait(&self, most: Duration) -> io::Result<()> {
        match self {
            Self::Files(_) => {
                thread::park_timeout(POLL.min(most));
                Ok(())
            }
            Self::Pipe(stream) => stream.wait(most).map(drop),
        }
    }

    /// Returns why the input is not at its end, as a noun.
    pub(crate) fn waits_for(&self) -> Option<&'static str> {
        match self {
            Self::Files(follower) => lock(follower).waits_for(),
            Self::Pipe(_) => None,
        }
    }
}

/// Looks at the files until their reader is gone.
fn watch(follower: &Weak<Mutex<Follower>>) {
    loop {
        thread::park_timeout(WATCH_EVERY);
        let Some(follower) = follower.upgrade() else {
            return;
        };
        // With `follow`, errors are events.
        lock(&follower).look_if_due().ok();
    }
}

fn lock(follower: &Mutex<Follower>) -> MutexGuard<'_, Follower> {
    follower.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The unread bytes of one file, or of a pipe.
pub(crate) struct Bytes<'a> {
    /// The file; none for a pipe.
    pub(crate) file: Option<FileKey>,
    /// The log that the file is a generation of.
    pub(crate) log: &'a std::path::Path,
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
}

impl OpenInput<'_> {
    pub(crate) fn bytes(&self) -> Bytes<'_> {
        let pipe = |offset, bytes| Bytes {
            file: None,
            log: std::path::Path::new(""),
            offset,
            bytes,
        };
        match self {
            Self::Files(follower) => match follower.part() {
                Some(part) => Bytes {
                    file: Some(part.file),
                    log: part.log,
                    offset: part.offset,
                    bytes: part.bytes,
                },
                None => pipe(0, &[]),
            },
            Self::Pipe(stream) => {
                let (offset, bytes) = stream.part();
                pipe(offset, bytes)
            }
        }
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        match self {
            Self::Files(follower) => follower.consume(bytes),
            Self::Pipe(stream) => stream.consume(bytes),
        }
    }

    pub(crate) fn fill(&mut self) -> io::Result<Fill> {
        match self {
            Self::Files(follower) => follower.fill(),
            Self::Pipe(stream) => stream.fill(),
        }
    }

    /// Returns the current place, for a later settlement.
    pub(crate) fn place(&mut self) -> Option<(FileKey, Mark)> {
        match self {
            Self::Files(follower) => follower.place(),
            Self::Pipe(_) => None,
        }
    }

    /// Returns a name of a file's content.
    pub(crate) fn content_id(&mut self, file: Option<FileKey>) -> String {
        let first_line = match (self, file) {
            (Self::Files(follower), Some(file)) => follower.first_line(file),
            _ => None,
        };
        first_line.map_or_else(String::new, |sum| format!("{sum:016x}"))
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        match self {
            Self::Files(follower) => follower.events().collect(),
            Self::Pipe(_) => Vec::new(),
        }
    }

    /// Notes that lines are settled up to these places.
    pub(crate) fn settle(&mut self, places: HashMap<FileKey, Mark>) {
        if let Self::Files(follower) = self {
            for (file, place) in places {
                follower.settle(file, place);
            }
        }
    }

    pub(crate) fn has_moved(&self) -> bool {
        match self {
            Self::Files(follower) => follower.has_moved(),
            Self::Pipe(_) => false,
        }
    }

    pub(crate) fn save(&mut self) -> io::Result<()> {
        match self {
            Self::Files(follower) => follower.save(),
            Self::Pipe(_) => Ok(()),
        }
    }
}
