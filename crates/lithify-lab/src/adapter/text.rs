//! What an engine of text must offer: rows of a partition, a number, and a line; a flush; a scan.
//!
//! A provider of an engine of ordered keys has this already ([`OrderedText`]): the key of a row is
//! its partition and its number, big-endian, its value the line. One of a database with a language
//! of its own implements [`TextEngine`] and gives it in
//! [`super::provider::Provider::open_text`]; its table is `(a int, b int, c text, primary key
//! (a, b))`.
//!
//! Threads: a [`TextEngine`] is shared; a [`TextSession`] belongs to the thread that asked for it.

use std::ops::ControlFlow;

use super::{
    Capabilities, Engine, EngineError, EngineResult, EngineStatistics, ScanRange, Session, SpaceId,
    SpaceSpec, WriteBatch,
};

/// A row: the number of its partition, its own, its line.
pub type TextRow<'a> = (u32, u32, &'a [u8]);

/// Sees the rows of a scan.
pub type TextVisitor<'a> = dyn FnMut(TextRow<'_>) + 'a;

/// A database of text, opened in a directory.
pub trait TextEngine: Send + Sync {
    /// Name and version, for the reports.
    fn name(&self) -> String;

    /// What it can do by itself.
    fn capabilities(&self) -> Capabilities;

    /// A session for the calling thread.
    ///
    /// # Errors
    /// The engine's.
    fn session(&self) -> EngineResult<Box<dyn TextSession + '_>>;

    /// Writes what is in memory to files; returns when done.
    ///
    /// # Errors
    /// The engine's.
    fn flush(&self) -> EngineResult<()>;

    /// Returns when no maintenance is due.
    ///
    /// # Errors
    /// The engine's.
    fn rest(&self) -> EngineResult<()>;

    /// Figures since open.
    ///
    /// # Errors
    /// The engine's.
    fn statistics(&self) -> EngineResult<EngineStatistics>;

    /// True when opening takes so long that it is opened once, and emptied where others are opened
    /// on an empty directory. Such an engine has no cache of its own, so that opening it anew would
    /// empty none.
    fn stays_open(&self) -> bool {
        false
    }

    /// Removes every row, and its files. Only one that stays open is asked to.
    ///
    /// # Errors
    /// The engine's, or that it does not.
    fn clear(&self) -> EngineResult<()> {
        Err(EngineError::fatal("this engine is emptied by removing its directory"))
    }

    /// Processes other than this one that do the engine's work.
    fn process_ids(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Closes cleanly; all sessions are gone by then.
    ///
    /// # Errors
    /// The engine's.
    fn close(self: Box<Self>) -> EngineResult<()>;
}

/// One thread's view of the text.
pub trait TextSession {
    /// Adds a row behind all before; it may be held back until [`TextSession::finish`].
    ///
    /// # Errors
    /// The engine's.
    fn insert(&mut self, row: TextRow<'_>) -> EngineResult<()>;

    /// Writes the rows that were held back.
    ///
    /// # Errors
    /// The engine's.
    fn finish(&mut self) -> EngineResult<()>;

    /// Visits every row, by partition and number.
    ///
    /// # Errors
    /// The engine's, or a key that is none of a row.
    fn scan(&mut self, row: &mut TextVisitor<'_>) -> EngineResult<()>;

    /// Reads the line of a row into `line` (cleared first). Returns whether it exists.
    ///
    /// # Errors
    /// The engine's.
    fn get(&mut self, partition: u32, number: u32, line: &mut Vec<u8>) -> EngineResult<bool>;
}

/// The key of a row in an engine of ordered keys.
pub fn key_of(partition: u32, number: u32) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&partition.to_be_bytes());
    key[4..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The numbers of a key; `None` for one of another length.
fn numbers_of(key: &[u8]) -> Option<(u32, u32)> {
    let (partition, number) = key.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*partition), u32::from_be_bytes(number.try_into().ok()?)))
}

const ROWS: SpaceId = SpaceId(0);

/// The spaces that an engine is opened with.
pub const SPACES: [SpaceSpec; 1] =
    [SpaceSpec { name: "rows", prefix_bytes: None, single_delete: false }];

/// Rows of a batch of the load.
const BATCH_ROWS: usize = 1_000;

/// Text in an engine of ordered keys that was opened with [`SPACES`].
pub struct OrderedText(Box<dyn Engine>);

impl OrderedText {
    /// Text in `engine`.
    pub fn new(engine: Box<dyn Engine>) -> OrderedText {
        OrderedText(engine)
    }
}

impl TextEngine for OrderedText {
    fn name(&self) -> String {
        self.0.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn session(&self) -> EngineResult<Box<dyn TextSession + '_>> {
        Ok(Box::new(OrderedSession { session: self.0.session()?, batch: WriteBatch::new() }))
    }

    fn flush(&self) -> EngineResult<()> {
        self.0.flush()
    }

    fn rest(&self) -> EngineResult<()> {
        self.0.wait_for_compaction()
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        self.0.statistics()
    }

    fn process_ids(&self) -> Vec<u32> {
        self.0.process_ids()
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        self.0.close()
    }
}

struct OrderedSession<'a> {
    session: Box<dyn Session + 'a>,
    batch: WriteBatch,
}

impl TextSession for OrderedSession<'_> {
    fn insert(&mut self, (partition, number, line): TextRow<'_>) -> EngineResult<()> {
        self.batch.put(ROWS, &key_of(partition, number), line);
        if self.batch.len() < BATCH_ROWS {
            return Ok(());
        }
        self.finish()
    }

    fn finish(&mut self) -> EngineResult<()> {
        self.session.write_batch(&self.batch)?;
        self.batch.clear();
        Ok(())
    }

    fn scan(&mut self, row: &mut TextVisitor<'_>) -> EngineResult<()> {
        let mut foreign = false;
        self.session.scan(ROWS, &ScanRange::prefix(b""), &mut |key, line| {
            let Some((partition, number)) = numbers_of(key) else {
                foreign = true;
                return ControlFlow::Break(());
            };
            row((partition, number, line));
            ControlFlow::Continue(())
        })?;
        if foreign { Err(EngineError::fatal("a stored key is none of the text")) } else { Ok(()) }
    }

    fn get(&mut self, partition: u32, number: u32, line: &mut Vec<u8>) -> EngineResult<bool> {
        self.session.get(ROWS, &key_of(partition, number), line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;
    use crate::engines::model::ModelEngine;

    #[test]
    fn a_key_of_another_length_is_none_of_the_text() {
        let engine = ModelEngine::new(&SPACES);
        let mut batch = WriteBatch::new();
        batch.put(ROWS, b"\xff too long", b"");
        engine.session().expect("is there").write_batch(&batch).expect("writes");
        let text = OrderedText::new(Box::new(engine));
        let mut session = text.session().expect("is there");
        session.insert((1, 2, b"line")).expect("inserts");
        session.finish().expect("writes");
        let mut rows = 0;
        let error = session.scan(&mut |_| rows += 1).expect_err("is foreign");
        assert_eq!(error.to_string(), "a stored key is none of the text");
        assert_eq!(rows, 1);
        assert!(!text.stays_open() && text.clear().is_err());
    }

    #[test]
    fn ordered_keys_hold_a_text() {
        let text = OrderedText::new(Box::new(ModelEngine::new(&SPACES)));
        assert_eq!(conformance::text::check(&text), [""; 0]);
    }
}
