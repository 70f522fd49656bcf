//! The report: the published table with our figures in it, the times of jobs by level, codecs by
//! physical level, and the published ratios beside ours, engine by engine.

use std::collections::{BTreeMap, BTreeSet};

use super::LoopRecord;
use super::figures::{BESIDE, Figures, booked_percent, jobs, levels_percent};
use super::jobs::{LevelJobs, LevelRole};
use crate::adapter::EngineName;
use crate::adapter::settings::EngineSettings;
use crate::dbbench::figures::Measured;
use crate::dbbench::plan::foreign_percent;
use crate::dbbench::spec::{DbResult, Role};
use crate::experiment::PublishedRow;
use crate::experiment::loops::{LoopColumn, LoopHeadline};
use crate::keyvalue::benchmark::Benchmark;
use crate::report::card::tree;
use crate::report::compare::{
    CLAIM_COLUMNS, Comparison, FOREIGN_PERCENT_MAX, claim, claim_cells, sentence,
};
use crate::report::days;
use crate::report::figures::{Spread, figure, figure_or_dash};
use crate::report::paired::{Basis, Family, Sides};
use crate::report::tables::{Align, Grid};

const MIB: f64 = (1u64 << 20) as f64;

/// Name and version as the engine says; the name it was chosen by when nothing was measured.
pub(crate) fn engine_name(
    figures: &Figures<'_>,
    record: &LoopRecord,
    engine: &EngineName,
) -> String {
    let mut results = record.plan.arms.iter().flat_map(|arm| figures.results(engine, arm));
    results.next().map_or_else(|| engine.to_string(), |result| result.engine_name.clone())
}

/// What the figures were taken on, and what all arms had in common.
pub(crate) fn card(record: &LoopRecord) -> Vec<(&'static str, String)> {
    let measured = |result: &&DbResult| result.cell.role == Role::Measure;
    let Some(result) = record.run.results().find(measured) else {
        return Vec::new();
    };
    let (machine, spec) = (&result.machine, &result.cell.spec);
    let settings = &spec.settings;
    let mib = |bytes: u64| format!("{} MiB", figure(bytes as f64 / MIB));
    let workload = &record.plan.experiment.workload;
    vec![
        ("machine", format!("{}, {} CPUs, {}", machine.cpu, machine.cpus, machine.kernel)),
        ("memory", format!("{}, not limited", mib(machine.memory_bytes))),
        ("data on", format!("{} on {}", machine.file_system, machine.device)),
        ("built by", format!("{}, {}", machine.compiler, machine.build)),
        ("measured on", days_of(record)),
        (
            "keys",
            format!(
                "{} of {} + {} bytes ({} random) by {}, {} of keys and values",
                spec.num,
                spec.key_bytes,
                spec.value_bytes,
                spec.compression_ratio,
                workload.load,
                mib(spec.num * spec.entry_bytes()),
            ),
        ),
        (
            "tests",
            format!(
                "{} s each, {} clients in the engine's process; the writer beside readers is held \
                 to {} MiB/s, other writers are not",
                spec.duration_seconds, spec.threads, workload.writer_mib_per_s
            ),
        ),
        (
            "memory budget",
            format!(
                "{}, memtable {}",
                mib(settings.memory_budget_bytes),
                mib(settings.memtable_bytes)
            ),
        ),
        ("tree", tree(settings)),
        ("durability", settings.durability.name().to_owned()),
        ("codecs", codecs(record)),
    ]
}

/// The days of the cells; with several, what was measured on each.
fn days_of(record: &LoopRecord) -> String {
    let results = record.run.results();
    days::line(
        results.map(|result| (result.cell.id.as_str(), result.cell.repeat, result.started_unix_s)),
    )
    .unwrap_or_default()
}

/// The codecs of every arm: level 0, small levels, middle, bottom.
fn codecs(record: &LoopRecord) -> String {
    let arms: Vec<String> = record
        .plan
        .arms
        .iter()
        .filter_map(|arm| {
            let settings = settings(record, arm)?;
            let level0 = settings.codec_level0.unwrap_or(settings.codec_small);
            let (small, middle) = (settings.codec_small, settings.codec_middle);
            Some(format!("{arm} {level0},{small},{middle},{}", settings.codec_bottom))
        })
        .collect();
    format!("level 0, small levels, middle, bottom: {}", arms.join("; "))
}

/// The settings of an arm.
fn settings<'a>(record: &'a LoopRecord, arm: &str) -> Option<&'a EngineSettings> {
    let engine = record.plan.engines.first()?;
    let id = super::plan::cell_id(engine, arm, 0);
    let cells = &record.plan.cells.cells;
    cells.iter().find(|cell| cell.id == id).map(|cell| &cell.spec.settings)
}

/// What the small levels of an arm have: one codec, or level 0's and the others'.
fn upper_codecs(record: &LoopRecord, arm: &str) -> String {
    match settings(record, arm) {
        None => "-".to_owned(),
        Some(EngineSettings { codec_level0: Some(level0), codec_small, .. })
            if level0 != codec_small =>
        {
            format!("{level0}+{codec_small}")
        }
        Some(settings) => settings.codec_small.to_string(),
    }
}

/// The headings of a table whose figures are `names`: test, small levels, figures, arm.
fn headings<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(&'a str, Align)> {
    let mut columns = vec![("test", Align::Left), ("L0-2", Align::Left)];
    columns.extend(names.map(|name| (name, Align::Right)));
    columns.push(("arm", Align::Left));
    columns
}

/// A figure, or a dash for what is not there. cpu/w grows with the length of a test: what is lost
/// in five decimals is written with an exponent.
fn fine(value: Option<f64>) -> String {
    match value {
        Some(value) if value != 0.0 && value.abs() < 0.001 => format!("{value:.2e}"),
        value => figure_or_dash(value),
    }
}

/// A row per test and arm.
fn rows(
    record: &LoopRecord,
    figures: &Figures<'_>,
    engine: &EngineName,
    mut values: impl FnMut(Benchmark, &str) -> Vec<Option<Spread>>,
) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for test in &record.plan.experiment.workload.tests {
        for arm in &record.plan.arms {
            let mut row = vec![test.to_string(), upper_codecs(record, arm)];
            let medians = values(*test, arm).into_iter();
            row.extend(medians.map(|spread| fine(spread.map(|spread| spread.median))));
            row.push(format!("{arm}{}", remark(record, figures, engine, arm)));
            rows.push(row);
        }
    }
    rows
}

/// What is wrong with an arm's row: repeats that failed, are void or were not measured.
fn remark(record: &LoopRecord, figures: &Figures<'_>, engine: &EngineName, arm: &str) -> String {
    let (valid, all) = (figures.results(engine, arm).len() as u64, record.plan.sizes.repeats);
    if valid == all { String::new() } else { format!(" ({valid} of {all} repeats)") }
}

/// The published table of an engine with our figures: medians over the valid repeats.
pub(crate) fn published_columns(
    record: &LoopRecord,
    figures: &Figures<'_>,
    engine: &EngineName,
) -> Grid {
    let rows = rows(record, figures, engine, |test, arm| {
        let column = |column: &LoopColumn| figures.column(engine, arm, test, *column);
        LoopColumn::TABLE.iter().map(column).collect()
    });
    Grid::new(&headings(LoopColumn::TABLE.iter().map(|column| column.name())), rows)
}

/// What stands beside the published figures of an engine.
pub(crate) fn beside(record: &LoopRecord, figures: &Figures<'_>, engine: &EngineName) -> Grid {
    let rows = rows(record, figures, engine, |test, arm| {
        BESIDE.iter().map(|(_, value)| figures.spread(engine, arm, test, *value)).collect()
    });
    Grid::new(&headings(BESIDE.iter().map(|(name, _)| *name)), rows)
}

/// What the published tables call an arm.
fn published_name<'a>(record: &'a LoopRecord, arm: &'a str) -> &'a str {
    let arms = &record.plan.experiment.arms;
    let found = arms.iter().find(|candidate| candidate.name == arm);
    found.and_then(|arm| arm.published_as.as_deref()).unwrap_or(arm)
}

/// The tables as they were published.
pub(crate) fn published(record: &LoopRecord) -> Grid {
    let experiment = &record.plan.experiment;
    let mut rows = Vec::new();
    for published in &experiment.published {
        for row in &published.rows {
            let name = published_name(record, &row.arm).to_owned();
            let mut cells = vec![published.test.to_string(), name];
            cells.extend(LoopColumn::TABLE.iter().map(|column| {
                figure_or_dash(experiment.published_value(published.test, *column, &row.arm))
            }));
            cells.push(row.arm.clone());
            rows.push(cells);
        }
    }
    Grid::new(&headings(LoopColumn::TABLE.iter().map(|column| column.name())), rows)
}

/// Jobs of an arm in a test by physical level, all valid repeats together.
fn pooled(tests: &[Measured<'_>]) -> BTreeMap<u32, LevelJobs> {
    let mut levels: BTreeMap<u32, LevelJobs> = BTreeMap::new();
    for measured in tests {
        for (level, work) in jobs(measured.step).levels {
            let sum = levels.entry(level).or_default();
            *sum = sum.plus(&work);
        }
    }
    levels
}

/// What a table of jobs shows of a level.
type JobValue = fn(&LevelJobs) -> String;

/// Four tables: wall and CPU seconds per job, jobs, MB written; a column per physical level.
pub(crate) fn job_grid(
    record: &LoopRecord,
    figures: &Figures<'_>,
    engine: &EngineName,
    test: Benchmark,
) -> Grid {
    let arms: Vec<(&String, Vec<Measured<'_>>)> =
        record.plan.arms.iter().map(|arm| (arm, figures.tests(engine, arm, test))).collect();
    let jobs: Vec<_> = arms.iter().map(|(_, tests)| pooled(tests)).collect();
    let levels: BTreeSet<u32> = jobs.iter().flat_map(|levels| levels.keys().copied()).collect();
    if levels.is_empty() {
        return Grid::default();
    }
    let names: Vec<String> = levels.iter().map(|level| format!("L{level}")).collect();
    let tables: [(&str, JobValue); 4] = [
        ("wall s/job", |work| figure_or_dash(work.wall_s_per_job())),
        ("CPU s/job", |work| figure_or_dash(work.cpu_s_per_job())),
        ("jobs", |work| work.jobs.to_string()),
        ("MB written", |work| figure(work.written_bytes as f64 / 1e6)),
    ];
    let mut columns: Vec<(&str, Align)> = vec![("figure", Align::Left)];
    columns.extend(names.iter().map(|name| (name.as_str(), Align::Right)));
    columns.extend([("all", Align::Right), ("arm", Align::Left), ("base", Align::Left)]);
    let mut rows = Vec::new();
    for (name, value) in tables {
        for ((arm, tests), jobs) in arms.iter().zip(&jobs) {
            let mut row = vec![name.to_owned()];
            let of_level = |level| jobs.get(level).map_or_else(|| "-".to_owned(), value);
            row.extend(levels.iter().map(of_level));
            let all = jobs.values().fold(LevelJobs::default(), |sum, work| sum.plus(work));
            row.extend([value(&all), (*arm).clone(), base_levels(tests)]);
            rows.push(row);
        }
    }
    Grid::new(&columns, rows)
}

/// The base levels that the repeats of a test had: `L3`, or `L3 L4` where they differ.
fn base_levels(tests: &[Measured<'_>]) -> String {
    let found: BTreeSet<u32> =
        tests.iter().filter_map(|measured| jobs(measured.step).base_level()).collect();
    let names: Vec<String> = found.iter().map(|level| format!("L{level}")).collect();
    names.join(" ")
}

/// The times of jobs as they were published.
pub(crate) fn published_jobs(record: &LoopRecord, test: Benchmark) -> Option<Grid> {
    let tables = &record.plan.experiment.published_jobs;
    let published = tables.iter().find(|table| table.test == test)?;
    let mut columns: Vec<(&str, Align)> =
        published.levels.iter().map(|level| (level.as_str(), Align::Right)).collect();
    columns.push(("L0-2", Align::Left));
    let row = |row: &PublishedRow| {
        let mut cells: Vec<String> = row.values.iter().map(|value| figure(*value)).collect();
        cells.push(published_name(record, &row.arm).to_owned());
        cells
    };
    Some(Grid::new(&columns, published.rows.iter().map(row).collect()).named_by_last())
}

/// The last test of an arm's first valid repeat.
fn last_test<'a>(
    record: &LoopRecord,
    figures: &Figures<'a>,
    engine: &EngineName,
    arm: &str,
) -> Option<Measured<'a>> {
    let test = record.plan.experiment.workload.tests.last()?;
    figures.test(figures.results(engine, arm).first()?, *test)
}

/// The levels of each arm with the codecs that were found in their files.
pub(crate) fn levels(record: &LoopRecord, figures: &Figures<'_>) -> Grid {
    let columns = [
        ("engine", Align::Left),
        ("arm", Align::Left),
        ("level", Align::Left),
        ("role", Align::Left),
        ("codec in files", Align::Left),
        ("files", Align::Right),
        ("stored MB", Align::Right),
        ("user MB", Align::Right),
        ("stored/user", Align::Right),
    ];
    let mut rows = Vec::new();
    for engine in &record.plan.engines {
        for arm in &record.plan.arms {
            let Some(Measured { step, .. }) = last_test(record, figures, engine, arm) else {
                continue;
            };
            let jobs = jobs(step);
            for level in step.statistics.levels.iter().filter(|level| level.files > 0) {
                rows.push(vec![
                    engine.to_string(),
                    arm.clone(),
                    format!("L{}", level.level),
                    jobs.role(level.level).map_or("-", LevelRole::name).to_owned(),
                    level.codec.clone(),
                    level.files.to_string(),
                    figure(level.stored_bytes as f64 / 1e6),
                    figure_or_dash(level.user_mb()),
                    figure_or_dash(level.stored_per_user_byte()),
                ]);
            }
        }
    }
    Grid::new(&columns, rows)
}

/// Whether the trees of all arms have the same base level, so that they differ in codecs alone.
pub(crate) fn shape(record: &LoopRecord, figures: &Figures<'_>) -> String {
    let mut lines = Vec::new();
    for engine in &record.plan.engines {
        let mut by_base: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for arm in &record.plan.arms {
            for test in &record.plan.experiment.workload.tests {
                let base = base_levels(&figures.tests(engine, arm, *test));
                let arms = by_base.entry(base).or_default();
                if !arms.contains(&arm.as_str()) {
                    arms.push(arm);
                }
            }
        }
        let parts: Vec<String> = by_base
            .iter()
            .map(|(base, arms)| {
                format!("{} ({})", if base.is_empty() { "none" } else { base }, arms.join(", "))
            })
            .collect();
        let mut line = format!("{engine}: base level {}", parts.join("; "));
        if by_base.len() > 1 {
            line.push_str(". NOT THE SAME in every arm and test: they differ in more than codecs");
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// Failures, what the driver costs, and what engines booked against what others counted.
pub(crate) fn checks(record: &LoopRecord, figures: &Figures<'_>) -> Vec<String> {
    let mut lines: Vec<String> =
        super::problems(record).into_iter().map(|problem| format!("  {problem}")).collect();
    let workload = &record.plan.experiment.workload;
    for engine in &record.plan.engines {
        let mut of_engine = |what: &str, value: fn(&Measured<'_>) -> Option<f64>| {
            let tests = workload.tests.iter().flat_map(|test| {
                record.plan.arms.iter().flat_map(|arm| figures.tests(engine, arm, *test))
            });
            if let Some(spread) = Spread::of(tests.filter_map(|test| value(&test)).collect()) {
                let Spread { median, min, max, .. } = spread;
                lines.push(format!(
                    "  {engine}: {what}: {} % [{}, {}]",
                    figure(median),
                    figure(min),
                    figure(max)
                ));
            }
        };
        of_engine(
            "log, flushes and compactions of the bytes handed to write calls",
            booked_percent,
        );
        of_engine("jobs by level of the bytes that flushes and compactions wrote", levels_percent);
        let results = record.plan.arms.iter().flat_map(|arm| figures.results(engine, arm));
        let seen: Vec<_> = results.filter_map(|result| result.verification.as_ref()).collect();
        let rows = seen.iter().map(|seen| seen.rows).max().unwrap_or(0);
        lines.push(format!(
            "  {engine}: a scan at the end of {} cells found every key that was written, at most \
             {rows}",
            seen.len()
        ));
    }
    if record.run.interrupted {
        lines.push("  the run was stopped before its last cell".to_owned());
    }
    let foreign = record.run.results().map(foreign_percent).fold(0.0, f64::max);
    lines.push(format!("  other processes took at most {} % of the CPUs", figure(foreign)));
    if foreign > FOREIGN_PERCENT_MAX {
        lines.push(
            "  THE MACHINE WAS NOT QUIET: only bytes and CPU of jobs can be believed; measure again"
                .to_owned(),
        );
    }
    lines
}

/// A published ratio on an engine, with what was measured of it.
pub(crate) struct Claimed<'a> {
    pub(crate) engine: &'a EngineName,
    pub(crate) item: &'a LoopHeadline,
    /// `None` where it was not measured.
    pub(crate) comparison: Option<Comparison>,
}

/// All claims of a run, judged together.
pub(crate) struct Claims<'a> {
    pub(crate) items: Vec<Claimed<'a>>,
    pub(crate) basis: Basis,
}

/// Judges every published ratio on every engine.
pub(crate) fn claims<'a>(record: &'a LoopRecord, figures: &Figures<'_>) -> Claims<'a> {
    let mut family = Family::default();
    let mut added = Vec::new();
    let headlines = &record.plan.experiment.headlines;
    for engine in &record.plan.engines {
        for item in headlines {
            let arms = [item.arm.as_str(), item.base.as_str()];
            let sides = Sides {
                kind: item.column.to_string(),
                scale: item.column.scale(),
                values: arms.map(|arm| figures.rounds(engine, arm, item.test, item.column)),
                other_day: figures.apart(engine, arms),
                ..Sides::default()
            };
            added.push((engine, item, family.add(sides)));
        }
    }
    add_noise(&mut family, record, figures);
    let findings = family.judge();
    let items = added.into_iter().map(|(engine, item, place)| Claimed {
        engine,
        item,
        comparison: findings.get(place).map(|found| claim(found, item.published)),
    });
    Claims { items: items.collect(), basis: findings.basis.clone() }
}

/// Neighbouring arms that no claim compares say something of the noise, too.
fn add_noise(family: &mut Family, record: &LoopRecord, figures: &Figures<'_>) {
    let headlines = &record.plan.experiment.headlines;
    let mut known: Vec<(Benchmark, LoopColumn)> = Vec::new();
    for item in headlines {
        if known.contains(&(item.test, item.column)) {
            continue;
        }
        known.push((item.test, item.column));
        for engine in &record.plan.engines {
            for arms in record.plan.arms.windows(2) {
                let is_claim = |other: &&LoopHeadline| {
                    (other.test, other.column) == (item.test, item.column)
                        && arms.contains(&other.arm)
                        && arms.contains(&other.base)
                };
                if !headlines.iter().any(|other| is_claim(&other)) {
                    let sides = [&arms[0], &arms[1]]
                        .map(|arm| figures.rounds(engine, arm, item.test, item.column));
                    family.add_noise(&item.column.to_string(), item.column.scale(), sides);
                }
            }
        }
    }
}

/// Published ratios beside measured ones.
pub(crate) fn comparison_grid(record: &LoopRecord, judged: &Claims<'_>) -> Grid {
    let mut columns = vec![("test", Align::Left), ("figure", Align::Left), ("ratio", Align::Left)];
    columns.extend(CLAIM_COLUMNS);
    columns.push(("engine", Align::Left));
    let row = |Claimed { engine, item, comparison }: &Claimed<'_>| {
        let arms = [&item.arm, &item.base].map(|arm| published_name(record, arm));
        let mut row = vec![item.test.to_string(), item.column.to_string(), arms.join(" / ")];
        row.extend(claim_cells(item.published, comparison.as_ref(), "no ratio"));
        row.push(engine.to_string());
        row
    };
    Grid::new(&columns, judged.items.iter().map(row).collect())
}

/// What a measured ratio comes to, engine by engine and claim by claim.
pub(crate) fn sentences(judged: &Claims<'_>) -> Vec<String> {
    let says = |Claimed { engine, item, comparison }: &Claimed<'_>| {
        let column = item.column.name();
        let says = sentence(&item.claim, column, item.published, comparison.as_ref());
        format!("{engine}: {says}")
    };
    judged.items.iter().map(says).collect()
}

/// A line for every published figure that was zero in all arms: a ratio says nothing about it.
pub(crate) fn zeros(record: &LoopRecord, figures: &Figures<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for published in &record.plan.experiment.published {
        for (index, column) in published.columns.iter().enumerate() {
            if published.rows.iter().any(|row| row.values.get(index) != Some(&0.0)) {
                continue;
            }
            let mut found = Vec::new();
            for engine in &record.plan.engines {
                for row in &published.rows {
                    let spread = figures.column(engine, &row.arm, published.test, *column);
                    let value = figure_or_dash(spread.map(|spread| spread.median));
                    found.push(format!("{value} ({engine}, {})", row.arm));
                }
            }
            lines.push(format!(
                "{} of {}: 0 in every arm published; here {}.",
                column,
                published.test,
                found.join(", ")
            ));
        }
    }
    lines
}
