//! One folder that Kieker's `FileWriter` made: a map, and files in the order of their names.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use baler_common::container::{KiekerChunk, KiekerStream, TimeUnit};
use bytes::Bytes;

use super::file::{BadPart, FileContext, FileStep, LogFile};
use super::map::LogMap;
use super::position::FilePosition;
use super::text::TextParser;

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
    /// The files after the current one, from old to new.
    files: VecDeque<Box<str>>,
    /// The place where reading continues when no file is open: in this file, or in the next one.
    position: FilePosition,
    /// Whether the position comes from an earlier reader, or is the beginning.
    is_resuming: bool,
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
        let unit = position.and_then(|it| TimeUnit::of_name(it.unit.as_deref()?));
        strings.restore_time_unit(unit.unwrap_or_default());
        Self {
            path,
            name: name.into(),
            map: None,
            strings,
            parser: TextParser::default(),
            current: None,
            files: VecDeque::new(),
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
            ..match &self.current {
                Some(file) => file.position(),
                None => self.position.clone(),
            }
        }
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
                        if follows && !is_closed && !self.has_newer()? {
                            return Ok(FolderStep::End);
                        }
                        map_is_complete = true;
                    }
                }
                FileStep::End if file.is_closed() => {
                    self.position = file.position();
                    self.current = None;
                }
                FileStep::End => {
                    // There is a newer file, so this file is complete: read its last bytes.
                    if follows && !self.has_newer()? {
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
        self.files.clear();
        if !self.has_newer()? && !resumes {
            return Ok(false);
        }
        if self.map.is_none() {
            let Some(map) = map_of(&self.path) else {
                return Ok(false);
            };
            // The name of a file ends in a number from Kieker 1.13 on (`RotatingLogFile.java`), and
            // in the name of a thread before. A file of this crate ends in `Baler`.
            let names = self.files.iter().map(|name| &**name);
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
                let file = LogFile::open(path, &self.position)?;
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
        let Some(name) = self.files.pop_front() else {
            // The loss is reported.
            return Ok(true);
        };
        self.position = FilePosition {
            file: name,
            ..FilePosition::default()
        };
        let path = self.path.join(&*self.position.file);
        self.current = Some(LogFile::open(path, &self.position)?);
        Ok(true)
    }

    /// Whether there are files after the file of the position. Lists the folder if none is known.
    fn has_newer(&mut self) -> io::Result<bool> {
        if self.files.is_empty() {
            let last = &self.position.file;
            let mut names = log_names(&self.path)?;
            names.retain(|name| name > last && !is_compressed_copy(name, last));
            self.files = names.into();
        }
        Ok(!self.files.is_empty())
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

/// Returns the names of a folder's logs, from old to new.
///
/// # Errors
///
/// The operating system refuses.
pub(super) fn log_names(folder: &Path) -> io::Result<Vec<Box<str>>> {
    let mut names = names(folder)?;
    names.retain(|name| {
        let path = Path::new(&**name);
        let extension = path.extension().and_then(|extension| extension.to_str());
        PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            && extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
            && folder.join(path).is_file()
    });
    Ok(names)
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
