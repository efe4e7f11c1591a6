use super::*;

#[test]
fn what_is_packed_comes_out_again() {
    let chunk = b"a chunk, a chunk, a chunk, a chunk, a chunk".repeat(10);
    for name in ["none", "lz4", "zstd:1", "zstd:3"] {
        let mut packing = Packing::new(name.parse().unwrap()).unwrap();
        for length in [0, 1, chunk.len()] {
            let (mut packed, mut unpacked) = (Vec::new(), Vec::new());
            let chunk = &chunk[..length];
            let sent = packing.pack(chunk, &mut packed).unwrap().to_vec();
            assert_eq!(packing.unpack(&sent, &mut unpacked).unwrap(), chunk);
            assert!(length < 100 || name == "none" || sent.len() < length);
        }
    }
}
