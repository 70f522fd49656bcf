//! Pairs: the same sequence on several engines, in turn, several times, each in its own process.
//!
//! The driver alone comes first. Then every repeat runs every ladder of codecs, and in it all
//! engines; when an A/A control is asked for, all of them once more: what the two runs of an engine
//! differ by is noise. Each repeat begins with the next engine, so that no engine always has the
//! first place. A result is on disk whole or not at all, and what was measured by the same program
//! with the same settings is not measured again.

use serde::{Deserialize, Serialize};

use super::oracle;
use super::spec::{DbCell, DbResult, DbSpec, Role, SCHEMA, Step};
use crate::adapter::EngineName;
use crate::adapter::allocator::Allocator;
use crate::adapter::codec::Ladder;
use crate::engines::registry;
use crate::keyvalue::benchmark::Benchmark;
use crate::kind::incomplete::{self, CellEnd};
use crate::run::cells::{Cell, Entries, Entry, Part, RunPlan};
use crate::run::estimate::Effort;
use crate::run::{RunError, rotated};

/// What is measured, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DbPlan {
    /// Name of the run, and of its files.
    pub name: String,
    /// The engines, the first one is compared with the others.
    pub engines: Vec<EngineName>,
    /// The cells.
    pub cells: Vec<DbCell>,
}

/// In which cells every engine is measured once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controls {
    /// With the first so many ladders.
    pub ladders: u64,
    /// In the first so many repeats.
    pub repeats: u64,
}

impl Controls {
    /// Nowhere.
    pub const NONE: Controls = Controls { ladders: 0, repeats: 0 };
    /// Everywhere.
    pub const ALL: Controls = Controls { ladders: u64::MAX, repeats: u64::MAX };

    fn has(self, ladder: usize, repeat: u64) -> bool {
        (ladder as u64) < self.ladders && repeat < self.repeats
    }
}

/// The driver runs for so long at most: its figures do not change.
const DRIVER_SECONDS_MAX: u64 = 10;

impl DbPlan {
    /// `specs` differ by their engines only, and each runs with each of the `ladders`. Where
    /// `controls` says so, all engines are measured twice in a repeat. Names of cells name the ladder where
    /// there are several.
    pub fn new(
        name: &str,
        specs: &[DbSpec],
        ladders: &[Ladder],
        repeats: u64,
        controls: Controls,
    ) -> DbPlan {
        let cell = |role, repeat, spec: &DbSpec, ladder: Ladder| {
            let mut parts = vec![spec.engine.name().to_owned()];
            if ladders.len() > 1 {
                parts.push(ladder.file_name());
            }
            if role == Role::Control {
                parts.push("control".to_owned());
            }
            parts.push(format!("r{repeat}"));
            let settings = spec.settings.clone().with_ladder(ladder);
            DbCell { id: parts.join("-"), role, repeat, spec: DbSpec { settings, ..spec.clone() } }
        };
        let mut cells = Vec::new();
        cells.extend(specs.first().zip(ladders.first()).map(|(spec, ladder)| {
            let settings = spec.settings.clone().with_ladder(*ladder);
            driver(DbSpec { settings, ..spec.clone() })
        }));
        let stored: Vec<&DbSpec> = specs.iter().filter(|s| registry::stores(&s.engine)).collect();
        for repeat in 0..repeats {
            for (number, ladder) in ladders.iter().copied().enumerate() {
                let roles = [Role::Measure, Role::Control];
                let runs = if controls.has(number, repeat) { 2 } else { 1 };
                for role in roles.into_iter().take(runs) {
                    let specs = rotated(&stored, repeat as usize);
                    cells.extend(specs.map(|spec| cell(role, repeat, spec, ladder)));
                }
            }
        }
        let engines = stored.iter().map(|spec| spec.engine.clone()).collect();
        DbPlan { name: name.to_owned(), engines, cells }
    }

    /// The ladders of codecs, in the order in which they were named.
    pub fn ladders(&self) -> Vec<Ladder> {
        let mut ladders = Vec::new();
        for cell in &self.cells {
            let ladder = cell.spec.settings.ladder();
            if !ladders.contains(&ladder) {
                ladders.push(ladder);
            }
        }
        ladders
    }
}

/// The cell in which the driver is alone. What it costs depends on no rate, and soon not on time.
fn driver(mut spec: DbSpec) -> DbCell {
    spec.engine = EngineName::null();
    spec.duration_seconds = spec.duration_seconds.min(DRIVER_SECONDS_MAX);
    spec.write_rate_bytes_per_s = 0;
    spec.use_existing = false;
    for step in &mut spec.benchmarks {
        step.duration_seconds = step.duration_seconds.map(|own| own.min(DRIVER_SECONDS_MAX));
        step.write_rate_bytes_per_s = None;
    }
    DbCell { id: "driver".to_owned(), role: Role::Driver, repeat: 0, spec }
}

/// What operations take on two CPUs of the kind that README's figures are of, background work
/// included, microseconds: for estimates before anything was measured.
/// A sequential fill: 3.3 on Lithify and 5.4 on RocksDB in `results/db-ladders.txt`, with a log.
const FILL_SEQ_US: f64 = 4.5;
const WRITE_US: f64 = 10.0;
const READ_US: f64 = 20.0;
const SCAN_US_PER_ROW: f64 = 1.0;

/// A guess at the time of a step that ends by a number of operations; `None` for one that does not.
fn nominal_seconds(benchmark: Benchmark, own: &DbSpec) -> Option<f64> {
    if !benchmark.is_loop() || own.engine == EngineName::null() {
        return None;
    }
    let each_us = match benchmark {
        Benchmark::FillSeq => FILL_SEQ_US,
        _ if benchmark.is_write() => WRITE_US,
        _ => READ_US,
    };
    Some((own.operations(benchmark)? * own.threads) as f64 * each_us / 1e6)
}

impl Cell for DbCell {
    type Outcome = DbResult;

    fn id(&self) -> String {
        self.id.clone()
    }

    fn engine(&self) -> EngineName {
        self.spec.engine.clone()
    }

    fn part(&self) -> Part {
        let name = format!("{} with {}", self.spec.engine, self.spec.settings.ladder());
        match self.role {
            Role::Measure => Part::Row(name),
            Role::Control => Part::Control(name),
            Role::Driver => Part::Driver,
        }
    }

    fn allocator(&self) -> Result<Allocator, RunError> {
        Ok(self.spec.allocator)
    }

    fn is_continued(&self) -> bool {
        self.spec.use_existing
    }

    /// Steps with a time of their own, and a guess for those that end by a number of operations; what
    /// the driver takes alone says nothing of engines.
    fn effort(&self) -> Effort {
        let steps = self.spec.benchmarks.iter();
        let seconds = steps.map(|step| {
            let own = step.of(&self.spec);
            nominal_seconds(step.benchmark, &own).unwrap_or(own.duration_seconds as f64)
        });
        let verified = self.spec.num as f64 * SCAN_US_PER_ROW / 1e6;
        let seconds: f64 = seconds.sum::<f64>() + verified;
        let work = if self.role == Role::Driver { 0.0 } else { 1.0 };
        Effort { work, ..Effort::declared(seconds) }
    }

    fn is_result(&self, outcome: &DbResult) -> bool {
        outcome.cell == *self
    }

    fn faults(outcome: &DbResult) -> Vec<String> {
        oracle::faults(outcome)
    }

    fn summary(outcome: &DbResult) -> String {
        summary(outcome)
    }
}

impl RunPlan for DbPlan {
    type Cell = DbCell;
    const SMALLER: &'static str = "take a smaller --num";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn scale(&self) -> Option<&str> {
        None
    }

    fn cells(&self) -> &[DbCell] {
        &self.cells
    }

    /// Twice the logical size is more than an engine has at its peak.
    fn needed_bytes(&self, cell: &DbCell) -> u64 {
        cell.spec.num * cell.spec.entry_bytes() * 2 + (256 << 20)
    }
}

/// A cell with what became of it.
pub type DbCellRecord = Entry<DbCell>;

/// A run with all its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DbRecord {
    /// Version of this JSON: [`SCHEMA`].
    pub schema: u32,
    /// What was to be measured.
    pub plan: DbPlan,
    /// True when the run was stopped before its last cell.
    pub interrupted: bool,
    /// The cells in the order in which they ran.
    pub cells: Vec<DbCellRecord>,
}

impl DbRecord {
    /// A run with what became of its cells.
    pub fn new(plan: DbPlan, entries: Entries<DbCell>) -> DbRecord {
        let Entries { interrupted, cells } = entries;
        DbRecord { schema: SCHEMA, plan, interrupted, cells }
    }

    /// The results that count: measured, and what was read is what was written.
    pub fn results(&self) -> impl Iterator<Item = &DbResult> {
        self.cells
            .iter()
            .filter_map(|cell| cell.result.as_ref())
            .filter(|result| oracle::faults(result).is_empty())
    }

    /// Those of one engine with one ladder in one role, by repeat.
    pub fn of<'a>(
        &'a self,
        engine: &'a EngineName,
        ladder: Ladder,
        role: Role,
    ) -> impl Iterator<Item = &'a DbResult> {
        self.results().filter(move |result| {
            let spec = &result.cell.spec;
            result.cell.role == role && spec.engine == *engine && spec.settings.ladder() == ladder
        })
    }

    /// What the driver alone took.
    pub fn driver(&self) -> Option<&DbResult> {
        self.results().find(|result| result.cell.role == Role::Driver)
    }

    /// What went wrong: processes that failed, reads that found the wrong rows, engines that
    /// disagree.
    pub fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = Vec::new();
        for cell in &self.cells {
            if let Some(why) = &cell.failure {
                problems.push(format!("{}: {why}", cell.cell.id));
            }
            problems.extend(cell.result.iter().flat_map(oracle::faults));
        }
        problems.extend(self.disagreements());
        problems
    }

    /// Where engines read other rows than the first one.
    pub fn disagreements(&self) -> Vec<String> {
        let Some(first) = self.reference() else { return Vec::new() };
        let others = self.results().filter(|result| result.cell.role != Role::Driver);
        others.flat_map(|other| oracle::agreement(first, other).differences).collect()
    }

    /// The planned cells with how they ended.
    pub(crate) fn ends(&self) -> Vec<CellEnd> {
        incomplete::with_planned(incomplete::ends(&self.cells), &self.plan.cells)
    }

    /// The result with which the others are compared.
    pub fn reference(&self) -> Option<&DbResult> {
        self.results().find(|result| result.cell.role == Role::Measure)
    }
}

/// One line: the rate of each step, and what other processes took meanwhile.
fn summary(result: &DbResult) -> String {
    let mut text = String::new();
    for step in result.loops() {
        let rate = step.operations as f64 / step.elapsed_s.max(1e-9);
        text.push_str(&format!("{} {rate:.0}/s, ", step.spec));
    }
    text.push_str(&format!("other processes {:.0} %", foreign_percent(result)));
    text
}

/// What other processes took of the machine while steps ran, percent.
pub fn foreign_percent(result: &DbResult) -> f64 {
    let usages = result.steps.iter().map(|step| match step {
        Step::Loop(step) => &step.usage,
        Step::Call(call) => &call.usage,
    });
    let (mut foreign_us, mut seconds) = (0, 0.0);
    for usage in usages {
        foreign_us += usage.foreign_cpu_us;
        seconds += usage.seconds;
    }
    let capacity_us = seconds * 1e6 * result.machine.cpus.max(1) as f64;
    if capacity_us > 0.0 { 100.0 * foreign_us as f64 / capacity_us } else { 0.0 }
}

/// A record without what engines say about themselves beyond the report: that stays in the results
/// of the cells.
pub(crate) fn shortened(record: &DbRecord) -> DbRecord {
    let mut short = record.clone();
    for result in short.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
        result.steps.iter_mut().for_each(shorten);
    }
    short
}

fn shorten(step: &mut Step) {
    if let Step::Loop(step) = step {
        step.statistics.raw = serde_json::Value::Null;
        step.statistics_before.raw = serde_json::Value::Null;
        step.statistics_settled.raw = serde_json::Value::Null;
    }
}
