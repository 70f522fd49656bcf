//! What a family of RocksDB is set to, by the newest file of options in its directory.
//!
//! RocksDB writes all options of all families into `OPTIONS-NUMBER` when it opens, in sections with lines of
//! `name=value`; values in braces are options of their own. An option that is not found is taken to be
//! RocksDB's default, and a codec that is not known here leaves the bottom open.

use std::path::Path;

use lithify_advisor::input::{Compression, Present, Stored};

/// What stands for no effort of one's own.
const USUAL_EFFORT: i32 = 32_767;
const BLOCK_SIZE_BYTES: usize = 4_096;

/// How a family is stored now; `None` without a file of options that can be read.
pub(super) fn present(directory: &Path, family: &str) -> Option<Present> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let number = |name: &str| name.strip_prefix("OPTIONS-")?.parse::<u64>().ok();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let newest = names.filter_map(|name| Some((number(&name)?, name))).max()?.1;
    let text = std::fs::read_to_string(directory.join(newest)).ok()?;
    parse(&text, family)
}

/// The same of the text of such a file.
fn parse(text: &str, family: &str) -> Option<Present> {
    let options = Section::of(text, &format!("CFOptions \"{family}\""))?;
    let table = Section::of(text, &format!("TableOptions/BlockBasedTable \"{family}\""));
    let block_size = table.as_ref().and_then(|table| table.get("block_size")).unwrap_or("4096");
    let compression = options.get("compression").unwrap_or("kSnappyCompression");
    let per_level = options.get("compression_per_level").unwrap_or_default();
    let bottommost = options.get("bottommost_compression").unwrap_or("kDisableCompressionOption");
    let has_own_bottom = bottommost != "kDisableCompressionOption";
    let usual = options.inner("compression_opts");
    let of_bottom = options.inner("bottommost_compression_opts");
    let is_enabled = has_own_bottom && inner(of_bottom, "enabled") == Some("true");
    let bottom_options = if is_enabled { of_bottom } else { usual };
    let levels: Vec<&str> = per_level.split(':').filter(|name| !name.is_empty()).collect();
    let last = levels.last().copied().unwrap_or(compression);
    let bottom = codec(if has_own_bottom { bottommost } else { last }, bottom_options);
    let dictionary = inner(bottom_options, "max_dict_bytes").is_some_and(|bytes| bytes != "0");
    let small = codec(levels.first().copied().unwrap_or(compression), usual);
    let mut settings = format!("compression={compression}");
    let optional = [("compression_per_level", per_level), ("bottommost_compression", bottommost)];
    for (name, value) in optional {
        if !value.is_empty() && value != "kDisableCompressionOption" {
            settings.push_str(&format!(" {name}={value}"));
        }
    }
    settings.push_str(&format!(" block_size={block_size}"));
    Some(Present {
        target: "rocksdb",
        settings,
        bottom: bottom.map(|compression| Stored {
            compression,
            block_size_bytes: block_size.parse().unwrap_or(BLOCK_SIZE_BYTES),
            has_dictionary: dictionary,
        }),
        upper: codec(last, usual).zip(small).map(|(middle, small)| [middle, small]),
        is_set: true,
        found: Vec::new(),
        stored_bytes: 0,
        tables: 0,
        rows_in_log: 0,
    })
}

/// The codec of a name, with the effort of these options.
fn codec(name: &str, options: Option<&str>) -> Option<Compression> {
    let effort = inner(options, "level").and_then(|level| level.parse().ok());
    let effort = effort.filter(|effort: &i32| *effort != USUAL_EFFORT);
    let text = match name {
        "kNoCompression" => "none".to_owned(),
        "kSnappyCompression" => "snappy".to_owned(),
        "kLZ4Compression" => "lz4".to_owned(),
        "kZlibCompression" => format!("zlib-{}", effort.filter(|effort| *effort > 0).unwrap_or(6)),
        "kLZ4HCCompression" => format!("lz4-{}", effort.filter(|effort| *effort > 1).unwrap_or(9)),
        "kZSTD" => format!("zstd-{}", effort.filter(|effort| *effort != 0).unwrap_or(3)),
        _ => return None,
    };
    text.parse().ok()
}

/// An option within braces: `{level=3;enabled=true;}`.
fn inner<'a>(options: Option<&'a str>, name: &str) -> Option<&'a str> {
    let pairs = options?.split(';').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(key, value)| (key.trim(), value.trim()))
        .find(|(key, _)| *key == name)
        .map(|of| of.1)
}

/// The lines of a section.
struct Section<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Section<'a> {
    fn of(text: &'a str, name: &str) -> Option<Section<'a>> {
        let is_it = |line: &str| {
            let head = line.trim().strip_prefix('[').and_then(|line| line.strip_suffix(']'));
            head == Some(name)
        };
        let mut lines = text.lines().skip_while(|line| !is_it(line));
        lines.next()?;
        let lines = lines.take_while(|line| !line.trim_start().starts_with('['));
        let pairs = lines.filter_map(|line| line.split_once('='));
        Some(Section(pairs.map(|(name, value)| (name.trim(), value.trim())).collect()))
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn inner(&self, name: &str) -> Option<&'a str> {
        self.get(name).map(|value| value.trim_start_matches('{').trim_end_matches('}'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(of_family: &str, block_size: usize) -> String {
        format!(
            "# a comment\n[Version]\n  rocksdb_version=11.8.1\n[DBOptions]\n  \
             wal_compression=kNoCompression\n\n[CFOptions \"default\"]\n{of_family}\n  \
             \n[TableOptions/BlockBasedTable \"default\"]\n  verify_compression=false\n  \
             metadata_block_size=4096\n  block_size={block_size}\n[CFOptions \"other\"]\n  \
             compression=kNoCompression\n"
        )
    }

    fn words(present: &Present) -> (String, String) {
        let bottom = present.bottom.map_or_else(String::new, |stored| stored.to_string());
        let upper = present.upper.map(|upper| upper.map(|codec| codec.to_string()).join(","));
        (bottom, upper.unwrap_or_default())
    }

    #[test]
    fn the_bottom_is_what_the_newest_options_say() {
        let of = |family: &str| words(&parse(&file(family, 16_384), "default").unwrap());
        let opts = |of: &str, level: i32, enabled: bool, dictionary: usize| {
            format!(
                "  {of}={{checksum=false;enabled={enabled};max_dict_bytes={dictionary};level={level};}}\n"
            )
        };
        let disabled = "  bottommost_compression=kDisableCompressionOption\n";
        let plain = format!("  compression=kLZ4Compression\n{disabled}");
        assert_eq!(of(&plain), ("lz4 16k".to_owned(), "lz4,lz4".to_owned()));
        let zstd = format!("{}  compression=kZSTD\n", opts("compression_opts", 32_767, false, 0));
        assert_eq!(of(&zstd).0, "zstd-3 16k");
        let both = format!(
            "  compression=kLZ4Compression\n  compression_per_level=kNoCompression:kZSTD\n  \
             bottommost_compression=kZSTD\n{}{}",
            opts("compression_opts", 1, false, 0),
            opts("bottommost_compression_opts", 6, true, 16_384),
        );
        assert_eq!(of(&both), ("zstd-6 16k, dictionary".to_owned(), "zstd-1,none".to_owned()));
        // Not enabled, they are not the bottom's: its effort is that of all levels.
        let unused = both.replace("enabled=true", "enabled=false");
        assert_eq!(of(&unused).0, "zstd-1 16k");
        let last = format!(
            "  compression=kLZ4Compression\n  compression_per_level=kNoCompression:kLZ4HCCompression\n{disabled}"
        );
        assert_eq!(of(&last), ("lz4-9 16k".to_owned(), "lz4-9,none".to_owned()));
        assert_eq!(of("  compression=kBZip2Compression\n"), (String::new(), String::new()));
        let present = parse(&file(&both, 16_384), "default").unwrap();
        assert_eq!(
            present.settings,
            "compression=kLZ4Compression compression_per_level=kNoCompression:kZSTD \
             bottommost_compression=kZSTD block_size=16384"
        );
        assert!(parse(&file(&both, 16_384), "missing").is_none());
        assert_eq!(words(&parse(&file(&both, 8_192), "other").unwrap()).0, "none 4k");
        for text in ["", "[CFOptions \"default\"]", "[CFOptions \"default\"]\n=\n{;=}\nx={={"] {
            let _ = parse(text, "default");
        }
    }
}
