//! What steps that read were measured on: the tree before them, and whether they may be a headline.
//!
//! Owns: the levels that are not empty with their bytes and the codecs found in their files, what
//! each engine did to settle its tree, whether a writer beside readers made the engine flush, and
//! what keeps a run from being more than a short form. Pure.

use std::collections::BTreeSet;

use super::oracle;
use super::plan::DbRecord;
use super::spec::{DbCell, DbResult, Role, Step, StepResult};
use crate::adapter::{EngineName, EngineStatistics, LevelStatistics};
use crate::keyvalue::benchmark::Benchmark;
use crate::report::days;
use crate::report::figures::figure;
use crate::report::tables::{Align, Grid};

const MIB: f64 = (1 << 20) as f64;

/// A step that reads runs for so long at least in a headline, seconds.
const READ_SECONDS_MIN: f64 = 60.0;

/// Levels that are not empty before it, at least.
const LEVELS_MIN: usize = 4;

/// Keys of a headline, at least.
const KEYS_MIN: u64 = 12_000_000;

/// Repeats of a headline, at least.
const REPEATS_MIN: usize = 3;

/// Memtables' worth of keys and values that a writer beside readers has to write at least.
const MEMTABLES_WRITTEN_MIN: u64 = 3;

/// A tenth of a second is the clock's, not the step's.
const CLOCK_SECONDS: f64 = 0.1;

fn non_empty(statistics: &EngineStatistics) -> impl Iterator<Item = &LevelStatistics> {
    statistics.levels.iter().filter(|level| level.files > 0)
}

/// The levels that are not empty: `L5 47.0 MiB lz4; L6 1.20 GiB zstd-1`. Nothing for an engine
/// without levels.
pub fn levels(statistics: &EngineStatistics) -> String {
    let level = |level: &LevelStatistics| {
        let bytes = level.stored_bytes as f64;
        let size = match bytes / MIB {
            mib if mib >= 1024.0 => format!("{} GiB", figure(mib / 1024.0)),
            mib => format!("{} MiB", figure(mib)),
        };
        format!("L{} {size} {}", level.level, level.codec)
    };
    non_empty(statistics).map(level).collect::<Vec<_>>().join("; ")
}

/// Bytes that the engine flushed while the step ran, as it says; `None` for one that does not.
fn flushed_bytes(step: &StepResult) -> Option<u64> {
    let flushed =
        |statistics: &EngineStatistics| statistics.written_bytes_by_cause.get("flush").copied();
    Some(flushed(&step.statistics)?.saturating_sub(flushed(&step.statistics_before).unwrap_or(0)))
}

/// Why a step beside a writer says nothing of reading while the engine writes tables; `None` when it
/// does, and for steps without such a writer.
pub fn idle_writer(result: &DbResult, step: &StepResult) -> Option<String> {
    if !step.spec.benchmark.is_beside_writer() || result.cell.role == Role::Driver {
        return None;
    }
    let memtable_bytes = result.cell.spec.settings.memtable_bytes;
    let wanted = MEMTABLES_WRITTEN_MIN * memtable_bytes;
    let mib = |bytes: u64| figure(bytes as f64 / MIB);
    if step.ingested_bytes < wanted {
        return Some(format!(
            "its writer wrote {} MiB, less than {MEMTABLES_WRITTEN_MIN} memtables ({} MiB)",
            mib(step.ingested_bytes),
            mib(wanted)
        ));
    }
    match flushed_bytes(step) {
        Some(0) => Some("the engine flushed nothing while it ran".to_owned()),
        _ => None,
    }
}

fn reads(step: &StepResult) -> bool {
    !step.spec.benchmark.is_write()
}

/// Steps that read other rows of one engine than of another. Those beside a writer are left out.
pub(super) fn unlike<'a>(
    left: &'a DbResult,
    right: &'a DbResult,
) -> impl Iterator<Item = String> + 'a {
    let pairs = left.loops().zip(right.loops());
    let read_only =
        pairs.filter(|(step, _)| reads(step) && !step.spec.benchmark.is_beside_writer());
    let are_unlike = |(a, b): &(&StepResult, &StepResult)| !oracle::have_same_rows(a, b);
    read_only.filter(are_unlike).map(|(step, _)| step.spec.to_string())
}

/// What the run as a whole lacks.
fn of_run(record: &DbRecord) -> Vec<String> {
    let mut reasons = Vec::new();
    if record.interrupted {
        reasons.push("the run was interrupted".to_owned());
    }
    let planned = || record.plan.cells.iter().filter(|cell| cell.role != Role::Driver);
    let keys = planned().map(|cell| cell.spec.num).min().unwrap_or(0);
    if keys < KEYS_MIN {
        reasons.push(format!("{keys} keys, not {KEYS_MIN}"));
    }
    let repeats = repeats(record).len();
    if repeats < REPEATS_MIN {
        let noun = if repeats == 1 { "repeat" } else { "repeats" };
        reasons.push(format!("{repeats} {noun}, not {REPEATS_MIN}"));
    }
    for engine in &record.plan.engines {
        let is_again = |cell: &&DbCell| cell.role == Role::Control && cell.spec.engine == *engine;
        if planned().filter(is_again).count() == 0 {
            reasons.push(format!("{engine}: no A/A control (--control)"));
        }
    }
    for cell in planned() {
        if !record.results().any(|result| result.cell.id == cell.id) {
            reasons.push(format!("{}: no valid result", cell.id));
        }
    }
    reasons
}

/// The repeats that were planned.
fn repeats(record: &DbRecord) -> BTreeSet<u64> {
    let measured = record.plan.cells.iter().filter(|cell| cell.role == Role::Measure);
    measured.map(|cell| cell.repeat).collect()
}

/// Repeats in which every engine has a control.
fn controlled_repeats(record: &DbRecord) -> usize {
    let has_control = |engine: &EngineName, repeat: u64| {
        record.plan.cells.iter().any(|cell| {
            cell.role == Role::Control && cell.spec.engine == *engine && cell.repeat == repeat
        })
    };
    let is_controlled =
        |repeat: &&u64| record.plan.engines.iter().all(|engine| has_control(engine, **repeat));
    repeats(record).iter().filter(is_controlled).count()
}

/// Whether an engine has one level only, by what it says of its trees: it is not asked for more.
fn is_single_level(record: &DbRecord, engine: &EngineName) -> bool {
    let results = record.results().filter(|result| result.cell.spec.engine == *engine);
    let mut levels = results.flat_map(DbResult::loops).flat_map(|step| {
        let all = [&step.statistics_before, &step.statistics, &step.statistics_settled];
        all.into_iter().flat_map(|statistics| &statistics.levels)
    });
    levels.all(|level| level.level == 0)
}

/// What keeps a run from being a headline, each reason once; nothing for one that is.
pub fn shortcomings(record: &DbRecord) -> Vec<String> {
    let mut reasons = of_run(record);
    for result in record.results().filter(|result| result.cell.role != Role::Driver) {
        let has_levels = !is_single_level(record, &result.cell.spec.engine);
        for step in result.loops().filter(|step| reads(step)) {
            let mut add = |why: String| {
                let reason = format!("{}, {}: {why}", step.spec, result.cell.id);
                reasons.push(reason);
            };
            if step.elapsed_s < READ_SECONDS_MIN - CLOCK_SECONDS {
                add(format!("{} s, not {READ_SECONDS_MIN:.0}", figure(step.elapsed_s)));
            }
            let before = &step.statistics_before;
            let count = non_empty(before).count();
            if has_levels && count < LEVELS_MIN {
                add(format!("{count} levels that are not empty, not {LEVELS_MIN}"));
            }
            if has_levels && non_empty(before).any(|level| level.level == 0) {
                add("level 0 was not empty before it".to_owned());
            }
            if let Some(why) = idle_writer(result, step) {
                add(why);
            }
        }
    }
    reasons
}

/// Reasons that are shown; the rest are counted.
const REASONS_SHOWN: usize = 4;

/// Whether the run may be a headline, and what it lacks; nothing for a run that reads nothing.
pub(super) fn form(record: &DbRecord) -> Option<(String, Vec<String>)> {
    let mut loops = record.results().flat_map(DbResult::loops);
    if !loops.any(reads) {
        return None;
    }
    let mut reasons = shortcomings(record);
    if reasons.is_empty() {
        let count = repeats(record).len();
        let days: BTreeSet<String> =
            record.results().map(|result| days::day(result.started_unix_s)).collect();
        let days = Vec::from_iter(days).join(" and ");
        let controlled = match controlled_repeats(record) {
            controlled if controlled == count => "every repeat".to_owned(),
            controlled => format!("{controlled} of the repeats"),
        };
        let text = format!(
            "Headline form, one run of {count} repeats on {days}: {KEYS_MIN} keys or more; both sides \
             measured twice in {controlled}; every step that reads ran for {READ_SECONDS_MIN:.0} s, \
             over {LEVELS_MIN} levels or more with an empty level 0; writers beside readers made the \
             engine flush."
        );
        return Some((text, reasons));
    }
    let more = reasons.len().saturating_sub(REASONS_SHOWN);
    reasons.truncate(REASONS_SHOWN);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    let text = "Short form, to find regressions: its ratios are no headline. What is missing:";
    Some((text.to_owned(), reasons))
}

/// The trees before steps that read; `None` for engines without levels.
pub(super) fn grid(record: &DbRecord) -> Option<Grid> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for result in record.results().filter(|result| result.cell.role != Role::Driver) {
        for (index, step) in result.loops().enumerate().filter(|(_, step)| reads(step)) {
            let before = &step.statistics_before;
            if before.levels.is_empty() {
                continue;
            }
            rows.push(vec![
                result.cell.id.clone(),
                format!("{} (step {})", step.spec, index + 1),
                non_empty(before).count().to_string(),
                levels(before),
            ]);
        }
    }
    let columns = [
        ("run", Align::Left),
        ("before", Align::Left),
        ("levels", Align::Right),
        ("stored bytes, and codecs found in the files", Align::Left),
    ];
    (!rows.is_empty()).then(|| Grid::new(&columns, rows))
}

/// What each engine did in its steps `settle`.
pub(super) fn settled(record: &DbRecord) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for result in record.results().filter(|result| result.cell.role != Role::Driver) {
        for step in &result.steps {
            let Step::Call(call) = step else { continue };
            let line = format!("settle, {}: {}", result.cell.spec.engine, call.done);
            if call.benchmark == Benchmark::Settle && !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_experiment::sample;

    fn level(level: u32, files: u64, mib: u64, codec: &str) -> LevelStatistics {
        let stored_bytes = mib << 20;
        LevelStatistics {
            level,
            files,
            stored_bytes,
            codec: codec.to_owned(),
            ..LevelStatistics::default()
        }
    }

    fn tree(levels: &[u32]) -> EngineStatistics {
        let levels = levels.iter().map(|number| level(*number, 1, 10, "lz4")).collect();
        EngineStatistics { levels, ..EngineStatistics::default() }
    }

    #[test]
    fn a_tree_is_told_by_its_levels_that_are_not_empty() {
        let levels = vec![
            level(0, 0, 0, "none"),
            level(4, 3, 47, "none"),
            level(5, 20, 188, "lz4 in 19, none in 1"),
            level(6, 190, 3000, "zstd-1"),
        ];
        let statistics = EngineStatistics { levels, ..EngineStatistics::default() };
        let expected = "L4 47.0 MiB none; L5 188 MiB lz4 in 19, none in 1; L6 2.93 GiB zstd-1";
        assert_eq!(super::levels(&statistics), expected);
        assert_eq!(super::levels(&EngineStatistics::default()), "");
    }

    /// The same run over enough keys, with every cell measured twice.
    fn controlled(mut record: DbRecord) -> DbRecord {
        for cell in &mut record.cells {
            cell.cell.spec.num = KEYS_MIN;
        }
        let mut again = record.cells.clone();
        again.retain(|cell| cell.cell.role == Role::Measure);
        for cell in &mut again {
            cell.cell.role = Role::Control;
            cell.cell.id.push_str("-control");
        }
        record.cells.extend(again);
        for cell in &mut record.cells {
            cell.result.iter_mut().for_each(|result| result.cell = cell.cell.clone());
        }
        record.plan.cells = record.cells.iter().map(|cell| cell.cell.clone()).collect();
        record
    }

    /// A run in which every step that reads is as a headline needs it, after `change`.
    fn run(change: impl Fn(&mut StepResult)) -> DbRecord {
        let mut record = controlled(sample::record(&sample::plan(3)).run);
        for result in record.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
            let memtable_bytes = result.cell.spec.settings.memtable_bytes;
            for step in &mut result.steps {
                let Step::Loop(step) = step else { continue };
                step.elapsed_s = READ_SECONDS_MIN;
                step.statistics_before = tree(&[3, 4, 5, 6]);
                step.statistics = tree(&[3, 4, 5, 6]);
                step.statistics_settled = tree(&[3, 4, 5, 6]);
                step.ingested_bytes = MEMTABLES_WRITTEN_MIN * memtable_bytes;
                step.statistics.written_bytes_by_cause.insert("flush".to_owned(), 1);
                if reads(step) {
                    change(step);
                }
            }
        }
        record
    }

    #[test]
    fn a_headline_has_long_steps_over_a_settled_tree() {
        let whole = run(|_| ());
        assert!(whole.results().any(|result| result.loops().any(reads)), "something reads");
        assert_eq!(shortcomings(&whole), Vec::<String>::new());
        let (text, lacks) = form(&whole).expect("something reads");
        assert!(text.starts_with("Headline form") && lacks.is_empty(), "{text}");
        let told = |change: &dyn Fn(&mut StepResult)| shortcomings(&run(change)).join("\n");
        assert!(told(&|step| step.elapsed_s = 4.5).contains("4.50 s, not 60"));
        let three = told(&|step| step.statistics_before = tree(&[4, 5, 6]));
        assert!(three.contains("3 levels that are not empty, not 4"), "{three}");
        let unsettled = told(&|step| step.statistics_before = tree(&[0, 3, 4, 5, 6]));
        assert!(unsettled.contains("level 0 was not empty"), "{unsettled}");
        let (short, lacks) = form(&run(|step| step.elapsed_s = 1.0)).expect("something reads");
        assert!(short.starts_with("Short form, to find regressions"), "{short}");
        assert_eq!(lacks.len(), REASONS_SHOWN + 1, "{lacks:?}");
    }

    #[test]
    fn a_headline_is_a_whole_run_with_repeats_and_controls() {
        let told = |change: &dyn Fn(&mut DbRecord)| {
            let mut record = run(|_| ());
            change(&mut record);
            shortcomings(&record).join("\n")
        };
        assert_eq!(told(&|_| ()), "");
        let (said, _) = form(&run(|_| ())).expect("something reads");
        assert!(said.contains("one run of 3 repeats on 2023-11-14: 12000000 keys"), "{said}");
        assert_eq!(told(&|record| record.interrupted = true), "the run was interrupted");
        let small = told(&|record| record.plan.cells[1].spec.num = 2_000_000);
        assert_eq!(small, "2000000 keys, not 12000000");
        let two = told(&|record| {
            record.plan.cells.retain(|cell| cell.repeat < 2);
        });
        assert_eq!(two, "2 repeats, not 3");
        let one_side = told(&|record| {
            let engine = record.plan.engines[0].clone();
            let is_again = |cell: &DbCell| cell.role == Role::Control && cell.spec.engine == engine;
            record.plan.cells.retain(|cell| !is_again(cell));
        });
        assert!(one_side.ends_with(": no A/A control (--control)"), "{one_side}");
        let failed = told(&|record| {
            let last = record.cells.len() - 1;
            record.cells[last].result = None;
        });
        assert!(failed.ends_with("-control: no valid result"), "{failed}");
    }

    #[test]
    fn a_store_of_one_level_is_not_asked_for_levels() {
        let single = run(|step| {
            for statistics in
                [&mut step.statistics_before, &mut step.statistics, &mut step.statistics_settled]
            {
                *statistics = tree(&[0]);
            }
            step.statistics.written_bytes_by_cause.insert("flush".to_owned(), 1);
        });
        let mut single = single;
        for result in single.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
            for step in &mut result.steps {
                let Step::Loop(step) = step else { continue };
                step.statistics_before.levels.retain(|level| level.level == 0);
                step.statistics.levels.clear();
                step.statistics_settled.levels.clear();
            }
        }
        assert_eq!(shortcomings(&single), Vec::<String>::new());
    }

    #[test]
    fn a_writer_beside_readers_has_to_make_the_engine_flush() {
        let told = |change: &dyn Fn(&mut StepResult)| shortcomings(&run(change)).join("\n");
        let little = told(&|step| step.ingested_bytes = 1 << 20);
        assert!(little.contains("its writer wrote 1.00 MiB, less than 3 memtables"), "{little}");
        let unflushed = told(&|step| {
            step.statistics.written_bytes_by_cause.insert("flush".to_owned(), 0);
        });
        assert!(unflushed.contains("the engine flushed nothing while it ran"), "{unflushed}");
    }
}
