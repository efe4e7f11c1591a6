use baler_common::transport::Origin;

use super::*;

#[test]
fn a_full_folder_discards_what_comes_unless_it_has_a_limit_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin {
        endpoint: "tcp://10.0.0.1:1".into(),
        lane: "a".into(),
        position: 1,
    };
    for (discards_when_full, results) in [(true, [true; 4]), (false, [true, true, false, false])] {
        let path = folder.path().join(discards_when_full.to_string());
        let folder = QuarantineFolder::new(&path).with_most_chunks(2);
        let state = QuarantineState {
            inner: Some(Box::new(folder)),
            discards_when_full,
            full_since: None,
            reasons: Reasons::default(),
        };
        let mut shared = SharedQuarantine {
            state: Arc::new(Mutex::new(state)),
            keeps_sound: false,
        };
        let poison = || Poison {
            bytes: b"x",
            origin: &origin,
            meta: None,
            is_sound: false,
            peer: None,
            reason: "it is wrong",
        };
        let put = results.map(|_| shared.put_aside(poison()).is_ok());
        assert_eq!(put, results);
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 4);
        // A chunk that another consumer may process is never discarded.
        let sound = Poison {
            is_sound: true,
            ..poison()
        };
        assert!(shared.put_aside(sound).is_err());
    }
}

#[test]
fn a_relay_without_a_quarantine_discards_no_sound_chunk() {
    let aside = shared(&QuarantineArgs::default(), Duration::ZERO).unwrap();
    let origin = Origin {
        endpoint: "null:".into(),
        lane: "a".into(),
        position: 1,
    };
    for is_sound in [false, true] {
        let poison = Poison {
            bytes: b"x",
            origin: &origin,
            meta: None,
            is_sound,
            peer: None,
            reason: "it is wrong",
        };
        assert!(aside.clone().put_aside(poison).is_ok());
        let mut relays = aside.clone().keeping_sound_chunks();
        assert_eq!(relays.put_aside(poison).is_ok(), !is_sound);
    }
}

fn tell(reasons: &mut Reasons, endpoint: &str, reason: &str) {
    let origin = Origin {
        endpoint: endpoint.into(),
        lane: "a".into(),
        position: 1,
    };
    reasons.tell(&Poison {
        bytes: b"x",
        origin: &origin,
        meta: None,
        is_sound: false,
        peer: None,
        reason,
    });
}

#[test]
fn reasons_are_told_apart_by_peer_and_kind_and_bounded() {
    let mut reasons = Reasons::default();
    for port in 1_000..1_100 {
        let reason = format!("byte {port}: the length {port} is wrong");
        tell(&mut reasons, &format!("tcp://10.0.0.1:{port}"), &reason);
    }
    tell(
        &mut reasons,
        "tcp://10.0.0.2:1",
        "byte 5: the length 5 is wrong",
    );
    tell(&mut reasons, "tcp://10.0.0.2:2", "the magic is wrong");
    let mut counts: Vec<_> = reasons.counts.values().map(|it| it.1).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 100]);
    for host in 0..1_000 {
        tell(&mut reasons, &format!("kafka://h:9092/topic-{host}"), "no");
    }
    assert_eq!(reasons.counts.len(), Reasons::MAX);
    let told: u64 = reasons.counts.values().map(|it| it.1).sum();
    assert_eq!(told + reasons.others, 1_102);
}
