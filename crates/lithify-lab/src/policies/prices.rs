//! Prices, and what a measured cell costs at them.

use serde::{Deserialize, Serialize};

use super::PolicyResult;

/// Hours of a month, as storage is sold.
const HOURS_PER_MONTH: f64 = 730.0;

/// Usual prices by name; those of the engine's objectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// A CPU of a cloud's list price, a bought flash disk.
    Balanced,
    /// CPU at ten times that.
    Throughput,
    /// Writes at ten times that.
    Endurance,
    /// A rented disk.
    Space,
}

/// All presets.
pub const PRESETS: [Preset; 4] =
    [Preset::Balanced, Preset::Throughput, Preset::Endurance, Preset::Space];

/// Millionths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Of a second of CPU.
    pub cpu_second: f64,
    /// Of a GB written.
    pub gb_written: f64,
    /// Of a GB stored for a month.
    pub gb_month: f64,
    /// Of a million reads of the device.
    pub million_reads: f64,
}

impl Preset {
    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Balanced => "balanced",
            Preset::Throughput => "throughput",
            Preset::Endurance => "endurance",
            Preset::Space => "space",
        }
    }

    /// What it stands for.
    pub fn prices(self) -> Prices {
        let balanced =
            Prices { cpu_second: 11.0, gb_written: 150.0, gb_month: 3_300.0, million_reads: 5.0 };
        match self {
            Preset::Balanced => balanced,
            Preset::Throughput => Prices { cpu_second: 110.0, ..balanced },
            Preset::Endurance => Prices { gb_written: 1_500.0, ..balanced },
            Preset::Space => Prices { gb_month: 80_000.0, million_reads: 1_900.0, ..balanced },
        }
    }
}

impl Prices {
    /// The engine's text of these prices, where a second of its clock stands for `factor` seconds and
    /// nothing lives longer than `horizon_s`. Memory has no price here: it is not among the costs.
    pub fn scaled(&self, factor: f64, horizon_s: f64) -> String {
        format!(
            "cpu={},write={},month={:.0},read={},memory=0,horizon_s={:.0}",
            self.cpu_second,
            self.gb_written,
            self.gb_month * factor,
            self.million_reads,
            horizon_s.ceil().max(1.0)
        )
    }
}

/// What a cell costs, by what it is paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bill {
    /// CPU.
    pub cpu: f64,
    /// Bytes written.
    pub written: f64,
    /// Bytes stored, for the hours that phases stand for.
    pub stored: f64,
    /// Reads of the device.
    pub reads: f64,
}

impl Bill {
    /// What a result costs at prices.
    pub fn of(result: &PolicyResult, prices: &Prices) -> Bill {
        let mut bill = Bill::default();
        for (phase, hours) in result.phases.iter().zip(result.cell.hours) {
            bill.cpu += phase.cpu_s * prices.cpu_second;
            bill.written += phase.written_bytes as f64 / 1e9 * prices.gb_written;
            bill.stored += phase.stored_bytes / 1e9 * prices.gb_month * hours / HOURS_PER_MONTH;
            bill.reads += phase.device_reads / 1e6 * prices.million_reads;
        }
        bill
    }

    /// All of it.
    pub fn total(&self) -> f64 {
        self.cpu + self.written + self.stored + self.reads
    }
}
