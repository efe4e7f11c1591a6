//! Locks on files. A process holds them, but the children that it forks do not.
//!
//! A forked child inherits its parent's open files, and with them their locks (`flock`). These
//! locks would outlive the parent. So one list contains all locked files of a process, and the
//! child empties this list before `fork` returns there.
//!
//! Other mechanisms do not help. Close-on-exec has no effect without `exec`. A lock of an open file
//! description (`F_OFD_SETLK`) is inherited like `flock`. A lock of the process (`F_SETLK`) is not
//! inherited, but it ends as soon as the process closes any descriptor of the file. It also does
//! not exclude a second writer in the same process. A comparison of process numbers cannot end the
//! lock of a dead process.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fs4::{FileExt, TryLockError};

use crate::replace::open_at_once;

/// The locked files of this process. A thread that opens a lock file holds this list meanwhile, and
/// so does a thread that forks.
static LOCKED: Mutex<Vec<LockedFile>> = Mutex::new(Vec::new());

struct LockedFile {
    number: u64,
    _file: File,
}

/// The time limit of attempts: a process that checks a lock holds it for a moment.
const PATIENCE: Duration = Duration::from_millis(100);

/// A lock on a file, until this value is dropped or the process ends. A child of a fork does not
/// hold it.
#[derive(Debug)]
pub struct FileLock {
    number: u64,
}

impl FileLock {
    /// Locks a file, which is made if it is missing, and writes the process number to it.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] names the process that has the lock. A link, a device, or a
    /// file with anything but a process number is refused: another program made it.
    pub fn acquire(path: &Path) -> io::Result<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        watch_forks();
        let patience = Instant::now() + PATIENCE;
        loop {
            let mut locked = hold_locked();
            let (mut file, holder) = open(path, true)?;
            match FileExt::try_lock(&file) {
                Ok(()) => {
                    // Only people read the process number, so a full disk must not prevent the
                    // lock.
                    let process = std::process::id().to_string();
                    let written = file.set_len(0).and_then(|()| file.rewind());
                    drop(written.and_then(|()| file.write_all(process.as_bytes())));
                    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
                    locked.push(LockedFile {
                        number,
                        _file: file,
                    });
                    return Ok(Self { number });
                }
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) => drop((file, locked)),
            }
            if Instant::now() >= patience {
                let message = format!(
                    "process {holder} has locked {}; give each process its own folder or name",
                    path.display()
                );
                return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
            }
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Whether this file is locked, by this or another process.
    pub fn is_held(path: &Path) -> bool {
        let _no_fork = hold_locked();
        let Ok((file, _)) = open(path, false) else {
            return false;
        };
        matches!(
            FileExt::try_lock_shared(&file),
            Err(TryLockError::WouldBlock)
        )
    }
}

/// Opens a lock file, and reads the process number in it. Does not follow, wait for or overwrite a
/// file that another program put there.
fn open(path: &Path, create: bool) -> io::Result<(File, String)> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(create)
        .create(create)
        .truncate(false);
    let mut file = open_at_once(&mut options, path)?;
    let mut holder = String::new();
    if file.metadata()?.is_file() {
        let most = u64::from(u32::MAX.ilog10()) + 2;
        (&mut file).take(most).read_to_string(&mut holder)?;
        if holder.is_empty() || holder.parse::<u32>().is_ok() {
            return Ok((file, holder));
        }
    }
    let message = format!("{} is no file of a lock; move it away", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidData, message))
}

impl Drop for FileLock {
    fn drop(&mut self) {
        hold_locked().retain(|locked| locked.number != self.number);
    }
}

fn hold_locked() -> MutexGuard<'static, Vec<LockedFile>> {
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
mod forks {
    #![expect(
        unsafe_code,
        reason = "the standard library does not know `pthread_atfork`"
    )]

    use std::cell::Cell;
    use std::ffi::c_int;
    use std::sync::{MutexGuard, Once};

    use super::{LockedFile, hold_locked};

    // SAFETY: as POSIX declares it.
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> c_int;
    }

    thread_local! {
        /// The list, while this thread forks.
        static HELD: Cell<Option<MutexGuard<'static, Vec<LockedFile>>>> = const { Cell::new(None) };
    }

    /// Registers the handlers, once.
    pub(super) fn watch_forks() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handlers neither panic nor unwind, and stay as long as the program.
            let result = unsafe { pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
            // The call fails only without memory; a child then keeps its parent's locks.
            debug_assert_eq!(result, 0);
        });
    }

    extern "C" fn prepare() {
        let locked = hold_locked();
        // A thread that ends may have no place for it; a child then keeps its parent's locks.
        HELD.try_with(|held| held.set(Some(locked))).ok();
    }

    extern "C" fn in_parent() {
        drop(HELD.try_with(Cell::take));
    }

    /// Closes the files, which does not end the parent's locks. The list keeps its memory, because
    /// not every allocator can free memory here.
    extern "C" fn in_child() {
        if let Ok(Some(mut locked)) = HELD.try_with(Cell::take) {
            locked.clear();
        }
    }
}

#[cfg(unix)]
use forks::watch_forks;

/// Does nothing: there is no fork.
#[cfg(not(unix))]
fn watch_forks() {}

#[cfg(test)]
mod tests;
