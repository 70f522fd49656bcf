//! Engines that a program may be built with, as a program knows them that was built without.
//!
//! Owns: their names, and the line that says how to get them. The adapters are in a crate of their
//! own, which takes the names from here and registers first; [`register`] then fills the names that
//! are left with providers that say where the engine is.

use std::path::Path;

use crate::adapter::codec::Codec;
use crate::adapter::provider::{Provider, Transactions};
use crate::adapter::settings::EngineSettings;
use crate::adapter::{Engine, EngineError, EngineResult, SpaceSpec};
use crate::engines::registry;

/// An engine that is not part of this program.
pub struct Elsewhere {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
}

/// LMDB.
pub static LMDB: Elsewhere =
    Elsewhere { name: "lmdb", about: "LMDB: a B+tree in a memory map, copied on write" };
/// SQLite.
pub static SQLITE: Elsewhere =
    Elsewhere { name: "sqlite", about: "SQLite: a B-tree with a write-ahead log" };
/// fjall.
pub static FJALL: Elsewhere = Elsewhere { name: "fjall", about: "fjall: an LSM tree in Rust" };
/// redb.
pub static REDB: Elsewhere =
    Elsewhere { name: "redb", about: "redb: a B-tree in Rust, copied on write" };

/// How to get a program with them.
const BUILD: &str = "cargo build --release -p lithify-cli --features embedded-engines";

/// Adds those that nobody has registered to the engines that are known by name.
pub fn register() {
    for provider in [&LMDB, &SQLITE, &FJALL, &REDB] {
        registry::register(provider);
    }
}

/// How the file `version` of fjall's databases begins; the number of the format follows.
const FJALL_MAGIC: &[u8] = b"FJL";

/// Whether a directory is a database of fjall: the number of its format.
pub fn fjall_format(directory: &Path) -> Option<u8> {
    let version = std::fs::read(directory.join("version")).ok()?;
    version.strip_prefix(FJALL_MAGIC)?.first().copied()
}

impl Elsewhere {
    /// It is not in this build: how to get a program with it.
    pub fn missing(&self) -> EngineError {
        EngineError::fatal(format!("{} is not in this build; get it with: {BUILD}", self.name))
    }
}

impl Provider for Elsewhere {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn available(&self) -> EngineResult<()> {
        Err(self.missing())
    }

    fn open(
        &self,
        _directory: &Path,
        _settings: &EngineSettings,
        _spaces: &[SpaceSpec],
        _transactions: Transactions,
    ) -> EngineResult<Box<dyn Engine>> {
        Err(self.missing())
    }

    fn codec_library(&self, _codec: Codec) -> EngineResult<String> {
        Err(self.missing())
    }
}
