//! One case: a program that asks a bridge over a connection on this machine.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_connector_kieker::adaptive::Bridge;
use baler_connector_kieker::adaptive::wire::{
    self, Command, Decoder, From, Hello, MAJOR, Step, Version, feature,
};
use baler_connector_kieker::pattern::{Dialect, PatternList, Rule};
use baler_connector_kieker::{KiekerTcpConfig, KiekerTcpReader};
use baler_rig::statistics::Distribution;
use serde::{Deserialize, Serialize};

use crate::Failure;

/// The number of single answers, and of changes of each kind. The median counts.
const ANSWERS: u32 = 200;
const CHANGES: u32 = 20;

/// The time limit of each answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The case of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Patterns of the bridge.
    pub patterns: u32,
    /// Probes of the program.
    pub probes: u32,
}

/// One repetition, in microseconds; [`super::Row`] explains the figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Sample {
    pub(super) verdict_us: f64,
    pub(super) answer_us: f64,
    pub(super) update_us: f64,
    pub(super) replace_us: f64,
}

pub(super) fn measure(case: &Case) -> Result<Sample, Failure> {
    let bridge = Arc::new(Bridge::new(patterns(case.patterns, "+")?));
    let reader =
        KiekerTcpReader::bind_with(KiekerTcpConfig::new("127.0.0.1", 0), Arc::clone(&bridge));
    let reader = reader.map_err(Failure::cannot("listen"))?;
    let mut program = Program::connect(reader.local_addr().port())?;
    let signatures: Vec<String> = (0..case.probes + ANSWERS).map(signature).collect();
    let (first, others) = signatures.split_at(case.probes as usize);

    let requests = (0..).zip(first.iter().map(String::as_str));
    let requests: Vec<(u32, &str)> = requests.collect();
    let all = program.timed(first.len(), |out| {
        wire::push_batch_request(requests.iter().copied(), out);
    })?;

    let mut answers = Vec::new();
    for (slot, signature) in (case.probes..).zip(others) {
        answers.push(program.timed(1, |out| {
            wire::push_request(Version::V2, slot, signature, out);
        })?);
    }

    let mut changed =
        |change: &mut dyn FnMut(&'static str) -> Result<(), Failure>| -> Result<f64, Failure> {
            let mut times = Vec::new();
            for number in 0..CHANGES {
                let begin = Instant::now();
                change(if number % 2 == 0 { "-" } else { "+" })?;
                program.verdicts(signatures.len())?;
                times.push(micros(begin));
            }
            Ok(median(times))
        };
    let update_us = changed(&mut |sign| {
        let pushed = bridge.push(rule(&format!("{sign} com.shop..*"))?);
        pushed.map(drop).map_err(Failure::cannot("add a pattern"))
    })?;
    let replace_us = changed(&mut |sign| {
        bridge.set_patterns(patterns(case.patterns, sign)?);
        Ok(())
    })?;
    Ok(Sample {
        verdict_us: all / f64::from(case.probes),
        answer_us: median(answers),
        update_us,
        replace_us,
    })
}

/// Patterns of which the last one alone matches, so that all are tried.
fn patterns(count: u32, sign: &str) -> Result<PatternList, Failure> {
    let mut list = PatternList::default();
    let mut push = |line: &str| {
        list.push(rule(line)?)
            .map_err(Failure::cannot("add a pattern"))
    };
    push(&format!("{sign} com.shop..*"))?;
    for number in 1..count {
        push(&format!("- public void com.other{number}.*.operation(..)"))?;
    }
    Ok(list)
}

fn rule(line: &str) -> Result<Rule, Failure> {
    Rule::parse(line, Dialect::default()).map_err(Failure::cannot("read a pattern"))
}

fn signature(number: u32) -> String {
    let (package, class) = (number / 100, number / 10 % 10);
    format!(
        "public void com.shop.module{package}.Class{class}.operation{number}(int, java.lang.String)"
    )
}

fn micros(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e6
}

fn median(times: Vec<f64>) -> f64 {
    Distribution::of(times).quantile(0.5).unwrap_or(f64::NAN)
}

/// The end that has the probes.
struct Program {
    stream: TcpStream,
    decoder: Decoder,
    input: Vec<u8>,
}

impl Program {
    fn connect(port: u16) -> Result<Self, Failure> {
        let failed = Failure::cannot("connect");
        let stream = TcpStream::connect(("127.0.0.1", port)).map_err(&failed)?;
        stream.set_nodelay(true).map_err(&failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(&failed)?;
        let mut program = Self {
            stream,
            decoder: Decoder::new(Version::V2, From::Bridge),
            input: Vec::new(),
        };
        let hello = Hello {
            major: MAJOR,
            minor: 0,
            features: feature::PUSH | feature::BATCH | feature::SNAPSHOT,
            max_slots: 1 << 20,
            agent: "verdicts".to_owned(),
        };
        program.timed(0, |out| wire::push_hello(&hello, out))?;
        Ok(program)
    }

    /// Sends, and returns the microseconds until this number of verdicts is there.
    fn timed(&mut self, verdicts: usize, push: impl FnOnce(&mut Vec<u8>)) -> Result<f64, Failure> {
        let mut out = Vec::new();
        push(&mut out);
        let begin = Instant::now();
        self.stream
            .write_all(&out)
            .map_err(Failure::cannot("send"))?;
        self.verdicts(verdicts)?;
        Ok(micros(begin))
    }

    fn verdicts(&mut self, mut left: usize) -> Result<(), Failure> {
        let mut buffer = [0; 1 << 16];
        let mut taken = 0;
        while left > 0 {
            let step = self.decoder.step(&self.input[taken..]);
            match step.map_err(Failure::cannot("decode"))? {
                Step::Command(command, bytes) => {
                    taken += bytes;
                    left -= usize::from(matches!(command, Command::Update { .. }));
                }
                Step::Entries(bytes) => taken += bytes,
                Step::More(_) => {
                    self.input.drain(..taken);
                    taken = 0;
                    let read = self.stream.read(&mut buffer);
                    let read = read.map_err(Failure::cannot("receive"))?;
                    if read == 0 {
                        return Err(Failure::new("the bridge has closed the connection"));
                    }
                    self.input.extend_from_slice(&buffer[..read]);
                }
            }
        }
        self.input.drain(..taken);
        Ok(())
    }
}
