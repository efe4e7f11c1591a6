//! The end that has the probes: the slots that it sent, the verdicts on them, its answers. No I/O.

use std::sync::Arc;

use baler_common::transport::Probes;
use bytes::{Buf as _, BytesMut};

use super::error::ErrorCode;
use super::wire::{self, Command, Decoder, From, Hello, MAX_SLOTS, Step, Version, feature};

/// The commands of a program in one connection.
#[derive(Debug)]
pub(crate) struct ProgramEnd {
    probes: Arc<dyn Probes>,
    decoder: Decoder,
    /// The beginning of a command whose end has not come.
    input: BytesMut,
    /// The most slots that both ends allow; `None` before the bridge's Hello.
    max_slots: Option<usize>,
    /// Slots whose signature was sent.
    slots: usize,
    /// Answers that are due. Of several of a kind the last one is sent.
    pong: Option<i64>,
    unknown_slot: Option<u32>,
}

impl ProgramEnd {
    pub(crate) fn new(probes: Arc<dyn Probes>) -> Self {
        Self {
            probes,
            decoder: Decoder::new(Version::V2, From::Bridge),
            input: BytesMut::new(),
            max_slots: None,
            slots: 0,
            pong: None,
            unknown_slot: None,
        }
    }

    /// Appends the beginning.
    pub(crate) fn push_hello(&self, out: &mut Vec<u8>) {
        let hello = Hello {
            major: wire::MAJOR,
            minor: 0,
            features: feature::PUSH | feature::BATCH | feature::SNAPSHOT | feature::FRAMED,
            max_slots: MAX_SLOTS.cast_signed(),
            agent: self.probes.application().to_owned(),
        };
        wire::push_hello(&hello, out);
    }

    /// Whether the bridge has answered the Hello.
    pub(crate) const fn is_greeted(&self) -> bool {
        self.max_slots.is_some()
    }

    /// Takes received bytes, and switches the probes that they judge.
    ///
    /// # Errors
    ///
    /// The connection must end. Verdicts before the wrong command count.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), Box<str>> {
        self.input.extend_from_slice(bytes);
        let mut verdicts = Vec::new();
        let result = loop {
            match self.decoder.step(&self.input) {
                Ok(Step::More(_)) => break Ok(()),
                Ok(Step::Entries(bytes)) => self.input.advance(bytes),
                Ok(Step::Command(command, bytes)) => {
                    self.input.advance(bytes);
                    if let Err(reason) = self.command(command, &mut verdicts) {
                        break Err(reason);
                    }
                }
                Err(error) => break Err(error.to_string().into()),
            }
        };
        if !verdicts.is_empty() {
            self.probes.switch(&verdicts);
        }
        result
    }

    fn command(
        &mut self,
        command: Command,
        verdicts: &mut Vec<(usize, bool)>,
    ) -> Result<(), Box<str>> {
        match command {
            Command::Error { code, text, .. } if code != ErrorCode::UnknownSlot as i32 => {
                return Err(format!("the other end reports error {code}: {text}").into());
            }
            Command::Bye(_) => return Err("the other end has ended the connection".into()),
            Command::Hello(hello) if self.max_slots.is_none() => {
                if hello.major != wire::MAJOR {
                    let version = hello.major;
                    return Err(format!("the other end has version {version} of it").into());
                }
                let allowed = hello.max_slots.clamp(0, MAX_SLOTS.cast_signed());
                self.max_slots = Some(allowed.unsigned_abs() as usize);
            }
            Command::Hello(_) => return Err("a second Hello came".into()),
            _ if self.max_slots.is_none() => return Err("a command came before a Hello".into()),
            Command::Update { slot, is_active } => match usize::try_from(slot) {
                Ok(slot) if slot < self.slots => verdicts.push((slot, is_active)),
                _ => self.unknown_slot = Some(slot),
            },
            Command::Ping(nonce) => self.pong = Some(nonce),
            // Its entries follow. Nothing follows from the others, and a bridge sends no requests.
            Command::Snapshot(_)
            | Command::Error { .. }
            | Command::Framed(_)
            | Command::Pong(_)
            | Command::Request { .. }
            | Command::Stats(_) => {}
        }
        Ok(())
    }

    /// Appends due answers, and the signatures of new probes.
    pub(crate) fn push_commands(&mut self, out: &mut Vec<u8>) {
        if let Some(nonce) = self.pong.take() {
            wire::push_pong(nonce, out);
        }
        if let Some(slot) = self.unknown_slot.take() {
            let text = "no probe has this slot";
            wire::push_error(ErrorCode::UnknownSlot, Some(slot), text, out);
        }
        if let Some(max_slots) = self.max_slots.filter(|most| *most > self.slots) {
            let signatures = self.probes.signatures(self.slots);
            let slots = (0..MAX_SLOTS).take(max_slots).skip(self.slots);
            for (slot, signature) in slots.zip(signatures) {
                wire::push_request(Version::V2, slot, signature, out);
                self.slots += 1;
            }
        }
    }
}
