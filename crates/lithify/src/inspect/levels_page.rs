//! The tree of a database as a page of text, or as one JSON object.
//!
//! The page answers first: one line a level. What few ask for comes in further tables, so that no line is
//! wider than the page.

use super::item::escape;
use super::levels::{FamilyLevels, LevelSum, Levels, TableLine};
use crate::base::{size, wrapped};
use crate::codec::CodecId;
use crate::stats::JsonWriter;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write};

/// What a page of text shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelsPage {
    /// A line for each table too.
    pub files: bool,
    /// Every figure, and levels without tables.
    pub full: bool,
    /// Signs that a line has at most, as far as figures fit into it; 80 are enough.
    pub width: usize,
}

/// Of a level: what most people ask for, its blocks, its entries.
const LEVEL_HEADERS: [&[&str]; 3] = [
    &["LEVEL", "TABLES", "SIZE", "RATIO", "TARGET", "ENTRIES", "CODEC", "NEXT"],
    &["LEVEL", "RAW", "BLOCKS", "FALLBACK", "DEBT"],
    &["LEVEL", "DELETES", "RANGE_DELETES", "SEQUENCES"],
];

/// The same of a table.
const TABLE_HEADERS: [&[&str]; 3] = [
    &["LEVEL", "TABLE", "SIZE", "RATIO", "ENTRIES", "CODEC", "FIRST", "LAST"],
    &["TABLE", "RAW", "BLOCKS", "FALLBACK", "DEBT", "WRITTEN_FOR"],
    &["TABLE", "DELETES", "RANGE_DELETES", "SEQUENCES"],
];

/// A cell is not cut to fewer signs than these.
const CELL_MIN: usize = 8;
/// What stands between two columns.
const GAP: usize = 2;
/// Columns in front of the second line of a sentence.
const INDENT: usize = 2;

/// Columns of words stand to the left, columns of figures to the right.
fn is_left(column: &str) -> bool {
    is_cut(column) || matches!(column, "LEVEL" | "SEQUENCES")
}

/// Words are cut where a line would be too wide, figures never.
fn is_cut(column: &str) -> bool {
    matches!(column, "CODEC" | "NEXT" | "BLOCKS" | "FIRST" | "LAST")
}

/// Rows of one table of text, aligned by column.
struct Grid<'a> {
    header: &'a [&'a str],
    rows: Vec<Vec<String>>,
    width: usize,
}

impl Grid<'_> {
    /// The widths of the columns: the widest cells, or less in columns of words.
    fn widths(&self) -> Vec<usize> {
        let widest = |(column, name): (usize, &&str)| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let signs = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            let signs = if is_cut(name) { signs.min(self.width) } else { signs };
            signs.max(name.len())
        };
        let mut widths: Vec<usize> = self.header.iter().enumerate().map(widest).collect();
        let gaps = GAP * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > self.width {
            let columns = widths.iter_mut().zip(self.header);
            let words = columns.filter(|(width, name)| is_cut(name) && **width > CELL_MIN);
            let Some((widest, _)) = words.max_by_key(|(width, _)| **width) else { break };
            *widest -= 1;
        }
        widths
    }
}

impl Display for Grid<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let header: Vec<String> = self.header.iter().map(|name| (*name).to_owned()).collect();
        for row in std::iter::once(&header).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, name), width) in row.iter().zip(self.header).zip(&widths) {
                match is_left(name) {
                    true => write!(line, "{:<width$}", shortened(cell, *width))?,
                    false => write!(line, "{cell:>width$}")?,
                }
                line.push_str(&" ".repeat(GAP));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// At most so many signs of a text: its start and, as neighbouring keys begin alike, more of its end.
fn shortened(text: &str, width: usize) -> String {
    let signs = text.chars().count();
    if signs <= width {
        return text.to_owned();
    }
    let start = width.saturating_sub(1) / 3;
    let end = signs - (width.saturating_sub(1) - start);
    text.chars().take(start).chain(['…']).chain(text.chars().skip(end)).collect()
}

/// Words as lines of the page.
fn prose(words: &str, width: usize) -> String {
    wrapped("", words.split(' '), INDENT, width) + "\n"
}

/// Names with their counts, the most frequent first.
fn counts<'a>(names: impl Iterator<Item = (&'a str, u64)>) -> String {
    let mut names: Vec<_> = names.collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words: Vec<String> = names.iter().map(|(name, count)| format!("{name}:{count}")).collect();
    if words.is_empty() { "-".to_string() } else { words.join(",") }
}

fn block_counts(blocks: &BTreeMap<CodecId, u64>) -> String {
    counts(blocks.iter().map(|(codec, count)| (codec.name(), *count)))
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_string(), |ratio| format!("{ratio:.2}"))
}

impl LevelSum {
    /// Its cells in the tables of [`LEVEL_HEADERS`]; what is asked of a sum of levels is empty.
    fn rows(&self, name: &str, target: &str, asked: &str) -> [Vec<String>; 3] {
        let name = || name.to_owned();
        let sequences = match self.files {
            0 => "-".to_string(),
            _ => format!("{}..{}", self.smallest_sequence, self.largest_sequence),
        };
        let debt = match self.debt_files {
            0 => "-".to_string(),
            files => format!("{files} ({})", size(self.debt_bytes)),
        };
        [
            vec![
                name(),
                self.files.to_string(),
                size(self.size_bytes),
                ratio(self.ratio()),
                target.to_owned(),
                self.entries.to_string(),
                self.codecs_text(),
                asked.to_owned(),
            ],
            vec![
                name(),
                size(self.raw_bytes),
                self.blocks_text(),
                self.fallback_blocks.to_string(),
                debt,
            ],
            vec![name(), self.tombstones.to_string(), self.range_tombstones.to_string(), sequences],
        ]
    }

    /// The codec of its tables, or as [`Self::found_text`] where there are several.
    pub fn codecs_text(&self) -> String {
        match (self.found.len(), self.found.keys().next()) {
            (1, Some(only)) => only.clone(),
            _ => self.found_text(),
        }
    }

    /// The codecs of its data blocks with the number of blocks of each, most first; "-" without a block.
    pub fn blocks_text(&self) -> String {
        block_counts(&self.blocks)
    }

    /// The codecs of its tables with the number of tables of each, most first: "zstd-1:7,lz4:2"; "-"
    /// without a table.
    pub fn found_text(&self) -> String {
        counts(self.found.iter().map(|(name, count)| (name.as_str(), *count)))
    }

    /// The codec that the policy asks for, or `auto` where it is decided for each table.
    pub fn asked_text(&self) -> String {
        self.asked.map_or("auto".to_string(), |codec| codec.to_string())
    }

    fn level_rows(&self, base_level: usize) -> [Vec<String>; 3] {
        let target = match self.target_bytes {
            0 => "-".to_string(),
            bytes => size(bytes),
        };
        let base = if self.level == base_level { " base" } else { "" };
        self.rows(&format!("L{}{base}", self.level), &target, &self.asked_text())
    }

    fn json(&self, json: &mut JsonWriter) {
        json.key("files").number(self.files);
        json.key("size_bytes").number(self.size_bytes);
        json.key("raw_bytes").number(self.raw_bytes);
        json.key("ratio").real(self.ratio().unwrap_or(f64::NAN));
        json.key("found").object(|json| {
            self.found.iter().for_each(|(name, count)| json.key(name).number(*count));
        });
        block_json(json, &self.blocks, self.fallback_blocks);
        json.key("debt_files").number(self.debt_files);
        json.key("debt_bytes").number(self.debt_bytes);
        json.key("entries").number(self.entries);
        json.key("tombstones").number(self.tombstones);
        json.key("range_tombstones").number(self.range_tombstones);
        if self.files > 0 {
            json.key("smallest_sequence").number(self.smallest_sequence);
            json.key("largest_sequence").number(self.largest_sequence);
        }
    }
}

fn block_json(json: &mut JsonWriter, blocks: &BTreeMap<CodecId, u64>, fallback_blocks: u64) {
    json.key("blocks").object(|json| {
        blocks.iter().for_each(|(codec, count)| json.key(codec.name()).number(*count));
    });
    json.key("fallback_blocks").number(fallback_blocks);
}

impl TableLine {
    /// The codecs of its data blocks with the number of blocks of each, most first; "-" without a block.
    pub fn blocks_text(&self) -> String {
        block_counts(&self.blocks)
    }

    /// Its cells in the tables of [`TABLE_HEADERS`].
    fn rows(&self) -> [Vec<String>; 3] {
        let metadata = &self.metadata;
        let found = self.found.clone().unwrap_or_else(|| "unreadable".to_string());
        let table_ratio = metadata.raw_bytes as f64 / metadata.size_bytes.max(1) as f64;
        let range = &metadata.range;
        let number = || format!("{:06}", metadata.number);
        let before = if range.largest_exclusive { "<" } else { "" };
        [
            vec![
                format!("L{}", self.level),
                number(),
                size(metadata.size_bytes),
                ratio(Some(table_ratio)),
                metadata.entries.to_string(),
                found,
                format!("\"{}\"", escape(&range.smallest, false)),
                format!("{before}\"{}\"", escape(&range.largest, false)),
            ],
            vec![
                number(),
                size(metadata.raw_bytes),
                self.blocks_text(),
                self.fallback_blocks.to_string(),
                if metadata.codec_debt { "yes" } else { "-" }.to_string(),
                self.written_for.map_or("-".to_string(), |level| format!("L{level}")),
            ],
            vec![
                number(),
                metadata.tombstones.to_string(),
                metadata.range_tombstones.to_string(),
                format!("{}..{}", metadata.smallest_sequence, metadata.largest_sequence),
            ],
        ]
    }

    fn json(&self, json: &mut JsonWriter) {
        let metadata = &self.metadata;
        json.key("level").number(self.level as u64);
        json.key("number").number(metadata.number);
        json.key("size_bytes").number(metadata.size_bytes);
        json.key("raw_bytes").number(metadata.raw_bytes);
        if let Some(found) = &self.found {
            json.key("found").string(found);
        }
        block_json(json, &self.blocks, self.fallback_blocks);
        json.key("codec_debt").boolean(metadata.codec_debt);
        if let Some(level) = self.written_for {
            json.key("written_for").number(level);
        }
        json.key("entries").number(metadata.entries);
        json.key("tombstones").number(metadata.tombstones);
        json.key("range_tombstones").number(metadata.range_tombstones);
        json.key("smallest_sequence").number(metadata.smallest_sequence);
        json.key("largest_sequence").number(metadata.largest_sequence);
        json.key("smallest").string(&escape(&metadata.range.smallest, true));
        json.key("largest").string(&escape(&metadata.range.largest, true));
        json.key("largest_exclusive").boolean(metadata.range.largest_exclusive);
    }
}

impl FamilyLevels {
    fn page(&self, text: &mut String, page: &LevelsPage) -> fmt::Result {
        writeln!(text, "\ncolumn family \"{}\" (id {})", self.name.escape_debug(), self.id)?;
        if page.full {
            text.push_str(&prose(&format!("options: {}", self.options), page.width));
        }
        let shown = self.levels.iter().filter(|level| page.full || level.files > 0);
        let mut rows: Vec<_> = shown.map(|level| level.level_rows(self.base_level)).collect();
        if rows.is_empty() {
            return writeln!(text, "no tables yet");
        }
        rows.push(self.total().rows("all", "", ""));
        page.grids(text, &LEVEL_HEADERS, &rows)?;
        if page.files && !self.tables.is_empty() {
            text.push('\n');
            let rows: Vec<_> = self.tables.iter().map(TableLine::rows).collect();
            page.grids(text, &TABLE_HEADERS, &rows)?;
        }
        Ok(())
    }

    fn json(&self, json: &mut JsonWriter, files: bool) {
        json.key("id").number(u64::from(self.id));
        json.key("name").string(&self.name);
        json.key("options").string(&self.options);
        json.key("base_level").number(self.base_level as u64);
        json.key("levels").array(|json| {
            for level in &self.levels {
                json.object(|json| {
                    json.key("level").number(level.level as u64);
                    json.key("asked").string(&level.asked_text());
                    json.key("target_bytes").number(level.target_bytes);
                    level.json(json);
                });
            }
        });
        json.key("total").object(|json| self.total().json(json));
        if files {
            json.key("tables").array(|json| {
                self.tables.iter().for_each(|table| json.object(|json| table.json(json)));
            });
        }
    }
}

impl LevelsPage {
    /// The first table, or all of them one below the other.
    fn grids(
        &self,
        text: &mut String,
        headers: &[&[&str]; 3],
        rows: &[[Vec<String>; 3]],
    ) -> fmt::Result {
        let shown = if self.full { headers.len() } else { 1 };
        for (number, header) in headers.iter().enumerate().take(shown) {
            let rows = rows.iter().map(|cells| cells[number].clone()).collect();
            let gap = if number > 0 { "\n" } else { "" };
            write!(text, "{gap}{}", Grid { header, rows, width: self.width })?;
        }
        Ok(())
    }
}

impl Levels {
    /// A page of text: what all add up to, then a line a level for each column family.
    pub fn to_text(&self, page: &LevelsPage) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.page(&mut text, page);
        text
    }

    fn page(&self, text: &mut String, page: &LevelsPage) -> fmt::Result {
        let total = self.total();
        let (stored, raw) = (size(total.size_bytes), size(total.raw_bytes));
        let debt = match total.debt_files {
            0 => "no codec debt".to_owned(),
            files => format!("{files} in codec debt"),
        };
        let sum = format!(
            "{} tables, {stored} of {raw} raw, ratio {}, {} entries, {debt}",
            total.files,
            ratio(total.ratio()),
            total.entries
        );
        text.push_str(&prose(&sum, page.width));
        if page.full {
            let closed = if self.is_closed { "closed" } else { "open, or not closed" };
            let (number, sequence) = (self.manifest_number, self.last_sequence);
            writeln!(text, "database {:032x}", self.database_id)?;
            writeln!(text, "MANIFEST-{number:06}, last sequence {sequence}, {closed}")?;
        }
        self.families.iter().try_for_each(|family| family.page(text, page))?;
        if !self.damage.is_empty() {
            text.push('\n');
        }
        for error in &self.damage {
            text.push_str(&prose(&format!("damage: {error}"), page.width));
        }
        Ok(())
    }

    /// One JSON object on one line, without the line feed; with `files` it has the tables too.
    pub fn to_json(&self, files: bool) -> String {
        let mut json = JsonWriter::new();
        json.object(|json| {
            json.key("database_id").string(&format!("{:032x}", self.database_id));
            json.key("manifest_number").number(self.manifest_number);
            json.key("last_sequence").number(self.last_sequence);
            json.key("is_closed").boolean(self.is_closed);
            json.key("families").array(|json| {
                self.families.iter().for_each(|f| json.object(|json| f.json(json, files)));
            });
            json.key("total").object(|json| self.total().json(json));
            json.key("damage").array(|json| {
                self.damage.iter().for_each(|error| json.string(&error.to_string()));
            });
        });
        json.finish()
    }
}
