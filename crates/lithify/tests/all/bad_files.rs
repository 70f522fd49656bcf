//! A small database with every kind of file, each damaged at a sample of its bytes, or cut short,
//! or gone: opening or reading says so with a typed error that names the file, or the data are
//! right. Never a panic, never a wrong row, never a hang.

use crate::support::{Model, PATH, Parts, Random, rows, small_options, watched};
use lithify::fs::{FileSystem, OpenMode};
use lithify::{CfOptions, CompressionPolicy, Db, Error, ErrorKind};
use std::io::IoSlice;
use std::path::{Path, PathBuf};

/// Every how manieth byte is damaged.
const STRIDE: usize = 7;

fn family_options() -> CfOptions {
    CfOptions {
        compression: "lz4,zlib-1,zstd-1".parse::<CompressionPolicy>().unwrap(),
        block_size_bytes: 512,
        prefix_length_bytes: 4,
        ..CfOptions::default()
    }
}

/// How the process with the database ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It closed the database: every byte of the log is accounted for.
    Closed,
    /// It was killed: what was not synced may be missing, last writes first.
    Killed,
}

/// A database of tables in several levels, range tombstones, and a log.
struct Sample {
    parts: Parts,
    /// What it held after the flush and after each write since.
    histories: Vec<Model>,
    /// So many of them were synced over; a kill may cost the others.
    synced: usize,
}

fn sample(end: End) -> Sample {
    let parts = Parts::new(1);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rocks", family_options()).unwrap();
    let mut random = Random(3);
    let key = |number: u64| format!("rock{number:04}").into_bytes();
    for number in 0..40 {
        family.put(key(number), random.bytes(60)).unwrap();
    }
    family.compact_range(..).unwrap();
    for number in 20..45 {
        family.put(key(number), random.bytes(40)).unwrap();
    }
    family.delete_range(key(5), key(9)).unwrap();
    family.delete(key(12)).unwrap();
    db.flush().unwrap();
    // What the compaction replaced is removed, so that every file counts.
    db.wait_for_compaction().unwrap();
    let mut histories = vec![rows(&family)];
    for number in 40..50 {
        family.put(key(number), random.bytes(40)).unwrap();
        histories.push(rows(&family));
    }
    db.sync().unwrap();
    let synced = histories.len() - 1;
    for number in 50..55 {
        family.put(key(number), random.bytes(40)).unwrap();
        histories.push(rows(&family));
    }
    match end {
        End::Closed => {
            db.close().unwrap();
            histories.drain(..histories.len() - 1);
        }
        End::Killed => {
            let files = parts.files.crash_clone(0, lithify::fs::CrashKeep::Everything);
            drop(db);
            return Sample { parts: Parts { files, ..parts }, histories, synced };
        }
    }
    Sample { parts, histories, synced: 0 }
}

/// What is done to a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// A byte is changed by this mask.
    Flip(usize, u8),
    /// The file ends here.
    Cut(usize),
    /// Zeros from here on.
    Zeros(usize),
    /// The file is gone.
    Gone,
}

fn apply(files: &dyn FileSystem, path: &Path, damage: Damage) {
    if let Damage::Gone = damage {
        return files.remove(path).unwrap();
    }
    let file = files.open(path, OpenMode::ReadWrite).unwrap();
    let length = file.length().unwrap() as usize;
    match damage {
        Damage::Flip(offset, mask) => {
            let mut byte = [0];
            file.read_at(&mut byte, offset as u64).unwrap();
            byte[0] ^= mask;
            file.write_at(&[IoSlice::new(&byte)], offset as u64).unwrap();
        }
        Damage::Cut(offset) => file.truncate(offset as u64).unwrap(),
        Damage::Zeros(offset) => {
            file.write_at(&[IoSlice::new(&vec![0; length - offset])], offset as u64).unwrap();
        }
        Damage::Gone => {}
    }
}

/// What came of opening and reading a damaged database.
enum Outcome {
    Refused(Error),
    Rows(Model),
}

/// Opens, reads everything by cursor both ways and by key, and compacts all of it.
fn attempt(parts: &Parts, model: &Model) -> Result<Model, Error> {
    let db = Db::open_in(PATH, small_options(), parts.world())?;
    let Some(family) = db.existing_column_family("rocks")? else {
        return Ok(Model::new());
    };
    let mut found = Model::new();
    let mut cursor = family.cursor(..)?;
    while cursor.next()? {
        found.insert(cursor.key().to_vec(), cursor.value().to_vec());
    }
    let mut backwards = 0;
    let mut cursor = family.cursor(..)?;
    while cursor.prev()? {
        assert_eq!(found.get(cursor.key()).map(Vec::as_slice), Some(cursor.value()));
        backwards += 1;
    }
    assert_eq!(backwards, found.len());
    for key in model.keys() {
        assert_eq!(family.get(key)?.as_deref(), found.get(key).map(Vec::as_slice));
    }
    let mut cursor = family.prefix_cursor(b"rock000")?;
    while cursor.next()? {
        assert_eq!(found.get(cursor.key()).map(Vec::as_slice), Some(cursor.value()));
    }
    drop(cursor);
    family.compact_range(..)?;
    assert_eq!(rows(&family), found, "a compaction changes no answer");
    db.close()?;
    Ok(found)
}

fn check(sample: &Sample, name: &str, damage: Damage) -> Outcome {
    let files = sample.parts.files.crash_clone(0, lithify::fs::CrashKeep::Everything);
    let parts = Parts { files, ..sample.parts.clone() };
    apply(&parts.files, &Path::new(PATH).join(name), damage);
    let last = sample.histories.last().unwrap();
    let outcome = std::panic::catch_unwind(|| attempt(&parts, last));
    let result = outcome.unwrap_or_else(|_| panic!("{name}, {damage:?}: panic"));
    assert_eq!(parts.environment.endless_waits(), 0, "{name}, {damage:?}: hang");
    match result {
        Ok(rows) => Outcome::Rows(rows),
        Err(error) => Outcome::Refused(error),
    }
}

/// Whether the error, or the one that it came from, is of a kind that damage may give and names
/// a file of the database.
fn is_typed(error: &Error) -> bool {
    let mut current: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(this) = current {
        if let Some(error) = this.downcast_ref::<Error>() {
            let kind_fits = matches!(
                error.kind(),
                ErrorKind::Corruption
                    | ErrorKind::Unsupported
                    | ErrorKind::NotFound
                    | ErrorKind::ReadOnly
            );
            if kind_fits && error.path().is_some_and(|path| path.starts_with(PATH)) {
                return true;
            }
        }
        current = this.source();
    }
    false
}

/// Runs through all files and damages; counts how many were refused, by file.
fn run(end: End) -> Vec<(String, usize, usize)> {
    let sample = sample(end);
    let mut counts = Vec::new();
    for name in sample.parts.names_ending("") {
        if name == "LOCK" {
            continue;
        }
        let length = {
            let path = Path::new(PATH).join(&name);
            sample.parts.files.length(&path).unwrap() as usize
        };
        let mut damages = vec![Damage::Gone];
        for offset in (0..length).step_by(STRIDE) {
            damages.push(Damage::Flip(offset, 1 << (offset % 8)));
        }
        for offset in (0..length).step_by(length / 40 + 1).chain(length.saturating_sub(4)..length) {
            damages.extend([Damage::Cut(offset), Damage::Zeros(offset)]);
        }
        let mut refused = 0;
        for damage in &damages {
            match check(&sample, &name, *damage) {
                Outcome::Refused(error) => {
                    assert!(is_typed(&error), "{name}, {damage:?}: {error:?}");
                    refused += 1;
                }
                Outcome::Rows(rows) => {
                    let is_right = match (end, name.ends_with(".wal")) {
                        // Nothing but its own records tells how long a killed log was.
                        (End::Killed, true) => match damage {
                            Damage::Flip(..) => sample.histories[sample.synced..].contains(&rows),
                            _ => sample.histories.contains(&rows),
                        },
                        _ => sample.histories.last() == Some(&rows),
                    };
                    assert!(is_right, "{name}, {damage:?}: wrong rows, {} of them", rows.len());
                }
            }
        }
        counts.push((name, refused, damages.len()));
    }
    counts
}

fn refused_share(counts: &[(String, usize, usize)], is_meant: impl Fn(&str) -> bool) -> f64 {
    let meant = counts.iter().filter(|(name, ..)| is_meant(name));
    let (refused, all) = meant.fold((0, 0), |sum, (_, r, a)| (sum.0 + r, sum.1 + a));
    assert!(all > 0, "{counts:?}");
    refused as f64 / all as f64
}

#[test]
fn damage_to_a_closed_database_is_an_error_or_does_not_matter() {
    let counts = watched("damage after a close", || run(End::Closed));
    // The tables of a closed database are all read, and all of their bytes are covered.
    for end in [".sst", "CURRENT"] {
        let share = refused_share(&counts, |name| name.ends_with(end));
        assert_eq!(share, 1.0, "some damage to {end} went unnoticed: {counts:?}");
    }
    let share = refused_share(&counts, |name| name.starts_with("MANIFEST"));
    // An edit that is torn at the end, like that of the close, counts as never made.
    assert!(share > 0.6, "damage to the manifest went unnoticed: {counts:?}");
}

#[test]
fn damage_after_a_kill_is_an_error_or_costs_only_what_was_not_synced() {
    watched("damage after a kill", || run(End::Killed));
}

/// The block that a reader has cached stays right; one that it has not yet read is an error, and
/// the other blocks still answer.
#[test]
fn damage_under_an_open_database_is_an_error_at_that_block_only() {
    let sample = sample(End::Closed);
    let db = Db::open_in(PATH, small_options(), sample.parts.world()).unwrap();
    let family = db.existing_column_family("rocks").unwrap().unwrap();
    let tables = sample.parts.names_ending(".sst");
    let path: PathBuf = Path::new(PATH).join(&tables[0]);
    apply(&sample.parts.files, &path, Damage::Flip(30, 0x40));
    let model = sample.histories.last().unwrap();
    let (mut right, mut refused) = (0, 0);
    for (key, value) in model {
        match family.get(key) {
            Ok(found) => {
                assert_eq!(found.as_deref(), Some(&value[..]));
                right += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                assert_eq!(error.path(), Some(&*path));
                assert_eq!(error.offset(), Some(0));
                refused += 1;
            }
        }
    }
    assert!(right > 0 && refused > 0, "{right} right, {refused} refused");
}

/// Once the error was "not found", as if there were no database.
#[test]
fn a_missing_table_is_corruption_and_names_it() {
    let sample = sample(End::Closed);
    let path = Path::new(PATH).join(&sample.parts.names_ending(".sst")[0]);
    apply(&sample.parts.files, &path, Damage::Gone);
    let error = Db::open_in(PATH, small_options(), sample.parts.world()).map(drop).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*path)), "{error}");
}

/// Once a log whose last segment was gone, empty or zeros looked like one that had no writes.
#[test]
fn the_last_log_segment_is_missed_when_it_is_gone() {
    let sample = sample(End::Killed);
    let name = sample.parts.names_ending(".wal").pop().unwrap();
    for damage in [Damage::Gone, Damage::Cut(0), Damage::Zeros(0)] {
        let Outcome::Refused(error) = check(&sample, &name, damage) else {
            panic!("{damage:?} went unnoticed");
        };
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert_eq!(error.path(), Some(&*Path::new(PATH).join(&name)), "{error}");
    }
}

/// Once an ingest, whose rows are in no log, went without a word with the end of the manifest.
#[test]
fn a_manifest_cut_at_the_end_of_an_edit_is_corruption() {
    let parts = Parts::new(1);
    let db = Db::open_in(PATH, small_options(), parts.world()).unwrap();
    let family = db.column_family("rocks", family_options()).unwrap();
    let mut names = parts.names_ending("").into_iter();
    let manifest = Path::new(PATH).join(names.find(|name| name.starts_with("MANIFEST")).unwrap());
    let length = parts.files.length(&manifest).unwrap();
    let mut ingest = family.ingest().unwrap();
    ingest.put(b"basalt", b"igneous").unwrap();
    ingest.commit().unwrap();
    let files = parts.files.crash_clone(0, lithify::fs::CrashKeep::Everything);
    let parts = Parts { files, ..parts.clone() };
    apply(&parts.files, &manifest, Damage::Cut(length as usize));
    let error = Db::open_in(PATH, small_options(), parts.world()).map(drop).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*manifest)), "{error}");
    assert_eq!(error.offset(), Some(length));
}
