//! Samples of formats in docs/format: annotated hex that tests encode and decode.
//!
//! A line is `offset  bytes in hex  ; field`. With `LITHIFY_REWRITE` set in the environment a
//! test writes the file instead of comparing with it; the difference is to be reviewed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format").join(name)
}

/// Asserts that the sample `name` holds `bytes`, and gives back the bytes in the file. `fields`
/// are the sizes and meanings of the pieces, in order.
pub(crate) fn check(name: &str, bytes: &[u8], fields: &[(usize, &str)]) -> Vec<u8> {
    let mut text = String::new();
    let mut offset = 0;
    for (size, meaning) in fields {
        for (index, line) in bytes[offset..offset + size].chunks(16).enumerate() {
            write!(text, "{:06}  ", offset + 16 * index).unwrap();
            line.iter().for_each(|byte| write!(text, "{byte:02x} ").unwrap());
            let meaning = if index == 0 { meaning } else { "" };
            writeln!(text, "{}; {meaning}", " ".repeat(3 * (16 - line.len()))).unwrap();
        }
        offset += size;
    }
    assert_eq!(offset, bytes.len(), "the fields of {name} cover all of it");
    let text: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    if std::env::var_os("LITHIFY_REWRITE").is_some() {
        std::fs::write(path(name), &text).unwrap();
    }
    let stored = std::fs::read_to_string(path(name)).unwrap();
    assert_eq!(stored, text, "{name}");
    let parse = |line: &str| -> Vec<u8> {
        let hex = line.split_once("  ").unwrap().1.split(';').next().unwrap();
        hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
    };
    stored.lines().flat_map(parse).collect()
}
