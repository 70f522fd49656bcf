//! What a database can be told, as data: scripts of operations are made from a seed, run, shrunk
//! by leaving operations out, and printed.
//!
//! Operations name families, snapshots, cursors and transactions by slot, so that a script stays
//! meaningful when operations are taken out of it: what names an empty slot does nothing. Values
//! are recipes. The generator is in `generator`, settings come from `settings`.

mod dictionaries;
pub mod filtering;
mod generator;
pub mod lifetimes;
pub mod operators;
pub(crate) mod settings;

pub use dictionaries::vary as vary_dictionaries;
pub use generator::{Generator, KeySpace, Kind, Profile};
pub use settings::{database_options, family_options};

use lithify::{CfOptions, Options};

/// The names of the column families, by slot.
pub const FAMILIES: [&str; 4] = ["a", "b", "c", "d"];

/// The number of column families.
pub const FAMILY_COUNT: usize = FAMILIES.len();

/// Slots of snapshots.
pub const SNAPSHOT_SLOTS: usize = 4;

/// Slots of cursors that are held while other operations go on.
pub const CURSOR_SLOTS: usize = 3;

/// Slots of open transactions.
pub const TRANSACTION_SLOTS: usize = 2;

/// A key.
pub type Key = Vec<u8>;

/// A value as a recipe: its bytes follow from the seed, and codecs can shrink most of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// What the bytes are made from.
    pub seed: u64,
    /// How many there are.
    pub length: u32,
}

impl Value {
    /// The bytes.
    pub fn bytes(self) -> Vec<u8> {
        let length = self.length as usize;
        // Words of few bits, repeated now and then, or noise.
        let mask = [0x0f0f_0f0f_0f0f_0f0f, 0x0303_0303_0303_0303, u64::MAX, 0x00ff_0000_00ff_00ff]
            [(self.seed >> 62) as usize];
        let mut bytes = Vec::with_capacity(length + 8);
        let mut word = self.seed | 1;
        while bytes.len() < length {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            let shown = if word & 0x700 == 0 { self.seed } else { word };
            bytes.extend_from_slice(&(shown & mask).to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}

/// A change of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets a value.
    Put(Key, Value),
    /// Removes a key.
    Delete(Key),
    /// Removes the keys from the first on, up to but without the second.
    DeleteRange(Key, Key),
    /// Removes a key by single delete. Scripts have [`Change::Once`] instead.
    SingleDelete(Key),
    /// Adds an operand. Where the family has no merge operator, [`crate::model::State::resolve`] makes a
    /// put of it.
    Merge(Key, Value),
    /// Puts the key if it is not there, else removes it by single delete: the one way in which
    /// single deletes keep their contract. [`crate::model::State::resolve`] says which it is.
    Once(Key, Value),
}

/// A change with its family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The slot of the family.
    pub family: usize,
    /// What is changed.
    pub change: Change,
}

/// The keys that a cursor may show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// All.
    All,
    /// From this key on.
    From(Key),
    /// Up to but without this key.
    To(Key),
    /// From the first key on, up to but without the second, which is not before it.
    Between(Key, Key),
    /// From the first key on, up to and with the second, which is not before it.
    Through(Key, Key),
    /// Those that begin so, through the prefix cursor.
    Prefix(Key),
}

/// A move of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// To the first row.
    First,
    /// To the last row.
    Last,
    /// So many rows forward, or until there is none.
    Next(u32),
    /// So many rows back, or until there is none.
    Previous(u32),
    /// To the first row at or behind the key.
    Seek(Key),
    /// To the last row at or before the key.
    SeekForPrevious(Key),
}

/// A cursor: what it is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    /// The slot of the family.
    pub family: usize,
    /// Which keys.
    pub span: Span,
    /// The slot of the snapshot that it reads at; now if there is none.
    pub at: Option<usize>,
}

/// A write by itself that depends on what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Sets the row, or removes it, whatever is there: by an update that looks at it.
    Always {
        /// What it is set to.
        value: Option<Value>,
        /// A range that is deleted while it looks at the row for the first time.
        meanwhile: Option<(Key, Key)>,
    },
    /// Sets the row if there is none.
    IfAbsent(Value),
    /// Sets the row, or removes it, if it has the value that is named: its own, which is an empty one where there
    /// is no row, or another.
    IfEqual {
        /// Whether its own value is named.
        is_own: bool,
        /// What it is set to.
        value: Option<Value>,
    },
}

/// A call of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionCall {
    /// Begins one; with a snapshot, rows that others change from now on cannot be locked.
    Begin {
        /// Whether it sets a snapshot.
        has_snapshot: bool,
        /// Whether it reads at that, too.
        reads_at_snapshot: bool,
        /// Whether it takes no locks, and is checked when it commits; it reads at a snapshot then.
        is_optimistic: bool,
    },
    /// Reads without a lock: family and key.
    Get(usize, Key),
    /// Locks and reads: family and key.
    GetForUpdate(usize, Key),
    /// Locks and reads the first row that no other transaction has locked.
    LockFirst(usize, Span),
    /// Writes; a range delete must be refused.
    Write(Write),
    /// Reads rows with its own writes on top; never at a snapshot.
    Scan(Over, Vec<Move>),
    /// Marks a place to roll back to.
    SetSavepoint,
    /// Rolls back to the last mark.
    RollbackToSavepoint,
    /// Commits; with its own sync, if there is a log.
    Commit {
        /// Whether it asks for a sync of its own.
        is_synced: bool,
    },
    /// Gives up.
    Rollback,
}

/// How rows are ingested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IngestWay {
    /// Through the database.
    Rows,
    /// Through the database, and given up before the commit.
    GivenUp,
    /// Through the database; half of a life passes before the commit, and some of the keys are written
    /// meanwhile.
    SlowRows,
    /// As a table file that is linked.
    LinkedTable,
    /// As a table file that is copied.
    CopiedTable,
}

/// How a database goes before it is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is closed, and says how that went.
    Close,
    /// It is dropped.
    Drop,
    /// The process ends, the machine does not; in a database without a log it is closed instead,
    /// because there the writes since the last flush may go.
    Kill,
}

/// What is copied of a database that goes on, or reads beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyWay {
    /// A checkpoint, which is then opened.
    Checkpoint {
        /// Whether memtables are flushed first.
        flush: bool,
        /// Whether tables are linked, not copied.
        is_linked: bool,
    },
    /// One more backup.
    Backup {
        /// Whether memtables are flushed first.
        flush: bool,
        /// Whether tables that are in the store are read again.
        check_shared: bool,
    },
    /// One of the backups there are, restored and opened.
    Restore(usize),
    /// A database that is opened for reading beside it.
    Reader,
    /// The whole database verified while it is open.
    Verification,
}

/// The settings of the next opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Of the database.
    pub database: Options,
    /// Of the families, by slot; those that are there take them on.
    pub families: [CfOptions; FAMILY_COUNT],
}

/// One thing that a database is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// One write by itself.
    Write(Write),
    /// One write by itself, if a condition holds.
    WriteIf {
        /// The slot of the family.
        family: usize,
        /// The key.
        key: Key,
        /// The condition, and what is written.
        condition: Condition,
    },
    /// Several writes at once; with a sync of its own, if there is a log.
    Batch {
        /// The writes, in order.
        writes: Vec<Write>,
        /// Whether it asks for a sync of its own.
        is_synced: bool,
    },
    /// Rows in key order, `None` being the removal of a key, past log and memtables.
    Ingest {
        /// The slot of the family.
        family: usize,
        /// The rows.
        rows: Vec<(Key, Option<Value>)>,
        /// How.
        way: IngestWay,
    },
    /// A call of the transaction in a slot.
    Transaction {
        /// The slot.
        slot: usize,
        /// The call.
        call: TransactionCall,
    },
    /// Takes a snapshot into an empty slot.
    TakeSnapshot(usize),
    /// Lets a snapshot go.
    ReleaseSnapshot(usize),
    /// Reads one key, now or at a snapshot.
    Get {
        /// The slot of the family.
        family: usize,
        /// The key.
        key: Key,
        /// The slot of the snapshot.
        at: Option<usize>,
    },
    /// Reads several keys, in any order and some twice, now or at a snapshot.
    MultiGet {
        /// The slot of the family.
        family: usize,
        /// The keys.
        keys: Vec<Key>,
        /// The slot of the snapshot.
        at: Option<usize>,
    },
    /// Opens a cursor and moves it.
    Scan(Over, Vec<Move>),
    /// Opens a cursor and keeps it in a slot.
    HoldCursor(usize, Over),
    /// Moves a cursor that was kept: it shows what it showed when it was opened.
    MoveCursor(usize, Vec<Move>),
    /// Drops a cursor that was kept.
    DropCursor(usize),
    /// Makes a column family in an empty slot.
    CreateFamily(usize, Box<CfOptions>),
    /// Gives a column family other options while the database is open.
    ChangeFamily(usize, Box<CfOptions>),
    /// Drops a column family with all its rows.
    DropFamily(usize),
    /// Flushes one family, or all.
    Flush(Option<usize>),
    /// Compacts a family: all of it, or the keys from the first through the second.
    Compact {
        /// The slot of the family.
        family: usize,
        /// The keys.
        range: Option<(Key, Key)>,
    },
    /// Waits until nothing is left to flush or compact.
    Settle,
    /// Makes all logged writes durable; refused where there is no log.
    Sync,
    /// Lets so many microseconds pass on the virtual clock.
    Advance(u64),
    /// Lets half of the time to live pass on the virtual clock.
    Age,
    /// Compares all rows of all families both ways, now and at every snapshot.
    CompareAll,
    /// Makes a copy, opens it with these settings, and compares.
    Copy(CopyWay, Box<Settings>),
    /// Ends the database and opens it again.
    Reopen(Ending, Box<Settings>),
}
