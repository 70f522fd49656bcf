//! Dumps and trees of small databases in memory, whole and damaged.
//!
//! `golden.txt` is the dump of every file of one database. With `LITHIFY_REWRITE` set in the
//! environment the test writes it; the difference is to be reviewed.

use super::*;
use crate::fs::{OpenMode, World};
use crate::manifest::FileName;
use crate::table::FOOTER_SIZE;
use crate::wal::{LogHeader, LogKind};
use crate::{CfOptions, Db, ErrorKind, Options, Result};
use std::fmt::Write as _;
use std::io::IoSlice;
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "/rocks.db";

/// Values that follow from random numbers, codec libraries or the speed of the machine.
const MASKED: [&str; 4] = ["database_id", "table_id", "checksum", "cpu_ns"];

fn options() -> Options {
    Options { background_threads: 0, memtable_bytes: 64 << 10, ..Options::default() }
}

const BRIEF: LevelsPage = LevelsPage { files: false, full: false, width: 80 };
const FULL: LevelsPage = LevelsPage { files: true, full: true, width: 80 };

/// A database of two families with a table in two levels, range tombstones, and a log.
fn small_database() -> World {
    let world = World::memory(7);
    let db = Db::open_in(DIRECTORY, options(), world.clone()).unwrap();
    let of_rocks = CfOptions {
        compression: "none".parse().unwrap(),
        block_size_bytes: 512,
        prefix_length_bytes: 4,
        ..CfOptions::default()
    };
    let rocks = db.column_family("rocks", of_rocks).unwrap();
    let gems = db.column_family("gems", CfOptions::default()).unwrap();
    for number in 0..12_u8 {
        let key = format!("rock/{number:02}");
        rocks.put(key.as_bytes(), [b'a' + number; 100]).unwrap();
    }
    rocks.compact_range(..).unwrap();
    rocks.delete(b"rock/03").unwrap();
    rocks.single_delete(b"rock/04").unwrap();
    rocks.delete_range(b"rock/06", b"rock/08").unwrap();
    rocks.flush().unwrap();
    let mut batch = db.batch();
    batch.put(&rocks, b"rock/\x00\"", b"igneous").put(&gems, b"opal", [b'o'; 70]);
    batch.delete(&rocks, b"rock/00").single_delete(&gems, b"jade");
    batch.delete_range(&gems, b"a", b"b");
    batch.commit().unwrap();
    db.close().unwrap();
    world
}

fn names(world: &World) -> Vec<PathBuf> {
    let paths = world.files.list(Path::new(DIRECTORY)).unwrap();
    paths.into_iter().map(|path| Path::new(DIRECTORY).join(path.file_name().unwrap())).collect()
}

fn path_of(world: &World, wanted: fn(FileName) -> bool) -> PathBuf {
    let found = names(world).into_iter().find(|path| FileName::of_path(path).is_some_and(wanted));
    found.expect("the database has such a file")
}

fn a_table(world: &World) -> PathBuf {
    path_of(world, |name| matches!(name, FileName::Table(_)))
}

fn everything() -> DumpOptions {
    DumpOptions { blocks: true, entries: true, ..DumpOptions::default() }
}

fn items_of(world: &World, path: &Path, options: &DumpOptions) -> (Vec<Item>, Result<()>) {
    let mut items = Vec::new();
    let result = dump(&*world.files, path, options, &mut |item| {
        // Both forms have to bear any content.
        assert!(!item.to_string().is_empty() && item.to_json().starts_with('{'));
        items.push(item.clone());
        Ok(())
    });
    (items, result)
}

fn named<'a>(items: &'a [Item], name: &str) -> Vec<&'a Item> {
    items.iter().filter(|item| item.name() == name).collect()
}

fn field(item: &Item, name: &str) -> String {
    let found = item.fields().iter().find(|(field, _)| *field == name);
    found.unwrap_or_else(|| panic!("{item} has no {name}")).1.to_string()
}

fn contents(world: &World, path: &Path) -> Vec<u8> {
    let file = world.files.open(path, OpenMode::Read).unwrap();
    crate::fs::read_exact_at(&*file, 0, file.length().unwrap() as usize).unwrap()
}

fn replace(world: &World, path: &Path, bytes: &[u8]) {
    let file = world.files.open(path, OpenMode::CreateOrTruncate).unwrap();
    file.write_at(&[IoSlice::new(bytes)], 0).unwrap();
}

fn masked(item: &Item) -> String {
    let mut text = item.to_string();
    for (name, value) in item.fields().iter().filter(|(name, _)| MASKED.contains(name)) {
        text = text.replace(&format!("{name}={value}"), &format!("{name}=*"));
        let value = value.to_string();
        let line = |line: &str| match line.split_whitespace().next() {
            Some(first) if first == *name => line.replace(&value, "*"),
            _ => line.to_string(),
        };
        text = text.lines().map(line).collect::<Vec<_>>().join("\n");
    }
    text
}

#[test]
fn every_file_of_a_database_is_dumped() {
    let world = small_database();
    let mut text = String::new();
    for path in names(&world) {
        writeln!(text, "== {}", path.file_name().unwrap().display()).unwrap();
        let (items, result) = items_of(&world, &path, &everything());
        result.unwrap();
        items.iter().for_each(|item| writeln!(text, "{}", masked(item)).unwrap());
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/inspect/golden.txt");
    if std::env::var_os("LITHIFY_REWRITE").is_some() {
        std::fs::write(&golden, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap();
    assert!(expected == text, "{} differs; the dump now:\n{text}", golden.display());
}

#[test]
fn what_is_no_file_of_the_engine_is_refused() {
    let world = small_database();
    let stranger = Path::new(DIRECTORY).join("notes.txt");
    replace(&world, &stranger, b"some lines that nobody wrote for this");
    for (path, kind, what) in [
        (stranger.as_path(), ErrorKind::InvalidArgument, "not a file of the engine"),
        (Path::new(DIRECTORY), ErrorKind::InvalidArgument, "directory"),
        (Path::new("/rocks.db/000999.sst"), ErrorKind::NotFound, "no such file"),
    ] {
        let (items, result) = items_of(&world, path, &everything());
        let error = result.unwrap_err();
        assert_eq!((error.kind(), items.len()), (kind, 0), "{error}");
        assert!(error.to_string().contains(what) && error.path() == Some(path), "{error}");
    }
    let kind = |directory: &Path| {
        read_levels(&*world.files, directory, &LevelsOptions::default()).unwrap_err().kind()
    };
    assert_eq!(kind(&stranger), ErrorKind::InvalidArgument);
    assert_eq!(kind(Path::new("/nowhere")), ErrorKind::NotFound);
    world.files.create_directory(Path::new("/empty")).unwrap();
    assert_eq!(kind(Path::new("/empty")), ErrorKind::NotFound);
    world.files.remove(&path_of(&world, |name| name == FileName::Current)).unwrap();
    assert_eq!(kind(Path::new(DIRECTORY)), ErrorKind::Corruption);
}

#[test]
fn a_file_is_known_by_its_magic_under_any_name() {
    let world = small_database();
    for path in names(&world) {
        if FileName::of_path(&path) == Some(FileName::Lock) {
            continue;
        }
        let copy = Path::new("/copy.bin");
        replace(&world, copy, &contents(&world, &path));
        let (items, result) = items_of(&world, copy, &everything());
        result.unwrap();
        assert_eq!(items, items_of(&world, &path, &everything()).0, "{}", path.display());
    }
}

/// Dumps the file with these bytes; whatever is wrong must be an error that names the file.
fn dump_damaged(world: &World, path: &Path, bytes: &[u8]) -> Option<ErrorKind> {
    replace(world, path, bytes);
    let (items, result) = items_of(world, path, &everything());
    let error = result.err();
    if let Some(error) = &error {
        assert_eq!(error.path(), Some(path), "{error}");
        assert_ne!(error.kind(), ErrorKind::Io, "{error}");
        let at_end = named(&items, "damage").first().map(|item| field(item, "error"));
        assert!(at_end.is_none_or(|text| text == error.to_string()), "{error}");
    }
    let _ = read_levels(&*world.files, Path::new(DIRECTORY), &LevelsOptions { check: true });
    error.map(|error| error.kind())
}

#[test]
fn every_truncation_is_survived_and_named() {
    let world = small_database();
    for path in names(&world) {
        let whole = contents(&world, &path);
        let name = FileName::of_path(&path).unwrap();
        for size in 0..whole.len() {
            let error = dump_damaged(&world, &path, &whole[..size]);
            let must_fail = match name {
                FileName::Table(_) | FileName::Current => true,
                // A log can lose its end to a power cut; its header only to damage.
                FileName::Wal(_) | FileName::Manifest(_) => size < 72,
                _ => false,
            };
            assert!(error.is_some() || !must_fail, "{name} cut to {size} bytes");
        }
        replace(&world, &path, &whole);
    }
}

#[test]
fn flipped_bytes_are_survived_and_named() {
    let world = small_database();
    for path in names(&world) {
        let whole = contents(&world, &path);
        let name = FileName::of_path(&path).unwrap();
        // A step that shares no factor with the sizes of records, and all of the last bytes.
        let sample =
            (0..whole.len()).step_by(7).chain(whole.len().saturating_sub(110)..whole.len());
        for place in sample {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << (place % 8);
            let error = dump_damaged(&world, &path, &bytes);
            let must_fail = match name {
                FileName::Table(_) | FileName::Current => true,
                FileName::Wal(_) | FileName::Manifest(_) => place < 72,
                _ => false,
            };
            assert!(error.is_some() || !must_fail, "{name} with byte {place} flipped");
        }
        replace(&world, &path, &whole);
    }
}

#[test]
fn what_lies_behind_a_damaged_block_is_still_found() {
    let world = small_database();
    let tables = names(&world);
    let tables = tables.iter().filter(|p| matches!(FileName::of_path(p), Some(FileName::Table(_))));
    let (path, before) = tables
        .map(|path| (path, items_of(&world, path, &everything()).0))
        .max_by_key(|(_, items)| named(items, "block").len())
        .unwrap();
    assert!(named(&before, "block").len() >= 3);
    let mut bytes = contents(&world, path);
    let second = named(&before, "block")[1].offset().unwrap();
    bytes[second as usize + 50] ^= 0x10;
    replace(&world, path, &bytes);
    let (items, result) = items_of(&world, path, &everything());
    let error = result.unwrap_err();
    let place = (error.kind(), error.path(), error.offset());
    assert_eq!(place, (ErrorKind::Corruption, Some(path.as_path()), Some(second)));
    let (blocks, entries) = (named(&items, "block").len(), named(&items, "entry").len());
    assert_eq!(blocks, named(&before, "block").len());
    let lost: usize = field(named(&before, "block")[1], "entry_count").parse().unwrap();
    assert_eq!(entries + lost, named(&before, "entry").len());
    assert_eq!(named(&items, "damage")[0].offset(), Some(second));

    let levels =
        |check| read_levels(&*world.files, Path::new(DIRECTORY), &LevelsOptions { check }).unwrap();
    assert!(levels(false).damage.is_empty(), "without check data blocks are not read");
    assert_eq!(levels(true).damage[0].offset(), Some(second));
}

#[test]
fn an_index_of_two_levels_is_dumped_partition_by_partition() {
    let world = World::memory(9);
    let db = Db::open_in(DIRECTORY, options(), world.clone()).unwrap();
    let small_blocks = CfOptions {
        compression: "none".parse().unwrap(),
        block_size_bytes: 512,
        ..CfOptions::default()
    };
    let rocks = db.column_family("rocks", small_blocks).unwrap();
    for number in 0..20_000 {
        rocks.put(format!("rock/{number:06}").as_bytes(), [7; 100]).unwrap();
    }
    rocks.compact_range(..).unwrap();
    drop(rocks);
    db.close().unwrap();
    let path = a_table(&world);
    let without_entries = DumpOptions { blocks: true, ..DumpOptions::default() };
    let (before, result) = items_of(&world, &path, &without_entries);
    result.unwrap();
    assert_eq!(field(named(&before, "footer")[0], "incompatible"), "0x00000001");
    let (partitions, blocks) = (named(&before, "index_partition"), named(&before, "block"));
    assert!(partitions.len() > 4 && blocks.len() > 1000, "{}", partitions.len());
    let levels =
        |check| read_levels(&*world.files, Path::new(DIRECTORY), &LevelsOptions { check }).unwrap();
    let counted: u64 =
        levels(true).families.iter().flat_map(|f| &f.tables).flat_map(|t| t.blocks.values()).sum();
    assert_eq!(counted, blocks.len() as u64);

    // A partition that is damaged hides its own blocks only.
    let mut bytes = contents(&world, &path);
    let second = partitions[1].offset().unwrap();
    bytes[second as usize + 50] ^= 0x10;
    replace(&world, &path, &bytes);
    let (items, result) = items_of(&world, &path, &without_entries);
    assert_eq!(result.unwrap_err().offset(), Some(second));
    let hidden = blocks.len() - named(&items, "block").len();
    assert!((100..400).contains(&hidden), "{hidden}");
    assert_eq!(levels(true).damage[0].offset(), Some(second));
}

#[test]
fn a_log_with_a_damaged_header_still_shows_its_records() {
    let world = small_database();
    let path = path_of(&world, |name| matches!(name, FileName::Wal(_)));
    let (before, _) = items_of(&world, &path, &everything());
    let mut bytes = contents(&world, &path);
    bytes[0] ^= 1;
    replace(&world, &path, &bytes);
    let (items, result) = items_of(&world, &path, &everything());
    assert_eq!(result.unwrap_err().offset(), Some(0));
    assert!(!named(&items, "entry").is_empty());
    assert_eq!(named(&items, "entry"), named(&before, "entry"));
}

#[test]
fn damage_below_what_was_synced_is_an_error_and_a_torn_end_is_not() {
    let world = small_database();
    let path = path_of(&world, |name| matches!(name, FileName::Manifest(_)));
    let (before, _) = items_of(&world, &path, &everything());
    let records = named(&before, "record");
    let (first, last) =
        (records[1].offset().unwrap(), records[records.len() - 1].offset().unwrap());
    let flipped = |at: u64| {
        let mut bytes = contents(&world, &path);
        bytes[at as usize + 40] ^= 1;
        bytes
    };
    let (torn, damaged) = (flipped(last), flipped(first));
    replace(&world, &path, &torn);
    let (items, result) = items_of(&world, &path, &everything());
    result.unwrap();
    assert_eq!(named(&items, "stop")[0].offset(), Some(last));
    replace(&world, &path, &damaged);
    let error = items_of(&world, &path, &everything()).1.unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(first)));
}

#[test]
fn the_header_of_a_later_version_is_shown_before_it_is_refused() {
    let world = small_database();
    let wal = path_of(&world, |name| matches!(name, FileName::Wal(_)));
    let mut bytes = contents(&world, &wal);
    let mut header = LogHeader::decode(&bytes, LogKind::Wal).unwrap();
    header.features.incompatible = 0x40;
    header.format_version = 9;
    bytes[..72].copy_from_slice(&header.encode());
    replace(&world, &wal, &bytes);
    let (items, result) = items_of(&world, &wal, &everything());
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(field(named(&items, "header")[0], "incompatible"), "0x00000040");

    let table = a_table(&world);
    let mut bytes = contents(&world, &table);
    let footer = bytes.len() - FOOTER_SIZE;
    bytes[footer + 80] = 0x40;
    let checksum = crate::format::Checksum::of(&bytes[footer..footer + 92]);
    bytes[footer + 92..footer + 96].copy_from_slice(&checksum.to_le_bytes());
    replace(&world, &table, &bytes);
    let (items, result) = items_of(&world, &table, &everything());
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Unsupported, Some(footer as u64)));
    assert_eq!(field(named(&items, "footer")[0], "incompatible"), "0x00000040");
}

#[test]
fn a_limit_counts_what_it_leaves_out() {
    let world = small_database();
    let path = path_of(&world, |name| matches!(name, FileName::Manifest(_)));
    let all = named(&items_of(&world, &path, &everything()).0, "record").len();
    let options = DumpOptions { limit: 2, ..everything() };
    let (items, result) = items_of(&world, &path, &options);
    result.unwrap();
    assert_eq!(named(&items, "record").len(), 2);
    let left_out = named(&items, "left out");
    assert_eq!(field(left_out[0], "count"), (all - 2).to_string());
    assert_eq!(field(left_out[0], "of"), all.to_string());

    let refusing = dump(&*world.files, &path, &options, &mut |_| Err(crate::Error::limit("full")));
    assert_eq!(refusing.unwrap_err().kind(), ErrorKind::LimitExceeded);
}

/// A database whose tree has several levels, in three codecs.
fn deep_database() -> World {
    let world = World::memory(11);
    let db = Db::open_in(DIRECTORY, options(), world.clone()).unwrap();
    let of_links = CfOptions {
        compression: "none,lz4,zstd-1".parse().unwrap(),
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        fanout: 2,
        ..CfOptions::default()
    };
    let links = db.column_family("links", of_links).unwrap();
    db.column_family("empty", CfOptions::default()).unwrap();
    let mut state = 1_u64;
    for _ in 0..24_000 {
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 20
        };
        let key = format!("link/{:08}", word() % 20_000);
        let value = format!("{:x}{:x}{:x}{:x}{:x}", word(), word(), word(), word(), word());
        links.put(key.as_bytes(), value.as_bytes()).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    links.put(b"link/new", b"in level 0").unwrap();
    links.flush().unwrap();
    db.close().unwrap();
    // Opening removes the files of tables that are no longer live.
    Db::open_in(DIRECTORY, options(), world.clone()).unwrap().close().unwrap();
    world
}

#[test]
fn levels_add_up_to_the_files_of_the_database() {
    let world = deep_database();
    let options = LevelsOptions { check: true };
    let levels = read_levels(&*world.files, Path::new(DIRECTORY), &options).unwrap();
    assert!(levels.damage.is_empty(), "{:?}", levels.damage);
    assert!(levels.is_closed);
    let is_table = |path: &PathBuf| matches!(FileName::of_path(path), Some(FileName::Table(_)));
    let tables: Vec<PathBuf> = names(&world).into_iter().filter(is_table).collect();
    let size: u64 = tables.iter().map(|path| world.files.length(path).unwrap()).sum();
    let total = levels.total();
    assert_eq!((total.files, total.size_bytes), (tables.len() as u64, size));
    let links = &levels.families[0];
    assert_eq!((links.name.as_str(), levels.families[1].name.as_str()), ("links", "empty"));
    assert_eq!(levels.families[1].total().files, 0);
    let filled: Vec<&LevelSum> = links.levels.iter().filter(|level| level.files > 0).collect();
    assert!(filled.len() >= 3, "{}", levels.to_text(&FULL));
    for level in filled {
        let (asked, in_debt) = (level.asked.unwrap().to_string(), level.debt_files);
        let as_asked = level.found.get(&asked).copied().unwrap_or(0);
        assert_eq!(as_asked + in_debt, level.files, "{}", levels.to_text(&FULL));
        let blocks: u64 = level.blocks.values().sum();
        assert!(blocks >= level.files && level.raw_bytes > 0);
    }
    let bottom = &links.levels[6];
    let codecs: Vec<&str> = bottom.blocks.keys().map(|codec| codec.name()).collect();
    assert!(codecs.contains(&"zstd") && bottom.ratio().unwrap() > 1.2, "{codecs:?}");

    let text = levels.to_text(&FULL);
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(row("LEVEL")[..5], ["LEVEL", "TABLES", "SIZE", "RATIO", "TARGET"]);
    assert_eq!(row("all")[1], total.files.to_string());
    assert_eq!(row("L0 ")[1], links.levels[0].files.to_string());
    let keys = |text: &str| text.lines().filter(|line| line.contains("\"link/")).count();
    assert_eq!((keys(&text), keys(&levels.to_text(&BRIEF))), (tables.len(), 0));
    assert!(levels.to_json(true).contains("\"tables\":[{"), "{}", levels.to_json(true));
}

/// The first lines answer; no line is wider than the page, however long keys, names and lists of codecs are.
#[test]
fn a_page_is_no_wider_than_it_may_be_and_a_full_one_has_every_figure() {
    let mut levels =
        read_levels(&*deep_database().files, Path::new(DIRECTORY), &Default::default()).unwrap();
    let family = &mut levels.families[0];
    family.levels.iter_mut().filter(|level| level.files > 0).for_each(|level| {
        level.found = ["zstd-1", "lz4", "none", "zlib-6"].map(|name| (name.into(), 12_345)).into();
        (level.entries, level.largest_sequence) = (1_234_567_890, u64::MAX >> 8);
    });
    for table in &mut family.tables {
        table.metadata.range.largest = "a long key ".repeat(30).into_bytes().into();
    }
    for page in [BRIEF, LevelsPage { files: true, ..BRIEF }, FULL] {
        for width in [80, 100] {
            let text = levels.to_text(&LevelsPage { width, ..page });
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        }
    }
    let text = levels.to_text(&BRIEF);
    assert!(text.starts_with(&format!("{} tables, ", levels.total().files)), "{text}");
    assert!(!text.contains("L3") && text.contains("no tables yet"), "empty levels: {text}");
    let text = levels.to_text(&FULL);
    for part in ["database ", "MANIFEST-", "options: ", "FALLBACK", "SEQUENCES", "WRITTEN_FOR", "…"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn no_codec_is_asked_for_where_it_is_decided_for_each_table() {
    let world = World::memory(3);
    let db = Db::open_in(DIRECTORY, options(), world.clone()).unwrap();
    let decided = CfOptions { compression: "auto".parse().unwrap(), ..CfOptions::default() };
    db.column_family("decided", decided).unwrap();
    db.close().unwrap();
    let levels = read_levels(&*world.files, Path::new(DIRECTORY), &Default::default()).unwrap();
    assert!(levels.families[0].levels.iter().all(|level| level.asked.is_none()));
    assert!(levels.to_text(&BRIEF).ends_with("no tables yet\n"));
    let text = levels.to_text(&FULL);
    let bottom = text.lines().find(|line| line.starts_with("L6")).unwrap();
    assert!(bottom.split_whitespace().any(|word| word == "auto"), "{text}");
    assert!(levels.to_json(false).contains("\"asked\":\"auto\""), "{}", levels.to_json(false));
}

#[test]
fn a_missing_or_foreign_table_is_damage_and_the_rest_is_shown() {
    let world = deep_database();
    let path = a_table(&world);
    let levels = |world: &World| {
        read_levels(&*world.files, Path::new(DIRECTORY), &LevelsOptions::default()).unwrap()
    };
    let whole = levels(&world);
    let other = names(&world)
        .into_iter()
        .filter(|path| matches!(FileName::of_path(path), Some(FileName::Table(_))))
        .find(|other| *other != path)
        .unwrap();
    replace(&world, &path, &contents(&world, &other));
    let foreign = levels(&world);
    assert!(foreign.damage[0].to_string().contains("another table"), "{:?}", foreign.damage);
    world.files.remove(&path).unwrap();
    let missing = levels(&world);
    assert_eq!(missing.damage[0].kind(), ErrorKind::Corruption);
    assert_eq!(missing.damage[0].path(), Some(path.as_path()));
    assert_eq!(missing.total().files, whole.total().files);
    assert_eq!(missing.total().found.get("unreadable"), Some(&1));
}

#[test]
fn an_open_database_can_be_looked_at() {
    let world = World::memory(3);
    let db = Db::open_in(DIRECTORY, options(), world.clone()).unwrap();
    let rocks = db.column_family("rocks", CfOptions::default()).unwrap();
    rocks.put(b"basalt", b"igneous").unwrap();
    rocks.flush().unwrap();
    rocks.put(b"shale", b"in the log").unwrap();
    let levels = read_levels(&*world.files, Path::new(DIRECTORY), &Default::default()).unwrap();
    assert!(!levels.is_closed && levels.damage.is_empty());
    assert_eq!(levels.families[0].levels[6].entries, 1);
    for path in names(&world) {
        items_of(&world, &path, &everything()).1.unwrap();
    }
    rocks.put(b"slate", b"metamorphic").unwrap();
    db.close().unwrap();
}
