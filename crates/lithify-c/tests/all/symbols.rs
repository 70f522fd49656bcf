//! What leaves the shared library: the functions of the header, and nothing of what it is made of.

use crate::compiler::{declared, global_symbols, header, is_there, library, run};
use std::process::Command;

#[test]
fn symbols_are_those_of_the_header() {
    if !is_there("nm") {
        return;
    }
    let (symbols, declared) = (global_symbols(&library(), &["-D"]), declared(&header()));
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
