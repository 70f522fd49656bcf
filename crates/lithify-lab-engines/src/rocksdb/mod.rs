//! RocksDB through the C interface of a shared library that is loaded while the program runs.
//!
//! | file | owns |
//! |---|---|
//! | `functions` | the C functions by name |
//! | `objects` | objects of the library that are freed once |
//! | `options` | the settings that engines share, as options |
//! | `database` | an open database behind safe calls; `reads` and `writes`: its rows |
//! | `policy` | codecs by distance from the bottom |
//! | `tuning` | sizes and threads, matched or as an expert sets them |
//! | `table_file`, `statistics` | what files and texts of the library say |
//! | `session`, `engine` | the adapter |
//! | `judge` | what the library makes of a text of options |
//! | `read_only` | a database of somebody else, which is only read |
//!
//! Promises: unsafe code is in the files of the first four rows in `judge` and in `read_only`. What is matched with Lithify and what
//! is not stands in `docs/engines.md`.

mod database;
mod engine;
mod functions;
mod judge;
mod objects;
mod options;
pub(crate) mod policy;
pub(crate) mod read_only;
mod reads;
mod session;
pub(crate) mod statistics;
mod table_file;
#[cfg(test)]
mod tests;
mod tuning;
mod writes;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lithify_lab::adapter::allocator::Allocator;
use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::provider::{Provider, Transactions};
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{Capabilities, Engine, EngineError, EngineResult, SpaceSpec};
use lithify_lab::engines::external_lock::{self, ExternalLock};
use lithify_lab::meter::machine::allocator_in_force;

use crate::{library, setup};
use engine::RocksEngine;
use functions::Functions;
use options::Mode;
use tuning::Tuning;

/// A version of RocksDB that can be opened by name.
pub struct RocksDb {
    name: &'static str,
    about: &'static str,
    source: Source,
    /// See [`Mode::adaptive_yield`].
    adaptive_yield: bool,
    /// See [`Mode::tuning`].
    tuning: Tuning,
}

/// Where a version's library comes from.
enum Source {
    /// Put into the cache by the setup.
    Cache(&'static str),
    /// Built by the setup for this processor, and put into the cache.
    Native(&'static str),
    /// Installed by the system.
    System,
}

/// The versions, the one to compare with first.
pub static PROVIDERS: [RocksDb; 6] = [
    RocksDb {
        name: "rocksdb",
        about: "RocksDB 11.8.1 from its Java package",
        source: Source::Cache("11.8.1"),
        adaptive_yield: true,
        tuning: Tuning::Matched,
    },
    RocksDb {
        name: "rocksdb-expert",
        about: "RocksDB 11.8.1 as its experts set it, with jemalloc",
        source: Source::Cache("11.8.1"),
        adaptive_yield: true,
        tuning: Tuning::Expert,
    },
    RocksDb {
        name: "rocksdb-no-yield",
        about: "the same; writers that wait for each other sleep at once",
        source: Source::Cache("11.8.1"),
        adaptive_yield: false,
        tuning: Tuning::Matched,
    },
    RocksDb {
        name: "rocksdb-native",
        about: "RocksDB 11.8.1 built for this processor, with the system's codecs",
        source: Source::Native("11.8.1"),
        adaptive_yield: true,
        tuning: Tuning::Matched,
    },
    RocksDb {
        name: "rocksdb-10.4.2",
        about: "RocksDB 10.4.2 from its Java package",
        source: Source::Cache("10.4.2"),
        adaptive_yield: true,
        tuning: Tuning::Matched,
    },
    RocksDb {
        name: "rocksdb-system",
        about: "RocksDB 7.8 as Debian 12 installs it (librocksdb7.8); external lock",
        source: Source::System,
        adaptive_yield: true,
        tuning: Tuning::Matched,
    },
];

const SYSTEM_LIBRARY: &str = "librocksdb.so.7.8";
const SYSTEM_VERSION: &str = "7.8";

impl RocksDb {
    /// The C interface of the system's version has none.
    fn has_transactions(&self) -> bool {
        !matches!(self.source, Source::System)
    }

    /// The library, or one line that says how to get it.
    fn library(&self) -> EngineResult<PathBuf> {
        match self.source {
            Source::Cache(version) => setup::recipe("rocksdb")?.library(version),
            Source::Native(version) => {
                setup::recipe("rocksdb")?.library(&format!("{version}{}", setup::NATIVE))
            }
            Source::System => library::system_library(SYSTEM_LIBRARY, "librocksdb7.8"),
        }
    }
}

/// The functions of a library, which is loaded once. It is the only one of its process: two
/// versions share those symbols that the dynamic linker keeps unique in a process (static members
/// of C++ templates and inline functions), and write over each other's memory.
fn functions(path: &Path) -> EngineResult<&'static Functions> {
    static LOADED: Mutex<Option<(PathBuf, &'static Functions)>> = Mutex::new(None);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    match &*loaded {
        Some((loaded, functions)) if loaded == path => Ok(functions),
        Some((loaded, _)) => Err(EngineError::fatal(format!(
            "{}: another library of RocksDB ({}) is loaded; use one version in a process",
            path.display(),
            loaded.display()
        ))),
        None => {
            let functions = Functions::load(path)?;
            *loaded = Some((path.to_owned(), functions));
            Ok(functions)
        }
    }
}

/// Loads a library, makes a small database in the empty `directory` with it, and gives the
/// version that the database was made by.
///
/// # Errors
/// The library cannot be loaded, lacks a function, or makes no database.
pub fn try_library(
    library: &Path,
    directory: &Path,
    settings: &EngineSettings,
) -> EngineResult<String> {
    let space = SpaceSpec { name: "trial", prefix_bytes: None, single_delete: false };
    let mode = Mode { transactions: false, adaptive_yield: true, tuning: Tuning::Matched };
    let engine = RocksEngine::open(functions(library)?, directory, settings, &[space], mode)?;
    let name = engine.name();
    Box::new(engine).close()?;
    Ok(name.trim_start_matches("RocksDB ").to_owned())
}

/// What the version that is compared with makes of a text of options, such as
/// `compression=kZSTD;block_based_table_factory={block_size=16384;};`: the options file of an empty
/// database that it makes with them in `directory`.
///
/// # Errors
/// The library is not here, or does not take the text.
pub fn understood(text: &str, directory: &Path) -> EngineResult<String> {
    judge::understood(functions(&PROVIDERS[0].library()?)?, text, directory)
}

/// Opens a database that somebody else made, to read it and nothing else.
///
/// # Errors
/// The library is not here, or refuses.
pub(crate) fn open_read_only(
    directory: &Path,
    log_directory: &Path,
) -> EngineResult<read_only::ReadOnly> {
    let functions = functions(&PROVIDERS[0].library()?)?;
    read_only::ReadOnly::open(functions, directory, log_directory)
}

/// The newest options file of a database.
fn options_file(directory: &Path) -> EngineResult<String> {
    let failed = |what: String| EngineError::fatal(format!("{}: {what}", directory.display()));
    let entries = std::fs::read_dir(directory).map_err(|error| failed(error.to_string()))?;
    let is_options = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("OPTIONS-"))
    };
    let newest = entries.flatten().map(|entry| entry.path()).filter(is_options).max();
    let newest = newest.ok_or_else(|| failed("no options file of RocksDB".to_owned()))?;
    std::fs::read_to_string(&newest).map_err(|error| failed(error.to_string()))
}

/// The version that the newest options file of a database names.
fn version_in(directory: &Path) -> EngineResult<String> {
    let failed = |what: String| EngineError::fatal(format!("{}: {what}", directory.display()));
    let text = options_file(directory)?;
    let version = text.lines().find_map(|line| line.trim().strip_prefix("rocksdb_version="));
    version.map(str::to_owned).ok_or_else(|| failed("no version of RocksDB".to_owned()))
}

/// Whether processes of this program can have the allocator.
fn allocator_can_be_had(engine: &str, allocator: Allocator) -> EngineResult<()> {
    if allocator.verify(&allocator_in_force()).is_ok() {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(|error| EngineError::fatal(error.to_string()))?;
    let missing = |error| EngineError::fatal(format!("{engine} needs {allocator}: {error}"));
    allocator.require(&program).map_err(missing)
}

impl Provider for RocksDb {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn version(&self) -> String {
        match self.source {
            Source::Cache(version) | Source::Native(version) => version,
            Source::System => SYSTEM_VERSION,
        }
        .to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        let own = engine::capabilities(self.has_transactions());
        if self.has_transactions() { own } else { external_lock::capabilities(own) }
    }

    fn available(&self) -> EngineResult<()> {
        self.library()?;
        self.allocator().map_or(Ok(()), |allocator| allocator_can_be_had(self.name, allocator))
    }

    fn allocator(&self) -> Option<Allocator> {
        (self.tuning == Tuning::Expert).then_some(Allocator::Jemalloc)
    }

    fn can_follow(&self, settings: &EngineSettings) -> EngineResult<()> {
        settings.expect_options(self.name, &[])
    }

    fn open(
        &self,
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
        transactions: Transactions,
    ) -> EngineResult<Box<dyn Engine>> {
        if let Some(allocator) = self.allocator() {
            allocator.verify(&allocator_in_force()).map_err(|error| {
                EngineError::fatal(format!("{} is not measured without it: {error}", self.name))
            })?;
        }
        let functions = functions(&self.library()?)?;
        let needed = transactions == Transactions::Needed;
        let mode = Mode {
            transactions: needed && self.has_transactions(),
            adaptive_yield: self.adaptive_yield,
            tuning: self.tuning,
        };
        let engine = RocksEngine::open(functions, directory, settings, spaces, mode)?;
        Ok(match needed && !self.has_transactions() {
            true => Box::new(ExternalLock::new(engine)),
            false => Box::new(engine),
        })
    }

    fn codec_library(&self, codec: Codec) -> EngineResult<String> {
        let place = match self.source {
            Source::Cache(version) => format!("the one built into RocksDB {version}"),
            Source::Native(_) | Source::System => "the system's".to_owned(),
        };
        Ok(if codec == Codec::NONE { "none".to_owned() } else { place })
    }
}
