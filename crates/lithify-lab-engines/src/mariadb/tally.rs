//! What all connections to a server asked it to do, and were told was done.
//!
//! Owns: counts of statements by their verb and of rows, from the client's side; what the server
//! counts of the same stands beside them in the statistics of the engine.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::connection::Changes;

/// What a statement does with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads some.
    Select,
    /// Inserts some, each of which is new.
    Insert,
    /// Inserts so many, or changes those that are there.
    InsertOrUpdate(u64),
    /// Changes some.
    Update,
    /// Deletes some.
    Delete,
    /// Something else, which nobody counts.
    Other,
}

impl Verb {
    /// That of a statement, by its first word.
    pub fn of(sql: &str) -> Verb {
        match sql.split_whitespace().next().unwrap_or_default() {
            "SELECT" => Verb::Select,
            "INSERT" if sql.contains(" ON DUPLICATE KEY UPDATE ") => {
                // Rows stand in parentheses of their own, one after the other.
                let values = sql.split_once(" VALUES ").map_or("", |(_, values)| values);
                let values = values.split(" ON DUPLICATE ").next().unwrap_or_default();
                Verb::InsertOrUpdate(1 + values.matches("),(").count() as u64)
            }
            "INSERT" => Verb::Insert,
            "UPDATE" => Verb::Update,
            "DELETE" => Verb::Delete,
            _ => Verb::Other,
        }
    }
}

/// The counts. Statements count when they are sent, rows when their change is acknowledged; rows
/// that may have been inserted or updated, several in one statement, count only as written.
#[derive(Debug, Default)]
pub struct Tally {
    selects: AtomicU64,
    inserts: AtomicU64,
    updates: AtomicU64,
    deletes: AtomicU64,
    written_rows: AtomicU64,
    inserted_rows: AtomicU64,
    updated_rows: AtomicU64,
    deleted_rows: AtomicU64,
    /// Which rows were updated is not known of all statements.
    vague: AtomicBool,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Statements that read.
    pub selects: u64,
    /// Statements that insert, or update what they find.
    pub inserts: u64,
    /// Statements that update.
    pub updates: u64,
    /// Statements that delete.
    pub deletes: u64,
    /// Rows to insert, whether they were new or not.
    pub written_rows: u64,
    /// Rows among them that were new, and rows updated; `None` when it is not known of all.
    pub inserted_and_updated_rows: Option<[u64; 2]>,
    /// Rows deleted.
    pub deleted_rows: u64,
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

impl Tally {
    /// A statement is sent.
    pub fn sent(&self, verb: Verb) {
        match verb {
            Verb::Select => add(&self.selects, 1),
            Verb::Insert | Verb::InsertOrUpdate(_) => add(&self.inserts, 1),
            Verb::Update => add(&self.updates, 1),
            Verb::Delete => add(&self.deletes, 1),
            Verb::Other => {}
        }
    }

    /// A statement without rows of its own was done.
    pub fn done(&self, verb: Verb, changes: Changes) {
        let affected = changes.affected;
        match verb {
            Verb::Insert => {
                add(&self.written_rows, affected);
                add(&self.inserted_rows, affected);
            }
            Verb::InsertOrUpdate(1) => {
                add(&self.written_rows, 1);
                add(&self.inserted_rows, u64::from(affected == 1));
                add(&self.updated_rows, u64::from(affected == 2));
            }
            Verb::InsertOrUpdate(rows) => {
                add(&self.written_rows, rows);
                self.vague.store(true, Ordering::Relaxed);
            }
            Verb::Update => add(&self.updated_rows, affected),
            Verb::Delete => add(&self.deleted_rows, affected),
            Verb::Select | Verb::Other => {}
        }
    }

    /// The counts now. They agree with a server's only while nobody else sends anything.
    pub fn now(&self) -> Asked {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let rows = [read(&self.inserted_rows), read(&self.updated_rows)];
        Asked {
            selects: read(&self.selects),
            inserts: read(&self.inserts),
            updates: read(&self.updates),
            deletes: read(&self.deletes),
            written_rows: read(&self.written_rows),
            inserted_and_updated_rows: (!self.vague.load(Ordering::Relaxed)).then_some(rows),
            deleted_rows: read(&self.deleted_rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(tally: &Tally, sql: &str, affected: u64) {
        let verb = Verb::of(sql);
        tally.sent(verb);
        tally.done(verb, Changes { affected, matched: 0 });
    }

    #[test]
    fn statements_and_rows_are_counted_apart() {
        let tally = Tally::default();
        done(&tally, "SELECT a FROM t", 0);
        done(&tally, "INSERT INTO t VALUES (?,?),(?,?)", 2);
        let upsert = "INSERT INTO t (a, b) VALUES (?, ?) ON DUPLICATE KEY UPDATE b = VALUES(b)";
        assert_eq!(Verb::of(upsert), Verb::InsertOrUpdate(1));
        [1, 2, 0].iter().for_each(|affected| done(&tally, upsert, *affected));
        done(&tally, "UPDATE t SET b = ?", 3);
        done(&tally, "DELETE FROM t", 4);
        done(&tally, "COMMIT", 0);
        let asked = Asked {
            selects: 1,
            inserts: 4,
            updates: 1,
            deletes: 1,
            written_rows: 5,
            inserted_and_updated_rows: Some([3, 4]),
            deleted_rows: 4,
        };
        assert_eq!(tally.now(), asked);
    }

    #[test]
    fn several_rows_in_one_statement_are_written_and_no_more_is_known() {
        let tally = Tally::default();
        let upsert = "INSERT INTO t (k, v) VALUES (?,?),(?,?),(?,?) \
                      ON DUPLICATE KEY UPDATE v = VALUES(v)";
        assert_eq!(Verb::of(upsert), Verb::InsertOrUpdate(3));
        done(&tally, upsert, 4);
        assert_eq!((tally.now().written_rows, tally.now().inserted_and_updated_rows), (3, None));
    }
}
