use baler_common::container::Compression;
use clap::{CommandFactory as _, Parser as _};

use super::*;

#[test]
fn flags_are_consistent() {
    Args::command().debug_assert();
    let args = Args::parse_from(["codec", "--only=postcard", "--compression=lz4,zstd:19"]);
    assert_eq!(args.only, [Codec::Postcard]);
    let zstd = Compression::Zstd { level: 19 };
    assert_eq!(args.compression, [Compression::Lz4, zstd]);
    for wrong in ["--chunk-records=0", "--compression=gzip"] {
        assert!(Args::try_parse_from(["codec", wrong]).is_err(), "{wrong}");
    }
}
