//! What happens to followed files, for logs and figures.

use std::fmt;
use std::path::PathBuf;

/// Something that happened to a followed file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A compressed file is not complete, or a file or folder cannot be read yet. It is tried
    /// again; told once, and then every minute.
    Blocked {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A file was rotated or compressed, and it was read to its end.
    Finished {
        /// The file.
        path: PathBuf,
        /// Its length, decompressed.
        bytes: u64,
    },
    /// A new file.
    Found {
        /// The file.
        path: PathBuf,
    },
    /// What a file had after an offset is gone.
    Lost {
        /// The file.
        path: PathBuf,
        /// The offset.
        offset: u64,
        /// How many bytes were there when the file was last seen. There may have been more.
        at_least: u64,
        /// The reason.
        reason: String,
    },
    /// A file has another name now: it was rotated or compressed.
    Renamed {
        /// The name before.
        from: PathBuf,
        /// The name now.
        to: PathBuf,
    },
    /// A file was copied, and begins anew.
    Truncated {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked { path, reason } => {
                write!(f, "{} cannot be read yet: {reason}", path.display())
            }
            Self::Finished { path, bytes } => {
                write!(f, "{} is read to its end, byte {bytes}", path.display())
            }
            Self::Found { path } => write!(f, "{} is new", path.display()),
            Self::Lost {
                path,
                offset,
                at_least,
                reason,
            } => {
                let path = path.display();
                write!(
                    f,
                    "{path}: {reason}; what it had after byte {offset} is lost: "
                )?;
                match at_least {
                    0 => f.write_str("an unknown number of bytes, perhaps none"),
                    bytes => write!(f, "{bytes} bytes, perhaps more"),
                }
            }
            Self::Renamed { from, to } => {
                write!(f, "{} is {} now", from.display(), to.display())
            }
            Self::Truncated { path } => write!(f, "{} begins anew", path.display()),
        }
    }
}
