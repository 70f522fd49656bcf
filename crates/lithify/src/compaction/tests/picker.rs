//! Text tests: each case is a command with its input, a line `----`, and the expected output up
//! to an empty line. `LITHIFY_REWRITE=1` writes the outputs anew; then read the difference.
//!
//! `define` starts a new tree; a line is a level, then tables as `number:smallest-largest` with
//! marks in parentheses (`4M` size, `s7` largest sequence, `o7` newest obsolete sequence, `t1`
//! tombstones, `r1` range tombstones, `debt`). `pick` takes `idle`, `oldest=N`, `max=SIZE`,
//! `runs=SIZE`, `grand=SIZE`, `plain`
//! (without what comes for free); `start` (or the word behind `manual`) also makes the pick busy,
//! `end` ends the one started first.

use crate::base::Level;
use crate::codec::Compression;
use crate::compaction::levels::*;
use crate::compaction::picker::*;
use crate::manifest::{FileMetadata, KeyRange, TableFile, Version};
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const LEVELS: usize = 5;

struct Tree {
    version: Version,
    shape: TreeShape,
    busy: BusySet,
    cursors: Cursors,
    running: VecDeque<Compaction>,
    last: Option<Compaction>,
}

fn size(text: &str) -> u64 {
    match text.strip_suffix('M') {
        Some(mib) => mib.parse::<u64>().unwrap() * MIB,
        None => text.parse().unwrap(),
    }
}

fn range(text: &str) -> KeyRange {
    let (smallest, largest) = text.split_once('-').unwrap();
    KeyRange::inclusive(smallest.as_bytes(), largest.as_bytes())
}

/// `5:a-f(2M,debt)`.
fn table(text: &str) -> Arc<TableFile> {
    let (text, marks) = text.split_once('(').unwrap_or((text, ")"));
    let (number, keys) = text.split_once(':').unwrap();
    let number = number.parse().unwrap();
    let mut metadata = FileMetadata {
        number,
        table_id: [0; 16],
        size_bytes: MIB,
        raw_bytes: 2 * MIB,
        range: range(keys),
        smallest_sequence: number,
        largest_sequence: number,
        entries: 100,
        tombstones: 0,
        range_tombstones: 0,
        compression: Compression::NONE,
        block_size_bytes: 0,
        dictionary: None,
        codec_debt: false,
        ingested: false,
        newest_obsolete_sequence: 0,
        write_times: None,
    };
    for mark in marks.trim_end_matches(')').split(',').filter(|mark| !mark.is_empty()) {
        match (mark.split_at(1), mark) {
            (_, "debt") => metadata.codec_debt = true,
            (("s", sequence), _) => metadata.largest_sequence = sequence.parse().unwrap(),
            (("o", sequence), _) => metadata.newest_obsolete_sequence = sequence.parse().unwrap(),
            (("t", count), _) => metadata.tombstones = count.parse().unwrap(),
            (("r", count), _) => metadata.range_tombstones = count.parse().unwrap(),
            _ => metadata.size_bytes = size(mark),
        }
    }
    TableFile::new(metadata)
}

impl Tree {
    fn define(input: &[&str]) -> Self {
        let mut levels = vec![Vec::new(); LEVELS];
        for line in input {
            let (level, tables) = line.split_once(char::is_whitespace).unwrap();
            let level: Level = level.strip_prefix('L').unwrap().parse().unwrap();
            levels[level] = tables.split_whitespace().map(table).collect();
        }
        Tree {
            version: Version::new(levels),
            shape: TreeShape { base_level_bytes_max: 4 * MIB, fanout: 4, level0_trigger: 4 },
            busy: BusySet::new(),
            cursors: Cursors::new(LEVELS),
            running: VecDeque::new(),
            last: None,
        }
    }

    fn run(&mut self, command: &str) -> String {
        let mut words = command.split_whitespace();
        let verb = words.next().unwrap();
        let words: Vec<&str> = words.collect();
        let value =
            |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let targets = LevelTargets::new(&self.version, &self.shape);
        let picker = Picker {
            version: &self.version,
            targets: &targets,
            busy: &self.busy,
            cursors: &self.cursors,
            oldest_snapshot: value("oldest").map_or(0, |text| text.parse().unwrap()),
            options: PickOptions {
                expiry: None,
                moves: true,
                compaction_bytes_max: value("max").map_or(16 * MIB, size),
                level0_bytes_max: value("runs").map_or(64 * MIB, size),
                grandparent_bytes_max: value("grand").map_or(8 * MIB, size),
                idle: words.contains(&"idle"),
                grows: !words.contains(&"plain"),
            },
        };
        let picked = match verb {
            "shape" => {
                let scores: Vec<String> =
                    picker.scores().iter().map(|score| format!("{score:.2}")).collect();
                let sizes = level_sizes(&self.version);
                return format!(
                    "base L{}, targets {:?}\nscores {}\npending {}\n",
                    targets.base_level,
                    targets.target_bytes,
                    scores.join(" "),
                    targets.pending_compaction_bytes(&sizes)
                );
            }
            "split" => return describe_split(self.last.as_ref().unwrap(), &words),
            "end" => {
                let ended = self.running.pop_front().unwrap();
                self.busy.remove(&ended);
                return String::from("ended\n");
            }
            "manual" => {
                let level = value("level").unwrap().parse().unwrap();
                match picker.pick_manual(level, &range(value("range").unwrap())) {
                    ManualPick::Nothing => return String::from("nothing there\n"),
                    ManualPick::Busy => return String::from("busy\n"),
                    ManualPick::Compact(compaction) => Some(compaction),
                }
            }
            "pick" | "start" => picker.pick(),
            _ => panic!("no command {verb}"),
        };
        let Some(compaction) = picked else { return String::from("none\n") };
        let text = describe(&compaction);
        if verb == "start" || words.contains(&"start") {
            self.busy.add(&compaction);
            self.cursors.advance(&compaction);
            self.running.push_back(compaction.clone());
        }
        self.last = Some(compaction);
        text
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn describe(compaction: &Compaction) -> String {
    let Compaction { kind, reason, source_level, target_level, range, score, .. } = compaction;
    let mut out = format!("{kind:?} L{source_level} -> L{target_level} ({reason:?}, {score:.2})");
    let _ = writeln!(out, " {}-{}", text(&range.smallest), text(&range.largest));
    for (level, tables) in &compaction.inputs {
        let numbers: Vec<u64> = tables.iter().map(|table| table.metadata.number).collect();
        let _ = writeln!(out, "  L{level}: {numbers:?}");
    }
    if !compaction.boundaries.is_empty() {
        let keys: Vec<String> =
            compaction.boundaries.iter().map(|boundary| text(&boundary.key)).collect();
        let _ = writeln!(out, "  boundaries: {}", keys.join(" "));
    }
    out
}

fn describe_split(compaction: &Compaction, words: &[&str]) -> String {
    let ranges = compaction.split(words[0].parse().unwrap());
    let end = |key: &Option<Box<[u8]>>| key.as_ref().map_or("*".to_owned(), |key| text(key));
    let ranges: Vec<String> = ranges
        .iter()
        .map(|range| format!("[{}, {})", end(&range.start), end(&range.end)))
        .collect();
    format!("{}\n", ranges.join(" "))
}

#[test]
fn picks() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/compaction/testdata/picker.txt");
    let stored = std::fs::read_to_string(path).unwrap();
    let mut tree = Tree::define(&[]);
    let mut actual = String::new();
    for case in stored.split("\n\n") {
        let input: Vec<&str> = case
            .lines()
            .take_while(|line| *line != "----")
            .filter(|line| !line.is_empty())
            .collect();
        let output = match input.iter().position(|line| !line.starts_with('#')) {
            Some(first) if input[first] == "define" => {
                tree = Tree::define(&input[first + 1..]);
                String::new()
            }
            Some(first) => format!("----\n{}", tree.run(input[first])),
            None => String::new(),
        };
        let separator = if actual.is_empty() { "" } else { "\n" };
        let _ = write!(actual, "{separator}{}\n{output}", input.join("\n"));
    }
    if std::env::var_os("LITHIFY_REWRITE").is_some() {
        std::fs::write(path, &actual).unwrap();
    } else {
        assert_eq!(actual, stored);
    }
}

/// Whatever the tree, a pick is safe to run beside what is running already.
#[test]
fn random_picks_never_conflict() {
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut random = move |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    let mut picked_count = 0;
    for _ in 0..300 {
        let mut levels = vec![Vec::new(); LEVELS];
        let mut number = 0;
        for (level, tables) in levels.iter_mut().enumerate() {
            let mut key = random(20);
            for _ in 0..random(if level == 0 { 8 } else { 4 << level }) {
                number += 1;
                let smallest = if level == 0 { random(900) } else { key };
                let largest = smallest + random(60);
                key = largest + 1 + random(30);
                let marks = ["", ",debt", ",o3", ",t1", ",t40,s3"][random(5) as usize];
                let bytes = (1 + random(8)) * MIB / 4;
                let keys = format!("{smallest:04}-{largest:04}");
                tables.push(table(&format!("{number}:{keys}({bytes}{marks})")));
            }
        }
        let mut tree = Tree::define(&[]);
        tree.version = Version::new(levels);
        let command = ["start idle oldest=5", "start idle oldest=5 runs=2M"][random(2) as usize];
        while tree.run(command) != "none\n" {
            picked_count += 1;
            let all: Vec<&Compaction> = tree.running.iter().collect();
            let (new, others) = all.split_last().unwrap();
            check_closed(&tree.version, new);
            check_split(new);
            for other in others {
                let shares = new.input_tables().any(|(_, table)| {
                    other.input_tables().any(|(_, theirs)| Arc::ptr_eq(table, theirs))
                });
                assert!(!shares, "{}{}", describe(new), describe(other));
                let same_target = new.target_level == other.target_level;
                assert!(!(same_target && new.range.overlaps(&other.range)));
            }
        }
    }
    assert!(picked_count > 300, "{picked_count}");
}

/// Nothing stays behind that would end up above or beside newer data; newer runs may.
fn check_closed(version: &Version, compaction: &Compaction) {
    let is_input = |table: &Arc<TableFile>| {
        compaction.input_tables().any(|(_, input)| Arc::ptr_eq(input, table))
    };
    for (source_level, source) in compaction.input_tables() {
        let range = &source.metadata.range;
        for table in version.overlapping(compaction.target_level, range) {
            assert!(is_input(&table), "{}", describe(compaction));
        }
        if compaction.source_level == 0 {
            for level in 0..compaction.target_level {
                for table in version.overlapping(level, range) {
                    let age = table.metadata.largest_sequence;
                    // A run stays above the target's own tables, however it overlaps them.
                    let is_newer =
                        level == 0 && (source_level > 0 || age > source.metadata.largest_sequence);
                    assert!(is_newer || is_input(&table), "{}", describe(compaction));
                }
            }
        }
    }
}

fn check_split(compaction: &Compaction) {
    for parts in 1..5 {
        let ranges = compaction.split(parts);
        assert!(!ranges.is_empty() && ranges.len() <= parts);
        assert_eq!((&ranges[0].start, &ranges[ranges.len() - 1].end), (&None, &None));
        for pair in ranges.windows(2) {
            assert_eq!(pair[0].end, pair[1].start);
            assert!(pair[0].start.is_none() || pair[0].start < pair[0].end);
        }
    }
}
