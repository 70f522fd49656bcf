//! Records of runs, whatever was run: what `bench compare` and `bench report` begin with.
//!
//! Owns: all kinds of runs ([`kinds`]), telling which one a file or directory holds
//! ([`AnyRecord::read`]), by the head of a record or, where it has none, by its keys (`before`).
//! Also the form of the file, plain or compressed ([`mod@file`]), figures that were kept without
//! the rest of their record ([`Digest`]), records with fewer samples ([`thin`]), and the page over
//! all of them ([`mod@index`]). What a record holds belongs to the room of its kind.
//!
//! Promises: reads only; a file that is no record of any kind is an error of one line that names
//! it. A new kind is a variant here, and a row in [`kinds`].

mod before;
pub mod file;
pub mod index;
pub mod kinds;
pub mod thin;

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::amplification::{self, AmplificationRecord};
use crate::chunks::plan::ChunkPlan;
use crate::dbbench::runner::{self as db, DbPlan, DbRecord};
use crate::durability::DurabilityRecord;
use crate::kind::RecordHead;
use crate::linkbench;
use crate::linkbench::record::LinkBenchRecord;
use crate::loop_experiment::digest::Digest;
use crate::loop_experiment::{self, LoopRecord};
use crate::overwrite::OverwriteRecord;
use crate::page_store::PagesRecord;
use crate::run::RunError;
use crate::run::cells::{Run, read_run};
use crate::tables::plan::TablePlan;

/// Files by which the directory of one run is known.
const PLAN_FILES: [&str; 3] = ["plan.json", "experiment.json", "cells.json"];

/// Whether a directory is that of one run, and not one of records.
pub fn is_run(directory: &Path) -> bool {
    PLAN_FILES.iter().any(|name| directory.join(name).exists())
}

/// A run of any kind with its results.
#[derive(Clone, Debug)]
pub enum AnyRecord {
    /// An experiment over the social graph.
    LinkBench(Box<LinkBenchRecord>),
    /// An experiment over the loops of the classic key-value benchmark.
    Loops(Box<LoopRecord>),
    /// Such loops, engine against engine.
    Db(Box<DbRecord>),
    /// Overwrites as fast as they go.
    Overwrite(Box<OverwriteRecord>),
    /// An experiment over tables of rows.
    Tables(Box<Run<TablePlan>>),
    /// An experiment over text in chunks.
    Chunks(Box<Run<ChunkPlan>>),
    /// Read, write and space amplification.
    Amplification(Box<AmplificationRecord>),
    /// What crashes take and commits cost.
    Durability(Box<DurabilityRecord>),
    /// Pages with holes in files.
    Pages(Box<PagesRecord>),
    /// Figures of a run without the rest of its record, which is not to be had again.
    Digest(Box<Digest>),
}

impl AnyRecord {
    /// Reads a run: its record, plain or compressed, or its directory (`results/runs/NAME`).
    ///
    /// # Errors
    /// A path that holds no run of any kind, a file that cannot be read.
    pub fn read(path: &Path) -> Result<AnyRecord, RunError> {
        if path.is_dir() {
            return directory(path);
        }
        AnyRecord::parse(path, &file::read(path)?)
    }

    /// Reads a run from the JSON of its report; `path` says where that is from.
    ///
    /// # Errors
    /// A text that is no record of any kind.
    pub fn parse(path: &Path, text: &str) -> Result<AnyRecord, RunError> {
        /// What stands at the top of every record that names its kind.
        #[derive(Deserialize)]
        struct Top {
            #[serde(default)]
            record: Option<RecordHead>,
        }
        let top: Top = serde_json::from_str(text).map_err(|error| match error.is_data() {
            true => unknown(path),
            false => broken(path, error),
        })?;
        let kind = match &top.record {
            Some(head) => head.kind.as_str(),
            None => {
                let value = serde_json::from_str(text).map_err(|error| broken(path, error))?;
                before::kind_of(&value).ok_or_else(|| unknown(path))?
            }
        };
        if kind == before::DIGEST {
            let mut digest: Box<Digest> = parsed(path, text)?;
            digest.name = file::name(path);
            return Ok(AnyRecord::Digest(digest));
        }
        let row = kinds::find(kind).ok_or_else(|| {
            RunError::new(format!("{}: there is no kind of run \"{kind}\"", path.display()))
        })?;
        if let Some(head) = top.record.as_ref().filter(|head| head.schema > row.schema) {
            return Err(RunError::new(format!(
                "{}: schema {} of {kind}, and this program knows {}",
                path.display(),
                head.schema,
                row.schema
            )));
        }
        (row.read)(text).map_err(|error| broken(path, error))
    }
}

impl AnyRecord {
    /// When the first of its measurements began, seconds since 1970; `None` where that was not kept
    /// or nothing was measured.
    pub fn started_unix_s(&self) -> Option<u64> {
        kinds::started_unix_s(self)
    }
}

/// A run by the plan in its directory.
fn directory(path: &Path) -> Result<AnyRecord, RunError> {
    if let Some(record) = loop_experiment::read_record(path)? {
        return Ok(AnyRecord::Loops(Box::new(record)));
    }
    if let Some(run) = read_run(path)? {
        return Ok(AnyRecord::Tables(Box::new(run)));
    }
    if let Some(run) = read_run(path)? {
        return Ok(AnyRecord::Chunks(Box::new(run)));
    }
    if path.ends_with(amplification::NAME) {
        let record = amplification::collect(path);
        if !record.cells.is_empty() {
            return Ok(AnyRecord::Amplification(Box::new(record)));
        }
    }
    let plan_path = path.join("plan.json");
    let text = std::fs::read_to_string(&plan_path)
        .map_err(|_| RunError::new(format!("{} holds no run: no plan.json", path.display())))?;
    let plan: Value = serde_json::from_str(&text).map_err(|error| broken(&plan_path, error))?;
    if plan.get("experiment").is_some() {
        return linkbench::record::read_record(path)
            .map(|record| AnyRecord::LinkBench(Box::new(record)));
    }
    let plan: DbPlan = *parsed(&plan_path, &text)?;
    Ok(AnyRecord::Db(Box::new(db::collect(path, plan))))
}

fn parsed<T: DeserializeOwned>(path: &Path, text: &str) -> Result<Box<T>, RunError> {
    serde_json::from_str(text).map(Box::new).map_err(|error| broken(path, error))
}

fn broken(path: &Path, error: serde_json::Error) -> RunError {
    RunError::new(format!("{} is no record of a run: {error}", path.display()))
}

fn unknown(path: &Path) -> RunError {
    RunError::new(format!(
        "{} is no record of a run: name the .json or .json.zst that a command of `bench` wrote, or a \
         directory of results/runs",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::EngineName;
    use crate::linkbench::sample;

    #[test]
    fn kinds_are_told_apart_and_nothing_else_is_taken() {
        let directory = tempfile::tempdir().expect("a directory");
        let read = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("writes");
            AnyRecord::read(&path)
        };
        let record = sample::record(&sample::plan(&EngineName::lithify(), 1));
        let text = serde_json::to_string(&record).expect("to JSON");
        assert!(matches!(read("run.json", &text), Ok(AnyRecord::LinkBench(_))));
        let digest = r#"{"about": "x", "machine": {"cpu": "c", "cpus": 1, "kernel": "k",
            "memory_bytes": 1, "file_system": "f", "device": "d", "compiler": "r",
            "build": "release"}, "runs": [{"engine": "lithify"}]}"#;
        let packed = directory.path().join("packed.json.zst");
        file::write(&packed, &text).expect("writes");
        assert!(matches!(AnyRecord::read(&packed), Ok(AnyRecord::LinkBench(_))));
        let found = read("few.json", digest);
        assert!(matches!(&found, Ok(AnyRecord::Digest(d)) if d.name == "few"), "{found:?}");
        for (name, text, why) in [
            ("list.json", "[1]", "is no record of a run: name the .json"),
            ("words.json", "no json", "is no record of a run: expected"),
            ("half.json", r#"{"plan": {"experiment": 1}}"#, "is no record of a run"),
            ("plain.json.zst", &text, "is no record of a run: zstd: Unknown frame descriptor"),
        ] {
            let error = read(name, text).expect_err("is refused").to_string();
            assert!(error.contains(name) && error.contains(why), "{error}");
        }
        let error = AnyRecord::read(directory.path()).expect_err("holds no run").to_string();
        assert!(error.ends_with("holds no run: no plan.json"), "{error}");
    }
    #[test]
    fn every_kept_record_is_read() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
        let files = file::files_in(&results).expect("the kept records");
        assert!(files.len() >= 12, "{} records", files.len());
        for (name, path) in files {
            let record = AnyRecord::read(&path);
            assert!(record.is_ok(), "{name}: {:?}", record.err());
        }
    }
}
