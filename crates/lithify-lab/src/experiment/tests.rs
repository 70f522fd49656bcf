//! Errors name the line and the key; the built-in experiments are sound.

use super::*;
use crate::adapter::codec::Ladder;

const FILE: &str = "e.toml";

/// The text of the built-in experiment of that name.
pub(super) fn built_in(name: &str) -> &'static str {
    let found = BUILT_IN.iter().find(|(built_in, _)| *built_in == name);
    found.unwrap_or_else(|| panic!("{name} is built in")).1
}

fn linkbench() -> &'static str {
    built_in("zlib-vs-zstd")
}

fn error(text: &str) -> ExperimentError {
    Experiment::parse(FILE, text).expect_err("must be refused")
}

/// Replaces one line; returns its number and the new text.
fn replace(from: &str, to: &str) -> (usize, String) {
    replace_in(linkbench(), from, to)
}

/// Replaces one line of a text; returns its number and the new text.
fn replace_in(text: &str, from: &str, to: &str) -> (usize, String) {
    let line = text.lines().position(|line| line == from).expect("the line is there") + 1;
    (line, text.replacen(&format!("\n{from}\n"), &format!("\n{to}\n"), 1))
}

#[test]
fn built_in_experiments_parse() {
    let mut kinds = Vec::new();
    for (name, text) in BUILT_IN {
        match AnyExperiment::parse(FILE, text).unwrap_or_else(|error| panic!("{error}")) {
            AnyExperiment::LinkBench(experiment) => {
                assert_eq!(experiment.name, *name);
                assert!(experiment.scales.contains_key("smoke") && experiment.scales.len() > 1);
                assert_eq!(through_json(&experiment), experiment);
                kinds.push("linkbench");
            }
            AnyExperiment::Loops(experiment) => {
                assert_eq!(experiment.name, *name);
                let scales = ["smoke", "cached", "full"];
                assert!(scales.iter().all(|scale| experiment.scales.contains_key(*scale)));
                assert_eq!(through_json(&experiment), experiment);
                kinds.push("dbbench");
            }
            AnyExperiment::Tables(experiment) => {
                assert_eq!(experiment.name, *name);
                kinds.push("tables");
            }
            AnyExperiment::Chunks(experiment) => {
                assert_eq!(experiment.name, *name);
                kinds.push("chunks");
            }
            AnyExperiment::Command(experiment) => {
                assert_eq!(experiment.name, *name);
                assert_eq!(through_json(&experiment), experiment);
                kinds.push("command");
            }
        }
    }
    let count = |kind| kinds.iter().filter(|found| **found == kind).count();
    assert_eq!((count("linkbench"), count("dbbench"), count("command")), (11, 1, 5));
    assert_eq!((count("tables"), count("chunks")), (1, 1));
}

fn through_json<E: Serialize + serde::de::DeserializeOwned>(experiment: &E) -> E {
    let text = serde_json::to_string(experiment).expect("to JSON");
    serde_json::from_str(&text).expect("from JSON")
}

#[test]
fn a_file_of_another_kind_is_refused_or_read_as_what_it_is() {
    let (line, text) = replace("kind = \"linkbench\"", "kind = \"dbbench\"");
    let error = error(&text);
    assert_eq!((error.line, error.key.as_str()), (line, "workload.kind"));
    assert!(error.what.contains("the other kind"), "{error}");
    assert!(AnyExperiment::parse(FILE, &text).is_err(), "a graph is no database of keys");
    let (line, text) = replace("kind = \"linkbench\"", "kind = \"ycsb\"");
    let error = AnyExperiment::parse(FILE, &text).expect_err("is unknown");
    assert_eq!((error.line, error.key.as_str()), (line, "workload.kind"));
    assert!(error.what.contains("linkbench") && error.what.contains("dbbench"), "{error}");
}

#[test]
fn published_figures_of_the_built_in() {
    let experiment = Experiment::parse(FILE, linkbench()).expect("parses");
    let value = |phase, column, arm| experiment.published_value(phase, column, arm, None);
    assert_eq!(value(Phase::Load, Column::McpuPerInsert, "zlib-1"), Some(146.0));
    assert_eq!(value(Phase::Query, Column::Tps, "zstd-1"), Some(39366.0));
    assert_eq!(value(Phase::Query, Column::Ips, "zstd-1"), None);
    assert_eq!(value(Phase::Load, Column::Ips, "none"), None);
}

#[test]
fn unknown_key_is_named_with_its_line() {
    let (line, text) = replace("seed = 20160914", "sead = 20160914");
    let error = error(&text);
    assert_eq!((error.line, error.key.as_str()), (line, "workload.sead"));
    assert!(error.what.contains("unknown field `sead`"), "{error}");
    assert!(error.to_string().starts_with(&format!("e.toml:{line}: key workload.sead: ")));
}

#[test]
fn missing_key_is_named_with_its_table() {
    let (_, text) = replace(
        "question = \"What does zstd instead of zlib at the bottom of the tree do to LinkBench?\"",
        "",
    );
    assert!(error(&text).what.contains("missing field `question`"));
    let (line, text) = replace("bottom = \"zlib-6\"", "");
    let error = error(&text);
    assert!(error.what.contains("missing field `bottom`"), "{error}");
    assert_eq!(error.key, "arm[3]");
    assert!(error.line <= line && line - error.line <= 2, "{error}");
}

#[test]
fn wrong_type_is_named_with_its_line() {
    let (line, text) = replace("block_kib = 16", "block_kib = \"16\"");
    let error = error(&text);
    assert_eq!((error.line, error.key.as_str()), (line, "engine.block_kib"));
    assert!(error.what.contains("invalid type"), "{error}");
}

#[test]
fn impossible_values_name_the_allowed_range() {
    let cases = [
        ("block_kib = 16", "block_kib = 4096", "engine.block_kib", "1 to 1024"),
        ("nodes = 100_000", "nodes = 10", "scale.smoke.nodes", "1000 to"),
        ("nodes = 100_000", "nodes = -10", "scale.smoke.nodes", "invalid value"),
        ("query_seconds = 120", "query_seconds = 0", "scale.cached.query_seconds", "1 to 864000"),
        ("block_cache_mib = 16", "block_cache_mib = 128", "scale.smoke.block_cache_mib", "128"),
        ("bottom = \"zlib-6\"", "bottom = \"zlib-16\"", "arm[3].bottom", "1 to 9"),
        ("bottom = \"zlib-6\"", "bottom = \"gzip\"", "arm[3].bottom", "one of none, snappy"),
        ("bottom = \"zstd-3\"", "bottom = \"zstd-0\"", "arm[5].bottom", "or 1 to 22"),
        ("name = \"zlib-6\"", "name = \"zlib-1\"", "arm[3].name", "second arm"),
        ("name = \"zlib-6\"", "name = \"Zlib 6\"", "arm[3].name", "lower-case"),
        ("published = 0.555", "published = 0.655", "headline[0].published", "contradicts"),
        ("published = 0.555", "published = nan", "headline[0].published", "above 0"),
        ("durability = \"buffered\"", "durability = \"most\"", "engine.durability", "most"),
    ];
    for (from, to, key, what) in cases {
        let (line, text) = replace(from, to);
        let error = error(&text);
        assert_eq!((error.line, error.key.as_str()), (line, key), "{error}");
        assert!(error.what.contains(what), "{error}");
    }
}

#[test]
fn published_rows_must_fit() {
    let from = "  { arm = \"zlib-6\", values = [61457, 0, 0, 0.97, 153, 312, 2.2] },";
    let (line, text) = replace(from, &from.replace("zlib-6", "zlib-7"));
    let unknown = error(&text);
    assert_eq!((unknown.line, unknown.key.as_str()), (line, "published[0].rows[2].arm"));
    assert!(unknown.what.contains("there are: none, lz4"), "{unknown}");
    let (line, text) = replace(from, &from.replace(", 2.2", ""));
    let short = error(&text);
    assert_eq!((short.line, short.key.as_str()), (line, "published[0].rows[2].values"));
    let (_, text) = replace("column = \"tps\"", "column = \"ips\"");
    assert!(error(&text).what.contains("no column of the query table"));
}

#[test]
fn broken_syntax_names_the_line() {
    let (line, text) = replace("seed = 20160914", "seed = = 1");
    assert_eq!(error(&text).line, line);
    assert_eq!(error("").line, 1);
}

#[test]
fn codec_names_go_both_ways() {
    let names = [
        "none",
        "snappy",
        "lz4",
        "lz4-12",
        "lz4--8",
        "zlib-1",
        "zlib-9",
        "libdeflate-12",
        "zstd--7",
        "zstd-22",
    ];
    for name in names {
        assert_eq!(name.parse::<Codec>().map(|codec| codec.to_string()).as_deref(), Ok(name));
    }
    for name in ["", "zlib", "zlib-", "zlib-0", "libdeflate-13", "zstd-23", "lz4-13", "zstd-1.5"] {
        let error = name.parse::<Codec>().expect_err(name);
        assert!(error.starts_with(&format!("codec \"{name}\": ")), "{error}");
    }
}

#[test]
fn ladders_have_three_codecs_or_one() {
    let ladder = |text: &str| text.parse::<Ladder>();
    let three = ladder("none,lz4-9,zstd--3").expect("is one");
    assert_eq!(three.to_string(), "none,lz4-9,zstd--3");
    assert_eq!(three.file_name(), "none+lz4-9+zstd--3");
    assert_eq!(ladder("lz4"), ladder("lz4,lz4,lz4"));
    assert!(ladder("none,lz4").expect_err("too few").ends_with("; 2 were given"));
    assert!(ladder("none,lz4,gzip").expect_err("unknown").starts_with("codec \"gzip\": "));
    assert!(ladder("").is_err());
}

#[test]
fn figures_are_published_of_scales_that_claim_the_same() {
    let experiment = Experiment::parse(FILE, built_in("cached-and-uncached")).expect("parses");
    let of = |claims| experiment.published_value(Phase::Query, Column::Tps, "rocksdb-log", claims);
    assert_eq!(of(Some(Claim::Cached)), Some(10550.0));
    assert_eq!(of(Some(Claim::IoBound)), Some(5827.0));
    assert_eq!(of(None), None);
    let arm = |name| experiment.arm(name).expect("is there");
    assert!(arm("rocksdb").belongs_to(Some(Claim::Cached)));
    assert!(!arm("rocksdb").belongs_to(Some(Claim::IoBound)) && arm("rocksdb").belongs_to(None));
    assert_eq!(arm("rocksdb-disk").device, Some(DeviceSpeed::Disk));
    assert!(arm("rocksdb-log").second_log && !arm("rocksdb").second_log);
}

#[test]
fn published_series_are_found_by_arm_and_clients() {
    let experiment = Experiment::parse(FILE, built_in("io-bound-lsm-vs-btree")).expect("parses");
    let series = |phase, arm| experiment.published_series(phase, arm, None);
    let disk = series(Phase::Query, "wiredtiger-disk").expect("is published");
    assert_eq!(disk, [(1, 227.0), (4, 726.0), (8, 843.0), (16, 808.0), (24, 813.0)]);
    assert_eq!(series(Phase::Load, "rocksdb").expect("is published")[4], (16, 18248.0));
    assert_eq!(series(Phase::Query, "lithify"), None);
    let concurrency = Experiment::parse(FILE, built_in("concurrency")).expect("parses");
    let cached = concurrency.published_series(Phase::Query, "rocksdb", None).expect("is there");
    assert_eq!((cached.len(), cached[47]), (48, (48, 15653.0)));
}

#[test]
fn impossible_clients_series_and_conditions_name_line_and_key() {
    let text = built_in("io-bound-lsm-vs-btree");
    let sweep = "clients = [1, 2, 4]";
    let loads = "load_clients = [1, 2, 4]";
    let row = "  { arm = \"wiredtiger-disk\", values = [227, 726, 843, 808, 813] },";
    let cases = [
        (sweep, "clients = [1, 2, 8]", "scale.smoke.clients", "they must agree"),
        (sweep, "clients = [2, 1, 4]", "scale.smoke.clients", "must ascend"),
        (sweep, "clients = [1, 1, 4]", "scale.smoke.clients", "must ascend"),
        (sweep, "clients = [0, 2, 4]", "scale.smoke.clients[0]", "1 to 256"),
        (loads, "load_clients = [1, 300]", "scale.smoke.load_clients[1]", "1 to 256"),
        (row, &row.replace(", 813", ""), "series[1].rows[1].values", "4 values for 5"),
        (row, &row.replace("wiredtiger-disk", "x"), "series[1].rows[1].arm", "there are: rocksdb"),
        ("id = \"E3\"", "id = \"E15\"", "id", "E1 to E14"),
        ("id = \"E3\"", "id = \"three\"", "id", "E1 to E14"),
    ];
    for (from, to, key, what) in cases {
        let (line, text) = replace_in(text, from, to);
        let error = error(&text);
        assert_eq!((error.line, error.key.as_str()), (line, key), "{error}");
        assert!(error.what.contains(what), "{error}");
    }
    // Keys of which a file has several: the first one is replaced.
    for (from, to, key, what) in [
        ("device = \"disk\"", "device = \"floppy\"", "arm[5].device", "slow-ssd"),
        ("second_log = true", "second_log = 1", "arm[0].second_log", "invalid type"),
        ("published = 1.12", "published = 1.3", "headline[0].published", "contradicts"),
        ("clients = 1", "clients = \"1\"", "headline[0].clients", "invalid type"),
    ] {
        let (line, text) = replace_in(text, from, to);
        let error = error(&text);
        assert_eq!((error.line, error.key.as_str()), (line, key), "{error}");
        assert!(error.what.contains(what), "{error}");
    }
    let text = built_in("allocators");
    let (line, text) = replace_in(text, "allocator = \"system\"", "allocator = \"hoard\"");
    let error = error(&text);
    assert_eq!((error.line, error.key.as_str()), (line, "arm[0].allocator"));
}

#[test]
fn loops_have_no_conditions_and_commands_begin_with_bench() {
    let text = built_in("compress-or-not");
    let (line, text) =
        replace_in(text, "middle = \"none\"", "middle = \"none\"\ndevice = \"disk\"");
    let error = AnyExperiment::parse(FILE, &text).expect_err("is refused");
    assert_eq!((error.line, error.key.as_str()), (line + 1, "arm[0].device"));
    let text = built_in("amplification");
    let (line, text) = replace_in(text, "command = \"bench amp\"", "command = \"rm\"");
    let error = AnyExperiment::parse(FILE, &text).expect_err("is refused");
    assert_eq!((error.line, error.key.as_str()), (line, "workload.command"));
    assert!(error.what.contains("begins with \"bench \""), "{error}");
}

#[test]
fn ages_file_systems_and_drops() {
    let partitions = Experiment::parse(FILE, built_in("partitions")).expect("parses");
    let arm = |name| partitions.arm(name).expect("is there");
    assert!(arm("lithify-tombstones").plain_deletes && !arm("lithify").plain_deletes);
    assert_eq!(arm("innodb-p16").hardware_threads, Some(8));
    let ratio = partitions.ageing[0].late_to_early("innodb-c8").expect("is published");
    assert!((ratio - 22_092.0 / 9_217.0).abs() < 1e-9);
    assert_eq!(partitions.ageing[1].late_to_early("innodb"), None);
    let pages = Experiment::parse(FILE, built_in("page-compression")).expect("parses");
    assert!(pages.workload.drop_database && !partitions.workload.drop_database);
    let own: std::collections::BTreeSet<String> =
        pages.arms.iter().flat_map(|arm| &arm.file_system).map(ToString::to_string).collect();
    assert_eq!(own.into_iter().collect::<Vec<_>>(), ["btrfs", "ext4", "xfs"]);
}

#[test]
fn impossible_ages_file_systems_and_drops_are_refused() {
    let ascending = "turnovers = [0.1, 0.3, 0.6, 1.0]";
    let first = "turnovers = [0.05, 0.3, 0.35, 0.6]";
    // Keys of which the file has several: the first one is replaced. Scales are checked in the order
    // of their names, and cached is the first.
    for (name, from, to, key, what) in [
        ("partitions", "column = \"tps\"", "column = \"un\"", "ageing[0].column", "tps, size"),
        ("partitions", first, "turnovers = [0.3]", "ageing[0].rows[0].values", "for 1 columns"),
        (
            "page-compression",
            "file_system = \"ext4\"",
            "file_system = \"ext5\"",
            "arm[0].file_system",
            "there is no file system \"ext5\"",
        ),
        (
            "page-compression",
            "name = \"plain-ext4\"",
            "name = \"plain-ext4\"\ndevice = \"disk\"",
            "arm[0].file_system",
            "no slower device",
        ),
        ("page-compression", "published = 43.2", "published = 0.0", "drop[0].published", "above 0"),
        ("page-compression", "drop_database = true", "", "drop[0]", "nothing is dropped"),
        ("page-compression", "base = \"plain-btrfs\"", "base = \"b\"", "drop[2].base", "no arm"),
    ] {
        let (line, text) = replace_in(built_in(name), from, to);
        let error = error(&text);
        assert_eq!(error.key, key, "{error}");
        assert!(error.what.contains(what), "{error}");
        // The fault of one key may be told of another one of its table.
        assert!(error.line.abs_diff(line) <= 4 || key == "drop[0]", "{error}");
    }
    let of_smoke = |to: &str| {
        let text = built_in("partitions");
        let cached = text.find("[scale.cached]").expect("is there");
        let (head, tail) = text.split_at(cached);
        error(&format!("{}{tail}", head.replacen(ascending, to, 1)))
    };
    for (to, key, what) in [
        ("turnovers = [0.0, 0.3]", "scale.smoke.turnovers[0]", "above 0"),
        ("turnovers = [0.1, 1e9]", "scale.smoke.turnovers[1]", "at most 100"),
        ("turnovers = [0.6, 0.3]", "scale.smoke.turnovers", "must ascend"),
        ("turnovers = [0.3]\nclients = [1, 4]", "scale.smoke.turnovers", "leave out clients"),
    ] {
        let error = of_smoke(to);
        assert_eq!(error.key, key, "{error}");
        assert!(error.what.contains(what), "{error}");
    }
}
