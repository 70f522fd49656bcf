//! The cases over any engine: reads, scans, batches, transactions, settling, reopening.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use super::{LISTS, Opener, PLAIN, Verdict, fresh, keys, put, same, text, value};
use crate::adapter::{Engine, EngineError, EngineResult, ScanRange, Session, SpaceId, WriteBatch};

/// A case over an engine that was just made.
pub(super) type Case = (&'static str, fn(&dyn Engine) -> Verdict);

/// All of them.
pub(super) const CASES: [Case; 10] = [
    ("get and multi_get", reads),
    ("scans within bounds", scans_within_bounds),
    ("scans across prefixes", scans_across_prefixes),
    ("scans backwards", scans_backwards),
    ("a batch is applied in its order", batches),
    ("a transaction sees its own writes", own_writes),
    ("rollback leaves nothing", rollback),
    ("no update is lost", updates),
    ("a held row keeps others out", held_row),
    ("single delete", single_delete),
];

fn reads(engine: &dyn Engine) -> Verdict {
    let mut session = engine.session().map_err(text)?;
    put(&mut *session, PLAIN, &[("a", "1"), ("b", ""), ("c", "old"), ("c", "new")])?;
    same("a row", value(&mut *session, PLAIN, "a")?, Some("1".into()))?;
    same("an empty value", value(&mut *session, PLAIN, "b")?, Some(String::new()))?;
    same("a row that was put again", value(&mut *session, PLAIN, "c")?, Some("new".into()))?;
    same("a missing row", value(&mut *session, PLAIN, "aa")?, None)?;
    same("a row of another space", value(&mut *session, LISTS, "a")?, None)?;
    let mut found = Vec::new();
    let asked: [&[u8]; 4] = [b"c", b"none", b"a", b"a"];
    let answer = session.multi_get(PLAIN, &asked, &mut |index, value| {
        found.push((index, String::from_utf8_lossy(value).into_owned()));
    });
    answer.map_err(text)?;
    found.sort();
    same("several rows", found, vec![(0, "new".into()), (2, "1".into()), (3, "1".into())])
}

fn scans_within_bounds(engine: &dyn Engine) -> Verdict {
    let mut session = engine.session().map_err(text)?;
    let rows = ["list1", "list2", "list3", "list4", "lisu0", "lis", "lisszz"];
    let rows: Vec<(&str, &str)> = rows.iter().map(|key| (*key, "v")).collect();
    put(&mut *session, LISTS, &rows)?;
    let all = ScanRange::prefix(b"list");
    let mut scan = |range: ScanRange<'_>| keys(&mut *session, LISTS, &range);
    same("a prefix", scan(all)?, "list1 list2 list3 list4".into())?;
    same("from a start", scan(ScanRange { start: b"list2", ..all })?, "list2 list3 list4".into())?;
    let range = ScanRange { start: b"list11", ..all };
    same("from between rows", scan(range)?, "list2 list3 list4".into())?;
    same("to an end", scan(ScanRange { end: b"list3", ..all })?, "list1 list2".into())?;
    let range = ScanRange { end: b"zzzz", ..all };
    same("to an end behind the prefix", scan(range)?, "list1 list2 list3 list4".into())?;
    same("after skipped rows", scan(ScanRange { skip: 3, ..all })?, "list4".into())?;
    same("after all rows", scan(ScanRange { skip: 4, ..all })?, String::new())?;
    let range = ScanRange { skip: 1, limit: 2, ..all };
    same("some rows", scan(range)?, "list2 list3".into())?;
    same("no rows", scan(ScanRange { limit: 0, ..all })?, String::new())?;
    same("a longer prefix", scan(ScanRange::prefix(b"list2"))?, "list2".into())?;
    same("a prefix that nothing has", scan(ScanRange::prefix(b"lisx"))?, String::new())?;
    let mut seen = 0;
    let visited = session.scan(LISTS, &all, &mut |_, _| {
        seen += 1;
        if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    same("rows until the visitor ends", (visited.map_err(text)?, seen), (2, 2))
}

fn scans_across_prefixes(engine: &dyn Engine) -> Verdict {
    let mut session = engine.session().map_err(text)?;
    put(&mut *session, LISTS, &[("bbbb1", "v"), ("aaaa1", "v"), ("ab", "v"), ("cccc1", "v")])?;
    put(&mut *session, PLAIN, &[("\u{10ffff}", "v"), ("y", "v"), ("x", "v")])?;
    // Half in tables, half not.
    drop(session);
    engine.flush().map_err(text)?;
    let mut session = engine.session().map_err(text)?;
    put(&mut *session, LISTS, &[("abcd1", "v")])?;
    let all = ScanRange::prefix(b"");
    let found = keys(&mut *session, LISTS, &all)?;
    same("everything", found, "aaaa1 ab abcd1 bbbb1 cccc1".into())?;
    let range = ScanRange { start: b"b", end: b"cccc2", ..all };
    same("from b on", keys(&mut *session, LISTS, &range)?, "bbbb1 cccc1".into())?;
    let found = keys(&mut *session, LISTS, &ScanRange::prefix(b"a"))?;
    same("a prefix shorter than the filter's", found, "aaaa1 ab abcd1".into())?;
    let found = keys(&mut *session, PLAIN, &ScanRange::prefix("\u{10ffff}".as_bytes()))?;
    same("a prefix of high bytes", found, "\u{10ffff}".into())
}

fn scans_backwards(engine: &dyn Engine) -> Verdict {
    let mut session = engine.session().map_err(text)?;
    put(&mut *session, PLAIN, &[("b", "1"), ("d", "2"), ("f", "old"), ("f", "3"), ("g", "4")])?;
    // Rows of a space beside it, in front of and behind its own.
    put(&mut *session, LISTS, &[("a", "-"), ("list1", "-"), ("z", "-")])?;
    let mut scan = |from: &str, limit: u64| -> Result<String, String> {
        let mut rows = String::new();
        let visited = session.scan_back(PLAIN, from.as_bytes(), limit, &mut |key, value| {
            rows.push_str(&String::from_utf8_lossy(key));
            rows.push_str(&String::from_utf8_lossy(value));
            if key == b"d" && limit == 9 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        same("rows visited", visited.map_err(text)?, rows.len() as u64 / 2)?;
        Ok(rows)
    };
    same("from a row", scan("f", 2)?, "f3d2".into())?;
    same("from between rows", scan("e", 10)?, "d2b1".into())?;
    same("from behind the last row", scan("zz", 3)?, "g4f3d2".into())?;
    same("from before the first row", scan("a", 3)?, String::new())?;
    same("no rows", scan("f", 0)?, String::new())?;
    same("until the visitor breaks", scan("f", 9)?, "f3d2".into())
}

fn batches(engine: &dyn Engine) -> Verdict {
    let mut session = engine.session().map_err(text)?;
    let mut batch = WriteBatch::new();
    session.write_batch(&batch).map_err(|error| format!("an empty batch: {error}"))?;
    batch.put(PLAIN, b"a", b"1");
    batch.delete(PLAIN, b"a");
    batch.put(PLAIN, b"b", b"1");
    batch.delete(PLAIN, b"none");
    batch.put(LISTS, b"list1", b"1");
    session.write_batch(&batch).map_err(text)?;
    same("put, then deleted", value(&mut *session, PLAIN, "a")?, None)?;
    same("put", value(&mut *session, PLAIN, "b")?, Some("1".into()))?;
    same("put in another space", value(&mut *session, LISTS, "list1")?, Some("1".into()))?;
    batch.clear();
    batch.delete(PLAIN, b"b");
    batch.put(PLAIN, b"b", b"2");
    session.write_batch(&batch).map_err(text)?;
    same("deleted, then put", value(&mut *session, PLAIN, "b")?, Some("2".into()))?;
    batch.clear();
    batch.put(PLAIN, b"c", b"1");
    batch.put(SpaceId(99), b"c", b"1");
    same("a batch into no space", session.write_batch(&batch).is_err(), true)?;
    same("a row of a batch that failed", value(&mut *session, PLAIN, "c")?, None)
}

fn own_writes(engine: &dyn Engine) -> Verdict {
    let mut session = engine.session().map_err(text)?;
    let mut other = engine.session().map_err(text)?;
    put(&mut *session, PLAIN, &[("a", "1"), ("b", "1")])?;
    session.begin(1).map_err(text)?;
    let mut value_read = Vec::new();
    let mut read = |session: &mut dyn Session, key: &[u8]| -> Result<Option<Vec<u8>>, String> {
        let found = session.get_for_update(PLAIN, key, &mut value_read).map_err(text)?;
        Ok(found.then(|| value_read.clone()))
    };
    same("a committed row", read(&mut *session, b"a")?, Some(b"1".to_vec()))?;
    session.put(PLAIN, b"a", b"2").map_err(text)?;
    session.delete(PLAIN, b"b").map_err(text)?;
    session.put(PLAIN, b"c", b"3").map_err(text)?;
    same("an own put", read(&mut *session, b"a")?, Some(b"2".to_vec()))?;
    same("an own delete", read(&mut *session, b"b")?, None)?;
    same("an own new row", read(&mut *session, b"c")?, Some(b"3".to_vec()))?;
    same("what others see before", value(&mut *other, PLAIN, "a")?, Some("1".into()))?;
    same("a new row that others see before", value(&mut *other, PLAIN, "c")?, None)?;
    session.commit().map_err(text)?;
    let seen = keys(&mut *other, PLAIN, &ScanRange::prefix(b""))?;
    same("what others see afterwards", seen, "a c".into())?;
    same("a value that others see", value(&mut *other, PLAIN, "a")?, Some("2".into()))?;
    same("a commit without a transaction", session.commit().is_err(), true)?;
    same("a put without a transaction", session.put(PLAIN, b"x", b"y").is_err(), true)
}

fn rollback(engine: &dyn Engine) -> Verdict {
    let mut session = engine.session().map_err(text)?;
    put(&mut *session, PLAIN, &[("a", "1")])?;
    for _ in 0..2 {
        session.begin(1).map_err(text)?;
        session.put(PLAIN, b"a", b"2").map_err(text)?;
        session.put(PLAIN, b"b", b"2").map_err(text)?;
        session.rollback().map_err(text)?;
    }
    session.rollback().map_err(|error| format!("without a transaction: {error}"))?;
    let mut other = engine.session().map_err(text)?;
    put(&mut *other, PLAIN, &[("b", "free")])?;
    same("a row", value(&mut *other, PLAIN, "a")?, Some("1".into()))?;
    session.begin(1).map_err(text)?;
    session.put(PLAIN, b"a", b"left open").map_err(text)?;
    // A session that goes takes its transaction with it.
    drop(session);
    put(&mut *other, PLAIN, &[("a", "free")])?;
    same("a row whose locks are free", value(&mut *other, PLAIN, "a")?, Some("free".into()))
}

/// Two sessions add to one row, which is absent at first: without locks some would be lost.
fn updates(engine: &dyn Engine) -> Verdict {
    const THREADS: u64 = 2;
    const ROUNDS: u64 = 50;
    let add = || -> Verdict {
        let mut session = engine.session().map_err(text)?;
        let mut sum = Vec::new();
        let mut done = 0;
        while done < ROUNDS {
            session.begin(7).map_err(text)?;
            let mut once = || -> EngineResult<()> {
                let found = session.get_for_update(PLAIN, b"sum", &mut sum)?;
                let old = if found { String::from_utf8_lossy(&sum).parse() } else { Ok(0u64) };
                let old = old.map_err(|error| EngineError::fatal(error.to_string()))?;
                session.put(PLAIN, b"sum", (old + 1).to_string().as_bytes())?;
                session.commit()
            };
            match once() {
                Ok(()) => done += 1,
                Err(error) if error.is_retryable() => session.rollback().map_err(text)?,
                Err(error) => return Err(text(error)),
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(add)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err("a thread failed".to_owned()))
        })
    })?;
    let mut session = engine.session().map_err(text)?;
    let expected = (THREADS * ROUNDS).to_string();
    same("the sum", value(&mut *session, PLAIN, "sum")?, Some(expected))
}

/// While a transaction holds a row, a transaction on it gets a retryable error or the row as it
/// is afterwards; never both in the wrong order.
fn held_row(engine: &dyn Engine) -> Verdict {
    let mut session = engine.session().map_err(text)?;
    put(&mut *session, PLAIN, &[("held", "1")])?;
    session.begin(3).map_err(text)?;
    session.get_for_update(PLAIN, b"held", &mut Vec::new()).map_err(text)?;
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let attempt = || -> EngineResult<Vec<u8>> {
                let mut other = engine.session()?;
                let mut seen = Vec::new();
                other.begin(3)?;
                other.get_for_update(PLAIN, b"held", &mut seen)?;
                other.commit()?;
                Ok(seen)
            };
            let _ = sender.send(attempt());
        });
        session.put(PLAIN, b"held", b"2").map_err(text)?;
        // An engine that gives up does so while the row is held; one that waits, does not.
        let patience = std::time::Duration::from_millis(1500);
        let early = receiver.recv_timeout(patience).ok();
        session.commit().map_err(text)?;
        let gave_up = early.is_some();
        match early.map_or_else(|| receiver.recv().map_err(|error| error.to_string()), Ok)? {
            Ok(seen) if gave_up => Err(format!("a held row was read: {seen:?}")),
            Ok(seen) => same("a row after it was free", seen, b"2".to_vec()),
            Err(error) => same("a lock that is not had is retryable", error.is_retryable(), true),
        }
    })
}

fn single_delete(engine: &dyn Engine) -> Verdict {
    let mut session = engine.session().map_err(text)?;
    put(&mut *session, LISTS, &[("list1", "1"), ("list2", "1"), ("list3", "1")])?;
    engine.flush().map_err(text)?;
    let mut batch = WriteBatch::new();
    batch.single_delete(LISTS, b"list1");
    session.write_batch(&batch).map_err(text)?;
    session.begin(1).map_err(text)?;
    session.single_delete(LISTS, b"list2").map_err(text)?;
    let mut other = engine.session().map_err(text)?;
    same("before the commit", value(&mut *other, LISTS, "list2")?, Some("1".into()))?;
    session.commit().map_err(text)?;
    let left = keys(&mut *other, LISTS, &ScanRange::prefix(b"list"))?;
    same("what is left", left, "list3".into())?;
    put(&mut *session, LISTS, &[("list1", "2")])?;
    same("put again", value(&mut *session, LISTS, "list1")?, Some("2".into()))?;
    engine.flush().map_err(text)?;
    engine.wait_for_compaction().map_err(text)?;
    let left = keys(&mut *other, LISTS, &ScanRange::prefix(b"list"))?;
    same("what is left in tables", left, "list1 list3".into())
}

/// Enough rows for several tables; they are all there in every state of the tree.
pub(super) fn settling(open: Opener<'_>, directory: &Path) -> Verdict {
    const ROWS: u64 = 4000;
    let engine = fresh(open, directory)?;
    let mut session = engine.session().map_err(text)?;
    for round in 0..2u64 {
        for number in 0..ROWS {
            let key = format!("{:08}", number.wrapping_mul(2_654_435_761) % ROWS);
            let value = format!("{round} {number} {}", "x".repeat(100));
            put(&mut *session, PLAIN, &[(&key, &value)])?;
        }
    }
    drop(session);
    engine.flush().map_err(text)?;
    engine.wait_for_compaction().map_err(text)?;
    let mut session = engine.session().map_err(text)?;
    let mut newest = 0;
    let rows = session.scan(PLAIN, &ScanRange::prefix(b""), &mut |_, value| {
        newest += u64::from(value.starts_with(b"1 "));
        ControlFlow::Continue(())
    });
    same("rows, and those of the last round", (rows.map_err(text)?, newest), (ROWS, ROWS))?;
    drop(session);
    let statistics = engine.statistics().map_err(text)?;
    let in_levels: u64 = statistics.levels.iter().map(|level| level.stored_bytes).sum();
    same("live bytes hold all levels", statistics.live_bytes >= in_levels, true)?;
    engine.close().map_err(text)
}

/// What was acknowledged before a close is there after it.
pub(super) fn reopening(open: Opener<'_>, directory: &Path) -> Verdict {
    let engine = fresh(open, directory)?;
    let mut session = engine.session().map_err(text)?;
    put(&mut *session, PLAIN, &[("flushed", "1")])?;
    engine.flush().map_err(text)?;
    put(&mut *session, PLAIN, &[("logged", "2")])?;
    session.begin(1).map_err(text)?;
    session.put(LISTS, b"list1", b"3").map_err(text)?;
    session.commit().map_err(text)?;
    session.begin(1).map_err(text)?;
    session.put(LISTS, b"list2", b"4").map_err(text)?;
    drop(session);
    engine.close().map_err(text)?;
    let engine = open(directory).map_err(text)?;
    let mut session = engine.session().map_err(text)?;
    let found = keys(&mut *session, PLAIN, &ScanRange::prefix(b""))?;
    same("rows of batches", found, "flushed logged".into())?;
    let found = keys(&mut *session, LISTS, &ScanRange::prefix(b""))?;
    same("rows of transactions", found, "list1".into())?;
    drop(session);
    engine.close().map_err(text)
}
