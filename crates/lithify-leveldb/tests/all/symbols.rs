//! What the library exports: LevelDB's functions, one of its own, and nothing else. A codec that leaked
//! would be taken for the host's own.

use crate::leveldb::{NAMES, our_path};
use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn exactly_the_interface_is_exported() {
    let Ok(listed) = Command::new("nm").args(["-D", "--defined-only"]).arg(our_path()).output()
    else {
        println!("skipped: nm is not installed");
        return;
    };
    assert!(listed.status.success());
    let listed = String::from_utf8(listed.stdout).unwrap();
    let exported: BTreeSet<&str> =
        listed.lines().filter_map(|line| line.split_whitespace().last()).collect();
    let mut expected: BTreeSet<&str> = NAMES.iter().copied().collect();
    assert_eq!(expected.len(), 68);
    expected.insert("lithify_leveldb_version");
    assert_eq!(exported, expected);
}

#[test]
fn the_header_declares_exactly_what_is_exported() {
    let header = include_str!("../../include/leveldb/c.h");
    let words = header.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let behind = |name: &str| header.contains(&format!("{name}("));
    let declared: BTreeSet<&str> =
        words.filter(|word| word.starts_with("leveldb_") && behind(word)).collect();
    assert_eq!(declared, NAMES.iter().copied().collect());
}
