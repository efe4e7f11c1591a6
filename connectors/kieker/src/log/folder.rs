//! One folder that Kieker's `FileWriter` made: a map, and files in the order of the times and
//! counters in their names. New is a file that was not read, whatever its name. After a clock was
//! set back, names do not tell which file is still written. So files that were read are read on when
//! they grow.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fs, io};

use baler_connector_file::follow::checksum;
use bytes::Bytes;

use super::file::{BadPart, FileContext, FileStep, LogFile};
use super::input::Input;
use super::map::LogMap;
use super::position::{FilePosition, ReadFile};
use super::text::TextParser;
use crate::container::{KiekerChunk, KiekerStream, TimeUnit};

/// The names of the map. Kieker's predecessor used the second one.
const MAPS: [&str; 2] = ["kieker.map", "tpmon.map"];

/// The prefixes of the names of logs.
const PREFIXES: [&str; 2] = ["kieker", "tpmon"];

/// The extensions of logs: text, binary, and compressed ones (`monitoring/writer/compression` in
/// Kieker).
const EXTENSIONS: [&str; 8] = ["bin", "bz2", "dat", "df", "gz", "lzma", "xz", "zip"];

/// A folder of a log.
#[derive(Debug)]
pub(super) struct LogFolder {
    path: PathBuf,
    name: Box<str>,
    map: Option<LogMap>,
    strings: KiekerStream,
    parser: TextParser,
    current: Option<LogFile>,
    /// Files that were not read, or have grown since; from old to new.
    files: VecDeque<FilePosition>,
    /// The files that were read before the current one, in the order of reading.
    read: Vec<ReadFile>,
    /// The last place of each of them in `read`, and its end, by the checksum of its name.
    places: HashMap<u64, (usize, u64)>,
    /// The place of the first one that may still be written. Kieker writes one file at a time, so
    /// those that were read before a file was new are complete.
    may_grow: usize,
    next_look: Instant,
    /// The place where reading continues when no file is open: in this file, or in the next one.
    position: FilePosition,
    /// Whether the position comes from an earlier reader, or is the beginning.
    is_resuming: bool,
    /// Whether it does not say which files were read before: then all with lesser names.
    is_old_position: bool,
    /// Parts that cannot be read and were not reported yet.
    bad: VecDeque<BadPart>,
}

/// The reason why no more records are taken from a folder for now.
pub(super) enum FolderStep {
    /// A part of it cannot be read, and was skipped.
    Bad(BadPart),
    /// Nothing more is there now.
    End,
    /// The chunk is full.
    Full,
    /// The next record has this logging timestamp.
    Later(i64),
}

impl LogFolder {
    /// Creates a folder that is read from a position.
    pub(super) fn new(
        path: PathBuf,
        name: &str,
        mut strings: KiekerStream,
        position: Option<&FilePosition>,
    ) -> Self {
        if let Some(unit) = position.and_then(|it| TimeUnit::of_name(it.unit.as_deref()?)) {
            strings.restore_time_unit(unit);
        }
        let read = position.into_iter().flat_map(FilePosition::read_before);
        let read: Vec<_> = read.collect();
        Self {
            path,
            name: name.into(),
            map: None,
            strings,
            parser: TextParser::default(),
            current: None,
            files: VecDeque::new(),
            places: (0..)
                .zip(&read)
                .map(|(place, it)| (it.name, (place, it.end)))
                .collect(),
            read,
            may_grow: 0,
            next_look: Instant::now(),
            is_old_position: position.is_some_and(|it| it.read.is_none()),
            position: position.cloned().unwrap_or_default(),
            is_resuming: true,
            bad: VecDeque::new(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the name in positions, unique in its log.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the file that is read now.
    pub(super) fn file(&self) -> &str {
        &self.position.file
    }

    /// Returns the start of the next record.
    pub(super) fn position(&self) -> FilePosition {
        let unit = self.strings.time_unit();
        FilePosition {
            unit: (unit != TimeUnit::Nanoseconds).then(|| unit.name().into()),
            files_before: self.read.len(),
            ..match &self.current {
                Some(file) => file.position(),
                None => self.position.clone(),
            }
        }
    }

    /// Returns the files that were read, in the order of reading.
    pub(super) fn read(&self) -> &[ReadFile] {
        &self.read
    }

    /// Adds records to the chunk until it is full, a record is later than `until`, or nothing more
    /// is there. With `follows`, the folder is still written to.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub(super) fn cut(
        &mut self,
        chunk: &mut KiekerChunk,
        until: i64,
        follows: bool,
    ) -> io::Result<FolderStep> {
        let mut map_is_complete = false;
        loop {
            if let Some(bad) = self.bad.pop_front() {
                return Ok(FolderStep::Bad(bad));
            }
            let Some(file) = &mut self.current else {
                if !self.next_file(follows)? {
                    return Ok(FolderStep::End);
                }
                continue;
            };
            let mut context = FileContext {
                strings: &mut self.strings,
                parser: &mut self.parser,
                chunk,
                until,
                map_is_complete,
            };
            match file.cut(&mut context)? {
                FileStep::Bad(bad) => return Ok(FolderStep::Bad(bad)),
                FileStep::Full => return Ok(FolderStep::Full),
                FileStep::Later(timestamp) => return Ok(FolderStep::Later(timestamp)),
                FileStep::Unregistered(id) => {
                    let is_closed = file.is_closed();
                    self.read_map(!follows)?;
                    if self.strings.string(id).is_none() {
                        if follows && !is_closed && !self.has_newer(follows)? {
                            return Ok(FolderStep::End);
                        }
                        map_is_complete = true;
                    }
                }
                FileStep::End if file.is_closed() => {
                    self.position = file.position();
                    let end = file.end();
                    self.current = None;
                    self.note_read(&self.position.file.clone(), end);
                }
                FileStep::End => {
                    // There is a newer file, so this file is complete: read its last bytes.
                    if follows && !self.has_newer(follows)? {
                        return Ok(FolderStep::End);
                    }
                    if let Some(file) = &mut self.current {
                        file.close();
                    }
                }
            }
        }
    }

    /// Opens the file after the last one, or the file of the position. Returns whether there is
    /// one.
    fn next_file(&mut self, follows: bool) -> io::Result<bool> {
        let resumes = self.is_resuming && !self.position.file.is_empty();
        if !self.has_newer(follows)? && !resumes {
            return Ok(false);
        }
        if self.map.is_none() {
            let Some(map) = map_of(&self.path) else {
                return Ok(false);
            };
            // The name of a file ends in a number from Kieker 1.13 on (`RotatingLogFile.java`), and
            // in the name of a thread before. A file of this crate ends in `Baler`.
            let names = self.files.iter().map(|file| &*file.file);
            let names = names.chain(resumes.then_some(&*self.position.file));
            let has_escapes = names.into_iter().any(|name| !ends_in_number(name));
            self.map = Some(LogMap::new(map, has_escapes));
            self.read_map(!follows)?;
        }
        self.is_resuming = false;
        if resumes {
            let mut path = self.path.join(&*self.position.file);
            if !path.is_file()
                && let Some(compressed) = self.compressed_copy()?
            {
                self.position.file = compressed;
                path = self.path.join(&*self.position.file);
            }
            if path.is_file() {
                let file = match LogFile::open(path, &self.position) {
                    Err(error) if follows && is_passing(&error) => {
                        self.is_resuming = true;
                        return Ok(false);
                    }
                    opened => opened?,
                };
                if file.offset() < self.position.offset
                    && self.position.offset != FilePosition::LOST
                {
                    let reason = "the file is shorter than what was read of it before: it is read \
                                  from its beginning, and what else it had is lost";
                    self.report(&self.position.file.clone(), reason);
                    self.position.offset = 0;
                    self.is_resuming = true;
                    return Ok(true);
                }
                self.current = Some(file);
                return Ok(true);
            }
            let reason = "the file that was read last is gone, with what else it had; reading goes \
                          on with the next one";
            self.report(&self.position.file.clone(), reason);
        }
        let Some(next) = self.files.pop_front() else {
            // The loss is reported.
            return Ok(true);
        };
        match LogFile::open(self.path.join(&*next.file), &next) {
            Ok(file) => self.current = Some(file),
            // It was compressed or removed since the folder was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_copy = |name: &str| is_compressed_copy(name, &next.file);
                let names = log_names(&self.path)?;
                match names.into_iter().find(|name| is_copy(name)) {
                    Some(file) => self.files.push_front(FilePosition { file, ..next }),
                    None => self.report(&next.file, "the file is gone, and was not read"),
                }
                return Ok(true);
            }
            Err(error) if follows && is_passing(&error) => {
                self.files.push_front(next);
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        self.position = next;
        Ok(true)
    }

    fn note_read(&mut self, file: &str, end: u64) {
        let name = checksum(file.as_bytes());
        self.places.insert(name, (self.read.len(), end));
        self.read.push(ReadFile { name, end });
    }

    /// Whether there are files that were not read, or have grown since. Looks into the folder if
    /// none is known.
    fn has_newer(&mut self, follows: bool) -> io::Result<bool> {
        let begun = Instant::now();
        if !self.files.is_empty() || follows && begun < self.next_look {
            return Ok(!self.files.is_empty());
        }
        let names = log_names(&self.path)?;
        if std::mem::take(&mut self.is_old_position) {
            let last = self.position.file.clone();
            for name in names.iter().filter(|name| order(name) < order(&last)) {
                self.note_read(name, FilePosition::LOST);
            }
        }
        let (mut grown, mut new) = (Vec::new(), VecDeque::new());
        for name in names {
            let (last, plain) = (&*self.position.file, plain_name(&name));
            let is_last = !last.is_empty() && (last == &*name || last == plain);
            if is_last && (self.current.is_some() || self.is_resuming) {
                continue;
            }
            let place = |name: &str| self.places.get(&checksum(name.as_bytes())).copied();
            match (place(&name), place(plain)) {
                (Some((place, end)), _) if place >= self.may_grow => {
                    grown.extend(self.grown(name, end));
                }
                // Once, since what is compressed does not grow.
                (None, Some((_, end))) => match self.grown(name.clone(), end) {
                    Some(file) => grown.push(file),
                    None => self.note_read(&name, FilePosition::LOST),
                },
                (None, None) => new.push_back(FilePosition::beginning(name)),
                (Some(_), _) => {}
            }
        }
        if !new.is_empty() {
            self.may_grow = self.read.len();
        }
        self.files = new;
        grown
            .into_iter()
            .for_each(|file| self.files.push_front(file));
        // Large folders are looked at less often.
        self.next_look = begun + begun.elapsed() * 20;
        Ok(!self.files.is_empty())
    }

    /// Returns the place to read on in a file, if it has more than what was read of it, up to `end`. It
    /// may have been compressed since.
    fn grown(&self, file: Box<str>, end: u64) -> Option<FilePosition> {
        let path = self.path.join(&*file);
        let has_more = end != FilePosition::LOST
            && match fs::metadata(&path) {
                Ok(metadata) if plain_name(&file).is_empty() => metadata.len() > end,
                Ok(_) => Input::open(&path, end).is_ok_and(|(mut input, _)| {
                    let mut byte = Vec::new();
                    input.read(1, &mut byte).is_ok_and(|read| read > 0)
                }),
                Err(_) => false,
            };
        has_more.then(|| FilePosition {
            offset: end,
            ..FilePosition::beginning(file)
        })
    }

    /// Returns the compressed copy of the position's file, if it was compressed since.
    fn compressed_copy(&self) -> io::Result<Option<Box<str>>> {
        let mut names = log_names(&self.path)?.into_iter();
        Ok(names.find(|name| is_compressed_copy(name, &self.position.file)))
    }

    fn read_map(&mut self, is_closed: bool) -> io::Result<()> {
        let Some(map) = &mut self.map else {
            return Ok(());
        };
        let problems = map.read(&mut self.strings, is_closed)?;
        self.bad.extend(problems.into_iter().map(|reason| BadPart {
            bytes: Bytes::new(),
            offset: 0,
            reason,
        }));
        Ok(())
    }

    fn report(&mut self, file: &str, reason: &str) {
        let path = self.path.join(file);
        self.bad.push_back(BadPart {
            bytes: Bytes::new(),
            offset: self.position.offset,
            reason: format!("{}: {reason}", path.display()).into(),
        });
    }
}

/// Returns the name of a file before it was compressed, or nothing: `x.dat` of `x.dat.gz`.
fn plain_name(name: &str) -> &str {
    let plain = name.rsplit_once('.').map_or("", |(plain, _)| plain);
    let extension = plain
        .rsplit_once('.')
        .map_or("", |(_, extension)| extension);
    if EXTENSIONS.contains(&extension) {
        plain
    } else {
        ""
    }
}

/// Whether a file is the compressed copy of a complete file: `x.dat.gz` of `x.dat`.
fn is_compressed_copy(name: &str, plain: &str) -> bool {
    let rest = name.strip_prefix(plain);
    !plain.is_empty() && rest.is_some_and(|rest| rest.starts_with('.'))
}

/// Returns the folders of a log in the order of their names: the folder itself if it has a map, and
/// otherwise its sub-folders with a map.
///
/// # Errors
///
/// The operating system refuses.
pub(super) fn folders(path: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    if map_of(path).is_some() {
        return Ok(vec![(path.to_owned(), String::new())]);
    }
    let names = names(path)?.into_iter();
    let folders = names.map(|name| (path.join(&*name), String::from(name)));
    Ok(folders
        .filter(|(folder, _)| map_of(folder).is_some())
        .collect())
}

/// Whether a folder has a log that [`KiekerLogReader`](super::KiekerLogReader) reads: it, or one of
/// its sub-folders, has a map.
pub fn is_log(folder: &Path) -> bool {
    folders(folder).is_ok_and(|folders| !folders.is_empty())
}

/// Returns the names of a folder's logs, from old to new.
///
/// # Errors
///
/// The operating system refuses.
pub(super) fn log_names(folder: &Path) -> io::Result<Vec<Box<str>>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let extension = Path::new(&name).extension().and_then(|it| it.to_str());
        let is_log = extension.is_some_and(|extension| EXTENSIONS.contains(&extension));
        // Kieker gives only names in UTF-8.
        if let Some(name) = name.to_str()
            && PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            && is_log
            && !entry.file_type()?.is_dir()
        {
            names.push(Box::from(name));
        }
    }
    names.sort_by(|a, b| order(a).cmp(&order(b)));
    Ok(names)
}

/// Returns the parts of a name by which files follow each other: the time, the counter as a number
/// (`-999` before `-1000`), and the rest.
fn order(name: &str) -> (&str, u64, &str) {
    let Some((time, rest)) = name.rsplit_once("-UTC-") else {
        return (name, 0, "");
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (counter, rest) = rest.split_at(digits);
    (time, counter.parse().unwrap_or(u64::MAX), rest)
}

/// Whether an error may pass: the file belongs to another user for a moment, or too many files are
/// open.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let limits = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error.kind() == io::ErrorKind::PermissionDenied
        || error.raw_os_error().is_some_and(|it| limits.contains(&it))
}

/// Returns the names in a folder, in order.
fn names(folder: &Path) -> io::Result<Vec<Box<str>>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        // Kieker gives only names in UTF-8.
        names.extend(entry?.file_name().to_str().map(Box::from));
    }
    names.sort();
    Ok(names)
}

fn map_of(folder: &Path) -> Option<PathBuf> {
    let maps = MAPS.iter().map(|name| folder.join(name));
    maps.into_iter().find(|path| path.is_file())
}

/// Whether a name is `...-UTC-NUMBER.EXTENSION`.
fn ends_in_number(name: &str) -> bool {
    let (stem, _) = name.split_once('.').unwrap_or((name, ""));
    let number = stem.rsplit_once("-UTC-").map_or("", |(_, number)| number);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}
