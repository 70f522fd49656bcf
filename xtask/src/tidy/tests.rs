//! Every rule finds its fault, and nothing in what is right.

use super::*;

const HEADER: &str = "//! A room.\n";

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), bytes: text.as_bytes().to_vec(), executable: false }
}

/// A tree with the scripts that must be there, and `files`.
fn tree(files: Vec<File>) -> Tree {
    let scripts = ["run", "test", ".ci/run"];
    let mut all: Vec<File> =
        scripts.iter().map(|path| File { executable: true, ..file(path, "#!/bin/sh\n") }).collect();
    all.extend(files);
    Tree { files: all }
}

/// Complaints about one Rust file, header added, as `line: what`.
fn complaints(path: &str, text: &str) -> Vec<String> {
    let tree = tree(vec![file(path, &format!("{HEADER}{text}"))]);
    check(&tree).iter().map(|c| format!("{}: {}", c.line, c.what)).collect()
}

#[track_caller]
fn one(path: &str, text: &str, expected: &str) {
    let found = complaints(path, text);
    assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:#?}");
}

#[track_caller]
fn none(path: &str, text: &str) {
    let found = complaints(path, text);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn rooms_import_from_lower_floors_only() {
    let table = "crates/lithify/src/table/block.rs";
    none(table, "use crate::base::Level;\nuse crate::{Error, Slice, codec::CodecId};\n");
    one(table, "use crate::manifest::Version;\n", "2: table (floor 3) imports manifest (floor 4)");
    one(table, "use crate::wal::Segment;\n", "table (floor 3) imports wal (floor 3)");
    one(table, "use crate::{base, db::Db};\n", "imports db");
    one(table, "fn f() -> crate::iter::Merge { g() }\n", "imports iter");
    one(table, "use crate::Db;\n", "imports Db");
    one(table, "use super::super::manifest;\n", "imports manifest");
    none(table, "use super::manifest;\n");
    one("crates/lithify/src/table/mod.rs", "use super::manifest;\n", "imports manifest");
    none("crates/lithify/src/table/mod.rs", "use crate::table::block;\n");
    one(table, "#[cfg(test)]\nmod tests { use crate::db::Db; }\n", "imports db");
    none(table, "// crate::db is above\nconst TEXT: &str = \"crate::db::Db\";\n");
    one("crates/lithify/src/attic/mod.rs", "", "the room attic has no floor");
    none("crates/lithify/src/db/mod.rs", "use crate::Db;\nuse crate::options::Options;\n");
    one("crates/lithify/src/base/mod.rs", "use crate::format::Varint;\n", "imports format");
    none("crates/lithify-lab/src/lib.rs", "use crate::db::Db;\n");
}

#[test]
fn floors_are_the_same_wherever_they_are_told() {
    let wal = "crates/lithify/src/wal/mod.rs";
    let headed = |text: &str| {
        let tree = tree(vec![file(wal, text)]);
        check(&tree).into_iter().map(|c| c.what).collect::<Vec<_>>()
    };
    assert_eq!(headed("//! Floor 3: the log.\n"), Vec::<String>::new());
    assert_eq!(headed("//! Floor 4: the log.\n"), ["the room wal is on floor 3"]);
    let page =
        "| floor | room | owns |\n|---|---|---|\n| 3 | `wal`, `table` | |\n| 1 | `attic` | |\n";
    let tree = tree(vec![file(wal, HEADER), file("ARCHITECTURE.md", page)]);
    let found: Vec<_> =
        check(&tree).into_iter().map(|c| format!("{}: {}", c.line, c.what)).collect();
    let has = |text: &str| found.iter().any(|complaint| complaint.contains(text));
    assert!(has("4: the room attic is not on floor 1"), "{found:#?}");
    assert!(has("lacks the room db") && has("a floor to table, which does not exist"));
    assert!(!has("room wal") && !has("to wal"), "{found:#?}");
}

#[test]
fn rooms_of_the_laboratory_import_from_lower_floors_only() {
    let run = "crates/lithify-lab/src/run/cell.rs";
    none(run, "use crate::meter::{Meter, machine::Machine};\nuse crate::run::store;\n");
    one(run, "use crate::{adapter, html::page};\n", "run imports html, which is not below it");
    one(run, "fn f() -> crate::kind::NoJob { g() }\n", "run imports kind");
    none(run, "#[cfg(test)]\nmod tests { use crate::records::AnyRecord; }\n");
    one("crates/lithify-lab/src/attic.rs", "", "this room has no floor");
}

#[test]
fn circles_of_files_stay_small() {
    let circle = |size: usize| {
        let of = |index: usize| {
            let path = format!("crates/lithify-lab/src/run/m{index}.rs");
            let next = (index + 1) % size;
            file(&path, &format!("{HEADER}use crate::run::m{next}::Thing as Other;\n"))
        };
        check(&tree((0..size).map(of).collect())).len()
    };
    assert_eq!((circle(8), circle(9)), (0, 1));
    let children = |size: usize| {
        let child = |index: usize| {
            let path = format!("crates/lithify-lab/src/run/m{index}.rs");
            file(&path, &format!("{HEADER}use crate::run::Thing;\n"))
        };
        let uses: String = (1..size).map(|index| format!("use m{index}::Thing as _;\n")).collect();
        let own = file("crates/lithify-lab/src/run/mod.rs", &format!("{HEADER}{uses}"));
        check(&tree((1..size).map(child).chain([own]).collect())).len()
    };
    assert_eq!((children(8), children(9)), (0, 1), "a module and its own children");
}

#[test]
fn the_table_of_floors_is_that_of_the_check() {
    let table = tree(vec![file("ARCHITECTURE.md", "| 0 | `random` | numbers |\n")]);
    let mut found = check(&table);
    found.retain(|complaint| complaint.what.contains("the laboratory's floors"));
    assert_eq!(found.len(), lab::FLOORS.len() - 1, "{found:#?}");
}

#[test]
fn only_fs_touches_the_system() {
    let wal = "crates/lithify/src/wal/mod.rs";
    one(wal, "use std::fs::File;\n", "2: std::fs outside of the fs room");
    one(wal, "use std::{fs, io};\n", "std::fs");
    one(wal, "fn f() { std::thread::spawn(g); }\n", "std::thread");
    one(wal, "use std::time::Instant;\n", "std::time");
    none(wal, "use std::time::Duration;\nuse std::{fmt, io};\n");
    none(wal, "#[cfg(test)]\nmod tests {\n    use std::thread;\n}\n");
    one(wal, "#[cfg(test)]\nmod tests {\n}\nuse std::thread;\n", "5: std::thread");
    one(wal, "#[cfg(target_os = \"linux\")]\nfn f() {}\n", "2: target_os outside of the fs room");
    one(wal, "use rustix::mm::mmap;\n", "rustix");
    none(wal, "#[cfg(target_arch = \"x86_64\")]\nfn f() {}\n");
    none("crates/lithify/src/fs/system.rs", "use std::fs::File;\nuse rustix::mm::mmap;\n");
    none("crates/lithify-lab/src/lib.rs", "use std::fs::File;\n");
}

#[test]
fn results_are_not_unwrapped_without_a_reason() {
    let wal = "crates/lithify/src/wal/mod.rs";
    one(wal, "fn f() {\n    g().unwrap();\n}\n", "3: .unwrap() without // INVARIANT:");
    one(wal, "fn f() {\n    g().expect(\"x\");\n}\n", "3: .expect( without");
    none(wal, "fn f() {\n    // INVARIANT: g checked it.\n    g().unwrap();\n}\n");
    none(
        wal,
        "fn f() {\n    // INVARIANT: so.\n    let a = g()\n        .h()\n        .unwrap();\n}\n",
    );
    one(
        wal,
        "fn f() {\n    // INVARIANT: so.\n    let a = h();\n    g().unwrap();\n}\n",
        "5: .unwrap()",
    );
    none(wal, "#[test]\nfn f() {}\n#[cfg(test)]\nmod tests {\n    fn f() { g().unwrap(); }\n}\n");
    none(wal, "#[expect(dead_code)]\nfn f() { g().unwrap_or(1); }\n");
    none("crates/lithify/src/wal/tests.rs", "fn f() { g().unwrap(); }\n");
    none("crates/lithify-lab/src/lib.rs", "fn f() { g().unwrap(); }\n");
}

#[test]
fn modules_under_cfg_test_are_tests() {
    let parent = file("crates/lithify/src/wal/mod.rs", "//! W.\n#[cfg(test)]\nmod torture;\n");
    let text = "//! T.\nfn f() { g().unwrap(); }\n";
    let child = file("crates/lithify/src/wal/torture.rs", text);
    assert_eq!(check(&tree(vec![parent, child])), []);
    let child = file("crates/lithify/src/wal/torture.rs", text);
    assert_eq!(check(&tree(vec![child])).len(), 1);
}

#[test]
fn unsafe_code_is_listed_and_proved() {
    let arena = "crates/lithify/src/memtable/arena.rs";
    one("crates/lithify/src/wal/mod.rs", "fn f() { unsafe { g() } }\n", "not listed");
    one(arena, "fn f() { unsafe { g() } }\n", "without // SAFETY:");
    none(arena, "fn f() {\n    // SAFETY: g is fine.\n    unsafe { g() }\n}\n");
    none(arena, "#![expect(unsafe_code, reason = \"raw memory\")]\n");
    none(arena, "unsafe extern \"C\" {\n    fn g();\n}\n");
    none(arena, "struct F {\n    pub f: unsafe extern \"C\" fn(u8),\n}\n");
    one(arena, "unsafe impl Send for F {}\n", "without // SAFETY:");
    none(arena, "/// # Safety\n/// x lives.\nunsafe fn f() {}\n");
}

#[test]
fn nothing_is_left_over() {
    let path = "crates/lithify-lab/src/lib.rs";
    one(path, &format!("fn f() {{ {}!() }}\n", "todo"), "todo! is left over");
    one(path, &format!("fn f() {{ {}!(1) }}\n", "dbg"), "dbg! is left over");
    one(path, "// let a = 1;\n", "commented-out");
    one(path, "// f(x);\n", "commented-out");
    one(path, "// if x {\n", "commented-out");
    one(path, "// #[test]\n", "commented-out");
    none(path, "// First this; then that (so it is);\n// what else?\n/// let a = 1;\nfn f() {}\n");
}

#[test]
fn files_and_functions_stay_small() {
    let path = "crates/lithify-lab/src/lib.rs";
    let function = |lines: usize| format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
    none(path, &function(70));
    one(path, &function(71), "2: f has 71 lines; at most 70");
    none(path, &format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(100)));
    none(path, &"const A: u8 = 1;\n".repeat(799));
    one(path, &"const A: u8 = 1;\n".repeat(800), "801 lines");
    none("crates/lithify-lab/src/tests.rs", &"const A: u8 = 1;\n".repeat(900));
    none(path, "trait T {\n    fn f(a: [u8; 4]);\n}\n");
}

#[test]
fn the_house_is_in_order() {
    let about = |files: Vec<File>| {
        check(&tree(files)).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert!(about(vec![file("crates/a/src/lib.rs", "fn f() {}\n")]).contains("//! header"));
    assert_eq!(about(vec![file("crates/a/src/tests.rs", "fn f() {}\n")]), "");
    assert!(about(vec![file("crates/a/src/utils.rs", HEADER)]).contains("utils says nothing"));
    assert!(about(vec![file("helpers/a.md", "")]).contains("helpers says nothing"));
    let word = ["see /wor", "k/notes"].concat();
    assert!(about(vec![file("README.md", &word)]).starts_with("README.md:1: "));
    let sized = |path: &str, bytes: usize| File { bytes: vec![0u8; bytes], ..file(path, "") };
    for (path, bytes_max) in [
        ("picture.png", 204_800),
        ("results/run.json", 204_800),
        ("results/run.json.zst", 204_800),
        ("results/run.txt", 262_144),
        ("results/run.csv", 262_144),
    ] {
        assert_eq!(about(vec![sized(path, bytes_max)]), "");
        let part = format!("{path}: {} bytes; at most {bytes_max}", bytes_max + 1);
        assert!(about(vec![sized(path, bytes_max + 1)]).starts_with(&part), "{part}");
    }
    let results = |bytes: usize| {
        let whole = (0..29).map(|number| sized(&format!("results/{number}.json.zst"), 200_000));
        about(whole.chain([sized("results/last.json.zst", bytes)]).collect())
    };
    assert_eq!(results(200_000), "");
    assert!(results(200_001).starts_with("results/: 6000001 bytes in all; at most 6000000"));
    assert_eq!(about(vec![file("README.md", "a fine page\n")]), "");
    let bare = Tree { files: vec![file("run", "")] };
    let text: Vec<String> = check(&bare).iter().map(ToString::to_string).collect();
    assert_eq!(text, [".ci/run: is missing", "run: cannot be executed", "test: is missing"]);
}

#[test]
fn literals_and_comments_are_not_code() {
    let path = "crates/lithify/src/wal/mod.rs";
    none(path, "const A: &str = r#\"x.unwrap() \" unsafe\"#;\nconst B: char = '\"';\n");
    none(path, "/* unsafe /* nested */ x.unwrap() */\nfn f<'a>(x: &'a str) -> char { '\\'' }\n");
    none(path, "const A: &[u8] = b\"\\\" .unwrap()\";\n");
    one(path, "const B: char = '\"';\nfn f() { g().unwrap() }\n", "3: .unwrap()");
    one(path, "fn f<'a>(x: &'a str) { g('\\u{1F600}').unwrap() }\n", "2: .unwrap()");
}

#[test]
fn what_tools_of_python_leave_is_no_source() {
    for name in ["__pycache__", ".mypy_cache", "_lithify.abi3.so"] {
        assert!(super::is_left_by_python(name), "{name}");
    }
    for name in ["python", "_lithify.pyi", "so", "tests"] {
        assert!(!super::is_left_by_python(name), "{name}");
    }
}

#[test]
fn the_repository_itself_is_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("has a parent");
    let tree = Tree::read(root).expect("reads");
    assert!(tree.files.iter().any(|file| file.path == "xtask/src/main.rs"));
    assert!(tree.files.iter().all(|file| !file.path.starts_with("target/")));
}

#[test]
fn nothing_turns_planted_defects_on() {
    let found = |path: &str, line: &str| {
        let text = format!("[features]\n{line}\n");
        check(&tree(vec![file(path, &text)])).len()
    };
    assert_eq!(found("crates/lithify/Cargo.toml", "planted-defects = []"), 0);
    assert_eq!(found("crates/lithify/Cargo.toml", "default = [\"planted-defects\"]"), 1);
    let turned_on = "lithify = { workspace = true, features = [\"planted-defects\"] }";
    for path in ["crates/lithify-sim/Cargo.toml", "crates/lithify-cli/Cargo.toml", "Cargo.toml"] {
        assert_eq!(found(path, turned_on), 1, "{path}");
    }
}

#[test]
fn a_planted_defect_is_a_statement_of_its_own() {
    let found = |line: &str| {
        let text = format!("//! A room.\n\nfn f() {{\n    {line}\n}}\n");
        check(&tree(vec![file("crates/lithify/src/wal/writer.rs", &text)])).len()
    };
    assert_eq!(found("if planted!(EditUnsynced) { return; }"), 0);
    assert_eq!(found("if !planted!(EditUnsynced) { sync(); }"), 0);
    assert_eq!(found("let synced = is_due && !planted!(EditUnsynced);"), 1);
}
