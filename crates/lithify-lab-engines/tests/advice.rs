//! Every text that the advisor prints is taken by the database that it is for, where that is here, and
//! means what it says.

mod harness;

use harness::present;
use lithify_advisor::target;
use lithify_advisor::targets::{Advised, Basis, Setting, Target};
use lithify_lab_engines::{cassandra, mariadb, rocksdb, wiredtiger};

/// Every setting of a target with its text.
fn texts(name: &str) -> Vec<(Setting, Vec<String>)> {
    let target: Target = target(name).expect("is known");
    let settings = (target.settings)();
    let text = |setting: &Setting| {
        // The codec of the bottom stands for upper levels too, so that each is tried there.
        let upper = [setting.compression; 2];
        let basis = Basis { data_bytes: 50e9, database_bytes: 50e9, ..Basis::default() };
        (target.snippet)(&Advised { setting, upper, basis })
    };
    settings.iter().map(|setting| (setting.clone(), text(setting))).collect()
}

fn expect(kept: &str, part: &str, text: &str) {
    assert!(kept.contains(part), "{text}: no {part} in\n{kept}");
}

#[test]
fn rocksdb_takes_every_text() {
    if present("rocksdb").is_none() {
        return;
    }
    for (setting, lines) in texts("rocksdb") {
        let directory = tempfile::tempdir().expect("a directory");
        let kept = rocksdb::understood(&lines[0], directory.path())
            .unwrap_or_else(|error| panic!("{}: {error}", lines[0]));
        expect(&kept, &format!("block_size={}", setting.size_bytes), &lines[0]);
        let bottom = lines[0].split("bottommost_compression=").nth(1).expect("has one");
        let bottom = bottom.split(';').next().expect("ends");
        expect(&kept, &format!("bottommost_compression={bottom}"), &lines[0]);
        let options =
            kept.lines().find(|line| line.trim().starts_with("bottommost_compression_opts"));
        let options = options.expect("is written");
        if lines[0].contains("bottommost_compression_opts") {
            expect(options, &format!("level={};", setting.compression.effort), &lines[0]);
            expect(options, "enabled=true", &lines[0]);
            expect(options, &format!("max_dict_bytes={};", setting.dictionary_bytes), &lines[0]);
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    let refused = rocksdb::understood("compression=zstd;", directory.path());
    assert!(refused.is_err(), "the judge can refuse");
}

#[test]
fn wiredtiger_takes_every_text() {
    if present("wiredtiger").is_none() {
        return;
    }
    for (setting, lines) in texts("wiredtiger") {
        let directory = tempfile::tempdir().expect("a directory");
        let kept = wiredtiger::understood(&lines[0], directory.path())
            .unwrap_or_else(|error| panic!("{}: {error}", lines[0]));
        // It keeps the text as it was given, and nothing for "none".
        expect(&kept, &format!("leaf_page_max={}KB", setting.size_bytes >> 10), &lines[0]);
        let codec = setting.compression.codec.name();
        expect(&kept, &format!("block_compressor={codec}"), &lines[0]);
    }
    let directory = tempfile::tempdir().expect("a directory");
    assert!(wiredtiger::understood("block_compressor=oak", directory.path()).is_err());
}

#[test]
fn mariadb_takes_every_text_of_innodb() {
    if present("innodb").is_none() {
        return;
    }
    let mut statements = Vec::new();
    let mut expected = Vec::new();
    for name in ["innodb", "innodb-compressed"] {
        for (setting, lines) in texts(name) {
            let table = format!("t{}", statements.len());
            statements.push(format!(
                "CREATE TABLE test.{table} (k int PRIMARY KEY, v blob) ENGINE=InnoDB {}",
                lines[0]
            ));
            let row_format = if setting.slot_bytes > 0 { "Compressed" } else { "Dynamic" };
            expected.push(vec![table, row_format.to_owned(), lines[0].clone()]);
            if let Some(algorithm) = lines.iter().find_map(|line| line.split("algorithm=").nth(1)) {
                statements.push(format!("SET GLOBAL innodb_compression_algorithm={algorithm}"));
                // One entry a statement keeps the names of tables apart.
                expected.push(Vec::new());
            }
        }
    }
    statements.insert(0, "CREATE DATABASE IF NOT EXISTS test".to_owned());
    let plugins: Vec<String> =
        ["lz4", "snappy"].map(|codec| format!("--plugin-load-add=provider_{codec}")).into();
    let directory = tempfile::tempdir().expect("a directory");
    let query = "SELECT table_name, row_format, create_options FROM information_schema.tables \
                 WHERE table_schema = 'test'";
    let rows =
        mariadb::understood(directory.path(), &plugins, &statements, query).expect("is taken");
    for want in expected.iter().filter(|want| !want.is_empty()) {
        let row = rows.iter().find(|row| row[0] == want[0]).expect("the table is there");
        assert_eq!(row[1], want[1], "{}", want[2]);
        let kept = row[2].replace(['`', '\''], "").to_uppercase();
        for option in want[2].split(' ').filter(|option| !option.starts_with("ROW_FORMAT")) {
            expect(&kept, option, &want[2]);
        }
    }
}

#[test]
fn mariadb_takes_texts_of_myrocks() {
    if present("myrocks").is_none() {
        return;
    }
    // A server is started for each, so that there are as many as codecs.
    let mut seen = Vec::new();
    for (setting, lines) in texts("myrocks") {
        let codec = (setting.compression.codec, setting.compression.effort);
        if seen.contains(&codec) {
            continue;
        }
        seen.push(codec);
        let directory = tempfile::tempdir().expect("a directory");
        let value = lines[0].split_once('=').expect("a value").1.trim_matches('\'');
        let options = [
            "--plugin-load-add=ha_rocksdb".to_owned(),
            format!("--rocksdb-default-cf-options={value}"),
        ];
        let statements = [
            "CREATE DATABASE IF NOT EXISTS test".to_owned(),
            "CREATE TABLE test.t (k int PRIMARY KEY, v blob) ENGINE=ROCKSDB".to_owned(),
        ];
        mariadb::understood(directory.path(), &options, &statements, "SELECT 1")
            .unwrap_or_else(|error| panic!("{value}: {error}"));
        // The information schema does not list all of them; the options file does.
        let kept = options_of_default_family(&directory.path().join("data/#rocksdb"));
        let bottom = value.split("bottommost_compression=").nth(1).expect("has one");
        let bottom = bottom.split(';').next().expect("ends");
        expect(&kept, &format!("bottommost_compression={bottom}"), value);
        expect(&kept, &format!("block_size={}", setting.size_bytes), value);
    }
}

/// The sections of the family `default` in the newest options file.
fn options_of_default_family(directory: &std::path::Path) -> String {
    let entries = std::fs::read_dir(directory).expect("the data of MyRocks");
    let paths = entries.map(|entry| entry.expect("is there").path());
    let is_options = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("OPTIONS-"))
    };
    let newest = paths.filter(is_options).max().expect("an options file");
    let text = std::fs::read_to_string(newest).expect("is text");
    let sections = text
        .split("\n[")
        .filter(|section| section.lines().next().is_some_and(|head| head.contains("\"default\"")));
    sections.collect()
}

#[test]
fn cassandra_takes_every_text() {
    if present("cassandra").is_none() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let mut seen = Vec::new();
    for (setting, lines) in texts("cassandra") {
        let codec = (setting.compression.codec, setting.compression.effort);
        if seen.contains(&codec) {
            continue;
        }
        seen.push(codec);
        let (_, map) = lines[0].split_once("compression = ").expect("a map");
        let kept = cassandra::understood(map, directory.path())
            .unwrap_or_else(|error| panic!("{map}: {error}"));
        for pair in map.trim_matches(['{', '}']).split(", ") {
            let (name, value) = pair.split_once(": ").expect("a pair");
            let (name, value) = (name.trim_matches('\''), value.trim_matches('\''));
            // A class is kept with its package.
            let is_kept = kept.contains(&format!("{name}={value}"))
                || name == "class" && kept.contains(&format!("compress.{value}"));
            assert!(is_kept, "{map}: no {pair} in {kept}");
        }
    }
    assert!(cassandra::understood("{'sstable_compression': 'X'}", directory.path()).is_err());
}

#[test]
fn btrfs_takes_every_text() {
    let run = |program: &str, arguments: &[&str]| {
        let output = std::process::Command::new(program).args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    let directory = tempfile::tempdir().expect("a directory");
    let image = directory.path().join("image").display().to_string();
    let place = directory.path().join("place").display().to_string();
    std::fs::create_dir(&place).expect("is made");
    std::fs::File::create(&image).and_then(|file| file.set_len(300 << 20)).expect("is made");
    let can_mount = run("mkfs.btrfs", &["-q", &image])
        && run("mount", &["-o", "loop", &image, &place])
        && run("umount", &[&place]);
    if !can_mount {
        println!("skipped for btrfs: it takes mkfs.btrfs and the right to mount");
        return;
    }
    for (setting, lines) in texts("btrfs") {
        let Some(option) = lines[0].strip_prefix("mount -o ") else {
            assert_eq!(setting.compression.to_string(), "none", "{}", lines[0]);
            continue;
        };
        let is_mounted = run("mount", &["-o", &format!("loop,{option}"), &image, &place]);
        let mounts = std::fs::read_to_string("/proc/mounts").expect("is there");
        let line = mounts.lines().find(|line| line.contains(&place)).unwrap_or_default().to_owned();
        assert!(!is_mounted || run("umount", &[&place]));
        assert!(is_mounted && line.contains(&format!("{option},")), "{option}: {line}");
    }
}
