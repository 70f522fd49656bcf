//! Who opens an engine: its name, what it can do, and the databases that it makes.
//!
//! An engine of ordered keys implements [`Provider::open`] alone: every other content has a form over
//! ordered keys. One with tables, a graph or a language of its own replaces the method of that
//! [`Content`], and refuses in [`Provider::can_hold`] what is not measured in it.

use std::path::Path;
use std::sync::Arc;

use super::allocator::Allocator;
use super::codec::Codec;
use super::graph::{self, GraphEngine};
use super::settings::EngineSettings;
use super::table::schema::Schema;
use super::table::{TableEngine, ordered};
use super::text::{self, OrderedText, TextEngine};
use super::{Capabilities, Engine, EngineResult, SpaceSpec};

/// Whether a workload begins transactions on the engine that it opens. Engines for which locks
/// are a kind of database of their own open the plain one where nobody asks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transactions {
    /// Sessions will begin transactions.
    Needed,
    /// Sessions only read, scan and write batches.
    Unneeded,
}

/// What a database is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Ordered keys with values.
    Keys,
    /// The graph of LinkBench.
    Graph,
    /// A table with columns.
    Table,
    /// Rows of text.
    Text,
}

/// One who can open an engine.
pub trait Provider: Send + Sync {
    /// The engine's name on the command line, in experiment files and in results.
    fn name(&self) -> &'static str;

    /// What it is, in one line.
    fn about(&self) -> &'static str;

    /// What chooses codecs and sizes of blocks, where the engine does that by itself.
    fn decides(&self) -> Option<&'static str> {
        None
    }

    /// The version that is opened; empty where the engine has none of its own.
    fn version(&self) -> String {
        String::new()
    }

    /// What the engine can do by itself when it is opened for transactions, or without them where
    /// it has none; the opened engine says the same. Nothing for an engine that is no part of this
    /// program.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Whether the engine can be opened here; otherwise one line that says how to get it.
    ///
    /// # Errors
    /// The engine is not there.
    fn available(&self) -> EngineResult<()> {
        Ok(())
    }

    /// Refuses what is never kept in this engine here.
    ///
    /// # Errors
    /// What it is measured with instead.
    fn can_hold(&self, _content: Content) -> EngineResult<()> {
        Ok(())
    }

    /// Refuses settings that an opened engine would refuse, as far as that can be told before: an
    /// option that it does not know, a part of it that is not installed.
    ///
    /// # Errors
    /// What is wrong with them.
    fn can_follow(&self, _settings: &EngineSettings) -> EngineResult<()> {
        Ok(())
    }

    /// The allocator without which the engine is not measured; `None` when any will do.
    fn allocator(&self) -> Option<Allocator> {
        None
    }

    /// True when the engine keeps its data on disk.
    fn uses_disk(&self) -> bool {
        true
    }

    /// True when what was written can be read back, so that there is something to check.
    fn stores(&self) -> bool {
        true
    }

    /// Opens or makes a database in `directory` with the spaces of the caller. What its
    /// [`Provider::capabilities`] exclude was refused before.
    ///
    /// # Errors
    /// The engine's own, and settings that it cannot follow.
    fn open(
        &self,
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
        transactions: Transactions,
    ) -> EngineResult<Box<dyn Engine>>;

    /// Opens or makes a database in `directory` with one table. An engine of ordered keys keeps its
    /// rows as keys and values; one with tables of its own does it in its own way.
    ///
    /// # Errors
    /// As [`Provider::open`].
    fn open_table(
        &self,
        directory: &Path,
        settings: &EngineSettings,
        schema: &Arc<Schema>,
    ) -> EngineResult<Box<dyn TableEngine>> {
        let spaces = &ordered::SPACES;
        let engine = self.open(directory, settings, spaces, Transactions::Needed)?;
        Ok(Box::new(ordered::OrderedTable::new(engine, Arc::clone(schema))))
    }

    /// Opens or makes a database in `directory` with rows of text. An engine of ordered keys keeps
    /// them as keys and values; one with a language of its own does it in its own way.
    ///
    /// # Errors
    /// As [`Provider::open`].
    fn open_text(
        &self,
        directory: &Path,
        settings: &EngineSettings,
    ) -> EngineResult<Box<dyn TextEngine>> {
        let engine = self.open(directory, settings, &text::SPACES, Transactions::Unneeded)?;
        Ok(Box::new(OrderedText::new(engine)))
    }

    /// Opens an empty graph of LinkBench in `directory`, for transactions: ordered keys, unless
    /// the engine has a mapping of its own.
    ///
    /// # Errors
    /// As [`Provider::open`].
    fn open_graph(
        &self,
        directory: &Path,
        settings: &EngineSettings,
    ) -> EngineResult<Box<dyn GraphEngine>> {
        let spaces = &graph::schema::SPACES;
        Ok(Box::new(self.open(directory, settings, spaces, Transactions::Needed)?))
    }

    /// Name and version of the library behind a codec.
    ///
    /// # Errors
    /// A codec that the engine does not know.
    fn codec_library(&self, codec: Codec) -> EngineResult<String>;
}
