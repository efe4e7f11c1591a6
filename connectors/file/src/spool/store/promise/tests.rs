use super::*;

#[test]
fn a_torn_promise_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("promised");
    let mut file = PromiseFile::open(&path).unwrap();
    assert_eq!(file.stored(), None);
    let [old, new] = [(99, 7, 1), (100, 70, 12)].map(|(next_chunk, removed, records)| Promise {
        next_chunk,
        removed,
        records,
    });
    file.store(old).unwrap();
    file.store(new).unwrap();
    assert_eq!(PromiseFile::open(&path).unwrap().stored(), Some(new));
    let (old, new) = (old.encode(), new.encode());
    for torn in 1..new.len() {
        let (written, _) = new.split_at(torn);
        let (_, left) = old.split_at(torn);
        let mixed = format!("{written}{left}");
        let is_whole = mixed == new || mixed == old;
        assert_eq!(Promise::decode(&mixed).is_some(), is_whole, "{mixed}");
    }
}
