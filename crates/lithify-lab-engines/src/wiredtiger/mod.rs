//! WiredTiger through a library that the setup builds from its source package.
//!
//! WiredTiger's own interface is structures of function pointers with variable arguments, and
//! their layout changes. So the setup compiles `flat.c`, a file of ours, against the header of the
//! version and links both into one library of plain functions.
//!
//! | file | owns |
//! |---|---|
//! | `flat.c` | plain functions over the library's interface |
//! | `functions` | their types, found by name |
//! | `connection`, `cursors` | an open database and its rows, behind safe calls |
//! | `options` | the settings that engines share, as texts |
//! | `session`, `engine` | the adapter |
//!
//! Promises: unsafe code is in `functions`, `connection` and `cursors` only. What is matched with
//! Lithify and what is not stands in `docs/engines/wiredtiger.md`.

mod connection;
mod cursors;
mod engine;
mod functions;
mod options;
mod session;

use std::ffi::CString;
use std::path::Path;

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::provider::{Provider, Transactions};
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{Capabilities, Engine, EngineResult, SpaceSpec};

use crate::library::LoadedOnce;
use crate::setup;
use engine::WiredTigerEngine;
use functions::Functions;

/// What the setup compiles beside the library.
pub const FLAT_SOURCE: &str = include_str!("flat.c");

/// The version that the adapter is for.
const VERSION: &str = "11.3.1";

/// WiredTiger by its names: with the library's own number of eviction threads, and with as many as
/// other engines have background threads.
pub static PROVIDERS: [WiredTiger; 2] = [
    WiredTiger {
        name: "wiredtiger",
        about: "WiredTiger 11.3.1 from its source package: a B-tree with compressed pages",
        eviction_is_matched: false,
    },
    WiredTiger {
        name: "wiredtiger-matched-eviction",
        about: "the same; as many eviction threads as other engines have background threads",
        eviction_is_matched: true,
    },
];

/// See [`PROVIDERS`].
pub struct WiredTiger {
    name: &'static str,
    about: &'static str,
    eviction_is_matched: bool,
}

impl WiredTiger {
    /// The settings with those of the name in them; options that are set stay.
    fn own(&self, settings: &EngineSettings) -> EngineSettings {
        let mut own = settings.clone();
        if self.eviction_is_matched {
            let matched = || options::EVICTION_MATCHED.to_owned();
            own.options.entry(options::EVICTION.to_owned()).or_insert_with(matched);
        }
        own
    }
}

/// The functions of the library in the cache, which is loaded once.
fn functions() -> EngineResult<&'static Functions> {
    static LOADED: LoadedOnce<Functions> = LoadedOnce::new();
    LOADED.get(|| connection::load(&setup::recipe("wiredtiger")?.library(VERSION)?))
}

/// Loads a library, makes a small database in the empty `directory` with it, and gives its version.
///
/// # Errors
/// The library cannot be loaded, lacks a function, or makes no database.
pub fn try_library(
    library: &Path,
    directory: &Path,
    settings: &EngineSettings,
) -> EngineResult<String> {
    let space = SpaceSpec { name: "trial", prefix_bytes: None, single_delete: false };
    let functions = connection::load(library)?;
    let engine = WiredTigerEngine::open(functions, directory, settings, &[space])?;
    Box::new(engine).close()?;
    Ok(connection::library_version(functions))
}

/// What the library makes of a table's configuration, such as
/// `block_compressor=zstd,leaf_page_max=32KB`: what it keeps of a table that it makes with it in
/// `directory`.
///
/// # Errors
/// The library is not here, or does not take the text.
pub fn understood(text: &str, directory: &Path) -> EngineResult<String> {
    let table = format!("key_format=u,value_format=u,{text}");
    let database =
        connection::Database::open(functions()?, directory, "create", &["advised"], &table)?;
    let kept = database.file_config("advised.wt")?;
    database.close()?;
    Ok(kept)
}

impl Provider for WiredTiger {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn version(&self) -> String {
        VERSION.to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        engine::capabilities()
    }

    fn available(&self) -> EngineResult<()> {
        setup::recipe("wiredtiger")?.library(VERSION).map(|_| ())
    }

    fn can_follow(&self, settings: &EngineSettings) -> EngineResult<()> {
        options::Options::new(&self.own(settings)).map(|_| ())
    }

    fn open(
        &self,
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
        _transactions: Transactions,
    ) -> EngineResult<Box<dyn Engine>> {
        Ok(Box::new(WiredTigerEngine::open(functions()?, directory, &self.own(settings), spaces)?))
    }

    fn codec_library(&self, codec: Codec) -> EngineResult<String> {
        // The codecs of levels that a tree of pages does not have are not used.
        let Ok((name, _)) = options::compressor_of(codec) else { return Ok("none".to_owned()) };
        let version = CString::new(name)
            .ok()
            .and_then(|name| connection::codec_version(functions().ok()?, &name));
        Ok(match (name, version) {
            ("none", _) => name.to_owned(),
            (_, Some(version)) => format!("the system's {name} {version}"),
            (_, None) => format!("the system's {name}"),
        })
    }
}
