use super::*;

#[test]
fn a_process_that_holds_more_shows_more() {
    let pid = std::process::id();
    let before = Footprint::of(pid).unwrap();
    let files: Vec<_> = (0..50)
        .map(|_| fs::File::open("/proc/self/stat").unwrap())
        .collect();
    let memory = vec![1_u8; 64 << 20];
    let after = Footprint::of(pid).unwrap();
    assert!(after.descriptors >= before.descriptors + 50, "{after:?}");
    assert!(
        after.resident_bytes >= before.resident_bytes + (60 << 20),
        "{before:?} {after:?}"
    );
    drop((files, memory));
    Footprint::of(u32::MAX).unwrap_err();
}
