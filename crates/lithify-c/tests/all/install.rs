//! The installed files: a program finds header and library by pkg-config, shared and static.

use crate::compiler::{CRATE, declared, global_symbols, header, is_there, libraries, run};
use std::path::Path;
use std::process::Command;

/// The first program of the README, in its own directory.
fn tour() -> String {
    let readme = include_str!("../../README.md");
    let begin = readme.find("```c\n").expect("the README has a program") + "```c\n".len();
    let length = readme[begin..].find("```").expect("it ends");
    readme[begin..begin + length].to_owned()
}

#[test]
fn a_program_is_built_by_pkg_config() {
    if !(is_there("cc") && is_there("pkg-config")) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let mut install = Command::new("sh");
    install
        .arg(Path::new(CRATE).join("install"))
        .env("PREFIX", "/opt/lithify")
        .env("DESTDIR", root);
    run(install.arg(libraries()));
    let lib = root.join("opt/lithify/lib");
    std::fs::write(root.join("tour.c"), tour()).unwrap();
    if is_there("objcopy") {
        assert_eq!(global_symbols(&lib.join("liblithify.a"), &[]), declared(&header()));
    }
    for (kind, flags) in [("shared", &[][..]), ("static", &["--static"][..])] {
        let mut pkg_config = Command::new("pkg-config");
        pkg_config.args(flags).args(["--cflags", "--libs", "lithify"]);
        pkg_config.env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
        let answer = run(pkg_config.env("PKG_CONFIG_SYSROOT_DIR", root)).stdout;
        let answer = String::from_utf8(answer).unwrap();
        let program = root.join(kind);
        let mut cc = Command::new("cc");
        cc.arg(root.join("tour.c")).arg("-o").arg(&program);
        match kind {
            "shared" => cc.args(answer.split_whitespace()),
            // The archive itself, where the shared library would be preferred.
            _ => cc.args(answer.split_whitespace().map(|word| match word {
                "-llithify" => "-l:liblithify.a",
                word => word,
            })),
        };
        run(&mut cc);
        let mut tour = Command::new(&program);
        let said = run(tour.current_dir(root).env("LD_LIBRARY_PATH", &lib));
        assert_eq!(String::from_utf8(said.stdout).unwrap(), "igneous\n");
    }
}
