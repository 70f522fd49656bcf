use crate::ErrorKind;
use crate::codec::Compression;
use crate::compaction::{CodecPolicy, Evidence, FormatPolicy, LevelFormats, TablePlace};

fn resolve(policy: &CodecPolicy, level: usize, level_count: usize) -> Compression {
    let formats = LevelFormats { codecs: *policy, block_size_bytes: 4096 };
    let place = TablePlace { family: None, level, level_count };
    let format = formats.decide(&place, &Evidence::default());
    assert_eq!((format.block_size_bytes, format.dictionary), (4096, None));
    format.compression
}

#[test]
fn every_physical_level_is_printed_resolved() {
    let policy: CodecPolicy = "none, lz4, zlib-6".parse().unwrap();
    assert_eq!(
        policy.table(4, 7),
        "level  place   codec\n\
         L0     L0      none\n\
         L1     small   none  (not in use)\n\
         L2     small   none  (not in use)\n\
         L3     small   none  (not in use)\n\
         L4     small   none\n\
         L5     middle  lz4\n\
         L6     bottom  zlib-6\n"
    );
}

#[test]
fn the_distance_from_the_bottom_counts() {
    let policy = CodecPolicy::default();
    for level_count in 3..=8 {
        assert_eq!(resolve(&policy, level_count - 1, level_count), policy.bottom);
        assert_eq!(resolve(&policy, level_count - 2, level_count), policy.middle);
        assert_eq!(resolve(&policy, 0, level_count), policy.level0);
    }
    // Level 0 has its own even where it is next to the bottom.
    assert_eq!(resolve(&policy, 0, 2), policy.level0);
    assert_eq!(resolve(&policy, 1, 2), policy.bottom);
}

#[test]
fn the_text_form_is_read_back() {
    for text in ["none,lz4,zstd-1", "snappy,zstd--3,zlib-9", "lz4,lz4,lz4", "none,lz4,lz4,zlib-6"] {
        let policy: CodecPolicy = text.parse().unwrap();
        assert_eq!(policy.to_string(), text);
    }
    assert_eq!("lz4".parse::<CodecPolicy>().unwrap(), CodecPolicy::uniform(Compression::LZ4));
}

#[test]
fn level_0_may_have_a_codec_of_its_own() {
    let policy: CodecPolicy = "none,lz4,lz4,zstd-1".parse().unwrap();
    let resolved = |policy: &CodecPolicy| -> Vec<String> {
        (0..5).map(|level| resolve(policy, level, 5).to_string()).collect()
    };
    assert_eq!(resolved(&policy), ["none", "lz4", "lz4", "lz4", "zstd-1"]);
    assert!(policy.table(1, 5).starts_with("level  place   codec\nL0     L0      none\nL1"));
    // Without one it is a small level.
    let three: CodecPolicy = "none,lz4,zstd-1".parse().unwrap();
    assert_eq!(resolved(&three), ["none", "none", "none", "lz4", "zstd-1"]);
    let same: CodecPolicy = "none,none,lz4,zstd-1".parse().unwrap();
    assert_eq!((same, same.to_string()), (three, "none,lz4,zstd-1".to_owned()));
}

#[test]
fn what_is_no_policy_is_refused() {
    for text in ["", "lz4,lz4", "none,lz4,lz4,zstd-1,zstd-1", "none,,lz4", "none,lz4,brotli-3"] {
        let error = text.parse::<CodecPolicy>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
    }
}
