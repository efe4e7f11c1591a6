//! The known writers of Kieker, within limits, and the file of their strings.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use baler_common::record::Catalog;
use baler_common::transport::{Delivery, Failure, Token};

use super::registry_file::RegistryFile;
use super::sender::{Broken, Finished, Sender};
use crate::container::{KiekerStream, TimeUnit};

/// The most writers whose strings are kept.
const MAX_SENDERS: usize = 1_024;

/// The most memory for strings and incomplete records of all writers, in bytes. Above it the reader
/// forgets the writers that were silent for longest.
const MAX_MEMORY: usize = 256 << 20;

/// The most bytes of the file. Above it the reader writes the file again, with the known strings. They
/// take twice their memory at most.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// This id in the file says that the writer was forgotten.
const FORGOTTEN: i32 = -1;

/// The writers by the numbers of their registries.
#[derive(Debug)]
pub(super) struct Senders {
    catalog: Arc<Catalog>,
    /// The unit of the times of all writers, whatever their metadata records say.
    time_unit: Option<TimeUnit>,
    senders: HashMap<i64, Sender>,
    /// The memory of all of them, in bytes.
    memory: usize,
    /// The number of messages so far, which dates the last message of each writer.
    messages: u64,
    file: RegistryFile,
    max_memory: usize,
    max_file_bytes: u64,
}

/// The result of a message.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Messages with only strings, which can be settled.
    pub(super) settled: Vec<Token>,
    /// The invalid message, if it is one.
    pub(super) broken: Option<Broken>,
}

impl Senders {
    /// Opens the file, and reads the strings of the last writers.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or another reader has it.
    pub(super) fn open(
        path: &Path,
        catalog: Arc<Catalog>,
        time_unit: Option<TimeUnit>,
    ) -> Result<Self, Failure> {
        Self::with_limits(path, catalog, time_unit, (MAX_MEMORY, MAX_FILE_BYTES))
    }

    fn with_limits(
        path: &Path,
        catalog: Arc<Catalog>,
        time_unit: Option<TimeUnit>,
        (max_memory, max_file_bytes): (usize, u64),
    ) -> Result<Self, Failure> {
        let mut this = Self {
            catalog,
            time_unit,
            senders: HashMap::new(),
            memory: 0,
            messages: 0,
            file: RegistryFile::open(path)?,
            max_memory,
            max_file_bytes,
        };
        let strings = this.file.strings()?;
        let (mut is_smaller, mut last) = (false, None);
        for string in strings {
            let (registry, id, text) = string?;
            if id == FORGOTTEN {
                is_smaller = true;
                this.forget(registry);
                continue;
            }
            // The file has the strings of a message before the writers that were forgotten for it.
            if last.replace(registry) != Some(registry) {
                is_smaller |= !this.forget_idle().is_empty();
            }
            let restored = this.with(registry, |sender| sender.stream.restore(id, &text));
            restored.map_err(|error| this.file.wrong(&error.to_string()))?;
        }
        is_smaller |= !this.forget_idle().is_empty();
        if is_smaller {
            this.write_anew()?;
        }
        Ok(this)
    }

    /// How many writers are known.
    pub(super) fn len(&self) -> usize {
        self.senders.len()
    }

    /// Takes a message apart. Full chunks go to `ready`.
    ///
    /// # Errors
    ///
    /// The strings cannot be written to the file.
    pub(super) fn take(
        &mut self,
        message: &Delivery,
        ready: &mut VecDeque<Finished>,
    ) -> Result<Taken, Failure> {
        let id = match KiekerStream::registry_of(&message.bytes) {
            Some(id) => id,
            None => match self.within_a_record() {
                Ok(id) => id,
                Err(why) => {
                    let broken = Broken::of(message, why);
                    return Ok(Taken {
                        broken: Some(broken),
                        ..Taken::default()
                    });
                }
            },
        };
        let taken = self.with(id, |sender| {
            let broken = sender.take(message, ready).err();
            (broken, sender.stream.take_new_strings())
        });
        let (broken, new) = taken;
        let mut taken = Taken {
            broken,
            ..Taken::default()
        };
        let mut is_full = !self.file.add(id, &new, self.max_file_bytes)?;
        let mut forgotten = self.forget_idle();
        if self.is_too_large() {
            taken.settled = self.flush(ready);
            forgotten.extend(self.forget_idle());
        }
        if self.is_too_large() && self.senders.contains_key(&id) {
            // Other strings are part of records.
            let why = "the strings and incomplete records of all writers are above the limit";
            let broken = self.with(id, |sender| sender.break_off(why));
            taken.broken.get_or_insert(broken);
            forgotten.extend(self.forget_idle());
        }
        for id in forgotten {
            let line = [(FORGOTTEN, Arc::from(""))];
            is_full |= !self.file.add(id, &line, self.max_file_bytes)?;
        }
        if is_full {
            self.write_anew()?;
        }
        Ok(taken)
    }

    /// Makes chunks of the records so far. Returns the messages with only strings.
    pub(super) fn flush(&mut self, ready: &mut VecDeque<Finished>) -> Vec<Token> {
        let mut settled = Vec::new();
        self.memory = 0;
        for sender in self.senders.values_mut() {
            settled.extend(sender.flush(ready));
            self.memory += sender.memory();
        }
        settled
    }

    /// Forgets the unsettled messages after a lost connection. They come again.
    pub(super) fn forget_unsettled(&mut self) {
        self.memory = 0;
        for sender in self.senders.values_mut() {
            sender.forget_unsettled();
            self.memory += sender.memory();
        }
    }

    /// Forces the strings to the disk.
    pub(super) fn sync(&mut self) -> Result<(), Failure> {
        self.file.sync()
    }

    /// The writer whose record is continued by a message without a writer.
    fn within_a_record(&self) -> Result<i64, &'static str> {
        let mut senders = self.senders.values().filter(|it| it.is_within_a_record());
        match (senders.next(), senders.next()) {
            (Some(sender), None) => Ok(sender.id),
            (None, _) => Err(
                "the message goes on with a record whose beginning is missing; is this the only \
                 reader of the queue?",
            ),
            (Some(_), Some(_)) => Err(
                "several writers are within a record, and the message does not say whose it goes \
                 on with; give each writer a queue",
            ),
        }
    }

    /// Changes the writer of this number, and updates the memory of all writers.
    fn with<T>(&mut self, id: i64, change: impl FnOnce(&mut Sender) -> T) -> T {
        self.messages += 1;
        let sender = self.senders.entry(id).or_insert_with(|| {
            let sender = Sender::new(id, Arc::clone(&self.catalog), self.time_unit);
            self.memory += sender.memory();
            sender
        });
        sender.last_message = self.messages;
        self.memory -= sender.memory();
        let changed = change(sender);
        self.memory += sender.memory();
        changed
    }

    fn is_too_large(&self) -> bool {
        self.senders.len() > MAX_SENDERS || self.memory > self.max_memory
    }

    /// Forgets the writers that were silent for longest while there are too many. Returns them.
    fn forget_idle(&mut self) -> Vec<i64> {
        let mut forgotten = Vec::new();
        while self.is_too_large() {
            let idle = self.senders.values().filter(|it| it.is_idle());
            let Some(oldest) = idle.min_by_key(|it| it.last_message).map(|it| it.id) else {
                break;
            };
            self.forget(oldest);
            forgotten.push(oldest);
        }
        forgotten
    }

    fn forget(&mut self, id: i64) {
        if let Some(forgotten) = self.senders.remove(&id) {
            self.memory -= forgotten.memory();
        }
    }

    /// The known strings, each with the number of its registry.
    pub(super) fn strings(&self) -> impl Iterator<Item = (i64, i32, &str)> {
        strings(&self.senders)
    }

    /// Writes the file again, with the known strings.
    fn write_anew(&mut self) -> Result<(), Failure> {
        self.file.replace(strings(&self.senders))
    }
}

/// The strings of these writers. The strings of the writer that sent last come last.
fn strings(senders: &HashMap<i64, Sender>) -> impl Iterator<Item = (i64, i32, &str)> {
    let mut senders: Vec<_> = senders.values().collect();
    senders.sort_by_key(|it| it.last_message);
    senders.into_iter().flat_map(|sender| {
        let strings = sender.stream.strings();
        strings.map(|(id, text)| (sender.id, id, text))
    })
}

#[cfg(test)]
mod tests;
