//! LevelDB through the C interface of the system's library, loaded while the program runs.
//!
//! | file | owns |
//! |---|---|
//! | `functions` | the C functions by name |
//! | `database` | an open database and its objects behind safe calls |
//! | `table_file`, `statistics` | what files and texts of the library say |
//! | `session`, `engine` | the adapter |
//!
//! Promises: unsafe code is in the files of the first two rows only. What is matched with Lithify
//! and what is not stands in `docs/engines/leveldb.md`.

mod database;
mod engine;
mod functions;
mod session;
mod statistics;
mod table_file;

use std::path::{Path, PathBuf};

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::provider::{Provider, Transactions};
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{Capabilities, Engine, EngineResult, SpaceSpec};
use lithify_lab::engines::external_lock::{self, ExternalLock};

use crate::library::{self, LoadedOnce};
pub(crate) use database::Database;
use database::OpenOptions;
use engine::LevelDbEngine;
use functions::Functions;

const LIBRARY: &str = "libleveldb.so.1d";
const PACKAGE: &str = "libleveldb1d";
/// The one version with this name of the library.
const VERSION: &str = "1.23";

/// LevelDB, which can be opened by name.
pub static PROVIDER: LevelDb = LevelDb;

/// See [`PROVIDER`].
pub struct LevelDb;

fn installed() -> EngineResult<PathBuf> {
    library::system_library(LIBRARY, PACKAGE)
}

/// The functions of the library, which is loaded once.
fn functions() -> EngineResult<&'static Functions> {
    static LOADED: LoadedOnce<Functions> = LoadedOnce::new();
    LOADED.get(|| Functions::load(&installed()?))
}

/// Opens a database as it is. Memtables are large, so that little of its log is written to tables.
///
/// # Errors
/// The library is not here, or refuses.
pub(crate) fn open_as_it_is(directory: &Path) -> EngineResult<Database> {
    let options = OpenOptions {
        cache_bytes: 8 << 20,
        memtable_bytes: 32 << 20,
        table_bytes: 2 << 20,
        block_bytes: 4 << 10,
        filter_bits_per_key: 10,
        snappy: true,
        sync: false,
    };
    Database::open(functions()?, directory, &options)
}

impl Provider for LevelDb {
    fn name(&self) -> &'static str {
        "leveldb"
    }

    fn about(&self) -> &'static str {
        "LevelDB 1.23 as Debian 12 installs it (libleveldb1d)"
    }

    fn version(&self) -> String {
        VERSION.to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        external_lock::capabilities(engine::capabilities())
    }

    fn available(&self) -> EngineResult<()> {
        installed().map(|_| ())
    }

    fn can_follow(&self, settings: &EngineSettings) -> EngineResult<()> {
        engine::options_of(settings).map(|_| ())
    }

    fn open(
        &self,
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
        transactions: Transactions,
    ) -> EngineResult<Box<dyn Engine>> {
        let options = engine::options_of(settings)?;
        let engine = LevelDbEngine::open(functions()?, directory, options, spaces.len())?;
        Ok(match transactions {
            Transactions::Needed => Box::new(ExternalLock::new(engine)),
            Transactions::Unneeded => Box::new(engine),
        })
    }

    fn codec_library(&self, codec: Codec) -> EngineResult<String> {
        let place = if codec == Codec::SNAPPY { "the system's snappy" } else { "none" };
        Ok(place.to_owned())
    }
}
