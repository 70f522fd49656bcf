//! Policies of compression: what each costs at a user's prices, beside every fixed ladder.
//!
//! Owns: the cells (a data set, a mix of operations, a policy of the engine), how each is measured
//! from outside ([`measure`]), the prices ([`prices`]), and the report ([`page`]).
//!
//! 1. A cell loads the rows of a real data set under scattered keys, and does what its mix says: it
//!    overwrites half of them, or looks rows up and scans, through the page cache or past it.
//! 2. Its costs are taken from outside: CPU of the process less the driver's, bytes that it wrote, calls
//!    that read the device, and the bytes of the directory over the hours that each phase stands for.
//! 3. A fixed ladder is measured once and priced under every preset. A policy that decides by prices is
//!    measured under each.
//!
//! Promises: all policies of a data set and mix do the same operations, and read the same bytes: a
//! cell that read others is void. Does not know other engines.

pub mod compared;
pub mod kind;
pub mod measure;
pub mod page;
pub mod prices;
pub mod rows;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::adapter::EngineName;
use crate::meter::machine::Machine;
use crate::run::RunError;
use crate::run::cells::{Cell, Entries, Part, RunPlan};
use crate::run::estimate::Effort;
use prices::{PRESETS, Preset};
use rows::DataSet;

/// What is done with the rows once they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// Half of them are written again.
    Load,
    /// Lookups and short scans through the page cache.
    Cached,
    /// The same past it.
    Device,
}

impl Mix {
    /// All of them.
    pub const ALL: [Mix; 3] = [Mix::Load, Mix::Cached, Mix::Device];

    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Mix::Load => "load",
            Mix::Cached => "cached",
            Mix::Device => "device",
        }
    }
}

impl std::str::FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Mix::ALL.into_iter().find(|mix| mix.name() == text.trim());
        found.ok_or_else(|| "allowed: load, cached, device".to_owned())
    }
}

impl std::fmt::Display for Mix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A policy by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// Its name in the report.
    pub name: String,
    /// The engine's settings of a column family, with `{prices}` where those of the preset go.
    pub options: String,
}

/// What stands for prices in the settings of an arm.
const PRICES: &str = "{prices}";

impl Arm {
    /// A ladder of codecs that never changes.
    pub fn fixed(ladder: &str) -> Arm {
        Arm { name: ladder.to_owned(), options: format!("compression={ladder}") }
    }

    /// Its name in those of files.
    pub fn id(&self) -> String {
        self.name.replace([',', ' '], "-")
    }

    /// Whether it is one of the ladders that never change.
    pub fn is_fixed(&self) -> bool {
        Arm::ladders().contains(self)
    }

    /// Whether it goes by prices, so that each preset is a measurement of its own.
    pub fn decides(&self) -> bool {
        self.options.contains(PRICES)
    }

    /// The fixed ladders that every policy is compared with.
    pub fn ladders() -> Vec<Arm> {
        ["none", "lz4", "none,lz4,zstd-1", "zstd-1", "zlib-6"].map(Arm::fixed).into()
    }

    /// Rules of other engines, which know no price: by size alone, by load alone, and without what does
    /// not shrink.
    pub fn rules() -> Vec<Arm> {
        let arm =
            |name: &str| Arm { name: format!("rule-{name}"), options: format!("rule={name}") };
        ["size", "load", "skip"].map(arm).into()
    }

    /// The engine's own decision.
    pub fn auto() -> Arm {
        let options = format!("compression=prices:{PRICES} block_size_bytes=0");
        Arm { name: "auto".to_owned(), options }
    }
}

/// A cell: everything that can change its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyCell {
    /// Of which rows.
    pub data: DataSet,
    /// At most so many bytes of them.
    pub bytes: u64,
    /// What is done.
    pub mix: Mix,
    /// Under which policy.
    pub arm: Arm,
    /// The preset whose prices the policy goes by; `None` for one that goes by none.
    pub preset: Option<Preset>,
    /// Which repeat, from 0.
    pub repeat: u64,
    /// Hours that the load stands for, and what comes after it.
    pub hours: [f64; 2],
    /// Seconds that the cell is expected to take: the engine's clock is a real one, so the price of a
    /// month is scaled to them.
    pub expected_seconds: f64,
    /// Hash of the program.
    pub build: String,
}

impl PolicyCell {
    /// The engine's settings of the column family.
    pub fn options(&self) -> String {
        let prices = self.preset.map(|preset| {
            let hours = self.hours.iter().sum::<f64>();
            preset.prices().scaled(hours * 3_600.0 / self.expected_seconds, self.expected_seconds)
        });
        self.arm.options.replace(PRICES, &prices.unwrap_or_default())
    }

    /// The data set and the mix.
    pub fn place(&self) -> String {
        format!("{} {}", self.data, self.mix)
    }
}

/// What a phase cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseCost {
    /// Wall time, seconds.
    pub seconds: f64,
    /// CPU of the process less that of the driver, seconds.
    pub cpu_s: f64,
    /// Bytes written by calls.
    pub written_bytes: u64,
    /// Reads of the device, longer ones counted by their length; 0 through the page cache.
    pub device_reads: f64,
    /// Bytes of the directory, over 64 points of the phase.
    pub stored_bytes: f64,
}

/// What the measuring process found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyResult {
    /// What was done.
    pub cell: PolicyCell,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// On which machine.
    pub machine: Machine,
    /// Rows that were loaded.
    pub rows: u64,
    /// Their bytes, keys included.
    pub row_bytes: u64,
    /// The load, and what came after it; both with the work that they left behind.
    pub phases: [PhaseCost; 2],
    /// Of everything that was read.
    pub checksum: String,
    /// Levels that tables were written into.
    pub levels: u64,
    /// What the engine says of its levels at the end.
    pub explanation: String,
}

impl Cell for PolicyCell {
    type Outcome = PolicyResult;

    fn id(&self) -> String {
        let preset = self.preset.map_or(String::new(), |preset| format!("-{}", preset.name()));
        format!("{}-{}-{}{preset}-{}", self.data, self.mix, self.arm.id(), self.repeat)
    }

    fn engine(&self) -> EngineName {
        EngineName::lithify()
    }

    fn alike(&self) -> String {
        self.place()
    }

    fn part(&self) -> Part {
        let preset = self.preset.map_or(String::new(), |preset| format!(", {}", preset.name()));
        Part::Row(format!("{} on {}{preset}", self.arm.name, self.place()))
    }

    fn effort(&self) -> Effort {
        Effort::UNKNOWN
    }

    fn is_result(&self, result: &PolicyResult) -> bool {
        result.cell == *self
    }

    fn faults(result: &PolicyResult) -> Vec<String> {
        let few =
            || format!("only {} levels were written into: its data are too few", result.levels);
        (result.levels < LEVELS_MIN).then(few).into_iter().collect()
    }

    fn summary(result: &PolicyResult) -> String {
        let cpu_s: f64 = result.phases.iter().map(|phase| phase.cpu_s).sum();
        format!("{cpu_s:.1} CPU s, {:.1} MB", result.phases[1].stored_bytes / 1e6)
    }
}

/// Fewer levels say nothing of a ladder.
const LEVELS_MIN: u64 = 4;

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyPlan {
    /// The cells in the order in which they run.
    pub cells: Vec<PolicyCell>,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The rows.
    pub data: Vec<DataSet>,
    /// At most so many bytes of each.
    pub bytes: u64,
    /// What is done with them.
    pub mixes: Vec<Mix>,
    /// The policies; the fixed ladders are what others are compared with.
    pub arms: Vec<Arm>,
    /// Rounds over all cells.
    pub repeats: u64,
    /// Hours that load and reads stand for.
    pub hours: [f64; 2],
    /// Seconds that a megabyte of rows takes.
    pub seconds_per_mb: f64,
    /// Hash of the program.
    pub build: String,
}

impl Matrix {
    /// The cells: repeat by repeat, place by place, policies beside each other.
    pub fn plan(&self) -> PolicyPlan {
        let mut cells = Vec::new();
        for repeat in 0..self.repeats {
            for data in &self.data {
                for mix in &self.mixes {
                    for arm in &self.arms {
                        cells.extend(self.cells_of(repeat, data, *mix, arm));
                    }
                }
            }
        }
        PolicyPlan { cells }
    }

    fn cells_of(&self, repeat: u64, data: &DataSet, mix: Mix, arm: &Arm) -> Vec<PolicyCell> {
        let cell = |preset| PolicyCell {
            data: data.clone(),
            bytes: self.bytes,
            mix,
            arm: arm.clone(),
            preset,
            repeat,
            hours: self.hours,
            // In 64ths: a cell is compared with what was read back of its file, digit by digit.
            expected_seconds: (self.bytes as f64 / 1e6 * self.seconds_per_mb * 64.0).round() / 64.0,
            build: self.build.clone(),
        };
        match arm.decides() {
            true => PRESETS.into_iter().map(|preset| cell(Some(preset))).collect(),
            false => vec![cell(None)],
        }
    }
}

impl RunPlan for PolicyPlan {
    type Cell = PolicyCell;
    const SMALLER: &'static str = "take fewer --mb";

    fn name(&self) -> String {
        "policies".to_owned()
    }

    fn scale(&self) -> Option<&str> {
        None
    }

    fn cells(&self) -> &[PolicyCell] {
        &self.cells
    }

    fn needed_bytes(&self, cell: &PolicyCell) -> u64 {
        cell.bytes * 4 + (64 << 20)
    }

    /// Whoever does the same reads the same.
    fn disagreements(entries: &Entries<PolicyCell>) -> Vec<String> {
        let results: Vec<&PolicyResult> = entries.measured().collect();
        let mut lines = Vec::new();
        for (index, result) in results.iter().enumerate() {
            let place = result.cell.place();
            let first = results.iter().take(index).find(|other| other.cell.place() == place);
            let Some(first) = first else { continue };
            let (own, other) = ((&result.checksum, result.rows), (&first.checksum, first.rows));
            if own != other {
                lines.push(format!(
                    "{} read other rows than {}: {own:?} and {other:?}",
                    result.cell.id(),
                    first.cell.id()
                ));
            }
        }
        lines
    }
}

/// A run with its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyRecord {
    /// The cells with what became of them.
    pub entries: Entries<PolicyCell>,
    /// What does not fit between them.
    pub disagreements: Vec<String>,
    /// How many were planned.
    pub planned: u64,
}

impl PolicyRecord {
    /// A run with what became of its cells.
    ///
    /// # Errors
    /// Nothing was measured.
    pub fn new(plan: &PolicyPlan, entries: Entries<PolicyCell>) -> Result<PolicyRecord, RunError> {
        if entries.measured().next().is_none() {
            let problems = entries.problems().join("; ");
            return Err(RunError::new(format!("no cell was measured: {problems}")));
        }
        let disagreements = PolicyPlan::disagreements(&entries);
        Ok(PolicyRecord { entries, disagreements, planned: plan.cells.len() as u64 })
    }
}
