//! Ends the processes that a process has started, even if it is killed.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Reads process groups until `done` or the end of its input; the last group counts. The input ends
/// when the owner ends, because only the owner has the other end of the pipe. Then the script ends
/// the group, runs a command (`$1`) and removes a folder (`$2`).
const WATCH: &str = r#"
while read -r line; do
    [ "$line" != done ] || exit 0
    group=$line
done
[ -z "$group" ] || kill -s KILL -- "-$group"
eval "$1"
[ -n "$2" ] || exit 0
for try in 1 2 3 4 5; do
    rm -rf -- "$2"
    # Somebody who is about to end may still write there.
    sleep 1
    [ -e "$2" ] || exit
done
"#;

/// Ends a process group and removes a folder when this process ends without having done so itself.
/// No destructor runs in a process that is killed.
///
/// A shell does this when a pipe ends. Dropping the guard releases both.
#[derive(Debug)]
pub struct ProcessGroupGuard {
    shell: Child,
}

impl ProcessGroupGuard {
    /// Holds a folder, if there is one, and no process yet.
    ///
    /// # Errors
    ///
    /// There is no shell.
    pub fn new(folder: Option<&Path>) -> io::Result<Self> {
        Self::with_command(folder, "")
    }

    /// Also runs a shell command at the end, before the folder is removed.
    pub(crate) fn with_command(folder: Option<&Path>, command: &str) -> io::Result<Self> {
        let shell = Command::new("sh")
            .args(["-c", WATCH, "guard", command])
            .arg(folder.unwrap_or_else(|| Path::new("")))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // An interrupt of the owner must not reach the shell.
            .process_group(0)
            .spawn()?;
        Ok(Self { shell })
    }

    /// Holds a process group instead of the previous one. Its id is the id of its first process.
    ///
    /// # Errors
    ///
    /// The shell was ended.
    pub fn hold(&self, group: u32) -> io::Result<()> {
        self.say(&group.to_string())
    }

    /// Releases the process group, which has ended: its id may go to another group.
    ///
    /// # Errors
    ///
    /// The shell was ended.
    pub fn free(&self) -> io::Result<()> {
        self.say("")
    }

    fn say(&self, line: &str) -> io::Result<()> {
        let Some(mut pipe) = self.shell.stdin.as_ref() else {
            return Ok(());
        };
        pipe.write_all(format!("{line}\n").as_bytes())
    }
}

impl Drop for ProcessGroupGuard {
    fn drop(&mut self) {
        if self.say("done").is_ok() {
            self.shell.wait().ok();
        }
    }
}
