use std::time::Duration;

use super::*;
use crate::security::Proof;

fn identity(producer: u128) -> ChunkIdentity {
    ChunkIdentity {
        producer: ProducerId::new(producer),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 1,
        },
        lane: 0,
        sequence: 0,
    }
}

fn connection(name: &str, proof: Proof) -> Arc<Connection> {
    let connection = Connection::new(name.into(), proof, Duration::from_secs(600));
    Arc::new(connection)
}

#[test]
fn a_producer_belongs_to_the_connection_that_sends_it() {
    let (claims, [one, two]) = (
        Claims::default(),
        ["one", "two"].map(|name| connection(name, Proof::None)),
    );
    assert_eq!(claims.claim(identity(1), &one), Ok(()));
    assert_eq!(claims.claim(identity(1), &one), Ok(()));
    assert_eq!(claims.claim(identity(1), &two), Err("one".into()));
    assert_eq!(claims.claim(identity(2), &two), Ok(()));
    // Nothing is read from it at the moment, so the sender is not known to be alive.
    one.note_pause();
    assert_eq!(claims.claim(identity(1), &two), Ok(()));
    one.note_read();
    assert_eq!(claims.claim(identity(1), &one), Err("two".into()));
    claims.release(&two);
    assert_eq!(claims.claim(identity(1), &one), Ok(()));
    one.set_gone();
    assert_eq!(claims.claim(identity(1), &two), Ok(()));
    // A claim that another connection holds now is not released.
    claims.release(&one);
    let other = connection("other", Proof::None);
    assert_eq!(claims.claim(identity(1), &other), Err("two".into()));
}

#[test]
fn the_same_proof_shares_a_producer() {
    let claims = Claims::default();
    let [one, two] = ["one", "two"].map(|name| connection(name, Proof::Token));
    assert_eq!(claims.claim(identity(1), &one), Ok(()));
    assert_eq!(claims.claim(identity(1), &two), Ok(()));
    assert_eq!(claims.claim(identity(1), &one), Ok(()));
    let other = connection("other", Proof::None);
    assert_eq!(claims.claim(identity(1), &other), Err("one".into()));
}

#[test]
fn claims_of_a_connection_are_bounded_and_taken_up_again() {
    let claims = Claims::default();
    let relay = connection("relay", Proof::None);
    for round in 0..2 {
        for producer in 0..1_000 {
            assert_eq!(claims.claim(identity(producer), &relay), Ok(()), "{round}");
        }
    }
    assert_eq!(relay.claimed().len(), MAX_CLAIMS);
    assert_eq!(claims.0.lock().unwrap().len(), MAX_CLAIMS);
    claims.release(&relay);
    assert!(claims.0.lock().unwrap().is_empty());
}
