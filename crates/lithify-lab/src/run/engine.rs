//! Engines by name: the one place that knows how each is opened.

use std::path::Path;

use super::cell::{EngineKind, EngineSettings};
use crate::adapter::{Engine, EngineError, EngineResult};
use crate::engines::model::ModelEngine;
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
        EngineKind::Model => Ok(Box::new(ModelEngine::new(&linkbench::schema::SPACES))),
        EngineKind::Lithify => Err(EngineError::fatal(format!(
            "this build has no adapter for Lithify ({}, {})",
            directory.display(),
            settings.codec_bottom
        ))),
    }
}
