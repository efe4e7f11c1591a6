//! The bridge over random histories: every slot ends as the patterns say.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use crate::pattern::{Dialect, Rule};
use proptest::prelude::*;

use super::*;
use crate::adaptive::Bridge;
use crate::adaptive::wire::{Command, Decoder, From, Step};

const SIGNATURES: [&str; 6] = [
    "public void shop.Till.open()",
    "public void shop.Till.order(u32)",
    "public void shop.Cart.add(u32)",
    "public void shop.Cart.clear()",
    "public void stock.Store.take(u32)",
    "%CPU",
];

const PATTERNS: [&str; 6] = [
    "*",
    "public void shop..*.*(..)",
    "public void shop.Till.*(..)",
    "public void *.*.*(u32)",
    "public void stock.Store.take(u32)",
    "%CPU.*",
];

const ALL: i32 = feature::PUSH | feature::BATCH | feature::SNAPSHOT;

fn hello(features: i32) -> Hello {
    Hello {
        major: 2,
        minor: 0,
        features,
        max_slots: 1 << 20,
        agent: "app".to_owned(),
    }
}

fn peer(features: i32) -> Peer {
    let address = (Ipv4Addr::LOCALHOST, 1).into();
    Peer::new(hello(features), address, Arc::default()).unwrap()
}

fn change(state: &mut State, lines: &[String]) {
    let (patterns, errors) = PatternList::parse(&lines.join("\n"), Dialect::Strict);
    assert!(errors.is_empty(), "{errors:?}");
    // Half of the verdicts were computed before the lock, as in `Bridge::change`.
    let known = state.signatures();
    let half = known.into_iter().step_by(2);
    let verdicts = half.map(|(it, _)| (Arc::clone(&it), patterns.is_active(&it)));
    let verdicts = verdicts.collect();
    state.change(Arc::new(patterns), &verdicts);
}

/// The messages that come, as commands.
fn messages(state: &mut State, id: PeerId) -> Vec<Command> {
    let mut bytes = Vec::new();
    state.next(id, &mut bytes);
    let mut decoder = Decoder::new(Version::V2, From::Bridge);
    let (mut input, mut commands) = (&bytes[..], Vec::new());
    while !input.is_empty() {
        let taken = match decoder.step(input).unwrap() {
            Step::Command(command, taken) => {
                commands.push(command);
                taken
            }
            Step::Entries(taken) => taken,
            Step::More(_) => panic!("incomplete"),
        };
        input = &input[taken..];
    }
    commands
}

/// A program: its slots, their last verdicts, and its connection, on whose way commands wait.
#[derive(Debug)]
struct Simulated {
    features: i32,
    signatures: Vec<usize>,
    verdicts: Vec<Option<bool>>,
    connection: Option<PeerId>,
    /// Requests that the bridge has not read.
    requests: VecDeque<u32>,
    /// Commands that the program has not read.
    commands: VecDeque<Command>,
    /// Requests that the bridge has read on this connection, and the answers to them that it sent.
    counts: (usize, usize),
}

impl Simulated {
    fn new(features: i32) -> Self {
        Self {
            features,
            signatures: Vec::new(),
            verdicts: Vec::new(),
            connection: None,
            requests: VecDeque::new(),
            commands: VecDeque::new(),
            counts: (0, 0),
        }
    }

    /// The connection ends: everything on its way is lost, also verdicts that the bridge has sent.
    fn disconnect(&mut self, state: &mut State) {
        if let Some(id) = self.connection.take() {
            state.disconnect(id);
        }
        self.requests.clear();
        self.commands.clear();
        self.counts = (0, 0);
    }

    /// Sends all slots again; until the answers come, the last verdicts stay.
    fn connect(&mut self, state: &mut State) {
        self.disconnect(state);
        self.connection = Some(state.connect(peer(self.features)));
        self.requests = (0..).take(self.signatures.len()).collect();
    }

    fn add(&mut self, signature: usize) {
        let slot = u32::try_from(self.signatures.len()).unwrap();
        self.signatures.push(signature);
        self.verdicts.push(None);
        if self.connection.is_some() {
            self.requests.push_back(slot);
        }
    }

    fn text(&self, slot: u32) -> &'static str {
        SIGNATURES[self.signatures[index(slot)]]
    }

    /// The bridge reads the next request. Returns whether there was one.
    fn request(&mut self, state: &mut State) -> bool {
        let (Some(id), Some(slot)) = (self.connection, self.requests.pop_front()) else {
            return false;
        };
        state.request(id, slot, self.text(slot)).unwrap();
        self.counts.0 += 1;
        true
    }

    /// The bridge sends. Returns whether it sent something.
    ///
    /// Each verdict that it sends is that of the patterns in force. So once a change has returned,
    /// nothing that is sent later activates a probe that the change deactivated.
    fn send(&mut self, state: &mut State) -> bool {
        let Some(id) = self.connection else {
            return false;
        };
        assert!(state.peers[&id].pending.len() <= self.signatures.len());
        let unanswered = |state: &State| {
            let slots = state.peers[&id].slots.iter();
            slots.filter(|it| it.sent.is_none()).count()
        };
        let before = unanswered(state);
        let commands = messages(state, id);
        self.counts.1 += before - unanswered(state);
        for command in &commands {
            if let Command::Update { slot, is_active } = command {
                assert_eq!(*is_active, state.patterns.is_active(self.text(*slot)));
            }
        }
        let has_sent = !commands.is_empty();
        self.commands.extend(commands);
        has_sent
    }

    /// The program reads the next command. Returns whether there was one.
    fn read(&mut self) -> bool {
        let command = self.commands.pop_front();
        if let Some(Command::Update { slot, is_active }) = command {
            self.verdicts[index(slot)] = Some(is_active);
        }
        command.is_some()
    }
}

#[derive(Debug, Clone)]
enum Event {
    Add(usize, usize),
    Change(Vec<(bool, usize)>),
    Connect(usize),
    Disconnect(usize),
    Read(usize),
    Request(usize),
    Send(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let program = 0..3_usize;
    prop_oneof![
        4 => (program.clone(), 0..SIGNATURES.len()).prop_map(|(it, of)| Event::Add(it, of)),
        3 => prop::collection::vec((any::<bool>(), 0..PATTERNS.len()), 0..5).prop_map(Event::Change),
        1 => program.clone().prop_map(Event::Connect),
        1 => program.clone().prop_map(Event::Disconnect),
        4 => program.clone().prop_map(Event::Read),
        4 => program.clone().prop_map(Event::Request),
        4 => program.prop_map(Event::Send),
    ]
}

proptest! {
    #[test]
    fn every_slot_ends_as_the_patterns_say(history in prop::collection::vec(event(), 0..120)) {
        let mut state = State::default();
        let features = [ALL, feature::PUSH | feature::BATCH, feature::PUSH];
        let mut programs = features.map(Simulated::new);
        for program in &mut programs {
            program.connect(&mut state);
        }
        for event in history {
            match event {
                Event::Add(program, signature) => programs[program].add(signature),
                Event::Change(rules) => {
                    let line = |(on, it): (bool, usize)| {
                        format!("{} {}", if on { '+' } else { '-' }, PATTERNS[it])
                    };
                    let lines: Vec<_> = rules.into_iter().map(line).collect();
                    change(&mut state, &lines);
                }
                Event::Connect(program) => programs[program].connect(&mut state),
                Event::Disconnect(program) => programs[program].disconnect(&mut state),
                Event::Read(program) => drop(programs[program].read()),
                Event::Request(program) => drop(programs[program].request(&mut state)),
                Event::Send(program) => drop(programs[program].send(&mut state)),
            }
        }
        let patterns = state.patterns();
        for program in &mut programs {
            while program.request(&mut state) || program.send(&mut state) || program.read() {}
            if program.connection.is_none() {
                continue;
            }
            for (slot, verdict) in (0..).zip(&program.verdicts) {
                prop_assert_eq!(*verdict, Some(patterns.is_active(program.text(slot))));
            }
            let (requests, answers) = program.counts;
            prop_assert_eq!(requests, program.signatures.len());
            prop_assert_eq!(requests, answers);
        }
        for program in &mut programs {
            program.disconnect(&mut state);
        }
        prop_assert_eq!(state.known(), 0);
    }
}

proptest! {
    #[test]
    fn patterns_that_are_added_decide_as_the_whole_list(
        rules in prop::collection::vec((any::<bool>(), 0..PATTERNS.len()), 0..20),
    ) {
        let bridge = Bridge::default();
        let address = (Ipv4Addr::LOCALHOST, 1).into();
        let id = bridge.connect(hello(ALL), address, &Arc::default()).unwrap();
        for (slot, signature) in (0..).zip(&SIGNATURES) {
            bridge.request(id, slot, signature).unwrap();
        }
        for (is_active, pattern) in rules {
            let sign = if is_active { '+' } else { '-' };
            let line = format!("{sign} {}", PATTERNS[pattern]);
            bridge.push(Rule::parse(&line, Dialect::Strict).unwrap()).unwrap();
            let patterns = bridge.patterns();
            for (signature, verdict) in &bridge.programs(10_000)[0].signatures {
                prop_assert_eq!(*verdict, patterns.is_active(signature));
            }
        }
    }
}

/// A program with these features and this number of slots, which have been answered.
fn answered(state: &mut State, features: i32, slots: usize) -> PeerId {
    let id = state.connect(peer(features));
    for (slot, signature) in (0..).zip(&SIGNATURES[..slots]) {
        state.request(id, slot, signature).unwrap();
    }
    messages(state, id);
    id
}

#[test]
fn only_the_difference_is_pushed_and_a_change_back_is_nothing() {
    let mut state = State::default();
    let id = answered(&mut state, ALL, 6);
    change(&mut state, &["- public void shop.Till.open()".to_owned()]);
    let off = Command::Update {
        slot: 0,
        is_active: false,
    };
    assert_eq!(messages(&mut state, id), [off]);
    change(&mut state, &["- *".to_owned()]);
    change(&mut state, &["- public void shop.Till.open()".to_owned()]);
    assert_eq!(messages(&mut state, id), []);
}

#[test]
fn a_change_of_most_slots_is_a_snapshot_if_both_ends_know_it() {
    let mut state = State::default();
    let with = answered(&mut state, ALL, 6);
    let without = answered(&mut state, feature::PUSH, 6);
    change(&mut state, &["- *".to_owned()]);
    let commands = messages(&mut state, with);
    assert_eq!(commands[0], Command::Snapshot(1));
    assert_eq!(commands.len(), 7);
    assert_eq!(messages(&mut state, without).len(), 6);
}

#[test]
fn a_program_without_push_is_told_only_what_it_asks() {
    let mut state = State::default();
    let id = answered(&mut state, 0, 1);
    change(&mut state, &["- *".to_owned()]);
    assert_eq!(messages(&mut state, id), []);
    state.request(id, 0, SIGNATURES[0]).unwrap();
    assert_eq!(messages(&mut state, id).len(), 1);
}

#[test]
fn slots_are_dense_bounded_and_keep_their_signature() {
    let mut state = State::default();
    let mut few = hello(ALL);
    few.max_slots = 2;
    let address = (Ipv4Addr::LOCALHOST, 1).into();
    let id = state.connect(Peer::new(few, address, Arc::default()).unwrap());
    let mut code = |slot, text: &str| state.request(id, slot, text).map_err(|it| it.code);
    assert_eq!(code(1, "a"), Err(ErrorCode::NotAllowed));
    assert_eq!(code(0, "a"), Ok(()));
    assert_eq!(code(0, "b"), Err(ErrorCode::NotAllowed));
    assert_eq!(code(0, "a"), Ok(()));
    assert_eq!(code(1, "a"), Ok(()));
    assert_eq!(code(2, "c"), Err(ErrorCode::Limit));
    let long = "x".repeat(wire::MAX_TEXT_BYTES);
    let id = state.connect(peer(ALL));
    let refused = (0..2_000).find_map(|slot| state.request(id, slot, &long).err());
    assert_eq!(refused.unwrap().code, ErrorCode::Limit);
}

#[test]
fn listed_signatures_are_bounded() {
    let mut state = State::default();
    answered(&mut state, ALL, 6);
    answered(&mut state, ALL, 6);
    let shown = |room| -> Vec<_> {
        let programs = state.programs(room).into_iter();
        programs.map(|it| (it.signatures.len(), it.slots)).collect()
    };
    assert_eq!(shown(10_000), [(6, 6), (6, 6)]);
    assert_eq!(shown(1_100), [(6, 6), (1, 6)]);
    assert_eq!(shown(0), [(0, 6), (0, 6)]);
}

#[test]
fn an_older_version_is_refused() {
    let mut old = hello(ALL);
    old.major = 1;
    let address = (Ipv4Addr::LOCALHOST, 1).into();
    let refused = Peer::new(old, address, Arc::default());
    assert_eq!(refused.unwrap_err().code, ErrorCode::Version);
}
