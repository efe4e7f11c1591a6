//! A consumer of lines.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use baler_connector_file::follow::{Event, FileKey, Fill, Follower, Mark, Pattern, Settings};

/// Settings with a position, for tests that do not wait.
pub(crate) fn settings(follow: bool, position: Option<&Path>) -> Settings {
    Settings {
        follow,
        position_file: position.map(Path::to_owned),
        rotation_delay: Duration::ZERO,
        ..Settings::default()
    }
}

/// A line, and the place after it.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) file: FileKey,
    pub(crate) place: Mark,
}

/// Takes up to this number of lines.
pub(crate) fn lines(follower: &mut Follower, limit: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    while lines.len() < limit {
        let part = follower.part().map_or(&b""[..], |part| part.bytes);
        let end = part.iter().position(|byte| *byte == b'\n');
        let (text, bytes) = match end {
            Some(end) => (part[..end].to_vec(), end + 1),
            None => match follower.fill().unwrap() {
                Fill::Bytes => continue,
                Fill::Rest => {
                    let rest = follower.part().unwrap().bytes.to_vec();
                    let bytes = rest.len();
                    (rest, bytes)
                }
                Fill::End | Fill::Waiting => break,
            },
        };
        follower.consume(bytes);
        let (file, place) = follower.place().unwrap();
        let text = String::from_utf8(text).unwrap();
        lines.push(Line { text, file, place });
    }
    lines
}

/// Takes all lines, with looks in between. Returns them and what happened.
pub(crate) fn all(follower: &mut Follower) -> (Vec<Line>, Vec<Event>) {
    let mut all = Vec::new();
    for _ in 0..5 {
        follower.look().unwrap();
        all.extend(lines(follower, usize::MAX));
    }
    let events = follower.events().collect();
    (all, events)
}

/// Takes all lines, settles them and saves the position.
pub(crate) fn take(follower: &mut Follower) -> Vec<String> {
    let (lines, _) = all(follower);
    for line in &lines {
        follower.settle(line.file, line.place);
    }
    follower.save().unwrap();
    lines.into_iter().map(|line| line.text).collect()
}

pub(crate) fn open(path: &Path, settings: Settings) -> Follower {
    Follower::open(Pattern::of(path), settings).unwrap()
}

pub(crate) fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Compresses a file as gzip and zstd do: the time of its last change stays.
pub(crate) fn compress(from: &Path, to: &Path) {
    let bytes = fs::read(from).unwrap();
    let packed = packed(&bytes, to.extension().is_some_and(|it| it == "gz"));
    let modified = fs::metadata(from).unwrap().modified().unwrap();
    fs::write(to, packed).unwrap();
    OpenOptions::new()
        .write(true)
        .open(to)
        .unwrap()
        .set_modified(modified)
        .unwrap();
    fs::remove_file(from).unwrap();
}

pub(crate) fn packed(bytes: &[u8], is_gzip: bool) -> Vec<u8> {
    match is_gzip {
        true => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(bytes).unwrap();
            gzip.finish().unwrap()
        }
        false => zstd::encode_all(bytes, 1).unwrap(),
    }
}
