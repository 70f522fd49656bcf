//! Where rows go: sorted ones straight into tables, others in batches.
//!
//! 1. The first rows are gathered. If their keys ascend, an ingest begins with them.
//! 2. At the first key that does not lie behind the one before it, the ingest is committed, and what
//!    follows goes in batches. Later rows replace earlier ones with the same key.
//! 3. At the end, and when the input is wrong or the user stops, everything so far is committed.

use lithify::{Batch, ColumnFamily, Db, Ingest};

/// So many rows, or bytes of them, tell whether the input is sorted.
const GATHERED_ROWS: usize = 10_000;
const GATHERED_BYTES: usize = 4 << 20;

/// A batch is committed at so many bytes.
const BATCH_BYTES: usize = 1 << 20;

enum Way<'a> {
    /// Not known yet: the first rows.
    Gathering(Vec<(Vec<u8>, Vec<u8>)>, usize),
    /// Their keys ascend.
    Sorted(Box<Ingest>),
    /// They do not.
    Batches(Batch<'a>),
}

/// See the module.
pub struct Sink<'a> {
    db: &'a Db,
    family: &'a ColumnFamily,
    way: Way<'a>,
    last_key: Option<Vec<u8>>,
    is_sorted: bool,
    /// Rows that are taken and not committed.
    waiting: u64,
    /// Rows that are on the disk.
    pub written: u64,
}

impl<'a> Sink<'a> {
    /// Rows go into `family`.
    pub fn new(db: &'a Db, family: &'a ColumnFamily) -> Self {
        Sink {
            db,
            family,
            way: Way::Gathering(Vec::new(), 0),
            last_key: None,
            is_sorted: true,
            waiting: 0,
            written: 0,
        }
    }

    /// Takes a row.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> lithify::Result<()> {
        let is_behind = self.last_key.as_deref().is_none_or(|last| last < key);
        if !is_behind && self.is_sorted {
            self.is_sorted = false;
            self.leave_order()?;
        }
        if self.is_sorted {
            let last = self.last_key.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
        }
        self.waiting += 1;
        match &mut self.way {
            Way::Gathering(rows, bytes) => {
                *bytes += key.len() + value.len();
                rows.push((key.to_vec(), value.to_vec()));
                let is_enough = rows.len() >= GATHERED_ROWS || *bytes >= GATHERED_BYTES;
                if is_enough { self.begin_ingest() } else { Ok(()) }
            }
            Way::Sorted(ingest) => ingest.put(key, value),
            Way::Batches(batch) => {
                batch.put(self.family, key, value);
                if batch.size_bytes() >= BATCH_BYTES { self.commit() } else { Ok(()) }
            }
        }
    }

    /// Everything taken is on the disk when this returns.
    pub fn commit(&mut self) -> lithify::Result<()> {
        if let Way::Gathering(..) = &self.way {
            match self.is_sorted {
                true => self.begin_ingest()?,
                false => self.begin_batches()?,
            }
        }
        let batches = Way::Batches(self.db.batch());
        match std::mem::replace(&mut self.way, batches) {
            Way::Sorted(ingest) => drop(ingest.commit()?),
            Way::Batches(batch) => batch.commit()?,
            Way::Gathering(..) => {}
        }
        self.written += std::mem::take(&mut self.waiting);
        Ok(())
    }

    /// Whether all keys so far ascended.
    pub fn is_sorted(&self) -> bool {
        self.is_sorted
    }

    fn begin_ingest(&mut self) -> lithify::Result<()> {
        let mut ingest = self.family.ingest()?;
        if let Way::Gathering(rows, _) = &mut self.way {
            ingest.extend(std::mem::take(rows))?;
        }
        self.way = Way::Sorted(Box::new(ingest));
        Ok(())
    }

    fn begin_batches(&mut self) -> lithify::Result<()> {
        let mut batch = self.db.batch();
        if let Way::Gathering(rows, _) = &mut self.way {
            for (key, value) in std::mem::take(rows) {
                batch.put(self.family, key, value);
            }
        }
        self.way = Way::Batches(batch);
        Ok(())
    }

    /// From here on rows go in batches.
    fn leave_order(&mut self) -> lithify::Result<()> {
        self.last_key = None;
        match &self.way {
            Way::Gathering(..) => self.begin_batches(),
            _ => self.commit(),
        }
    }
}
