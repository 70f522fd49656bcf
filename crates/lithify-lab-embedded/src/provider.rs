//! The one provider of all engines of this crate: what they say of themselves, as the lab asks it.

use std::marker::PhantomData;
use std::path::Path;

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::provider::{Provider, Transactions};
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{Capabilities, Engine, EngineResult, SpaceSpec};
use lithify_lab::engines::elsewhere::Elsewhere;
use lithify_lab::engines::external_lock::{self, ExternalLock};

/// An engine that is built with this crate. None has row locks.
pub(crate) trait Embedded: Engine + Sized + 'static {
    /// Its name and what it is, as programs without it know them.
    const ABOUT: &'static Elsewhere;

    /// The version that is built in.
    fn version() -> String;

    /// What it can do without an external lock.
    fn can() -> Capabilities;

    /// The library, with its version, that compresses with a codec which it has.
    fn codec_library(codec: Codec) -> String;

    /// Refuses settings that the engine cannot follow.
    ///
    /// # Errors
    /// What is wrong with them.
    fn can_follow(settings: &EngineSettings) -> EngineResult<()>;

    /// Opens or makes a database in `directory`.
    ///
    /// # Errors
    /// The engine's own, and settings that it cannot follow.
    fn open(
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
    ) -> EngineResult<Self>;
}

/// Opens an engine by its name.
pub(crate) struct Opens<E>(PhantomData<fn() -> E>);

impl<E> Opens<E> {
    /// The provider of `E`.
    pub(crate) const fn new() -> Opens<E> {
        Opens(PhantomData)
    }
}

impl<E: Embedded> Provider for Opens<E> {
    fn name(&self) -> &'static str {
        E::ABOUT.name
    }

    fn about(&self) -> &'static str {
        E::ABOUT.about
    }

    fn version(&self) -> String {
        E::version()
    }

    fn capabilities(&self) -> Capabilities {
        external_lock::capabilities(E::can())
    }

    fn can_follow(&self, settings: &EngineSettings) -> EngineResult<()> {
        E::can_follow(settings)
    }

    fn open(
        &self,
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
        transactions: Transactions,
    ) -> EngineResult<Box<dyn Engine>> {
        let engine = E::open(directory, settings, spaces)?;
        Ok(match transactions {
            Transactions::Needed => Box::new(ExternalLock::new(engine)),
            Transactions::Unneeded => Box::new(engine),
        })
    }

    fn codec_library(&self, codec: Codec) -> EngineResult<String> {
        Ok(E::codec_library(codec))
    }
}
