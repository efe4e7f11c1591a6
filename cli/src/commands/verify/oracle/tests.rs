//! Every kind of violation is reported and counted, and nothing else is.

use super::*;

const PRODUCER: Life = producer(0);
const READER: Life = reader(0);

const fn producer(life: u16) -> Life {
    Life {
        role: Role::Producer,
        number: 0,
        life,
    }
}

const fn reader(number: u16) -> Life {
    Life {
        role: Role::Consumer,
        number,
        life: 0,
    }
}

fn stream(life: u16) -> Stream {
    Stream {
        producer: 0,
        life,
        thread: 0,
    }
}

fn run(first: u64, count: u64) -> Vec<Run> {
    vec![Run {
        stream: stream(0),
        first,
        count,
    }]
}

fn processed(first: u64, count: u64, redelivered: bool) -> Event {
    Event::Processed {
        chunk: None,
        redelivered,
        runs: run(first, count),
        altered: 0,
    }
}

/// Returns an oracle with ten chunks of ten records, offered and acknowledged.
fn sent() -> Oracle {
    let mut oracle = Oracle::default();
    for sequence in 0..10 {
        let (chunk, runs) = (sequence, run(sequence * 10, 10));
        oracle.note(PRODUCER, Event::Offered { chunk, runs });
        let spooled = false;
        oracle.note(PRODUCER, Event::Acknowledged { chunk, spooled });
    }
    let account = ProducerAccount {
        emitted: 100,
        delivered: 100,
        ..ProducerAccount::default()
    };
    let issued = 100;
    oracle.note(PRODUCER, Event::Produced { issued, account });
    oracle
}

fn deliver(oracle: &mut Oracle, number: u16, chunks: impl IntoIterator<Item = u64>) {
    for chunk in chunks {
        oracle.note(reader(number), processed(chunk * 10, 10, false));
    }
}

/// Asserts that only this is wrong.
fn assert_only(findings: &Findings, wrong: &str) {
    let counts = [
        ("missing", findings.missing),
        ("spurious", findings.spurious),
        ("altered", findings.altered),
        ("within", findings.duplicates_within_reader),
        ("out_of_order", findings.out_of_order),
        ("quarantine", findings.quarantine_errors),
        ("conserved", u64::from(!findings.conserved)),
    ];
    for (name, count) in counts {
        assert_eq!(count > 0, name == wrong, "{name}: {findings:?}");
    }
    assert_eq!(findings.held(), wrong.is_empty());
    assert_eq!(findings.violations.is_empty(), wrong.is_empty());
}

#[test]
fn what_was_kept_is_held() {
    let mut oracle = sent();
    assert!(!oracle.is_complete());
    deliver(&mut oracle, 0, 0..10);
    assert!(oracle.is_complete());
    let findings = oracle.judge(true);
    assert_only(&findings, "");
    assert_eq!((findings.acknowledged, findings.delivered), (100, 100));
}

#[test]
fn a_record_that_never_came_is_missing() {
    let mut oracle = sent();
    deliver(&mut oracle, 0, 0..9);
    oracle.note(READER, processed(90, 9, false));
    let findings = oracle.judge(true);
    assert_only(&findings, "missing");
    assert_eq!(findings.missing, 1);
    assert!(findings.violations[0].contains("[99]"), "{findings:?}");
}

#[test]
fn what_nobody_issued_is_spurious() {
    let mut oracle = sent();
    deliver(&mut oracle, 0, 0..10);
    oracle.note(READER, processed(100, 3, false));
    let other = Event::Processed {
        chunk: None,
        redelivered: false,
        runs: vec![Run {
            stream: stream(9),
            first: 0,
            count: 1,
        }],
        altered: 0,
    };
    oracle.note(READER, other);
    let findings = oracle.judge(true);
    assert_only(&findings, "spurious");
    assert_eq!(findings.spurious, 4);
}

#[test]
fn what_was_only_offered_is_neither_missing_nor_spurious() {
    let mut oracle = sent();
    for sequence in [10, 11] {
        let event = Event::Offered {
            chunk: sequence,
            runs: run(sequence * 10, 10),
        };
        oracle.note(producer(1), event);
    }
    deliver(&mut oracle, 0, 0..11);
    let findings = oracle.judge(true);
    assert_only(&findings, "");
    assert_eq!(findings.in_doubt, 20);
    assert_eq!(findings.offered, 120);
}

#[test]
fn another_content_is_an_alteration() {
    let mut oracle = sent();
    deliver(&mut oracle, 0, 0..10);
    let event = Event::Processed {
        chunk: None,
        redelivered: false,
        runs: Vec::new(),
        altered: 1,
    };
    oracle.note(READER, event);
    assert_only(&oracle.judge(true), "altered");
}

#[test]
fn a_copy_within_a_reader_is_told_from_one_across_readers() {
    let mut oracle = sent();
    deliver(&mut oracle, 0, 0..10);
    deliver(&mut oracle, 1, 3..5);
    let findings = oracle.judge(true);
    assert_only(&findings, "");
    assert_eq!(findings.duplicates_across_readers, 20);
    deliver(&mut oracle, 1, 4..5);
    let findings = oracle.judge(true);
    assert_only(&findings, "within");
    assert_eq!(
        (
            findings.duplicates_within_reader,
            findings.duplicates_across_readers
        ),
        (10, 20)
    );
}

#[test]
fn an_earlier_record_after_a_later_one_is_out_of_order_unless_it_was_redelivered() {
    let mut oracle = sent();
    deliver(&mut oracle, 0, [0, 1, 2, 4]);
    oracle.note(READER, processed(30, 10, true));
    deliver(&mut oracle, 0, [5, 6, 7]);
    assert_only(
        &{
            let mut oracle = oracle.judge(true);
            oracle.missing = 0;
            oracle.violations.clear();
            oracle
        },
        "",
    );
    deliver(&mut oracle, 0, [9, 8]);
    let findings = oracle.judge(true);
    assert_only(&findings, "out_of_order");
    assert_eq!(findings.out_of_order, 10);
    let unpromised = oracle.judge(false);
    assert!(unpromised.held() && unpromised.violations.is_empty());
    assert_eq!(unpromised.out_of_order, 10);
}

#[test]
fn copy_that_a_reader_meets_first_in_the_middle_is_in_order() {
    let mut oracle = sent();
    deliver(&mut oracle, 0, 0..10);
    // Another reader gets a copy of a later chunk first; not every medium marks it as repeated.
    deliver(&mut oracle, 1, [5, 3, 4]);
    assert_only(&oracle.judge(true), "");
}

#[test]
fn reader_without_a_broker_is_cut_off_and_one_with_chunks_left_is_not_at_its_end() {
    let mut oracle = sent();
    for (lacks, is_cut_off, is_at_end) in [
        ("broker", true, false),
        ("partitions", true, false),
        ("queue", true, false),
        ("chunks", false, false),
        ("sender", false, true),
        ("", false, true),
    ] {
        let what = lacks.to_owned();
        oracle.note(READER, Event::WaitsFor { what });
        let seen = (oracle.is_cut_off(), oracle.is_at_end());
        assert_eq!(seen, (is_cut_off, is_at_end), "{lacks}");
    }
    let what = "broker".to_owned();
    oracle.note(READER, Event::WaitsFor { what });
    oracle.ended(READER);
    assert!(!oracle.is_cut_off() && oracle.is_at_end());
}

#[test]
fn life_has_arrived_when_its_own_records_have_and_not_when_others_have() {
    let mut oracle = sent();
    let (chunk, life) = (10, producer(1));
    let fresh = || {
        vec![Run {
            stream: stream(1),
            first: 0,
            count: 1,
        }]
    };
    let runs = fresh();
    oracle.note(life, Event::Offered { chunk, runs });
    assert!(!oracle.has_arrived(life), "nothing is acknowledged");
    let spooled = false;
    oracle.note(life, Event::Acknowledged { chunk, spooled });
    let moved = oracle.moved();
    // Late records of the first life.
    deliver(&mut oracle, 0, 0..10);
    assert_eq!(oracle.moved(), moved + 10);
    assert!(oracle.has_arrived(PRODUCER) && !oracle.has_arrived(life));
    let event = Event::Processed {
        chunk: None,
        redelivered: false,
        runs: fresh(),
        altered: 0,
    };
    oracle.note(READER, event);
    assert!(oracle.has_arrived(life));
}

#[test]
fn accounts_that_do_not_add_up_are_told() {
    for (emitted, delivered, dropped) in [(101, 100, 0), (100, 99, 1), (100, 100, 1)] {
        let mut oracle = sent();
        deliver(&mut oracle, 0, 0..10);
        let account = ProducerAccount {
            emitted,
            delivered,
            dropped: [("Refused".to_owned(), dropped)].into(),
            ..ProducerAccount::default()
        };
        let issued = emitted;
        oracle.note(PRODUCER, Event::Produced { issued, account });
        assert_only(&oracle.judge(true), "conserved");
    }
}

#[test]
fn foreign_bytes_must_be_put_aside_as_they_were() {
    let mut oracle = sent();
    deliver(&mut oracle, 0, 0..10);
    let bytes = crate::commands::verify::records::foreign_bytes(5, 1);
    let event = Event::Poisoned {
        bytes: bytes.clone(),
    };
    oracle.note(PRODUCER, event);
    assert!(!oracle.is_complete());
    assert_only(&oracle.judge(true), "quarantine");
    let aside = |bytes: &[u8]| Event::Quarantined {
        bytes: bytes.into(),
    };
    oracle.note(READER, aside(&bytes));
    assert!(oracle.is_complete());
    assert_only(&oracle.judge(true), "");
    let mut other = bytes;
    *other.last_mut().unwrap() ^= 1;
    for damage in [Vec::new(), other] {
        oracle.note(READER, aside(&damage));
        assert_only(&oracle.judge(true), "quarantine");
        oracle.expect_damage(damage);
        assert_only(&oracle.judge(true), "");
    }
}
