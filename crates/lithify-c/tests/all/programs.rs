//! Programs in C, plain and under AddressSanitizer with its search for leaks.

use crate::compiler::{CRATE, compile, declared, header, is_there, run};
use std::path::{Path, PathBuf};
use std::process::Command;

fn source(name: &str) -> PathBuf {
    Path::new(CRATE).join("tests/c").join(name)
}

/// Builds a program and runs it in a directory of its own.
fn build_and_run(name: &str, extra: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(&source(name), directory.path(), extra);
    let place = directory.path().join("place");
    std::fs::create_dir(&place).unwrap();
    run(Command::new(program).arg(place).env("ASAN_OPTIONS", "detect_leaks=1"));
}

/// Whether this compiler has AddressSanitizer, and programs with it run here.
fn has_sanitizer() -> bool {
    let directory = tempfile::tempdir().unwrap();
    let (source, program) = (directory.path().join("empty.c"), directory.path().join("empty"));
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let mut cc = Command::new("cc");
    let built = cc.arg("-fsanitize=address").arg(source).arg("-o").arg(&program).output();
    let runs = built.is_ok_and(|built| built.status.success())
        && Command::new(program).output().is_ok_and(|output| output.status.success());
    if !runs {
        eprintln!("skipped: this compiler has no AddressSanitizer that runs here");
    }
    runs
}

#[test]
fn every_function_answers() {
    if is_there("cc") {
        build_and_run("every_function.c", &[]);
    }
}

#[test]
fn every_failure_is_told() {
    if is_there("cc") {
        build_and_run("failures.c", &[]);
    }
}

#[test]
fn programs_are_clean_under_the_address_sanitizer() {
    if is_there("cc") && has_sanitizer() {
        build_and_run("every_function.c", &["-fsanitize=address"]);
        build_and_run("failures.c", &["-fsanitize=address"]);
    }
}

#[test]
fn the_programs_call_every_function() {
    let called = std::fs::read_to_string(source("every_function.c")).unwrap();
    let missing: Vec<_> = declared(&header())
        .into_iter()
        .filter(|name| !called.contains(&format!("{name}(")))
        .collect();
    assert!(missing.is_empty(), "no program calls {missing:?}");
}

#[test]
fn the_header_is_c_and_cpp() {
    let directory = tempfile::tempdir().unwrap();
    for (compiler, language, standard) in
        [("cc", "c", "c99"), ("cc", "c", "c11"), ("c++", "c++", "c++11"), ("c++", "c++", "c++17")]
    {
        if !is_there(compiler) {
            continue;
        }
        let source = directory.path().join("header");
        std::fs::write(&source, "#include <lithify.h>\n").unwrap();
        let mut command = Command::new(compiler);
        command.args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]);
        command.args(["-x", language, &format!("-std={standard}"), &format!("-I{CRATE}/include")]);
        run(command.arg(source));
    }
}
