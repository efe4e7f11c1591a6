//! Random histories of a log, with an oracle.
//!
//! A writer appends numbered lines, and the log is rotated, copied, truncated, compressed and
//! removed. A reader is stalled, killed and started again. Nothing may be missing, foreign or out of
//! order. A line may come again only if it was not settled when the reader was killed. Lines that
//! were removed before they could be read may be missing, if that was reported.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use baler_connector_file::follow::{Event, FileKey, Follower, Mark};

use super::support::{all, append, compress, lines, open, packed, settings};

/// Numbers that look random and are the same for a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((number ^ (number >> 31)) % limit as u64).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// How rotated files are named.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Names {
    /// `app.log.1` is the newest.
    Numbers,
    /// `app.log-20260101-000001`.
    Dates,
    /// `app-2026-01-01-1.log`.
    DatesBeforeExtension,
}

/// A file that was written, whatever its name is now.
#[derive(Debug, Default)]
struct Written {
    /// Its name now; none if it was removed.
    path: Option<PathBuf>,
    lines: Vec<u64>,
    /// Whether a reader has seen it, since the last line was appended.
    is_seen: bool,
}

struct World {
    random: Random,
    names: Names,
    live: PathBuf,
    position: PathBuf,
    files: Vec<Written>,
    next_line: u64,
    rotations: u64,
    half: Option<String>,
    reader: Option<Follower>,
    /// What was read in this life of the reader, in order.
    life: Vec<u64>,
    unsettled: VecDeque<(u64, FileKey, Mark)>,
    count: HashMap<u64, u64>,
    may_repeat: HashMap<u64, u64>,
    may_miss: HashSet<u64>,
    /// Lines of files that were rotated before the first start: they are passed over.
    too_early: HashSet<u64>,
    losses: usize,
    log: Vec<String>,
}

impl World {
    fn new(seed: u64, folder: &Path) -> Self {
        let mut random = Random(seed);
        let names = [Names::Numbers, Names::Dates, Names::DatesBeforeExtension];
        let names = names[random.below(3)];
        Self {
            random,
            names,
            live: folder.join("app.log"),
            position: folder.join("app.log.position"),
            files: vec![Written::default()],
            next_line: 0,
            rotations: 0,
            half: None,
            reader: None,
            life: Vec::new(),
            unsettled: VecDeque::new(),
            count: HashMap::new(),
            may_repeat: HashMap::new(),
            may_miss: HashSet::new(),
            too_early: HashSet::new(),
            losses: 0,
            log: vec![format!("{names:?}")],
        }
    }

    fn note(&mut self, what: impl Into<String>) {
        self.log.push(what.into());
    }

    fn write(&mut self) {
        self.finish_half();
        let lines = self.random.below(40) + 1;
        let width = [1, 30, 300][self.random.below(3)];
        let mut text = String::new();
        let live = self.files.last_mut().unwrap();
        for _ in 0..lines {
            live.lines.push(self.next_line);
            text.push_str(&line(self.next_line, width));
            self.next_line += 1;
        }
        live.path = Some(self.live.clone());
        live.is_seen = false;
        self.note(format!("write {lines} to {}", self.next_line));
        if self.random.chance(15) {
            let cut = self.random.below(5) + 1;
            self.half = Some(text.split_off(text.len() - cut));
            self.note(format!("all but {cut} bytes"));
        }
        append(&self.live, &text);
    }

    fn finish_half(&mut self) {
        if let Some(rest) = self.half.take() {
            append(&self.live, &rest);
        }
    }

    /// Returns the generations with a name that are not written any more, from old to new.
    fn rotated(&self) -> Vec<usize> {
        let rotated = 0..self.files.len() - 1;
        rotated
            .filter(|at| self.files[*at].path.is_some())
            .collect()
    }

    fn has_live(&self) -> bool {
        self.files.last().is_some_and(|it| it.path.is_some())
    }

    /// Frees the name for the next generation, and returns it.
    fn next_name(&mut self) -> PathBuf {
        self.rotations += 1;
        let number = self.rotations;
        let name = match self.names {
            Names::Numbers => {
                for at in self.rotated() {
                    let path = self.files[at].path.clone().unwrap();
                    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                    let rest = name.strip_prefix("app.log.").unwrap();
                    let (number, ending) = rest.split_once('.').unwrap_or((rest, ""));
                    let number: u64 = number.parse().unwrap();
                    let dot = if ending.is_empty() { "" } else { "." };
                    let new = self
                        .live
                        .with_file_name(format!("app.log.{}{dot}{ending}", number + 1));
                    fs::rename(path, &new).unwrap();
                    self.files[at].path = Some(new);
                }
                "app.log.1".to_owned()
            }
            Names::Dates => format!("app.log-20260101-{number:06}"),
            Names::DatesBeforeExtension => format!("app-2026-01-01-{number}.log"),
        };
        self.live.with_file_name(name)
    }

    fn rotate(&mut self) {
        if !self.has_live() {
            return;
        }
        let half = self.half.take();
        let to = self.next_name();
        self.note(format!("rotate to {}", to.display()));
        fs::rename(&self.live, &to).unwrap();
        if let Some(rest) = half {
            append(&to, &rest);
        }
        self.files.last_mut().unwrap().path = Some(to);
        self.files.push(Written::default());
    }

    fn copy_and_truncate(&mut self) {
        if !self.has_live() {
            return;
        }
        self.finish_half();
        let to = self.next_name();
        self.note(format!("copy to {} and truncate", to.display()));
        if self.random.chance(30) {
            let bytes = fs::read(&self.live).unwrap();
            let part = self.random.below(bytes.len() + 1);
            fs::write(&to, &bytes[..part]).unwrap();
            self.note(format!("({part} bytes are copied)"));
            self.step();
        }
        fs::write(&to, fs::read(&self.live).unwrap()).unwrap();
        if self.random.chance(30) {
            self.note("(all is copied)");
            self.step();
        }
        truncate(&self.live);
        let copied = self.files.last_mut().unwrap();
        copied.path = Some(to);
        // No reader has the copy open.
        copied.is_seen = false;
        self.files.push(Written::default());
        self.begin_live();
    }

    /// The file that is written is there, and empty.
    fn begin_live(&mut self) {
        if self.random.chance(60) {
            self.write();
        } else {
            self.files.last_mut().unwrap().path = Some(self.live.clone());
        }
    }

    /// Empties or removes the file that is written. What was not read may be missing.
    fn begin_anew(&mut self) {
        if !self.has_live() || !self.files.last().unwrap().is_seen {
            return;
        }
        self.finish_half();
        let is_removed = self.random.chance(50);
        self.note(if is_removed {
            "remove the live file"
        } else {
            "truncate"
        });
        let live = self.files.last_mut().unwrap();
        if !is_removed || self.reader.is_none() {
            self.may_miss.extend(
                live.lines
                    .iter()
                    .filter(|line| !self.count.contains_key(line)),
            );
            // What was read and not settled is read again after a kill, if it can.
            self.may_miss.extend(&live.lines);
        }
        live.path = None;
        match is_removed {
            true => fs::remove_file(&self.live).unwrap(),
            false => truncate(&self.live),
        }
        self.files.push(Written::default());
        if !is_removed {
            self.begin_live();
        }
    }

    fn compress(&mut self) {
        let rotated = self.rotated();
        let plain = |at: &usize| {
            let path = self.files[*at].path.as_ref().unwrap();
            !path.extension().is_some_and(|it| it == "gz" || it == "zst")
        };
        let Some(at) = rotated.into_iter().find(plain) else {
            return;
        };
        let path = self.files[at].path.clone().unwrap();
        let ending = if self.random.chance(50) { "gz" } else { "zst" };
        let to = path.with_added_extension(ending);
        self.note(format!("compress {}", to.display()));
        if self.random.chance(30) {
            let bytes = packed(&fs::read(&path).unwrap(), ending == "gz");
            fs::write(&to, &bytes[..bytes.len() / 2]).unwrap();
            self.note("(half)");
            self.step();
        }
        compress(&path, &to);
        self.files[at].path = Some(to);
    }

    /// Removes the oldest generation.
    fn remove(&mut self) {
        let Some(at) = self.rotated().into_iter().next() else {
            return;
        };
        if !self.files[at].is_seen {
            return;
        }
        let file = &mut self.files[at];
        if self.reader.is_none() {
            self.may_miss.extend(&file.lines);
        }
        let path = file.path.take().unwrap();
        self.log.push(format!("remove {}", path.display()));
        fs::remove_file(path).unwrap();
    }

    /// A copy of the whole folder takes its place: other numbers, the same content.
    fn make_folder_anew(&mut self) {
        if self.reader.is_some() {
            return;
        }
        self.note("make the folder anew");
        let folder = self.live.parent().unwrap();
        let copy = folder.with_extension("copy");
        fs::create_dir(&copy).unwrap();
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let to = copy.join(entry.file_name());
            fs::copy(entry.path(), &to).unwrap();
            let modified = entry.metadata().unwrap().modified().unwrap();
            let to = fs::OpenOptions::new().write(true).open(to).unwrap();
            to.set_modified(modified).unwrap();
        }
        fs::remove_dir_all(folder).unwrap();
        fs::rename(copy, folder).unwrap();
    }

    fn start(&mut self) {
        if self.reader.is_some() {
            return;
        }
        self.note("start");
        if !self.position.exists() {
            let rotated = self.files.iter().take(self.files.len() - 1);
            self.too_early = rotated
                .flat_map(|file| file.lines.iter().copied())
                .collect();
        }
        self.reader = Some(open(&self.live, settings(true, Some(&self.position))));
        self.life.clear();
        // From now on the position knows the files, even if none of their lines is settled.
        self.settle(0);
        self.see();
    }

    fn see(&mut self) {
        self.files.iter_mut().for_each(|file| file.is_seen = true);
    }

    /// The reader looks, takes some lines, and settles some of those it has.
    fn step(&mut self) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        reader.look().unwrap();
        let limit = match self.random.below(4) {
            // The target is stalled.
            0 => 0,
            1 => 5,
            2 => 50,
            _ => usize::MAX,
        };
        let taken = lines(reader, limit);
        self.log.push(format!("step: {} lines", taken.len()));
        for line in taken {
            let number = number(&line.text);
            self.life.push(number);
            *self.count.entry(number).or_default() += 1;
            self.unsettled.push_back((number, line.file, line.place));
        }
        let settled = self.random.below(self.unsettled.len() + 1);
        self.settle(settled);
        self.collect();
        self.see();
    }

    fn settle(&mut self, lines: usize) {
        let reader = self.reader.as_mut().unwrap();
        for (_, file, place) in self.unsettled.drain(..lines) {
            reader.settle(file, place);
        }
        reader.save().unwrap();
    }

    fn collect(&mut self) {
        let events: Vec<_> = self.reader.as_mut().unwrap().events().collect();
        for event in events {
            self.losses += usize::from(matches!(event, Event::Lost { .. }));
            self.log.push(format!("  {event}"));
        }
    }

    fn stop(&mut self) {
        if self.reader.is_none() {
            return;
        }
        self.collect();
        if self.random.chance(50) {
            self.settle(self.unsettled.len());
            self.note("stop");
        } else {
            self.note(format!("kill with {} unsettled", self.unsettled.len()));
        }
        for (number, _, _) in self.unsettled.drain(..) {
            *self.may_repeat.entry(number).or_default() += 1;
        }
        self.check_order();
        self.reader = None;
        // Only an open reader can read a file that was removed.
        let removed = self.files.iter().filter(|file| file.path.is_none());
        self.may_miss.extend(removed.flat_map(|file| &file.lines));
    }

    /// The lines of each file came in order.
    fn check_order(&self) {
        let of: HashMap<u64, usize> = self
            .files
            .iter()
            .enumerate()
            .flat_map(|(at, file)| file.lines.iter().map(move |line| (*line, at)))
            .collect();
        let mut last = HashMap::new();
        for line in &self.life {
            let before = last.insert(of[line], *line);
            assert!(
                before.is_none_or(|before| before < *line),
                "{line} came after {before:?}"
            );
        }
    }

    fn end(&mut self) {
        self.finish_half();
        self.start();
        let (rest, events) = all(self.reader.as_mut().unwrap());
        for line in rest {
            let number = number(&line.text);
            self.life.push(number);
            *self.count.entry(number).or_default() += 1;
        }
        for event in events {
            self.losses += usize::from(matches!(event, Event::Lost { .. }));
            self.log.push(format!("  {event}"));
        }
        self.check_order();
        let is_missing = |it: &u64| !self.count.contains_key(it) && !self.too_early.contains(it);
        let missing: Vec<u64> = (0..self.next_line).filter(is_missing).collect();
        let wrong: Vec<_> = missing
            .iter()
            .filter(|it| !self.may_miss.contains(it))
            .collect();
        assert!(wrong.is_empty(), "missing: {wrong:?}");
        assert!(
            missing.is_empty() || self.losses > 0,
            "not reported: {missing:?}"
        );
        for (line, count) in &self.count {
            assert!(*line < self.next_line, "{line} was never written");
            let most = 1 + self.may_repeat.get(line).copied().unwrap_or(0);
            assert!(*count <= most, "{line} came {count} times");
        }
    }

    fn run(&mut self) {
        for _ in 0..self.random.below(60) + 10 {
            match self.random.below(100) {
                0..25 => self.write(),
                25..37 => self.rotate(),
                37..42 => self.copy_and_truncate(),
                42..45 => self.begin_anew(),
                45..53 => self.compress(),
                53..57 => self.remove(),
                57..60 => self.make_folder_anew(),
                60..68 => self.start(),
                68..75 => self.stop(),
                _ => self.step(),
            }
        }
        self.end();
    }
}

fn line(number: u64, width: usize) -> String {
    format!("{number} {:0width$}\n", number * 7)
}

/// Returns the number of a line, which must be whole.
fn number(text: &str) -> u64 {
    let (number, rest) = text
        .split_once(' ')
        .unwrap_or_else(|| panic!("{text:?} is no line"));
    let parsed: u64 = number.parse().unwrap();
    let width = rest.len();
    assert_eq!(format!("{text}\n"), line(parsed, width), "a torn line");
    parsed
}

fn truncate(path: &Path) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(0).unwrap();
}

fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |it| it.parse().unwrap())
}

#[test]
fn every_line_comes_once_whatever_is_done_to_the_files() {
    let first = number_of("BALER_FIRST_HISTORY", 0);
    (first..first + number_of("BALER_HISTORIES", 100)).for_each(history);
}

/// The same for longer, in the step `slow`.
#[test]
fn two_thousand_histories_lose_no_line() {
    std::thread::scope(|scope| {
        for part in 0..4 {
            scope.spawn(move || (part * 500..(part + 1) * 500).for_each(history));
        }
    });
}

fn history(seed: u64) {
    // A disk forces each position to its plates, and gives numbers of removed files to new ones.
    let memory = Path::new("/dev/shm");
    let folder = match !seed.is_multiple_of(8) && memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    };
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).unwrap();
    let mut world = World::new(seed, &logs);
    let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
    if let Err(panic) = run {
        let why = panic.downcast_ref::<String>().map_or("", String::as_str);
        panic!("history {seed}:\n{}\n{why}", world.log.join("\n"));
    }
}
