//! Rows that are ingested, and rows that are put behind them.
//!
//! One thread ingests a row and then puts another one, both with the next number. The ingest is in tables
//! at once, the put in a memtable that readers may have already. Who sees the put has to see the ingest.

use super::bench::{Bench, number, text};
use lithify::ColumnFamily;
use std::time::Duration;

/// The column family of these rows.
pub(super) const FAMILY: &str = "ingested";

const INGESTED: &str = "ingested";
const PUT: &str = "put";

/// What lies between two ingests.
const REST: Duration = Duration::from_millis(1);

/// See the module.
pub(super) struct IngestedRows(ColumnFamily);

impl IngestedRows {
    pub(super) fn new(family: ColumnFamily) -> Self {
        IngestedRows(family)
    }

    /// Ingests and puts until the writers are done; gives how often.
    pub(super) fn keep(&self, bench: &Bench) -> Result<u64, String> {
        let mut next = 0_u64;
        while !bench.is_over() {
            next += 1;
            let mut ingest = self.0.ingest().map_err(text)?;
            ingest.put(INGESTED, next.to_le_bytes()).map_err(text)?;
            ingest.commit().map_err(text)?;
            self.0.put(PUT, next.to_le_bytes()).map_err(text)?;
            std::thread::sleep(REST);
        }
        Ok(next)
    }

    /// Reads both rows at one moment.
    pub(super) fn look(&self, is_cursor: bool) -> Result<(), String> {
        let [ingested, put] = if is_cursor { self.by_cursor() } else { self.by_multi_get() }?;
        match ingested >= put {
            true => Ok(()),
            false => Err(format!("the put behind ingest {put} is shown, and ingest {ingested}")),
        }
    }

    fn by_multi_get(&self) -> Result<[u64; 2], String> {
        let found = self.0.multi_get(&[INGESTED, PUT]).map_err(text)?;
        let number_at = |place: usize| found[place].as_deref().map_or(0, number);
        Ok([number_at(0), number_at(1)])
    }

    fn by_cursor(&self) -> Result<[u64; 2], String> {
        let mut cursor = self.0.cursor(..).map_err(text)?;
        let mut found = [0, 0];
        while cursor.next().map_err(text)? {
            found[usize::from(cursor.key() == PUT.as_bytes())] = number(cursor.value());
        }
        Ok(found)
    }
}
