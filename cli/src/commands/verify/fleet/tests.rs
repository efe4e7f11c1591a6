use clap::{Args as _, FromArgMatches as _};

use super::super::records::{Run, Stream};
use super::super::stand::stand;
use super::*;

const PRODUCER: Life = Life {
    role: Role::Producer,
    number: 0,
    life: 0,
};

/// Gives a fleet without processes to a test.
fn with_fleet(test: impl FnOnce(&mut Fleet<'_>)) {
    let command = VerifyArgs::augment_args(clap::Command::new("verify"));
    let matches = command.try_get_matches_from(["verify", "--to", "file:"]);
    let args = VerifyArgs::from_arg_matches(&matches.unwrap()).unwrap();
    let shutdown = Shutdown::new(Duration::ZERO);
    let stand = stand(&args).unwrap();
    test(&mut Fleet::new(&args, &stand, None, 0, &shutdown));
}

#[test]
#[should_panic(expected = "a process was started before it is used")]
fn an_order_to_a_process_that_was_never_started_is_a_fault() {
    with_fleet(|fleet| fleet.order(Role::Producer, 0, Order::Finish));
}

#[test]
#[should_panic(expected = "a producer makes no record that it was not given")]
fn a_producer_that_makes_more_records_than_it_was_given_is_a_fault() {
    with_fleet(|fleet| {
        let process = Process {
            life: PRODUCER,
            child: Command::new("true").spawn().unwrap(),
            stdin: None,
            given: 1,
            state: State::Ended,
        };
        fleet.processes.insert((Role::Producer, 0), process);
        let run = Run {
            stream: Stream {
                producer: 0,
                life: 0,
                thread: 0,
            },
            first: 0,
            count: 2,
        };
        let (chunk, runs) = (0, vec![run]);
        fleet.oracle.note(PRODUCER, Event::Offered { chunk, runs });
        fleet.close_account((Role::Producer, 0));
    });
}
