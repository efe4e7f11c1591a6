use clap::Parser as _;

use super::*;

#[test]
fn every_codec_has_a_row_for_every_chunk_and_compression() {
    let all = Case::all(&Args::parse_from(["codec"]));
    assert_eq!(all.len(), 6 * 4 * 5);
    let some = Args::parse_from(["codec", "--only=avro", "--chunk-records=32"]);
    assert_eq!(Case::all(&some).len(), 4);
}
