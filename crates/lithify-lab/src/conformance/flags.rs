//! What an engine says that it can do, against what it does.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use super::{Failures, PLAIN, Subject, Verdict, same, text};
use crate::adapter::codec::{Codec, Ladder};
use crate::adapter::settings::{DurabilityMode, EngineSettings};
use crate::adapter::{Engine, EngineStatistics, ScanRange, WriteBatch};
use crate::engines::registry;

/// Rows by which codecs are told apart, and what each holds.
const ROWS: u64 = 2_000;
const VALUE_BYTES: usize = 1_000;

/// Runs the cases; gives a line for each that failed.
pub fn check(subject: &Subject<'_>, root: &Path) -> Vec<String> {
    let mut failures = Failures::default();
    failures.note("provider and engine agree", agreement(subject, &root.join("agreement")));
    failures.note("scans are in order", order(subject, &root.join("order")));
    failures.note("figures only grow", statistics(subject, &root.join("statistics")));
    if registry::uses_disk(subject.engine) {
        failures.note("durability modes", modes(subject, &root.join("modes")));
        failures.note("codecs are in force", codecs(subject, &root.join("codecs")));
    }
    failures.0
}

/// What is said before anything is opened is what the opened engine says.
fn agreement(subject: &Subject<'_>, directory: &Path) -> Verdict {
    let provider = registry::find(subject.engine).map_err(text)?;
    let engine = subject.open(directory, subject.settings).map_err(text)?;
    let said = provider.capabilities();
    same("capabilities", &engine.capabilities(), &said)?;
    if !engine.name().contains(&provider.version()) {
        return Err(format!("version {} became {}", provider.version(), engine.name()));
    }
    if registry::uses_disk(subject.engine) {
        same("has no codecs, not even none", said.codecs.is_empty(), false)?;
        same("has no durability", said.durability.is_empty(), false)?;
    }
    let unknown = said.codecs.iter().find(|said| Codec::kinds().all(|kind| kind != *said));
    same("a kind of codec that nobody knows", unknown, None)?;
    engine.close().map_err(text)
}

/// Keys that were put in another order come back in theirs, if that is what is said.
fn order(subject: &Subject<'_>, directory: &Path) -> Verdict {
    let engine = subject.open(directory, subject.settings).map_err(text)?;
    fill(&*engine, ROWS)?;
    let mut session = engine.session().map_err(text)?;
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let scanned = session.scan(PLAIN, &ScanRange::prefix(b""), &mut |key, _| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    });
    same("rows", scanned.map_err(text)?, ROWS)?;
    same("ordered_scan", engine.capabilities().ordered_scan, keys.is_sorted())?;
    drop(session);
    engine.close().map_err(text)
}

/// Puts rows in a mixed order whose values shrink well with any codec.
fn fill(engine: &dyn Engine, rows: u64) -> Verdict {
    let mut session = engine.session().map_err(text)?;
    let mut batch = WriteBatch::new();
    for number in 0..rows {
        // A prime step visits every row once.
        let key = format!("{:08}", number * 7_919 % rows);
        let value = format!("the value of {key}, ").repeat(VALUE_BYTES / 23);
        batch.put(PLAIN, key.as_bytes(), value.as_bytes());
        if batch.len() == 10 || number + 1 == rows {
            session.write_batch(&batch).map_err(text)?;
            batch.clear();
        }
    }
    Ok(())
}

/// Bytes that only count up, by name.
fn counters(statistics: &EngineStatistics) -> BTreeMap<String, u64> {
    let causes = [
        ("written", &statistics.written_bytes_by_cause),
        ("read", &statistics.read_bytes_by_cause),
        ("cpu", &statistics.cpu_us_by_cause),
    ];
    let named = causes.into_iter().flat_map(|(what, by_cause)| {
        by_cause.iter().map(move |(cause, value)| (format!("{what} by {cause}"), *value))
    });
    let stalls = &statistics.stalls;
    let stalls = [("slowed", stalls.delayed_us), ("stopped", stalls.stopped_us)];
    named.chain(stalls.map(|(name, value)| (name.to_owned(), value))).collect()
}

/// Live bytes are there, counters never fall, and an engine counts if and only if it says so.
fn statistics(subject: &Subject<'_>, directory: &Path) -> Verdict {
    let engine = subject.open(directory, subject.settings).map_err(text)?;
    let mut seen = vec![engine.statistics().map_err(text)?];
    for _ in 0..2 {
        fill(&*engine, ROWS)?;
        seen.push(engine.statistics().map_err(text)?);
    }
    engine.flush().map_err(text)?;
    engine.wait_for_compaction().map_err(text)?;
    seen.push(engine.statistics().map_err(text)?);
    for pair in seen.windows(2) {
        let later = counters(&pair[1]);
        for (name, before) in counters(&pair[0]) {
            let after = later.get(&name).copied().unwrap_or(0);
            if after < before {
                return Err(format!("{name} fell from {before} to {after}"));
            }
        }
    }
    let last = &seen[seen.len() - 1];
    same("live bytes of a database with rows", last.live_bytes > 0, true)?;
    let counted: u64 = counters(last).values().sum();
    same("own_statistics", engine.capabilities().own_statistics, counted > 0)?;
    engine.close().map_err(text)
}

/// A mode that an engine names can be opened, another one is refused with a line that names it.
fn modes(subject: &Subject<'_>, root: &Path) -> Verdict {
    let has = registry::find(subject.engine).map_err(text)?.capabilities().durability;
    for durability in DurabilityMode::ALL {
        let name = durability.name();
        let settings = EngineSettings { durability, ..subject.settings.clone() };
        match (subject.open(&root.join(name), &settings), has.iter().any(|had| had == name)) {
            (Ok(engine), true) => engine.close().map_err(text)?,
            (Ok(_), false) => return Err(format!("{name} is not named, and opened")),
            (Err(error), true) => return Err(format!("{name}: {error}")),
            (Err(error), false) => refused(&error.to_string(), name)?,
        }
    }
    Ok(())
}

fn refused(error: &str, what: &str) -> Verdict {
    if error.contains(what) && !error.contains('\n') {
        return Ok(());
    }
    Err(format!("{what} is refused without being named in one line: {error}"))
}

/// With a codec in force the same rows take clearly less than without; one that an engine does not
/// name is refused with a line that names it.
fn codecs(subject: &Subject<'_>, root: &Path) -> Verdict {
    let has = registry::find(subject.engine).map_err(text)?.capabilities().codecs;
    let mut plain_bytes = None;
    // "none" comes first.
    for kind in Codec::kinds() {
        let Some(codec) = Codec::of_kind(kind) else { continue };
        let ladder = Ladder { small: codec, middle: codec, bottom: codec };
        let settings =
            EngineSettings { codec_level0: None, ..subject.settings.clone().with_ladder(ladder) };
        let directory = root.join(kind);
        if !has.iter().any(|had| had == kind) {
            match subject.open(&directory, &settings) {
                Ok(_) => return Err(format!("{codec} is not named, and opened")),
                Err(error) => refused(&error.to_string(), &codec.to_string())?,
            }
            continue;
        }
        let bytes = stored_bytes(subject, &directory, &settings)?;
        let plain = *plain_bytes.get_or_insert(bytes);
        if codec != Codec::NONE && bytes * 10 > plain * 7 {
            return Err(format!("{codec} stores {bytes} bytes, no codec {plain}"));
        }
    }
    Ok(())
}

/// What the rows take in tables.
fn stored_bytes(
    subject: &Subject<'_>,
    directory: &Path,
    settings: &EngineSettings,
) -> Result<u64, String> {
    let engine = subject.open(directory, settings).map_err(text)?;
    fill(&*engine, ROWS)?;
    engine.flush().map_err(text)?;
    engine.wait_for_compaction().map_err(text)?;
    let statistics = engine.statistics().map_err(text)?;
    let levels: u64 = statistics.levels.iter().map(|level| level.stored_bytes).sum();
    engine.close().map_err(text)?;
    // Of an engine with levels the log is no part of it.
    Ok(if levels > 0 { levels } else { statistics.live_bytes })
}
