//! What a repair saved and what it lost, as text and as JSON.

use crate::stats::JsonWriter;
use crate::verify::{Examined, Finding};
use std::fmt;
use std::path::PathBuf;

/// One column family of a repaired database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedFamily {
    /// Its name: the old one, or `recovered` and a number where no file told it.
    pub name: String,
    /// Its id in the damaged database, if it is known. In the repaired one it may have another.
    pub old_id: Option<u32>,
    /// Rows that were saved from tables.
    pub rows: u64,
    /// Tables that were whole.
    pub whole_tables: u64,
    /// Tables of which something was saved.
    pub salvaged_tables: u64,
    /// Tables of which nothing was saved.
    pub lost_tables: u64,
}

/// Something that was not saved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostPart {
    /// The column family.
    pub family: String,
    /// The file.
    pub file: PathBuf,
    /// Where in the file, if it is one place.
    pub offset: Option<u64>,
    /// What it was: a table, a data block, ...
    pub what: &'static str,
    /// The smallest and the largest key that it may have held, as far as that is known.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether other tables have rows in this range: some of those may be older than the last
    /// write, or have been deleted by what is lost.
    pub may_show_older_rows: bool,
}

/// What became of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedLog {
    /// Commit groups that were replayed.
    pub replayed_groups: u64,
    /// Of these, groups from behind damage.
    pub groups_beyond_damage: u64,
    /// Whole groups behind damage that were left out, because the result would be no prefix of what
    /// was written.
    pub left_out_groups: u64,
    /// The first place of damage: how many groups are lost there is not known.
    pub damaged_at: Option<(PathBuf, u64)>,
}

/// What a repair comes to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Whether `CURRENT` and the manifest were whole. Without them a family that was dropped, or a
    /// table that was already replaced, may be back.
    pub has_manifest: bool,
    /// The column families, in their order.
    pub families: Vec<RepairedFamily>,
    /// What was lost of tables.
    pub lost: Vec<LostPart>,
    /// What became of the log.
    pub log: RepairedLog,
    /// Everything that was found to be wrong with the damaged database.
    pub findings: Vec<Finding>,
    /// What the repaired database was found to hold when it was verified.
    pub verified: Examined,
    /// Whether the caller ended it. The target does not open as a database then.
    pub is_cancelled: bool,
}

impl RepairReport {
    /// Whether the repaired database holds everything that the damaged one did, and nothing else.
    pub fn is_lossless(&self) -> bool {
        let mut has_losses = !self.lost.is_empty();
        if planted!(RepairHidesLosses) {
            has_losses = false;
        }
        !self.is_cancelled && self.has_manifest && !has_losses && self.log.damaged_at.is_none()
    }

    /// One JSON object.
    pub fn to_json(&self) -> String {
        let mut json = JsonWriter::new();
        json.object(|json| {
            json.key("lossless").boolean(self.is_lossless());
            json.key("complete").boolean(!self.is_cancelled);
            json.key("has_manifest").boolean(self.has_manifest);
            json.key("families").array(|json| {
                self.families.iter().for_each(|family| json.object(|json| family.write(json)));
            });
            json.key("lost").array(|json| {
                self.lost.iter().for_each(|lost| json.object(|json| lost.write(json)));
            });
            json.key("log").object(|json| self.log.write(json));
            json.key("findings").array(|json| {
                for finding in &self.findings {
                    json.object(|json| finding.write_json(json));
                }
            });
            json.key("verified").object(|json| {
                for (name, figure) in self.verified.figures() {
                    json.key(name).number(figure);
                }
            });
        });
        json.finish()
    }

    /// What became of the log, and the verdict: lines of text.
    pub fn outcome(&self) -> String {
        let log = &self.log;
        let mut text = format!(
            "log: {} groups replayed, {} of them from behind damage, {} left out\n",
            log.replayed_groups, log.groups_beyond_damage, log.left_out_groups
        );
        if let Some((file, offset)) = &log.damaged_at {
            let file = file.display();
            text.push_str(&format!(
                "log: damaged in {file} at offset {offset}: writes are lost from there on\n"
            ));
        }
        if log.groups_beyond_damage > 0 {
            text.push_str("log: some commits are missing before others that are there\n");
        }
        if !self.has_manifest {
            text.push_str(
                "no whole manifest: what was deleted, dropped or replaced shortly before may be \
                 back\n",
            );
        }
        text.push_str(match (self.is_cancelled, self.is_lossless()) {
            (true, _) => "stopped before the end: there is no repaired database\n",
            (_, true) => "repaired and verified, nothing is lost\n",
            (_, false) => "repaired and verified, not everything was saved\n",
        });
        text
    }
}

impl RepairedFamily {
    fn write(&self, json: &mut JsonWriter) {
        json.key("name").string(&self.name);
        if let Some(id) = self.old_id {
            json.key("old_id").number(u64::from(id));
        }
        json.key("rows").number(self.rows);
        json.key("whole_tables").number(self.whole_tables);
        json.key("salvaged_tables").number(self.salvaged_tables);
        json.key("lost_tables").number(self.lost_tables);
    }
}

impl LostPart {
    fn write(&self, json: &mut JsonWriter) {
        json.key("family").string(&self.family);
        json.key("file").string(&self.file.to_string_lossy());
        if let Some(offset) = self.offset {
            json.key("offset").number(offset);
        }
        json.key("what").string(self.what);
        if let Some((smallest, largest)) = &self.keys {
            json.key("smallest_key").string(&smallest.escape_ascii().to_string());
            json.key("largest_key").string(&largest.escape_ascii().to_string());
        }
        json.key("may_show_older_rows").boolean(self.may_show_older_rows);
    }
}

impl RepairedLog {
    fn write(&self, json: &mut JsonWriter) {
        json.key("replayed_groups").number(self.replayed_groups);
        json.key("groups_beyond_damage").number(self.groups_beyond_damage);
        json.key("left_out_groups").number(self.left_out_groups);
        if let Some((file, offset)) = &self.damaged_at {
            json.key("damaged_file").string(&file.to_string_lossy());
            json.key("damaged_offset").number(*offset);
        }
    }
}

impl fmt::Display for LostPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "lost: {} of column family {:?}, {}",
            self.what,
            self.family,
            self.file.display()
        )?;
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset}")?;
        }
        match &self.keys {
            Some((smallest, largest)) => {
                let (smallest, largest) = (smallest.escape_ascii(), largest.escape_ascii());
                write!(f, ", rows from \"{smallest}\" to \"{largest}\"")?;
            }
            None => f.write_str(", its keys are not known")?,
        }
        if self.may_show_older_rows {
            f.write_str("; rows there may be older than the last write, or deleted since")?;
        }
        Ok(())
    }
}

impl fmt::Display for RepairReport {
    /// A table of the families, the log, and the verdict. What was lost is not in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<24}{:>12}{:>14}{:>10}{:>8}",
            "column family", "rows", "whole tables", "salvaged", "lost"
        )?;
        for family in &self.families {
            writeln!(
                f,
                "{:<24}{:>12}{:>14}{:>10}{:>8}",
                family.name,
                family.rows,
                family.whole_tables,
                family.salvaged_tables,
                family.lost_tables
            )?;
        }
        f.write_str(&self.outcome())
    }
}
