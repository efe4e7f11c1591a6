//! Finds the files of the set, and which of them are known.
//!
//! folders -> candidates -> known by number and content -> known by content -> new
//!     -> in the order of generations

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::follow::content::{Content, FileId};
use crate::follow::event::Event;
use crate::follow::follower::{Follower, LOOKS};
use crate::follow::known::{Candidate, FileKey, Known, Reading, sort};
use crate::follow::names::{Age, LogName, log_names_of, without_compression};
use crate::follow::pattern::Pattern;
use crate::follow::position::Mark;
use crate::if_found;

/// The most files that are kept open.
pub(crate) const MAX_OPEN: usize = 64;

impl Follower {
    pub(crate) fn look_at_files(&mut self) -> io::Result<()> {
        let mut free = self.candidates()?;
        let is_placed = self.find_known(&mut free);
        self.find_moved(&is_placed, &mut free);
        self.add_new(free);
        self.drop_gone();
        self.order();
        self.keep_open();
        self.is_first_look = false;
        self.is_old_position = false;
        Ok(())
    }

    /// Lists the files that the pattern names, and all generations of their logs.
    fn candidates(&mut self) -> io::Result<Vec<Candidate>> {
        let follow = self.settings.follow;
        let mut folders: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
        match self.pattern.folders() {
            Ok(found) => folders.extend(found.into_iter().map(|folder| (folder, BTreeSet::new()))),
            Err(error) if follow => {
                let path = self.pattern.path().to_owned();
                self.blocked(&path, &error);
            }
            Err(error) => return Err(error),
        }
        let named: BTreeSet<PathBuf> = folders.keys().cloned().collect();
        // A link may lead to another file now. The files that it led to before are read on.
        for file in &self.files {
            let log = &*file.found.log;
            if let (Some(folder), Some(name)) = (log.parent(), name_of(log)) {
                folders.entry(folder.to_owned()).or_default().insert(name);
            }
        }
        let mut candidates = Vec::new();
        for (folder, mut logs) in folders {
            let Some(names) = if_found(fs::read_dir(&folder).and_then(names))? else {
                // The folder is gone, with its files.
                continue;
            };
            if named.contains(&folder) {
                logs.extend(self.logs_of(&names));
            }
            for name in &names {
                let Some(of) = log_of(name, &logs) else {
                    continue;
                };
                let plain = without_compression(name);
                if plain != name && plain != of.log && names.contains(plain) {
                    // It is still being compressed.
                    continue;
                }
                let path = folder.join(name);
                match candidate(&folder, &path, of) {
                    Ok(found) => candidates.extend(found),
                    Err(error) if follow => self.blocked(&path, &error),
                    Err(error) => return Err(error),
                }
            }
        }
        let position = self.settings.position_file.as_deref();
        let position = position.and_then(|file| fs::metadata(file).ok());
        let position = position.map(|it| FileId::of(&it));
        candidates.retain(|found| Some(found.id) != position);
        // Several names of one file.
        let mut ids = HashSet::new();
        candidates.retain(|found| ids.insert(found.id));
        Ok(candidates)
    }

    /// Returns the logs among the files that the pattern names.
    fn logs_of(&self, names: &BTreeSet<String>) -> Vec<String> {
        if let Pattern::File(path) = &self.pattern {
            let target = crate::follow::pattern::resolved(path).unwrap_or_else(|_| path.clone());
            return name_of(&target).into_iter().collect();
        }
        let position = self.settings.position_file.as_deref().and_then(name_of);
        let is_position = |name: &str| position.as_deref().is_some_and(|it| name.starts_with(it));
        let named = names
            .iter()
            .filter(|name| self.pattern.names(name) && !is_position(name));
        let logs = named.filter_map(|name| {
            let all = log_names_of(name).into_iter().filter(|it| it.is_sure);
            all.min_by_key(|it| it.log.len()).map(|it| it.log)
        });
        logs.collect()
    }

    /// Finds the known files by their numbers, and sees whether they have the known content.
    /// Returns the files that have their place.
    fn find_known(&mut self, free: &mut Vec<Candidate>) -> BTreeSet<FileKey> {
        // Nothing tells an empty file from another one with its number.
        self.files
            .retain(|file| !file.is_finished() || file.read.is_known() || file.found.length > 0);
        let mut placed = BTreeSet::new();
        let mut unreadable = Vec::new();
        let candidates: HashMap<FileId, &Candidate> = free.iter().map(|it| (it.id, it)).collect();
        let mut taken = HashSet::new();
        for file in &mut self.files {
            let found = candidates.get(&file.found.id).copied();
            let Some(found) = found.filter(|it| !taken.contains(&it.id)) else {
                continue;
            };
            match file.is_in(found) {
                Ok(true) => file.gone = None,
                Ok(false) => {
                    file.gone = Some("it has other content now");
                    continue;
                }
                // It may be the file or not: nothing is done with either.
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    unreadable.push((found.path.clone(), error));
                    taken.insert(found.id);
                    placed.insert(file.key);
                    continue;
                }
                Err(_) => continue,
            }
            taken.insert(found.id);
            placed.insert(file.key);
            renamed(file, found, &mut self.events);
            file.adopt(found.clone());
            if file.is_finished()
                && file.settled.is_known()
                && file.content.is_none()
                && file.unread() > 0
                && !is_packed(&found.path)
            {
                // Its writer had it still open.
                file.reading = Reading::HasMore;
            }
        }
        free.retain(|found| !taken.contains(&found.id));
        for (path, error) in unreadable {
            self.blocked(&path, &error);
        }
        placed
    }

    /// Finds the content of known files under other names: copied, compressed, made anew.
    fn find_moved(&mut self, placed: &BTreeSet<FileKey>, free: &mut Vec<Candidate>) {
        for file in &mut self.files {
            if placed.contains(&file.key) {
                continue;
            }
            // An open file that had no bytes when it was seen may have some now.
            if file.content.is_some() && file.gone.is_none() {
                file.look_at_head().ok();
            }
            if !file.read.is_known() {
                continue;
            }
            let name = file.found.log.file_name().map(OsString::from);
            let plain = |path: &Path| without_compression(&path.to_string_lossy()).to_owned();
            let old = plain(&file.found.path);
            let mut order: Vec<usize> = (0..free.len()).collect();
            order.sort_by_key(|at| free.get(*at).is_some_and(|it| plain(&it.path) != old));
            let moved = order.into_iter().find(|at| {
                free.get(*at).is_some_and(|it| {
                    it.log.file_name() == name.as_deref() && file.is_in(it).unwrap_or(false)
                })
            });
            if let Some(at) = moved {
                let found = free.remove(at);
                match &file.gone {
                    Some(_) => self.events.push_back(Event::Truncated {
                        path: file.found.path.clone(),
                    }),
                    None => renamed(file, &found, &mut self.events),
                }
                let mark = file.read;
                let is_stale = |it: &mut Content| !it.has(&mark).unwrap_or(false);
                if file.content.as_mut().is_some_and(is_stale) {
                    file.content = None;
                }
                file.adopt(found);
            }
        }
    }

    fn add_new(&mut self, mut free: Vec<Candidate>) {
        // The others may be copies of a live file that is new itself.
        free.sort_by_key(|found| found.age != Age::Live);
        let last_read = self
            .files
            .iter()
            .filter(|file| file.missing == 0 && file.gone.is_none());
        let last_read = last_read.map(|file| file.found.modified).max();
        for found in free {
            let is_live = found.age == Age::Live;
            // A copy may just be begun.
            if !is_live && (found.length == 0 || self.is_copy(&found)) {
                continue;
            }
            let is_named = || name_of(&found.path).is_some_and(|it| self.pattern.names(&it));
            let is_older = !is_live && last_read.is_none_or(|last| found.modified <= last);
            let is_passed_over =
                self.is_first_look && !is_named() || self.is_old_position && is_older;
            let path = found.path.clone();
            let mut file = Known::new(self.new_key(), found, Mark::default());
            let passed = match is_passed_over || self.is_first_look && self.settings.from_now {
                true => pass_over(&mut file),
                false => file.look_at_head(),
            };
            match passed {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.blocked(&path, &error);
                }
            }
            if is_passed_over {
                file.reading = Reading::Finished;
            }
            if !self.is_first_look {
                self.events.push_back(Event::Found { path });
            }
            self.files.push(file);
            self.is_unsaved = true;
        }
    }

    /// Whether a file is a copy of one that is still there under its first name. Its reading goes on
    /// there, and in the copy only when it is truncated.
    fn is_copy(&mut self, found: &Candidate) -> bool {
        if self.copies.get(&found.id) == Some(&found.length) {
            return true;
        }
        let originals = self.files.iter_mut().filter(|file| {
            let it = &file.found;
            it.log == found.log && it.age == Age::Live && file.gone.is_none() && file.missing == 0
        });
        for file in originals {
            if found.length > file.found.length {
                continue;
            }
            let compared = file.open().and_then(|own| {
                let mut copy = Content::open(&found.path)?;
                // A generation that was renamed is older than the file that is written now. That
                // tells them apart if all their lines are the same.
                let made = (own.metadata()?.created(), copy.metadata()?.created());
                let is_older = matches!(made, (Ok(own), Ok(copy)) if copy < own);
                let is_packed = own.is_packed() || copy.is_packed();
                Ok(!is_older && !is_packed && copy.begins_with(own, found.length)?)
            });
            if compared.unwrap_or(false) {
                self.copies.insert(found.id, found.length);
                return true;
            }
        }
        false
    }

    /// Counts looks without a place, and drops files whose content is gone.
    fn drop_gone(&mut self) {
        let mut dropped = Vec::new();
        let in_use: Vec<_> = self.files.iter().map(|it| self.is_in_use(it.key)).collect();
        for (file, in_use) in self.files.iter_mut().zip(in_use) {
            let is_there =
                fs::metadata(&file.found.path).is_ok_and(|it| FileId::of(&it) == file.found.id);
            if is_there && file.gone.is_none() {
                continue;
            }
            let mark = file.read;
            let has_content = |content: &mut Content| content.has(&mark).unwrap_or(false);
            if !file.is_finished() && file.content.as_mut().is_some_and(has_content) {
                // It was removed, and is read to its end.
                if file.missing == 0 {
                    file.expect_more();
                }
                file.missing += 1;
                file.gone = None;
                continue;
            }
            file.missing += 1;
            if in_use || file.missing < LOOKS {
                continue;
            }
            dropped.push(file.key);
            if !file.is_finished() {
                self.events.push_back(Event::Lost {
                    path: file.found.path.clone(),
                    offset: file.read.offset,
                    at_least: file.unread(),
                    reason: file.gone.unwrap_or("it is gone").to_owned(),
                });
            }
        }
        dropped.into_iter().for_each(|key| self.remove(key));
    }

    /// Brings the files into the order of reading, and decides which of them are complete.
    pub(crate) fn order(&mut self) {
        sort(&mut self.files);
        let (follow, delay) = (self.settings.follow, self.settings.rotation_delay);
        for log in self.files.chunk_by_mut(|a, b| a.found.log == b.found.log) {
            let count = log.len();
            for (at, file) in log.iter_mut().enumerate() {
                let newer = count - at - 1;
                file.is_rotated = newer > 0;
                let is_last = match follow {
                    true => newer > 0 || file.missing >= LOOKS,
                    false => newer > 0 || file.found.age != Age::Live,
                };
                let is_complete = newer > 1 || is_last && (!follow || file.is_quiet(delay));
                if is_complete && !file.is_complete {
                    file.expect_more();
                }
                file.is_complete = is_complete;
            }
        }
    }

    /// Opens files with unread bytes, so that they can be read even after they are removed.
    fn keep_open(&mut self) {
        let mut open = self.files.iter().filter(|it| it.content.is_some()).count();
        let mut blocked = Vec::new();
        for file in &mut self.files {
            if file.is_finished() || file.gone.is_some() || file.missing > 0 {
                continue;
            }
            if file.content.is_none() && open >= MAX_OPEN {
                continue;
            }
            open += usize::from(file.content.is_none());
            let opened = file.open().map(drop).and_then(|()| file.look_at_head());
            match opened {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    blocked.push((file.found.path.clone(), error));
                }
                _ => {}
            }
        }
        for (path, error) in blocked {
            self.blocked(&path, &error);
        }
    }
}

fn name_of(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

fn names(entries: fs::ReadDir) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// Returns the log that a file belongs to: rather as a generation than as a log of its own.
fn log_of(name: &str, logs: &BTreeSet<String>) -> Option<LogName> {
    let known = log_names_of(name)
        .into_iter()
        .filter(|it| logs.contains(&it.log));
    known.min_by_key(|it| it.log.len())
}

fn candidate(folder: &Path, path: &Path, of: LogName) -> io::Result<Option<Candidate>> {
    let Some(metadata) = if_found(fs::metadata(path))?.filter(fs::Metadata::is_file) else {
        return Ok(None);
    };
    Ok(Some(Candidate {
        log: folder.join(of.log),
        path: path.to_owned(),
        age: of.age,
        id: FileId::of(&metadata),
        length: metadata.len(),
        modified: metadata.modified()?,
    }))
}

fn is_packed(path: &Path) -> bool {
    Content::open(path).is_ok_and(|it| it.is_packed())
}

fn renamed(file: &Known, found: &Candidate, events: &mut VecDeque<Event>) {
    if file.found.path != found.path {
        events.push_back(Event::Renamed {
            from: file.found.path.clone(),
            to: found.path.clone(),
        });
    }
}

/// Passes over what a file has now, up to its last line end.
fn pass_over(file: &mut Known) -> io::Result<()> {
    const LAST: u64 = 64 << 10;
    file.look_at_head()?;
    let content = file.open()?;
    if content.is_packed() {
        file.reading = Reading::Finished;
        file.content = None;
        return Ok(());
    }
    let length = content.metadata()?.len();
    let from = length - length.min(LAST);
    let mut last = Vec::new();
    content.read_at(from, 64 << 10, &mut last)?;
    let end = memchr::memrchr(b'\n', &last).map_or(0, |at| at + 1);
    last.truncate(end);
    file.read.move_to(from + end as u64, &last);
    file.settled = file.read;
    Ok(())
}
