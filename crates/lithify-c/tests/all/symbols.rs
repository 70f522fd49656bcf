//! What leaves the shared library: the functions of the header, and nothing of what it is made of.

use crate::compiler::{CRATE, declared, is_there, library, run};
use std::path::Path;
use std::process::Command;

#[test]
fn symbols_are_those_of_the_header() {
    if !is_there("nm") {
        return;
    }
    let listed = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library()));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let mut symbols: Vec<_> = listed.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    symbols.sort_unstable();
    let header = std::fs::read_to_string(Path::new(CRATE).join("include/lithify.h")).unwrap();
    let declared = declared(&header);
    assert!(declared.len() > 100, "only {} functions were found in the header", declared.len());
    assert_eq!(symbols, declared);
}

#[test]
fn the_library_is_named_by_its_interface() {
    if !is_there("readelf") {
        return;
    }
    let listed = run(Command::new("readelf").arg("-d").arg(library()));
    assert!(String::from_utf8(listed.stdout).unwrap().contains("[liblithify.so.0]"));
}
