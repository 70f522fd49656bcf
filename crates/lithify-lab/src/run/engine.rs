//! Engines by name: the one place that knows how each is opened.

use std::collections::BTreeMap;
use std::path::Path;

use super::cell::{EngineKind, EngineSettings};
use crate::adapter::{Engine, EngineError, EngineResult, SpaceSpec};
use crate::engines::lithify::LithifyEngine;
use crate::engines::model::ModelEngine;
use crate::engines::null::NullEngine;
use crate::experiment::DurabilityMode;
use crate::linkbench;

/// Opens an engine on an empty directory with the spaces of LinkBench.
///
/// # Errors
/// The engine's own.
pub fn open(
    kind: EngineKind,
    directory: &Path,
    settings: &EngineSettings,
) -> EngineResult<Box<dyn Engine>> {
    match kind {
        EngineKind::Null => Ok(Box::new(linkbench::null_engine())),
        _ => open_spaces(kind, directory, settings, &linkbench::schema::SPACES),
    }
}

/// Opens an engine on a directory with spaces of the caller's. The engine that stores nothing
/// finds nothing in them.
///
/// # Errors
/// The engine's own.
pub fn open_spaces(
    kind: EngineKind,
    directory: &Path,
    settings: &EngineSettings,
    spaces: &[SpaceSpec],
) -> EngineResult<Box<dyn Engine>> {
    match kind {
        EngineKind::Null => Ok(Box::new(NullEngine::new(Vec::new()))),
        EngineKind::Model => Ok(Box::new(ModelEngine::new(spaces))),
        EngineKind::Lithify => {
            let (options, family) = lithify_options(settings)?;
            Ok(Box::new(LithifyEngine::open(directory, spaces, options, family)?))
        }
    }
}

/// The settings as options of Lithify. The block cache gets what the other uses leave of the one
/// memory budget; it has no size of its own.
fn lithify_options(
    settings: &EngineSettings,
) -> EngineResult<(lithify::Options, lithify::CfOptions)> {
    let policy =
        format!("{},{},{}", settings.codec_small, settings.codec_middle, settings.codec_bottom);
    let compression = policy
        .parse()
        .map_err(|error| EngineError::fatal(format!("codec policy {policy}: {error}")))?;
    let options = lithify::Options {
        memory_budget_bytes: settings.memory_budget_bytes as usize,
        memtable_bytes: settings.memtable_bytes as usize,
        background_threads: settings.background_threads as usize,
        durability: match settings.durability {
            DurabilityMode::Sync => lithify::Durability::Sync,
            DurabilityMode::Buffered => lithify::Durability::Buffered,
            DurabilityMode::None => lithify::Durability::None,
        },
        ..lithify::Options::default()
    };
    let family = lithify::CfOptions {
        compression,
        block_size_bytes: settings.block_bytes as usize,
        table_bytes: settings.table_bytes,
        base_level_bytes_max: settings.base_level_bytes,
        fanout: settings.fanout as u32,
        ..lithify::CfOptions::default()
    };
    Ok((options, family))
}

/// Name and version of the library behind each codec that `settings` names.
///
/// # Errors
/// A codec that the engine does not know.
pub fn codec_libraries(settings: &EngineSettings) -> EngineResult<BTreeMap<String, String>> {
    [settings.codec_small, settings.codec_middle, settings.codec_bottom]
        .iter()
        .map(|codec| {
            let name = codec.to_string();
            let compression: lithify::Compression = name
                .parse()
                .map_err(|error| EngineError::fatal(format!("codec {name}: {error}")))?;
            Ok((name, lithify::codec::library_name_and_version(compression)))
        })
        .collect()
}
