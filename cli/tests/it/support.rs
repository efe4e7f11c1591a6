//! Running the program: short runs, receivers in the background, and waiting with a deadline.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take before a test fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(200);

/// Returns the program, with an environment without settings for it.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baler"));
    for (name, _) in std::env::vars_os() {
        let says_something = name == "COLUMNS" || name == "NO_COLOR";
        if says_something || name.to_string_lossy().starts_with("BALER_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Runs the program. Returns the run for assertions.
pub(crate) fn baler(args: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = assert_cmd::Command::from_std(command());
    command.args(args).timeout(DEADLINE).assert()
}

/// Runs the program, which must succeed. Returns its standard output.
pub(crate) fn output(args: &[&str]) -> String {
    let assert = baler(args).success();
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// Runs the program, which must succeed and print one JSON document and nothing else.
pub(crate) fn json(args: &[&str]) -> Value {
    serde_json::from_str(&output(args)).unwrap()
}

/// Returns the JSON objects of lines.
pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

pub(crate) fn read_json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns the path of a file of the workspace.
pub(crate) fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Compares a text with the golden file that a person has read. `UPDATE_GOLDEN=1` writes it.
pub(crate) fn golden(file: &str, text: &str) {
    let path = workspace("cli/tests/golden").join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    assert!(
        golden == text,
        "{}: if this is meant, run UPDATE_GOLDEN=1 and read the difference:\n{text}",
        path.display()
    );
}

/// Opens a page in headless Chromium, and runs a script at its end; the value that the script returns.
/// Nothing may be said on the console.
pub(crate) fn in_browser(page: &str, width: u32, script: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let script = format!(
        "<pre id=\"look\"></pre><script>document.getElementById(\"look\").textContent = \
         \"LOOK\" + JSON.stringify((() => {{{script}}})()) + \"KOOL\";</script></body>"
    );
    fs::write(&path, page.replace("</body>", &script)).unwrap();
    let run = assert_cmd::Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ])
        .args(["--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--window-size={width},2400"))
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(file_uri(&path))
        .timeout(DEADLINE)
        .assert()
        .success();
    let errors = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(!errors.contains("CONSOLE"), "{errors}");
    let dom = String::from_utf8_lossy(&run.get_output().stdout).into_owned();
    let seen = dom
        .rsplit_once(">LOOK")
        .and_then(|(_, rest)| rest.split_once("KOOL"));
    let (seen, _) = seen.unwrap_or_else(|| panic!("{dom}"));
    let text = seen
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&text.replace("&quot;", "\"")).unwrap()
}

/// Returns the URI of the real log of 2010.
pub(crate) fn real_log() -> String {
    let folder = workspace("analysis/tests/data/kieker/operation-executions-2010");
    format!("kieker-log:{}", folder.display())
}

/// Returns the URI of a folder.
pub(crate) fn file_uri(folder: &Path) -> String {
    format!("file://{}", folder.display())
}

/// Polls until there is a result; panics at the deadline.
pub(crate) fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// The program in the background; killed when it goes out of scope.
pub(crate) struct Background {
    child: Child,
}

impl Background {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::spawn(command().args(args))
    }

    /// Starts the program as this command says.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self {
            child: command.spawn().unwrap(),
        }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Its process.
    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.pid()])
            .status();
        assert!(status.unwrap().success());
    }

    /// Waits until a line of standard error has this text. Returns the line.
    pub(crate) fn wait_for_message(&mut self, text: &str) -> String {
        let mut line = Vec::new();
        let pipe = self.child.stderr.as_mut().unwrap();
        loop {
            let mut byte = [0];
            pipe.read_exact(&mut byte).unwrap();
            line.extend(byte);
            if byte == *b"\n" {
                let found = String::from_utf8_lossy(&line);
                if found.contains(text) {
                    return found.into_owned();
                }
                line.clear();
            }
        }
    }

    /// Waits until something is on standard output.
    pub(crate) fn wait_for_output(&mut self) {
        let pipe = self.child.stdout.as_mut().unwrap();
        pipe.read_exact(&mut [0]).unwrap();
    }

    /// Waits for any end. Returns the exit status, standard output and standard error.
    pub(crate) fn end(mut self) -> (ExitStatus, String, String) {
        // Reads to the end first, because a full pipe would stop the program.
        let mut stderr = self.child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        let mut stdout = String::new();
        let mut pipe = self.child.stdout.take().unwrap();
        pipe.read_to_string(&mut stdout).unwrap();
        let status = wait_for("the program's end", || self.child.try_wait().unwrap());
        (status, stdout, errors.join().unwrap())
    }

    /// Waits for an end with code 0. Returns standard output.
    pub(crate) fn succeed(self) -> String {
        let (status, stdout, stderr) = self.end();
        assert!(status.success(), "{status}: {stderr}");
        stdout
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A receiver on a port of loopback, its files in a folder of the test's.
pub(crate) struct Receiver {
    pub(crate) process: Background,
    pub(crate) uri: String,
    pub(crate) output: PathBuf,
    summary: PathBuf,
}

impl Receiver {
    /// Starts it at a port that stays free for its successor, with these further flags.
    pub(crate) fn start(folder: &Path, flags: &[&str]) -> Self {
        let port = baler_connector_testkit::faults::free_port().unwrap();
        Self::at(&format!("tcp://127.0.0.1:{port}"), folder, flags)
    }

    /// Starts it at this address.
    pub(crate) fn at(uri: &str, folder: &Path, flags: &[&str]) -> Self {
        fs::create_dir_all(folder).unwrap();
        let path = |name: &str| folder.join(name);
        let (output, summary, port) = (path("records.jsonl"), path("summary.json"), path("port"));
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let mut args = vec!["receive", "--from", uri, "--format", "json"];
        let paths = [text(&output), text(&summary), text(&port)];
        args.extend(["--output", &paths[0], "--summary", &paths[1]]);
        args.extend(["--port-file", &paths[2]]);
        args.extend(flags);
        let process = Background::start(&args);
        let address = wait_for("the receiver's address", || fs::read_to_string(&port).ok());
        Self {
            process,
            uri: format!("tcp://{}", address.trim()),
            output,
            summary,
        }
    }

    /// Waits for an end with code 0. Returns the received lines, and the summary.
    pub(crate) fn succeed(self) -> (String, Value) {
        let output = self.output.clone();
        let summary = self.end();
        (fs::read_to_string(output).unwrap(), summary)
    }

    /// Waits for an end with code 0. Returns its summary.
    pub(crate) fn end(self) -> Value {
        self.process.succeed();
        read_json(&self.summary)
    }
}
