//! What a verification found, as a list, as text and as JSON.

use crate::stats::JsonWriter;
use crate::{Error, ErrorKind};
use std::fmt;
use std::path::PathBuf;

/// So many findings are kept; the others are counted.
const FINDINGS_MAX: usize = 10_000;

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Structure {
    /// Which files there are.
    Directory,
    /// The file that names the manifest.
    Current,
    /// The log of edits.
    Manifest,
    /// A table as a whole, against what the manifest says of it.
    Table,
    /// The end of a table.
    Footer,
    /// What a table says of itself.
    Properties,
    /// A dictionary that rows of a table are compressed with.
    Dictionary,
    /// What tells which keys are not in a table.
    Filter,
    /// Range deletes of a table.
    RangeTombstones,
    /// What leads to the data blocks of a table.
    Index,
    /// Rows of a table.
    DataBlock,
    /// A segment of the write-ahead log: its header, its place in the chain, its end.
    LogSegment,
    /// A commit group of the write-ahead log.
    LogRecord,
}

impl Structure {
    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            Structure::Directory => "directory",
            Structure::Current => "CURRENT",
            Structure::Manifest => "manifest",
            Structure::Table => "table",
            Structure::Footer => "footer",
            Structure::Properties => "properties",
            Structure::Filter => "filter",
            Structure::Dictionary => "dictionary",
            Structure::RangeTombstones => "range tombstones",
            Structure::Index => "index",
            Structure::DataBlock => "data block",
            Structure::LogSegment => "log segment",
            Structure::LogRecord => "log record",
        }
    }

    /// What to do about damage to it.
    fn advice(self) -> &'static str {
        match self {
            Structure::Directory => "nothing: the next opening for writing removes it",
            Structure::Filter => {
                "reads may miss rows: restore the file from a copy, or repair, which builds it anew"
            }
            Structure::Properties | Structure::Index | Structure::Footer | Structure::Table => {
                "restore the file from a copy, or repair: the rows may be whole"
            }
            _ => "restore the file from a copy, or repair what is left",
        }
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Weight {
    /// Something that was written is not there, or is not what was written.
    Damage,
    /// Nothing is wrong: what a crash leaves, and the next opening clears up.
    Notice,
}

/// One thing that was found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub weight: Weight,
    /// What it is about.
    pub structure: Structure,
    /// The column family, if it is known and only one.
    pub family: Option<String>,
    /// What is wrong, where, and what was expected and found.
    pub error: Error,
    /// The smallest and the largest key that the rows which cannot be read may have, as far as
    /// that is known.
    pub lost_keys: Option<(Vec<u8>, Vec<u8>)>,
}

impl Finding {
    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match (self.weight, self.error.kind()) {
            (Weight::Notice, _) => "nothing: the next opening for writing clears it up",
            (_, ErrorKind::Unsupported) => "use the version of the program that wrote the file",
            (_, ErrorKind::Io | ErrorKind::ReadOnly) => "see what the system says of the disk",
            _ => self.structure.advice(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = match self.weight {
            Weight::Damage => "damage",
            Weight::Notice => "notice",
        };
        write!(f, "{weight}: {}", self.structure.name())?;
        if let Some(family) = &self.family {
            write!(f, " of column family {family:?}")?;
        }
        write!(f, ": {}", self.error)?;
        if let Some((smallest, largest)) = &self.lost_keys {
            let (smallest, largest) = (smallest.escape_ascii(), largest.escape_ascii());
            write!(f, "; rows from \"{smallest}\" to \"{largest}\" cannot be read")?;
        }
        write!(f, "; {}", self.advice())
    }
}

/// How much was examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Examined {
    /// Column families that the manifest knows.
    pub families: u64,
    /// Edits of the manifest.
    pub manifest_edits: u64,
    /// Bytes of `CURRENT` and the manifest.
    pub manifest_bytes: u64,
    /// Tables.
    pub tables: u64,
    /// Their bytes.
    pub table_bytes: u64,
    /// Data blocks that are whole.
    pub data_blocks: u64,
    /// Point entries in them.
    pub entries: u64,
    /// Log segments.
    pub log_segments: u64,
    /// Their records that are whole.
    pub log_records: u64,
    /// Bytes of the segments.
    pub log_bytes: u64,
}

impl Examined {
    /// Every figure by its name.
    pub fn figures(&self) -> [(&'static str, u64); 10] {
        [
            ("families", self.families),
            ("manifest_edits", self.manifest_edits),
            ("manifest_bytes", self.manifest_bytes),
            ("tables", self.tables),
            ("table_bytes", self.table_bytes),
            ("data_blocks", self.data_blocks),
            ("entries", self.entries),
            ("log_segments", self.log_segments),
            ("log_records", self.log_records),
            ("log_bytes", self.log_bytes),
        ]
    }
}

/// What a verification comes to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The identity of the database, if it is known.
    pub database_id: Option<u128>,
    /// How much was examined.
    pub examined: Examined,
    /// What was found, in the order it was met; at most 10,000 of them.
    pub findings: Vec<Finding>,
    /// Findings that are not in the list because it was full; damage, all of them.
    pub findings_left_out: u64,
    /// Whether the caller ended it before everything was examined.
    pub is_cancelled: bool,
}

impl VerifyReport {
    /// Whether everything that was examined is whole.
    pub fn is_sound(&self) -> bool {
        self.findings_left_out == 0 && self.damage().next().is_none()
    }

    /// The findings that are damage.
    pub fn damage(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.weight == Weight::Damage)
    }

    pub(super) fn add(
        &mut self,
        weight: Weight,
        structure: Structure,
        family: Option<String>,
        error: Error,
    ) {
        self.push(Finding { weight, structure, family, error, lost_keys: None });
    }

    pub(super) fn push(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else if finding.weight == Weight::Damage {
            self.findings_left_out += 1;
        }
    }

    /// One JSON object.
    pub fn to_json(&self) -> String {
        let mut json = JsonWriter::new();
        json.object(|json| self.write_json(json));
        json.finish()
    }

    /// The members of the object of [`VerifyReport::to_json`].
    fn write_json(&self, json: &mut JsonWriter) {
        json.key("sound").boolean(self.is_sound());
        json.key("complete").boolean(!self.is_cancelled);
        if let Some(id) = self.database_id {
            json.key("database_id").string(&format!("{id:032x}"));
        }
        json.key("examined").object(|json| {
            for (name, figure) in self.examined.figures() {
                json.key(name).number(figure);
            }
        });
        json.key("findings").array(|json| {
            for finding in &self.findings {
                json.object(|json| finding.write_json(json));
            }
        });
        json.key("findings_left_out").number(self.findings_left_out);
    }
}

impl Finding {
    pub(crate) fn write_json(&self, json: &mut JsonWriter) {
        json.key("weight").string(match self.weight {
            Weight::Damage => "damage",
            Weight::Notice => "notice",
        });
        json.key("structure").string(self.structure.name());
        if let Some(family) = &self.family {
            json.key("family").string(family);
        }
        if let Some(path) = self.error.path().map(PathBuf::from) {
            json.key("file").string(&path.to_string_lossy());
        }
        if let Some(offset) = self.error.offset() {
            json.key("offset").number(offset);
        }
        json.key("error").string(&self.error.to_string());
        if let Some((smallest, largest)) = &self.lost_keys {
            json.key("smallest_lost_key").string(&smallest.escape_ascii().to_string());
            json.key("largest_lost_key").string(&largest.escape_ascii().to_string());
        }
        json.key("advice").string(self.advice());
    }
}

impl fmt::Display for VerifyReport {
    /// What was examined, a line each, and the verdict. The findings are not in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, figure) in self.examined.figures() {
            writeln!(f, "{:<16}{figure:>16}", name.replace('_', " "))?;
        }
        let damaged = self.damage().count() as u64 + self.findings_left_out;
        let verdict = match (damaged, self.is_cancelled) {
            (0, false) => "sound".to_string(),
            (0, true) => "stopped before the end; sound as far as it was examined".to_string(),
            (1, _) => "damaged: 1 finding".to_string(),
            (count, _) => format!("damaged: {count} findings"),
        };
        writeln!(f, "{verdict}")
    }
}
