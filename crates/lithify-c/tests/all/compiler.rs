//! The C compiler of this machine, and the library that was built beside the tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Where this crate is.
pub const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Whether a program is there; says so if it is not.
pub fn is_there(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        eprintln!("skipped: there is no {program}");
    }
    is_there
}

/// The directory that the libraries are in. A test's build makes no library for C, so this one does, in
/// the same target directory: most of it is there already.
pub fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--locked", "--quiet", "--package", "lithify-c"]).current_dir(CRATE);
        build.args((!cfg!(debug_assertions)).then_some("--release"));
        run(&mut build);
        let test = std::env::current_exe().expect("a test has a path");
        test.ancestors().nth(2).expect("target/debug/deps/test").to_owned()
    })
}

/// The shared library.
pub fn library() -> PathBuf {
    let library = libraries().join("liblithify_c.so");
    assert!(library.is_file(), "{} was not built", library.display());
    library
}

/// The text of the header.
pub fn header() -> String {
    let path = Path::new(CRATE).join("include/lithify.h");
    std::fs::read_to_string(path).expect("the header is there")
}

/// The global symbols that a library defines, in order, as `nm` lists them.
pub fn global_symbols(library: &Path, flags: &[&str]) -> Vec<String> {
    let mut nm = Command::new("nm");
    let listed = run(nm.args(["-g", "--defined-only"]).args(flags).arg(library)).stdout;
    let listed = String::from_utf8(listed).expect("symbols are text");
    let mut symbols: Vec<String> =
        listed.lines().filter_map(|line| Some(line.split(' ').nth(2)?.to_owned())).collect();
    symbols.sort_unstable();
    symbols
}

/// The names of functions that a header declares.
pub fn declared(header: &str) -> Vec<String> {
    let name_before = |text: &str| {
        let start = text.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        text[start.map_or(0, |at| at + 1)..].to_owned()
    };
    let code: String =
        header.lines().filter(|line| !line.starts_with([' ', '/', '#', '*'])).collect();
    let names = code.match_indices('(').map(|(at, _)| name_before(&code[..at]));
    let mut names: Vec<String> = names.filter(|name| name.starts_with("lithify_")).collect();
    names.sort();
    names.dedup();
    names
}

/// Runs a command, which must succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Makes a program of a source in C, with the library as users link it; gives its path.
pub fn compile(source: &Path, directory: &Path, extra: &[&str]) -> PathBuf {
    let (program, library) = (directory.join("program"), library());
    for name in ["liblithify.so", "liblithify.so.0"] {
        let link = directory.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(&library, link).expect("a link to the library");
        }
    }
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-pedantic", "-Werror"]);
    cc.args(["-g", "-O1"]).args(extra).arg(format!("-I{CRATE}/include"));
    cc.arg(source).arg("-o").arg(&program).arg("-L").arg(directory).arg("-llithify");
    cc.arg(format!("-Wl,-rpath,{}", directory.display()));
    run(&mut cc);
    program
}
