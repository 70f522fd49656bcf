//! The tree of a database as a page of text, or as one JSON object.

use super::item::escape;
use super::levels::{FamilyLevels, LevelSum, Levels, TableLine};
use crate::base::size;
use crate::codec::CodecId;
use crate::stats::JsonWriter;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write};

const LEVEL_HEADER: [&str; 15] = [
    "level",
    "files",
    "size",
    "raw",
    "ratio",
    "target",
    "asked",
    "found",
    "blocks",
    "raw_fallback",
    "debt",
    "entries",
    "tombstones",
    "range_tombstones",
    "sequences",
];

const TABLE_HEADER: [&str; 14] = [
    "level",
    "table",
    "size",
    "raw",
    "ratio",
    "found",
    "blocks",
    "debt",
    "written_for",
    "entries",
    "tombstones",
    "range_tombstones",
    "sequences",
    "keys",
];

/// Columns of words stand to the left, columns of figures to the right.
fn is_left(column: &str) -> bool {
    matches!(column, "level" | "total" | "asked" | "found" | "blocks" | "sequences" | "keys")
}

/// Rows of one table of text, aligned by column.
struct Grid {
    rows: Vec<Vec<String>>,
}

impl Display for Grid {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(header) = self.rows.first() else {
            return Ok(());
        };
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..header.len()).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, name), width) in row.iter().zip(header).zip(&widths) {
                if is_left(name) {
                    write!(line, "{cell:<width$}  ")?;
                } else {
                    write!(line, "{cell:>width$}  ")?;
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn cells(header: &[&str]) -> Vec<String> {
    header.iter().map(|name| (*name).to_string()).collect()
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
    fn row(&self, name: &str, asked: &str, target: &str) -> Vec<String> {
        let sequences = match self.files {
            0 => "-".to_string(),
            _ => format!("{}..{}", self.smallest_sequence, self.largest_sequence),
        };
        let debt = match self.debt_files {
            0 => "-".to_string(),
            files => format!("{files} ({})", size(self.debt_bytes)),
        };
        vec![
            name.to_string(),
            self.files.to_string(),
            size(self.size_bytes),
            size(self.raw_bytes),
            ratio(self.ratio()),
            target.to_string(),
            asked.to_string(),
            self.found_text(),
            block_counts(&self.blocks),
            self.fallback_blocks.to_string(),
            debt,
            self.entries.to_string(),
            self.tombstones.to_string(),
            self.range_tombstones.to_string(),
            sequences,
        ]
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

    fn level_row(&self, base_level: usize) -> Vec<String> {
        let target = match self.target_bytes {
            0 => "-".to_string(),
            bytes => size(bytes),
        };
        let base = if self.level == base_level { " base" } else { "" };
        self.row(&format!("L{}{base}", self.level), &self.asked_text(), &target)
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
    fn row(&self) -> Vec<String> {
        let metadata = &self.metadata;
        let found = self.found.clone().unwrap_or_else(|| "unreadable".to_string());
        let table_ratio = metadata.raw_bytes as f64 / metadata.size_bytes.max(1) as f64;
        vec![
            format!("L{}", self.level),
            format!("{:06}", metadata.number),
            size(metadata.size_bytes),
            size(metadata.raw_bytes),
            ratio(Some(table_ratio)),
            found,
            block_counts(&self.blocks),
            if metadata.codec_debt { "yes" } else { "-" }.to_string(),
            self.written_for.map_or("-".to_string(), |level| format!("L{level}")),
            metadata.entries.to_string(),
            metadata.tombstones.to_string(),
            metadata.range_tombstones.to_string(),
            format!("{}..{}", metadata.smallest_sequence, metadata.largest_sequence),
            format!(
                "\"{}\"..{}\"{}\"",
                escape(&metadata.range.smallest, false),
                if metadata.range.largest_exclusive { "" } else { "=" },
                escape(&metadata.range.largest, false)
            ),
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
    fn page(&self, text: &mut String, files: bool) -> fmt::Result {
        writeln!(text, "\ncolumn family \"{}\" (id {})", self.name.escape_debug(), self.id)?;
        writeln!(text, "options: {}", self.options)?;
        let mut rows = vec![cells(&LEVEL_HEADER)];
        rows.extend(self.levels.iter().map(|level| level.level_row(self.base_level)));
        rows.push(self.total().row("sum", "", ""));
        write!(text, "{}", Grid { rows })?;
        if files && !self.tables.is_empty() {
            let mut rows = vec![cells(&TABLE_HEADER)];
            rows.extend(self.tables.iter().map(TableLine::row));
            write!(text, "\n{}", Grid { rows })?;
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

impl Levels {
    /// A page of text: per column family one line a level; with `files` one line a table too.
    pub fn to_text(&self, files: bool) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.page(&mut text, files);
        text
    }

    fn page(&self, text: &mut String, files: bool) -> fmt::Result {
        writeln!(text, "database {:032x}", self.database_id)?;
        let closed = if self.is_closed { "closed" } else { "open, or not closed" };
        writeln!(
            text,
            "MANIFEST-{:06}, last sequence {}, {closed}",
            self.manifest_number, self.last_sequence
        )?;
        for family in &self.families {
            family.page(text, files)?;
        }
        let total = self.total();
        writeln!(
            text,
            "\ntotal: {} column families, {} files, {} ({} raw, ratio {}), {} entries, {} in \
             codec debt",
            self.families.len(),
            total.files,
            size(total.size_bytes),
            size(total.raw_bytes),
            ratio(total.ratio()),
            total.entries,
            total.debt_files
        )?;
        for error in &self.damage {
            writeln!(text, "damage: {error}")?;
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
