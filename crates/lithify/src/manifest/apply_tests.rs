//! Text tests of edits: `testdata/apply.txt` holds edits and what becomes of the state.

use super::*;
use crate::codec::{CodecId, Compression};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The fields `name=value` of a line.
struct Fields<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Fields<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    fn number(&self, name: &str) -> u64 {
        self.text(name).map_or(0, |text| text.parse().unwrap())
    }

    fn id(&self, name: &str) -> u32 {
        self.number(name) as u32
    }

    fn level(&self, name: &str) -> usize {
        self.number(name) as usize
    }
}

fn parse_metadata(fields: &Fields<'_>) -> FileMetadata {
    let (smallest, largest) = fields.text("keys").unwrap().split_once("..").unwrap();
    let sequences = fields.text("sequences").and_then(|text| text.split_once(".."));
    let (first, last) = sequences.unwrap_or(("1", "1"));
    let number = fields.number("number");
    let codec = fields.text("codec").and_then(|text| text.split_once(':'));
    let compression = codec.map_or(Compression::LZ4, |(name, effort)| Compression {
        codec: CodecId::ALL.into_iter().find(|codec| codec.name() == name).unwrap(),
        effort: effort.parse().unwrap(),
        ..Compression::NONE
    });
    FileMetadata {
        number,
        table_id: [number as u8; 16],
        size_bytes: 1000 + number,
        raw_bytes: 2000 + number,
        range: KeyRange {
            smallest: smallest.as_bytes().into(),
            largest: largest.trim_start_matches('=').as_bytes().into(),
            largest_exclusive: !largest.starts_with('='),
        },
        smallest_sequence: first.parse().unwrap(),
        largest_sequence: last.parse().unwrap(),
        entries: 10,
        tombstones: 1,
        range_tombstones: 0,
        compression,
        block_size_bytes: 0,
        dictionary: None,
        codec_debt: false,
        ingested: false,
        newest_obsolete_sequence: 0,
        write_times: None,
    }
}

pub(super) fn parse_change(line: &str) -> Change {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let fields = Fields(rest.split(' ').filter_map(|field| field.split_once('=')).collect());
    let family = fields.id("family");
    match verb {
        "create" => Change::CreateFamily {
            id: fields.id("id"),
            name: fields.text("name").unwrap().to_owned(),
            level_count: fields.text("levels").map_or(2, |text| text.parse().unwrap()),
            log_number: fields.number("log"),
            options: b"options".to_vec(),
        },
        "drop" => Change::DropFamily { id: fields.id("id") },
        "add" => Change::AddFile {
            family,
            level: fields.level("level"),
            metadata: parse_metadata(&fields),
        },
        "remove" => {
            let (level, number) = (fields.level("level"), fields.number("number"));
            Change::RemoveFile { family, level, number }
        }
        "move" => Change::MoveFile {
            family,
            number: fields.number("number"),
            from: fields.level("from"),
            to: fields.level("to"),
            codec_debt: fields.number("debt") == 1,
        },
        "flushed" => Change::FlushedThrough {
            family,
            sequence: fields.number("sequence"),
            log_number: fields.number("log"),
        },
        "next_file" => Change::NextFileNumber(fields.number("number")),
        "last_sequence" => Change::LastSequence(fields.number("sequence")),
        "next_family" => Change::NextFamilyId(fields.id("id")),
        "features" => Change::Features(fields.number("bits") as u32),
        "clean_close" => Change::CleanClose(CleanClose {
            log_end: crate::wal::SegmentEnd {
                log_number: fields.number("log"),
                end_offset: fields.number("end"),
            },
            last_sequence: fields.number("sequence"),
        }),
        "cursor" => Change::CompactionCursor {
            family,
            level: fields.level("level"),
            key: fields.text("key").unwrap().as_bytes().into(),
        },
        verb => panic!("unknown change {verb}"),
    }
}

/// A state as text.
pub(super) fn describe(state: &ManifestState) -> String {
    let mut text = String::new();
    write!(
        text,
        "next_file={} next_family={} last_sequence={}",
        state.next_file_number, state.next_family_id, state.last_sequence
    )
    .unwrap();
    if let Some(close) = state.clean_close {
        write!(text, " closed={}:{}", close.log_end.log_number, close.log_end.end_offset).unwrap();
    }
    text.push('\n');
    for (id, family) in &state.families {
        let (flushed, log) = (family.flushed_through, family.log_number);
        writeln!(text, "{id} {} flushed_through={flushed} log={log}", family.name).unwrap();
        for level in 0..family.version.level_count() {
            let cursor = &family.compaction_cursors[level];
            let tables = family.version.level(level);
            if tables.is_empty() && cursor.is_empty() {
                continue;
            }
            write!(text, "  L{level}").unwrap();
            for table in tables {
                let FileMetadata { number, range, compression, codec_debt, .. } = &table.metadata;
                let end = if range.largest_exclusive { ")" } else { "]" };
                let (smallest, largest) =
                    (range.smallest.escape_ascii(), range.largest.escape_ascii());
                let debt = if *codec_debt { " debt" } else { "" };
                let codec = compression.codec.name();
                write!(text, " {number}:[{smallest},{largest}{end} {codec}{debt}").unwrap();
            }
            if !cursor.is_empty() {
                write!(text, " cursor={}", cursor.escape_ascii()).unwrap();
            }
            text.push('\n');
        }
    }
    text
}

#[test]
fn edits_do_what_the_text_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/manifest/testdata/apply.txt");
    let stored = std::fs::read_to_string(&path).unwrap();
    let mut state = ManifestState::default();
    let mut actual = Vec::new();
    for block in stored.trim_end().split("\n\n") {
        let input = block.split("----").next().unwrap().trim_end();
        let lines: Vec<_> = input.lines().filter(|line| !line.starts_with('#')).collect();
        if lines.is_empty() {
            actual.push(input.to_owned());
            continue;
        }
        let changes: Vec<_> = lines.into_iter().map(parse_change).collect();
        let before = describe(&state);
        let output = match state.apply(&VersionEdit::from(changes)) {
            Ok(applied) => {
                state = applied.state;
                let removed = applied.removed.iter().map(|table| table.metadata.number);
                let removed: Vec<_> = removed.collect();
                let removed = if removed.is_empty() {
                    String::new()
                } else {
                    format!("removed {removed:?}\n")
                };
                describe(&state) + &removed
            }
            Err(error) => {
                assert_eq!(describe(&state), before, "a refused edit changes nothing");
                format!("{error}\n")
            }
        };
        let rebuilt = ManifestState::default().apply(&state.snapshot()).unwrap().state;
        assert_eq!(describe(&rebuilt), describe(&state), "a snapshot builds the same state");
        actual.push(format!("{input}\n----\n{}", output.trim_end()));
    }
    let actual = actual.join("\n\n") + "\n";
    if std::env::var_os("LITHIFY_REWRITE").is_some() {
        std::fs::write(&path, &actual).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), actual);
}
