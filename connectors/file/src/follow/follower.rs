//! Reads the files of a set, each to its end, in the order of their generations.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::follow::content::{Content, FileId};
use crate::follow::event::Event;
use crate::follow::known::{FileKey, Known, Reading};
use crate::follow::pattern::{Pattern, resolved};
use crate::follow::position::{self, Mark, TAIL_BYTES, checksum};

/// The number of bytes that are read at a time.
const PART_BYTES: usize = 256 << 10;

/// How often a look can find that content is gone before it counts as gone. A rename during a look
/// can hide a file.
pub(crate) const LOOKS: u32 = 3;

/// The shortest time between two looks. Large sets are looked at less often.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How often a passing error is told again.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// The settings of a follower.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether reading waits for more at the end of the files. Default: no.
    pub follow: bool,
    /// Whether what the files have now is passed over. Default: no.
    pub from_now: bool,
    /// The file in which the position is stored. Reading begins there if the file exists. Default:
    /// none, so each file that the pattern names is read from its beginning.
    pub position_file: Option<PathBuf>,
    /// A file that was rotated must not have grown for this time before the next one is read. Its
    /// writer may still have it open. Default 5 s.
    pub rotation_delay: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            follow: false,
            from_now: false,
            position_file: None,
            rotation_delay: Duration::from_secs(5),
        }
    }
}

/// The result of [`Follower::fill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// [`Follower::part`] has more bytes.
    Bytes,
    /// Nothing more will come: the files are read to their ends.
    End,
    /// The rest of the part has no line end and is all that the file has: take it.
    Rest,
    /// Nothing is there now.
    Waiting,
}

/// The unread bytes of the current file.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The file.
    pub file: FileKey,
    /// The log that the file is a generation of.
    pub log: &'a Path,
    /// The offset of the first byte, decompressed.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Follows a set of files. It starts no thread, and no call waits for a file to grow.
pub struct Follower {
    pub(crate) pattern: Pattern,
    pub(crate) settings: Settings,
    /// In the order of reading.
    pub(crate) files: Vec<Known>,
    /// Copies of files that are still there under their names, with their lengths.
    pub(crate) copies: HashMap<FileId, u64>,
    next_key: u64,
    current: Option<FileKey>,
    /// Bytes of the current file. Those before `start` are read; the last of them are kept.
    buffer: Vec<u8>,
    start: usize,
    pub(crate) is_first_look: bool,
    /// Whether the stored position names only the file that was read last.
    pub(crate) is_old_position: bool,
    next_look: Instant,
    pub(crate) events: VecDeque<Event>,
    told: HashMap<PathBuf, Instant>,
    /// Whether something changed since the position was saved.
    pub(crate) is_unsaved: bool,
}

impl Follower {
    /// Looks for the files, and for what a stored position says of them.
    ///
    /// # Errors
    ///
    /// The position cannot be read. Without `follow` also: there are no such files, or they cannot
    /// be read.
    pub fn open(pattern: Pattern, settings: Settings) -> io::Result<Self> {
        let mut stored = None;
        if let Some(file) = &settings.position_file {
            let log = resolved(pattern.path()).unwrap_or_else(|_| pattern.path().to_owned());
            stored = position::load(file, &log)?;
        }
        let mut follower = Self {
            pattern,
            settings,
            files: Vec::new(),
            copies: HashMap::new(),
            next_key: 0,
            current: None,
            buffer: Vec::new(),
            start: 0,
            is_first_look: stored.is_none(),
            is_old_position: stored.iter().flatten().any(|it| !it.mark.is_known()),
            next_look: Instant::now(),
            events: VecDeque::new(),
            told: HashMap::new(),
            is_unsaved: false,
        };
        for file in stored.into_iter().flatten() {
            let key = follower.new_key();
            follower.files.push(Known::stored(key, file));
        }
        for _ in 0..LOOKS {
            follower.look()?;
            if follower
                .files
                .iter()
                .all(|file| file.missing == 0 && file.gone.is_none())
            {
                break;
            }
        }
        if !follower.settings.follow && follower.files.is_empty() {
            let message = "there is no such file";
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        Ok(follower)
    }

    pub(crate) fn new_key(&mut self) -> FileKey {
        let key = FileKey(self.next_key);
        self.next_key += 1;
        key
    }

    /// Looks for new and renamed files if this is due, and keeps files open that have unread bytes.
    /// [`fill`](Self::fill) does it, too. Call it also while nothing is read, so that a file can be
    /// read even if it is removed meanwhile.
    ///
    /// # Errors
    ///
    /// Without `follow`: a file or a folder cannot be read.
    pub fn look_if_due(&mut self) -> io::Result<()> {
        match Instant::now() < self.next_look {
            true => Ok(()),
            false => self.look(),
        }
    }

    /// Looks at once.
    ///
    /// # Errors
    ///
    /// As [`look_if_due`](Self::look_if_due).
    pub fn look(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        self.note_place();
        let looked = self.look_at_files();
        self.next_look = begun + LOOK_EVERY.max(begun.elapsed() * 20);
        match looked {
            Err(error) if self.settings.follow => {
                let path = self.pattern.path().to_owned();
                self.blocked(&path, &error);
                Ok(())
            }
            looked => looked,
        }
    }

    /// Returns the unread bytes of the current file.
    pub fn part(&self) -> Option<Part<'_>> {
        let bytes = self.buffer.get(self.start..).filter(|it| !it.is_empty())?;
        let file = self.current()?;
        Some(Part {
            file: file.key,
            log: &file.found.log,
            offset: file.read.offset,
            bytes,
        })
    }

    /// Takes bytes from the front of the part.
    pub fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        debug_assert!(self.start <= self.buffer.len(), "no more than the part");
        if let Some(file) = self.current_mut() {
            file.read.offset += bytes as u64;
        }
    }

    /// Returns the file and the offset up to which it was consumed, for
    /// [`settle`](Self::settle).
    pub fn place(&mut self) -> Option<(FileKey, Mark)> {
        self.note_place();
        self.current().map(|file| (file.key, file.read))
    }

    /// Notes that a file is processed up to this place.
    pub fn settle(&mut self, file: FileKey, place: Mark) {
        if let Some(file) = self.files.iter_mut().find(|it| it.key == file) {
            let head = (file.read.head_bytes, file.read.head);
            file.settled = place;
            (file.settled.head_bytes, file.settled.head) = head;
            self.is_unsaved = true;
        }
    }

    /// Returns a checksum of the first line of a file. The file keeps it under every name.
    pub fn first_line(&mut self, file: FileKey) -> Option<u64> {
        let file = self.files.iter_mut().find(|it| it.key == file)?;
        let mut head = Vec::new();
        let mut other;
        let content = match &mut file.content {
            // Another open file leaves the place in compressed bytes as it is.
            Some(content) if content.is_packed() => {
                other = Content::open(&file.found.path).ok()?;
                &mut other
            }
            Some(content) => content,
            None => return None,
        };
        content
            .read_at(0, crate::follow::content::HEAD_BYTES, &mut head)
            .ok()?;
        let end = memchr::memchr(b'\n', &head).unwrap_or(head.len());
        Some(checksum(head.get(..end)?))
    }

    /// Returns what happened since the last call.
    pub fn events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.drain(..)
    }

    /// Returns why the follower is not at the end of what is written, as a noun.
    pub fn waits_for(&self) -> Option<&'static str> {
        if self.files.is_empty() {
            return Some("file");
        }
        let mut open = self.files.iter().filter(|file| !file.is_finished());
        open.any(|file| file.reading == Reading::HasMore || file.is_rotated)
            .then_some("end of a file")
    }

    /// Whether the position has changed since it was saved, and is stored at all.
    pub fn has_moved(&self) -> bool {
        self.is_unsaved && self.settings.position_file.is_some()
    }

    /// Saves the position of what is settled. Whenever the process or the machine stops, the file
    /// has either the old or the new position.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub fn save(&mut self) -> io::Result<()> {
        let Some(file) = self.settings.position_file.as_deref() else {
            return Ok(());
        };
        let files = self
            .files
            .iter()
            .filter(|it| it.settled.is_known() || it.settled.offset > 0);
        position::save(file, files.map(Known::position).collect())?;
        self.is_unsaved = false;
        Ok(())
    }

    /// Reads on. Call it when the part has no whole line.
    ///
    /// # Errors
    ///
    /// Without `follow`: a file or a folder cannot be read.
    pub fn fill(&mut self) -> io::Result<Fill> {
        self.look_if_due()?;
        // A file that changes again and again must not keep the caller here.
        for _ in 0..=self.files.len() {
            let Some(key) = self.next_ready() else {
                break;
            };
            let result = self.activate(key).and_then(|()| self.read_more());
            match result {
                Ok(More::Bytes) => return Ok(Fill::Bytes),
                Ok(More::Changed) => {
                    self.with_current(|file| file.gone = Some("it has other content now"));
                    self.look()?;
                }
                Ok(More::End) => {
                    if let Some(fill) = self.at_end() {
                        return Ok(fill);
                    }
                }
                Err(error) => self.unreadable(error)?,
            }
        }
        let is_left = |file: &Known| file.reading == Reading::HasMore;
        let waits = self.settings.follow || self.files.iter().any(is_left);
        Ok(if waits { Fill::Waiting } else { Fill::End })
    }

    /// Returns the file to read now: the current one, or the oldest unread generation of the next
    /// log.
    fn next_ready(&self) -> Option<FileKey> {
        if let Some(file) = self.current()
            && file.reading == Reading::HasMore
        {
            return Some(file.key);
        }
        let logs = self.files.chunk_by(|a, b| a.found.log == b.found.log);
        let firsts = logs.filter_map(|log| log.iter().find(|file| !file.is_finished()));
        let ready: Vec<_> = firsts
            .filter(|file| file.reading == Reading::HasMore)
            .collect();
        let log = self.current().map(|file| &file.found.log);
        let mut after = ready.iter().filter(|file| Some(&file.found.log) > log);
        after.next().or_else(|| ready.first()).map(|file| file.key)
    }

    /// Makes a file the current one.
    fn activate(&mut self, key: FileKey) -> io::Result<()> {
        if self.current == Some(key) && self.current().is_some_and(|it| it.content.is_some()) {
            return Ok(());
        }
        self.note_place();
        self.forget_buffer();
        let open = self.files.iter().filter(|it| it.content.is_some());
        let is_many = open.count() > crate::follow::look::MAX_OPEN;
        self.with_current(|file| {
            // A removed file cannot be opened again.
            if is_many && file.missing == 0 {
                file.content = None;
            }
        });
        self.current = Some(key);
        let Some(file) = self.files.iter_mut().find(|it| it.key == key) else {
            return Ok(());
        };
        let mark = file.read;
        let content = file.open()?;
        if !content.has(&mark)? {
            file.gone = Some("it has other content now");
            file.content = None;
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "it has other content now",
            ));
        }
        let offset = mark.offset - mark.tail_bytes as u64;
        content.read_at(offset, mark.tail_bytes, &mut self.buffer)?;
        self.start = self.buffer.len();
        Ok(())
    }

    /// Reads a part of the current file, and sees whether what was read before is still there.
    fn read_more(&mut self) -> io::Result<More> {
        self.forget_consumed();
        let (buffer, start) = (&mut self.buffer, self.start);
        let Some(file) = known(&mut self.files, self.current) else {
            return Ok(More::End);
        };
        let end = file.read.offset + (buffer.len() - start) as u64;
        let Some(content) = &mut file.content else {
            return Ok(More::End);
        };
        if content.is_packed() {
            return Ok(match content.read_at(end, PART_BYTES, buffer)? {
                0 => More::End,
                _ => More::Bytes,
            });
        }
        // The bytes before are read again in the same call, and once more after it.
        let overlap = buffer.len().min(TAIL_BYTES);
        let from = end - overlap as u64;
        let mut part = Vec::new();
        content.read_at(from, overlap + PART_BYTES, &mut part)?;
        let checked = part.len().min(TAIL_BYTES);
        let mut again = Vec::new();
        content.read_at(from, checked, &mut again)?;
        let before = buffer.get(buffer.len() - overlap..);
        if part.get(..overlap) != before || part.get(..checked) != Some(&*again) {
            return Ok(More::Changed);
        }
        match part.get(overlap..) {
            Some(new) if !new.is_empty() => {
                buffer.extend_from_slice(new);
                file.quiet_since = None;
                Ok(More::Bytes)
            }
            _ => Ok(More::End),
        }
    }

    /// Decides what the end of the current file means. Returns nothing if there is another file to
    /// try.
    fn at_end(&mut self) -> Option<Fill> {
        let (has_rest, position) = (self.start < self.buffer.len(), &self.settings.position_file);
        let ends_lines = !self.settings.follow && position.is_none();
        let file = self.current_mut()?;
        file.quiet_since.get_or_insert_with(Instant::now);
        let is_packed = file.content.as_ref().is_some_and(Content::is_packed);
        let is_complete = file.is_complete || is_packed;
        if has_rest && (is_complete || ends_lines) {
            return Some(Fill::Rest);
        }
        file.reading = Reading::AtEnd;
        if is_complete {
            file.reading = Reading::Finished;
            file.content = None;
            let event = Event::Finished {
                path: file.found.path.clone(),
                bytes: file.read.offset,
            };
            self.events.push_back(event);
            self.is_unsaved = true;
            self.note_place();
            self.forget_buffer();
            self.current = None;
            // The next generation may be complete now.
            self.order();
        }
        None
    }

    /// The current file cannot be read.
    fn unreadable(&mut self, error: io::Error) -> io::Result<()> {
        let is_gone = error.kind() == io::ErrorKind::NotFound;
        let is_broken = self.current().is_some_and(|file| {
            file.content.as_ref().is_some_and(Content::is_packed) && is_data(&error)
        });
        let delay = self.settings.rotation_delay;
        let follow = self.settings.follow;
        let Some(file) = self.current_mut() else {
            return Ok(());
        };
        let path = file.found.path.clone();
        file.reading = Reading::AtEnd;
        // A compressed file that is still being written grows.
        if is_broken && (!follow || file.is_quiet(delay)) {
            let (offset, at_least) = (file.read.offset, 0);
            file.reading = Reading::Finished;
            file.content = None;
            let reason = format!("it cannot be decompressed: {error}");
            self.events.push_back(Event::Lost {
                path,
                offset,
                at_least,
                reason,
            });
            self.note_place();
            self.forget_buffer();
            self.current = None;
            return Ok(());
        }
        file.content = None;
        if is_gone {
            return self.look();
        }
        if !follow {
            let message = format!("{}: {error}", path.display());
            return Err(io::Error::new(error.kind(), message));
        }
        // The next look makes it ready again.
        file.is_blocked = true;
        self.blocked(&path, &error);
        Ok(())
    }

    /// Reports a passing error, unless it was reported just now.
    pub(crate) fn blocked(&mut self, path: &Path, error: &io::Error) {
        let now = Instant::now();
        let is_told = |at: &Instant| now.duration_since(*at) < TELL_EVERY;
        if self.told.get(path).is_some_and(is_told) {
            return;
        }
        self.told.retain(|_, at| is_told(at));
        self.told.insert(path.to_owned(), now);
        self.events.push_back(Event::Blocked {
            path: path.to_owned(),
            reason: error.to_string(),
        });
    }

    /// Notes the bytes before the place that is read, by which it is found again.
    fn note_place(&mut self) {
        let before = self.buffer.get(..self.start);
        let file = known(&mut self.files, self.current);
        if let (Some(before), Some(file)) = (before, file)
            && (file.read.offset == 0 || !before.is_empty())
        {
            let offset = file.read.offset;
            file.read.move_to(offset, before);
        }
    }

    /// Whether the part of this file has bytes that the caller may still take.
    pub(crate) fn is_in_use(&self, key: FileKey) -> bool {
        self.current == Some(key)
            && memchr::memchr(b'\n', self.part().map_or(&[], |it| it.bytes)).is_some()
    }

    /// Forgets a file.
    pub(crate) fn remove(&mut self, key: FileKey) {
        if self.current == Some(key) {
            self.current = None;
            self.forget_buffer();
        }
        self.files.retain(|file| file.key != key);
        self.is_unsaved = true;
    }

    fn forget_buffer(&mut self) {
        self.buffer.clear();
        self.start = 0;
    }

    fn forget_consumed(&mut self) {
        let kept = self.start.min(TAIL_BYTES);
        self.buffer.drain(..self.start - kept);
        self.start = kept;
    }

    fn current(&self) -> Option<&Known> {
        self.files.iter().find(|it| Some(it.key) == self.current)
    }

    fn current_mut(&mut self) -> Option<&mut Known> {
        known(&mut self.files, self.current)
    }

    fn with_current(&mut self, change: impl FnOnce(&mut Known)) {
        if let Some(file) = self.current_mut() {
            change(file);
        }
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("pattern", &self.pattern)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

fn known(files: &mut [Known], key: Option<FileKey>) -> Option<&mut Known> {
    files.iter_mut().find(|it| Some(it.key) == key)
}

/// What a read found.
enum More {
    Bytes,
    Changed,
    End,
}

/// Whether the data is wrong, and not the way to it.
fn is_data(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    matches!(
        error.kind(),
        InvalidData | InvalidInput | Other | UnexpectedEof
    )
}
