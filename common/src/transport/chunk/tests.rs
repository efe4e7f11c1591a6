use super::*;

#[test]
fn identity_survives_its_bytes_and_its_text() {
    let identity = ChunkIdentity {
        producer: ProducerId::new(0x0123_4567_89ab_cdef_0011_2233_4455_6677),
        epoch: Epoch {
            start_unix_ns: 1_700_000_000_000_000_000,
            random: 0xdead_beef,
        },
        lane: 7,
        sequence: u64::MAX - 1,
    };
    assert_eq!(
        ChunkIdentity::from_bytes(&identity.to_bytes()),
        Some(identity)
    );
    assert_eq!(identity.to_string().parse(), Ok(identity));
    for wrong in ["", "1/2-3/4", "1/2-3/4/5/6", "x/2-3/4/5", "1/2/4/5"] {
        assert_eq!(wrong.parse::<ChunkIdentity>(), Err(ParseIdentityError));
    }
}
