//! Records of runs, whatever was run: what `bench compare` and `bench report` begin with.
//!
//! Owns: all kinds of runs ([`kinds`]), telling which one a file or directory holds
//! ([`AnyRecord::read`]): by the head of a record, and of the plan in the directory of a run. Where
//! there is no head, by what only that kind has (`before`). Also the form of the file, plain or
//! compressed ([`mod@file`]), figures that were kept without the rest of their record ([`Digest`]),
//! records with fewer samples ([`thin`]), and the page over all of them ([`mod@index`]). What a record
//! holds belongs to the room of its kind.
//!
//! Promises: reads only; a file that is no record of any kind is an error of one line that names
//! it. A new kind is a row in [`kinds`].

mod before;
pub mod file;
pub mod index;
pub mod kinds;
mod recorded;
pub mod thin;

use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;
use serde_json::error::Category;

use crate::kind::RecordHead;
use crate::loop_experiment::digest::Digest;
use crate::run::RunError;
use crate::run::store::PLAN_FILE;
use recorded::Recorded;

/// Whether a directory is that of one run, and not one of records.
pub fn is_run(directory: &Path) -> bool {
    std::iter::once(PLAN_FILE).chain(before::PLAN_FILES).any(|name| directory.join(name).exists())
}

/// A run of any kind with its results.
pub struct AnyRecord(Box<dyn Recorded>);

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
        let head = top(path, text)?;
        let kind = match &head {
            Some(head) => head.kind.as_str(),
            None => {
                let value = serde_json::from_str(text).map_err(|error| broken(path, error))?;
                before::kind_of(&value).ok_or_else(|| unknown(path))?
            }
        };
        if kind == before::DIGEST {
            let mut digest: Digest =
                serde_json::from_str(text).map_err(|error| broken(path, error))?;
            digest.name = file::name(path);
            return Ok(AnyRecord::of_digest(digest));
        }
        let row = row(path, kind)?;
        head.iter().try_for_each(|head| newest(path, head))?;
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

/// A run by the plan in its directory, which names its kind.
fn directory(path: &Path) -> Result<AnyRecord, RunError> {
    let plan_path = path.join(PLAN_FILE);
    let text = match std::fs::read_to_string(&plan_path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(RunError::io(&plan_path, error)),
    };
    let head = match &text {
        Some(text) => top(&plan_path, text)?,
        None => None,
    };
    let (kind, text) = match (head, text) {
        (Some(head), Some(text)) => {
            newest(&plan_path, &head)?;
            (head.kind, text)
        }
        (_, text) => before::plan_of(path, text)?.ok_or_else(|| {
            let path = path.display();
            RunError::new(match plan_path.with_file_name("runs").is_dir() {
                true => format!(
                    "{path} holds several runs: name a record in it, or a directory of its runs/"
                ),
                false => format!(
                    "{path} is no directory of a run (results/runs/NAME): it has no {PLAN_FILE}"
                ),
            })
        })?,
    };
    let row = row(&plan_path, &kind)?;
    (row.read_directory)(path, &text).map_err(|error| broken(&plan_path, error))?
}

/// What stands at the top of a record or a plan; nothing of one that was written before they named
/// their kind.
fn top(path: &Path, text: &str) -> Result<Option<RecordHead>, RunError> {
    #[derive(Deserialize)]
    struct Top {
        #[serde(default)]
        record: Option<RecordHead>,
    }
    let top: Top = serde_json::from_str(text).map_err(|error| match error.is_data() {
        true => unknown(path),
        false => broken(path, error),
    })?;
    Ok(top.record)
}

/// The row of a kind that a file names.
fn row(path: &Path, kind: &str) -> Result<kinds::Row, RunError> {
    kinds::find(kind).ok_or_else(|| {
        RunError::new(format!("{}: there is no kind of run \"{kind}\"", path.display()))
    })
}

/// Refuses what a later program has written.
fn newest(path: &Path, head: &RecordHead) -> Result<(), RunError> {
    let known = row(path, &head.kind)?.schema;
    if head.schema <= known {
        return Ok(());
    }
    Err(RunError::new(format!(
        "{}: schema {} of {}, and this program knows {known}",
        path.display(),
        head.schema,
        head.kind,
    )))
}

fn broken(path: &Path, error: serde_json::Error) -> RunError {
    let what = match error.classify() {
        Category::Eof => "the JSON is cut off".to_owned(),
        Category::Syntax => format!("it is not JSON at line {}", error.line()),
        Category::Data | Category::Io => error.to_string(),
    };
    RunError::new(format!("{} is no record of a run: {what}", path.display()))
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
    use crate::linkbench::record::LinkBenchRecord;
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
        let is_one = |read: Result<AnyRecord, RunError>| {
            read.is_ok_and(|record| record.get::<LinkBenchRecord>().is_some())
        };
        assert!(is_one(read("run.json", &text)));
        let digest = r#"{"about": "x", "machine": {"cpu": "c", "cpus": 1, "kernel": "k",
            "memory_bytes": 1, "file_system": "f", "device": "d", "compiler": "r",
            "build": "release"}, "runs": [{"engine": "lithify"}]}"#;
        let packed = directory.path().join("packed.json.zst");
        file::write(&packed, &text).expect("writes");
        assert!(is_one(AnyRecord::read(&packed)));
        let found = read("few.json", digest);
        let name = found.as_ref().ok().and_then(|found| found.get::<Digest>());
        assert!(name.is_some_and(|digest| digest.name == "few"), "{found:?}");
        for (name, text, why) in [
            ("list.json", "[1]", "is no record of a run: name the .json"),
            ("words.json", "no json", "is no record of a run: it is not JSON at line 1"),
            ("half.json", r#"{"plan": {"experiment": 1}}"#, "is no record of a run"),
            ("plain.json.zst", &text, "is no record of a run: zstd: Unknown frame descriptor"),
        ] {
            let error = read(name, text).expect_err("is refused").to_string();
            assert!(error.contains(name) && error.contains(why), "{error}");
        }
        let error = AnyRecord::read(directory.path()).expect_err("holds no run").to_string();
        assert!(
            error.ends_with("is no directory of a run (results/runs/NAME): it has no plan.json"),
            "{error}"
        );
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
