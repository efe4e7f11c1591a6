//! Pipes.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use baler_connector_file::follow::{Fill, Stream};

fn pipe(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    path
}

fn write(path: &Path, text: &str) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn read(stream: &mut Stream) -> (Fill, String) {
    stream.wait(Duration::from_secs(10)).unwrap();
    let fill = stream.fill().unwrap();
    let part = stream.part().1.to_vec();
    (fill, String::from_utf8(part).unwrap())
}

#[test]
fn a_pipe_ends_with_its_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = pipe(folder.path());
    let mut stream = Stream::open(&path, false).unwrap();
    assert_eq!(stream.fill().unwrap(), Fill::Waiting, "no writer came yet");
    write(&path, "1\n2");
    assert_eq!(read(&mut stream), (Fill::Bytes, "1\n2".to_owned()));
    stream.consume(2);
    assert_eq!(read(&mut stream), (Fill::Rest, "2".to_owned()));
    stream.consume(1);
    assert_eq!(stream.fill().unwrap(), Fill::End);
    assert_eq!(stream.part().0, 3);
}

#[test]
fn a_followed_pipe_waits_for_its_next_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = pipe(folder.path());
    let mut stream = Stream::open(&path, true).unwrap();
    for text in ["1\n", "2\n"] {
        write(&path, text);
        assert_eq!(read(&mut stream), (Fill::Bytes, text.to_owned()));
        stream.consume(2);
        assert_eq!(stream.fill().unwrap(), Fill::Waiting);
        let begun = Instant::now();
        stream.wait(Duration::from_millis(20)).unwrap();
        assert!(
            begun.elapsed() >= Duration::from_millis(20),
            "it does not spin"
        );
    }
}
