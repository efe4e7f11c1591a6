use baler_common::transport::Origin;

use super::*;

fn origin() -> Origin {
    Origin {
        endpoint: "tcp://somewhere:1".into(),
        lane: "peer-7".into(),
        position: 42,
    }
}

#[test]
fn bytes_and_reason_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut quarantine = QuarantineFolder::new(folder.path().join("poison"));
    let origin = origin();
    for bytes in [b"one".as_slice(), b"two"] {
        let poison = Poison {
            bytes,
            origin: &origin,
            meta: None,
            reason: "it is wrong",
            is_sound: false,
            peer: None,
        };
        quarantine.put_aside(poison).unwrap();
    }
    let mut files: Vec<PathBuf> = fs::read_dir(folder.path().join("poison"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let extensions: Vec<_> = files
        .iter()
        .map(|path| path.extension().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(extensions, ["chunk", "json", "chunk", "json"]);
    assert_eq!(fs::read(&files[0]).unwrap(), b"one");
    let json: serde_json::Value = serde_json::from_slice(&fs::read(&files[1]).unwrap()).unwrap();
    assert_eq!(json["reason"], "it is wrong");
    assert_eq!(json["lane"], "peer-7");
    assert_eq!(json["position"], 42);
}

#[test]
fn a_full_folder_keeps_the_oldest_and_refuses_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("poison");
    let origin = origin();
    let poison = |bytes| Poison {
        bytes,
        origin: &origin,
        meta: None,
        reason: "it is wrong",
        is_sound: false,
        peer: None,
    };
    let mut quarantine = QuarantineFolder::new(&path).limited_to(2_000);
    quarantine.put_aside(poison(&[1; 1_000])).unwrap();
    let error = quarantine.put_aside(poison(&[2; 1_000])).unwrap_err();
    assert!(error.to_string().contains("limit of 2000"), "{error}");
    quarantine.put_aside(poison(&[3; 100])).unwrap();
    let mut few = QuarantineFolder::new(&path).with_most_chunks(3);
    few.put_aside(poison(&[5; 10])).unwrap();
    let error = few.put_aside(poison(&[6; 10])).unwrap_err();
    assert!(error.to_string().contains("limit of 3 chunks"), "{error}");
    // Earlier files count as well.
    let mut other = QuarantineFolder::new(&path).limited_to(2_000);
    assert!(other.put_aside(poison(&[4; 1_000])).is_err());
    assert_eq!(fs::read_dir(&path).unwrap().count(), 6);
}

#[test]
fn a_group_is_kept_and_chunks_without_room_are_refused_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let origin = origin();
    let chunks: Vec<Vec<u8>> = (0..40).map(|chunk| vec![chunk; 1_000]).collect();
    let group: Vec<Poison<'_>> = chunks
        .iter()
        .map(|bytes| Poison {
            bytes,
            origin: &origin,
            meta: None,
            reason: "it is wrong",
            is_sound: false,
            peer: None,
        })
        .collect();
    let mut quarantine = QuarantineFolder::new(folder.path()).limited_to(30_000);
    let results = quarantine.put_group_aside(&group);
    let kept = results.iter().filter(|it| it.is_ok()).count();
    assert!((20..30).contains(&kept), "{kept}");
    assert!(results.iter().skip(kept).all(Result::is_err));
    let mut found: Vec<Vec<u8>> = Vec::new();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "chunk") {
            assert!(path.with_extension("json").exists());
            found.push(fs::read(path).unwrap());
        }
    }
    found.sort();
    assert_eq!(found, chunks[..kept]);
    // No file of a refused chunk is left.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), kept * 2);
}

#[test]
fn connections_of_one_peer_and_kind_are_one_example_and_a_count() {
    let folder = tempfile::tempdir().unwrap();
    let origin = origin();
    let put = |quarantine: &mut QuarantineFolder, peer: [u8; 4], reason: &str| {
        let poison = Poison {
            bytes: reason.as_bytes(),
            origin: &origin,
            meta: None,
            reason,
            is_sound: false,
            peer: Some(peer.into()),
        };
        quarantine.put_aside(poison).unwrap()
    };
    let repeated = PutAside::Counted(NotKept::Repeated);
    let mut quarantine = QuarantineFolder::new(folder.path());
    for number in 0..1_000_u64 {
        let reason = format!("byte {number} is wrong");
        let expected = if number == 0 {
            PutAside::Kept
        } else {
            repeated
        };
        assert_eq!(put(&mut quarantine, [10, 0, 0, 1], &reason), expected);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    // Many peers share one example beyond the limit.
    for peer in 0..200 {
        put(&mut quarantine, [10, 0, 1, peer], "the magic is wrong");
    }
    drop(quarantine);
    let (mut counts, mut shared) = (Vec::new(), 0);
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "json") {
            let json: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            counts.push(json["count"].as_u64().unwrap_or(1));
            shared += usize::from(json["reason"].as_str().unwrap().contains("all further"));
        }
    }
    assert_eq!(counts.len(), MAX_EXAMPLES + 1);
    assert_eq!(counts.iter().sum::<u64>(), 1_200);
    assert_eq!((counts.iter().max(), shared), (Some(&1_000), 1));
}

#[test]
fn an_example_that_was_taken_out_is_kept_again() {
    let folder = tempfile::tempdir().unwrap();
    let origin = origin();
    let mut quarantine = QuarantineFolder::new(folder.path());
    for _ in 0..2 {
        let poison = Poison {
            bytes: b"x",
            origin: &origin,
            meta: None,
            reason: "it is wrong",
            is_sound: false,
            peer: Some([10, 0, 0, 1].into()),
        };
        assert_eq!(quarantine.put_aside(poison).unwrap(), PutAside::Kept);
        for entry in fs::read_dir(folder.path()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }
    drop(quarantine);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
