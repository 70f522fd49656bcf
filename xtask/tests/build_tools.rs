//! The scripts that call cargo say in one line what is missing, before they build.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every script that a user starts and that calls cargo.
const SCRIPTS: [&str; 6] = [
    "run",
    "test",
    ".ci/run",
    "bindings/kafka-streams/test",
    "bindings/python/test",
    "crates/lithify-leveldb/test",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A directory of programs: `dirname`, without which no script finds its place, and so many that do nothing.
fn programs(name: &str, nothing: &[&str]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let find =
        |name: &str| std::env::split_paths(&path).map(|at| at.join(name)).find(|at| at.exists());
    symlink(find("dirname").unwrap(), directory.join("dirname")).unwrap();
    let idle = find("true").unwrap();
    nothing.iter().for_each(|name| symlink(&idle, directory.join(name)).unwrap());
    directory
}

/// Exit code and standard error of a script that finds only these programs.
fn run(script: &str, programs: &Path, compiler: Option<&str>) -> (Option<i32>, String) {
    let mut command = Command::new(repository().join(script));
    command.env("PATH", programs).env_remove("CC");
    if let Some(compiler) = compiler {
        command.env("CC", compiler);
    }
    let output = command.output().unwrap();
    assert!(output.stdout.is_empty(), "{script}: {output:?}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_missing_compiler_is_one_line_before_anything_is_built() {
    let only_cargo = programs("only-cargo", &["cargo"]);
    let wanted = "error: not installed: the C compiler cc (for example gcc or clang)\n";
    for script in SCRIPTS {
        let ended = run(script, &only_cargo, None);
        assert_eq!(ended, (Some(2), wanted.to_owned()), "{script}");
    }
    let (code, error) = run("test", &only_cargo, Some("ccache clang"));
    let named = "error: not installed: the C compiler ccache clang (for example gcc or clang)\n";
    assert_eq!((code, error.as_str()), (Some(2), named));
}

#[test]
fn what_to_install_is_that_of_the_system() {
    for (manager, install) in [
        ("apt-get", "apt-get install build-essential"),
        ("dnf", "dnf install gcc"),
        ("apk", "apk add build-base"),
        ("pacman", "pacman -S gcc"),
        ("zypper", "zypper install gcc"),
        ("xcode-select", "xcode-select --install"),
    ] {
        let programs = programs(manager, &[manager]);
        let (code, error) = run("test", &programs, None);
        let wanted = format!(
            "error: not installed: cargo (see https://rustup.rs) and the C compiler cc ({install})\n"
        );
        assert_eq!((code, error), (Some(2), wanted));
    }
}

/// With both the script goes on: to a cargo that does nothing here.
#[test]
fn with_cargo_and_a_compiler_it_goes_on() {
    let programs = programs("cargo-and-clang", &["cargo", "clang"]);
    assert_eq!(run("test", &programs, Some("clang")), (Some(0), String::new()));
}
