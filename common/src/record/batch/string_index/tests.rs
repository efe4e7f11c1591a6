use super::*;

#[test]
fn equal_strings_have_one_id_however_many_there_are() {
    let (mut index, mut table) = (StringIndex::default(), StringTable::new());
    for round in 0..3 {
        for number in 0..5_000_u32 {
            let string = format!("string {number}");
            let id = index.id(string.as_bytes(), &mut table).unwrap();
            assert_eq!(id, number, "round {round}");
        }
    }
    assert_eq!(table.len(), 5_000);
    assert_eq!(index.ids.len(), 5_000);
}

#[test]
fn interned_and_inline_strings_share_their_ids() {
    let (mut index, mut table) = (StringIndex::default(), StringTable::new());
    let handle = Interned::new("an operation");
    let inline = index.id(b"an operation", &mut table).unwrap();
    for _ in 0..2 {
        assert_eq!(index.interned_id(handle, &mut table), Ok(inline));
    }
    assert_eq!(table.len(), 1);
}

#[test]
fn interned_string_has_another_id_in_another_batch() {
    let (mut index, mut table) = (StringIndex::default(), StringTable::new());
    let [a, b] = ["one operation", "another operation"].map(Interned::new);
    for order in [[a, b], [b, a], [b, a]] {
        for (id, handle) in (0..).zip(order) {
            assert_eq!(index.interned_id(handle, &mut table), Ok(id));
            assert_eq!(table.get(id), Some(handle.as_str()));
        }
        index.clear();
        table.clear();
    }
    // Numbers that start over find nothing of four billion batches ago.
    index.batch = u32::MAX;
    index.clear();
    assert_eq!(index.interned_id(b, &mut table), Ok(0));
}

#[test]
fn number_that_no_string_has_is_refused_and_takes_no_memory() {
    let (mut index, mut table) = (StringIndex::default(), StringTable::new());
    let unknown = Interned::from_number(u32::MAX >> 1);
    let refused = index.interned_id(unknown, &mut table);
    assert_eq!(refused, Err(PushError::Malformed));
    assert!(table.is_empty() && index.interned.is_empty());
}

#[test]
fn a_cleared_index_knows_nothing_and_shrinks_after_an_odd_chunk() {
    let (mut index, mut table) = (StringIndex::default(), StringTable::new());
    for number in 0..10_000_u32 {
        index
            .id(&number.to_le_bytes().map(|byte| byte % 128), &mut table)
            .unwrap();
    }
    let most = index.ids.capacity();
    for _ in 0..20 {
        index.clear();
        table.clear();
        assert_eq!(index.id(b"one", &mut table), Ok(0));
    }
    assert!(most > 5_000 && index.ids.capacity() <= LEAST_ROOM);
}

#[test]
fn what_is_not_utf8_is_refused_and_leaves_nothing_behind() {
    let (mut index, mut table) = (StringIndex::default(), StringTable::new());
    for _ in 0..2 {
        assert_eq!(
            index.id(&[0xff, 0xfe], &mut table),
            Err(PushError::Malformed)
        );
    }
    assert_eq!((table.len(), index.ids.len()), (0, 0));
}

#[test]
fn strings_that_differ_in_length_or_one_byte_differ_in_their_hash() {
    let secret = StringKeys::default().secret;
    let strings: [&[u8]; 9] = [
        b"",
        &[0],
        &[0, 0],
        b"12345678",
        b"12345678\0",
        b"12345679",
        &[0; 16],
        &[0; 17],
        &[0; 32],
    ];
    let hashes: std::collections::HashSet<_> =
        strings.iter().map(|string| hash(string, secret)).collect();
    assert_eq!(hashes.len(), strings.len());
}
