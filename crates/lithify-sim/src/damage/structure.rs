//! What the bytes of a file are: its structures with their places, as `inspect` tells them of the
//! undamaged file, and what damage to each must lead to.

use super::sample::{End, PATH, Sample};
use lithify::fs::FileSystem;
use lithify::inspect::{DumpOptions, Item, Value, dump};
use lithify::manifest::{FileName, LoadedManifest};
use lithify::wal::{FRAME_SIZE_BYTES, HEADER_SIZE_BYTES};
use std::ops::Range;
use std::path::Path;

/// What a structure is called, and the names of its counters.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// Of what was tried on it.
    pub tried: &'static str,
    /// Of what was noticed, with file and place.
    pub detected: &'static str,
    /// Of what did not matter.
    pub harmless: &'static str,
    /// Why it may not matter.
    pub why_harmless: &'static str,
}

macro_rules! kind {
    ($constant:ident, $name:literal, $why:literal) => {
        #[doc = concat!("The structure: ", $name, ".")]
        pub static $constant: Kind = Kind {
            name: $name,
            tried: concat!("tried: ", $name),
            detected: concat!("detected: ", $name),
            harmless: concat!("harmless: ", $name),
            why_harmless: $why,
        };
    };
}

kind!(CURRENT, "CURRENT", "");
kind!(WITNESS, "WITNESS", "it is a help for finding damage: without it, less is known");
kind!(HEAT, "HEAT", "it is knowledge of reads: without it, they are not known");
kind!(LOCK, "LOCK", "its content means nothing");
kind!(LOG_HEADER, "log, header", "");
kind!(LOG_RECORD, "log, record", "");
kind!(
    LOG_END,
    "log, record behind the last sync",
    "a write that was not confirmed may be torn: the record and those behind it were never promised"
);
kind!(LOG_PADDING, "log, padding of a record", "zeros up to the next multiple of 8, never read");
kind!(LOG_TAIL, "log, behind its end", "the rest of the segment's earlier life, or reserved space");
kind!(MANIFEST_HEADER, "manifest, header", "");
kind!(MANIFEST_RECORD, "manifest, record", "");
kind!(MANIFEST_PADDING, "manifest, padding of a record", "as in the log");
kind!(TABLE_DATA, "table, data block", "");
kind!(TABLE_FILTER, "table, filter", "");
kind!(TABLE_TOMBSTONES, "table, range tombstones", "");
kind!(TABLE_PARTITION, "table, index partition", "");
kind!(TABLE_INDEX, "table, index", "");
kind!(TABLE_DICTIONARY, "table, dictionary", "");
kind!(TABLE_PROPERTIES, "table, properties", "");
kind!(TABLE_FOOTER, "table, footer", "");
kind!(ORPHAN, "file that nothing refers to", "a crash left it, and opening removes it unread");

/// All of them, in the order of the report.
pub static KINDS: [&Kind; 21] = [
    &CURRENT,
    &MANIFEST_HEADER,
    &MANIFEST_RECORD,
    &MANIFEST_PADDING,
    &LOG_HEADER,
    &LOG_RECORD,
    &LOG_END,
    &LOG_PADDING,
    &LOG_TAIL,
    &TABLE_DATA,
    &TABLE_FILTER,
    &TABLE_TOMBSTONES,
    &TABLE_PARTITION,
    &TABLE_INDEX,
    &TABLE_DICTIONARY,
    &TABLE_PROPERTIES,
    &TABLE_FOOTER,
    &WITNESS,
    &HEAT,
    &LOCK,
    &ORPHAN,
];

/// A stretch of a file that is one thing.
#[derive(Clone, Debug)]
pub struct Structure {
    /// What.
    pub kind: &'static Kind,
    /// Its bytes.
    pub bytes: Range<u64>,
    /// An error about it names an offset in here.
    pub place: Range<u64>,
}

/// A file of a sample with its structures, which cover all of its bytes.
pub struct Anatomy {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// Ascending, without gaps.
    pub structures: Vec<Structure>,
}

impl Anatomy {
    /// What the byte at an offset belongs to.
    pub fn at(&self, offset: u64) -> &Structure {
        let index = self.structures.partition_point(|structure| structure.bytes.end <= offset);
        &self.structures[index.min(self.structures.len() - 1)]
    }

    /// The kind of file, as the report calls it.
    pub fn file_kind(&self) -> &'static str {
        match FileName::parse(&self.name) {
            Some(FileName::Table(_)) => "table",
            Some(FileName::Wal(_)) => "log",
            Some(FileName::Manifest(_)) => "manifest",
            Some(FileName::Witness) => "WITNESS",
            Some(FileName::Heat) => "HEAT",
            Some(FileName::Lock) => "LOCK",
            _ => "CURRENT",
        }
    }

    /// Whether nothing refers to the file.
    pub fn is_orphan(&self) -> bool {
        self.structures.first().is_some_and(|structure| structure.kind == &ORPHAN)
    }
}

/// The anatomy of every file of a sample.
pub fn anatomies(sample: &Sample) -> Vec<Anatomy> {
    let referred = referred(sample);
    sample.names().into_iter().map(|name| anatomy(sample, name, &referred)).collect()
}

/// The files that the database needs.
fn referred(sample: &Sample) -> Vec<String> {
    // INVARIANT: nothing is damaged yet.
    let loaded = LoadedManifest::read(&sample.files, Path::new(PATH), &mut |_, _| {})
        .expect("an undamaged manifest");
    let oldest = loaded.state.oldest_log_needed();
    let is_needed = |name: &String| match FileName::parse(name) {
        Some(FileName::Manifest(number)) => number == loaded.number,
        Some(FileName::Wal(number)) => number >= oldest,
        Some(FileName::Table(number)) => loaded.state.table_numbers().any(|live| live == number),
        _ => true,
    };
    sample.names().into_iter().filter(is_needed).collect()
}

fn anatomy(sample: &Sample, name: String, referred: &[String]) -> Anatomy {
    let path = Path::new(PATH).join(&name);
    // INVARIANT: as above.
    let size = sample.files.length(&path).expect("a file of the sample");
    let whole = |kind| vec![Structure { kind, bytes: 0..size, place: 0..size }];
    let structures = match FileName::parse(&name) {
        _ if !referred.contains(&name) => whole(&ORPHAN),
        Some(FileName::Wal(_)) => {
            let is_last = referred.iter().rfind(|name| name.ends_with(".wal")) == Some(&name);
            log(&items(sample, &path), size, is_last && sample.end == End::Killed)
        }
        Some(FileName::Manifest(_)) => manifest(&items(sample, &path), size),
        Some(FileName::Table(_)) => table(&items(sample, &path), size),
        Some(FileName::Witness) => whole(&WITNESS),
        Some(FileName::Heat) => whole(&HEAT),
        Some(FileName::Lock) => whole(&LOCK),
        _ => whole(&CURRENT),
    };
    Anatomy { name, size, structures }
}

fn items(sample: &Sample, path: &Path) -> Vec<Item> {
    let mut items = Vec::new();
    let options = DumpOptions { blocks: true, ..DumpOptions::default() };
    let mut take = |item: &Item| {
        items.push(item.clone());
        Ok(())
    };
    // INVARIANT: as above.
    dump(&sample.files, path, &options, &mut take).expect("an undamaged file");
    items
}

fn number(item: &Item, name: &str) -> u64 {
    let found = item.fields().iter().find(|(field, _)| *field == name);
    match found {
        Some((_, Value::Number(number))) => *number,
        _ => 0,
    }
}

/// Blocks by the places of their items, the footer behind them.
fn table(items: &[Item], size: u64) -> Vec<Structure> {
    let mut structures = Vec::new();
    for item in items {
        let kind = match item.name() {
            "block" => &TABLE_DATA,
            "filter_block" => &TABLE_FILTER,
            "tombstone_block" => &TABLE_TOMBSTONES,
            "index_partition" => &TABLE_PARTITION,
            "index_block" => &TABLE_INDEX,
            "dictionary_block" => &TABLE_DICTIONARY,
            "properties_block" => &TABLE_PROPERTIES,
            "footer" => &TABLE_FOOTER,
            _ => continue,
        };
        let start = item.offset().unwrap_or(0);
        let length = match kind == &TABLE_FOOTER {
            true => size - start,
            false => number(item, "stored_size"),
        };
        let bytes = start..start + length;
        structures.push(Structure { kind, place: bytes.clone(), bytes });
    }
    structures.sort_by_key(|structure| structure.bytes.start);
    structures
}

/// Records: where each starts, where its payload ends, and where the next one starts.
fn records(items: &[Item]) -> Vec<(Range<u64>, Range<u64>, u64)> {
    let found = items.iter().filter(|item| item.name() == "record").map(|item| {
        let start = item.offset().unwrap_or(0);
        let end = start + FRAME_SIZE_BYTES as u64 + number(item, "payload_length");
        let behind = end.next_multiple_of(8);
        (start..end, end..behind, number(item, "synced_through"))
    });
    found.collect()
}

/// With `has_open_end` nothing names the end of the log: what the last record does not know as
/// synced may go.
fn log(items: &[Item], size: u64, has_open_end: bool) -> Vec<Structure> {
    let header = 0..HEADER_SIZE_BYTES as u64;
    let mut structures =
        vec![Structure { kind: &LOG_HEADER, bytes: header.clone(), place: header.clone() }];
    let records = records(items);
    let watermark = records.last().map_or(0, |(_, _, synced_through)| *synced_through);
    let mut behind = header.end;
    for (bytes, padding, _) in records {
        behind = padding.end;
        let is_promised = !has_open_end || bytes.start < watermark;
        let kind = if is_promised { &LOG_RECORD } else { &LOG_END };
        structures.push(Structure { kind, place: bytes.clone(), bytes });
        structures.push(Structure { kind: &LOG_PADDING, place: padding.clone(), bytes: padding });
    }
    structures.push(Structure { kind: &LOG_TAIL, bytes: behind..size, place: behind..size });
    tidied(structures, size)
}

fn manifest(items: &[Item], size: u64) -> Vec<Structure> {
    let header = 0..HEADER_SIZE_BYTES as u64;
    let mut structures =
        vec![Structure { kind: &MANIFEST_HEADER, bytes: header.clone(), place: header }];
    let records = records(items);
    for (bytes, padding, _) in records {
        structures.push(Structure { kind: &MANIFEST_RECORD, place: bytes.clone(), bytes });
        let place = padding.clone();
        structures.push(Structure { kind: &MANIFEST_PADDING, bytes: padding, place });
    }
    tidied(structures, size)
}

/// Without empty ones, none of them beyond the end of the file.
fn tidied(structures: Vec<Structure>, size: u64) -> Vec<Structure> {
    let cut = structures.into_iter().map(|mut structure| {
        structure.bytes.end = structure.bytes.end.min(size);
        structure
    });
    cut.filter(|structure| structure.bytes.start < structure.bytes.end).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample::sample;
    use super::*;

    #[test]
    fn structures_cover_every_byte_and_every_kind_is_there() {
        let mut seen = Vec::new();
        for end in [End::Closed, End::Killed] {
            for anatomy in anatomies(sample(end)) {
                let mut next = 0;
                for structure in &anatomy.structures {
                    assert_eq!(structure.bytes.start, next, "{}: {structure:?}", anatomy.name);
                    next = structure.bytes.end;
                    seen.push(structure.kind);
                }
                assert_eq!(next, anatomy.size, "{}", anatomy.name);
            }
        }
        for kind in KINDS {
            assert!(seen.contains(&kind), "no sample has: {}", kind.name);
        }
    }
}
