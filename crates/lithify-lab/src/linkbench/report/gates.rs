//! The gates that decide whether a row may be called IO-bound, or cached.
//!
//! A scale says what it is meant to be; the counters of each cell say whether it was. A row that
//! fails a gate keeps its figures and is labelled, in the table and here. The thresholds are part
//! of the report.
//!
//! Pure: figures in, verdicts out.

use crate::experiment::Claim;
use crate::linkbench::cell::{CellResult, PhaseResult};
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::figures::{Figures, table_gb};
use crate::report::figures::figure;
use crate::report::tables::{Align, Grid};

/// Least device reads per operation of an IO-bound row.
const READS_PER_OPERATION_MIN: f64 = 0.3;
/// Least share of the bytes read that the device delivers, and not the page cache.
const DEVICE_SHARE_MIN: f64 = 0.5;
/// Least size of the database in units of the memory that it may use.
const DATABASE_TO_BUDGET_MIN: f64 = 4.0;
/// Largest part of the database that the page cache may hold.
const PAGE_CACHE_SHARE_MAX: f64 = 0.25;
/// The kernel charges in batches: a group's peak may lie that much above its limit.
const PEAK_TO_LIMIT_MAX: f64 = 1.02;
/// Device reads per operation of a cached row stay below this in the second half.
const CACHED_READS_MAX: f64 = 0.01;

/// What the counters of a cell say, `None` for what was not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Device reads of the process per operation.
    pub reads_per_operation: Option<f64>,
    /// The same over the second half.
    pub reads_per_operation_later: Option<f64>,
    /// Part of the bytes read that came from the device.
    pub device_share: Option<f64>,
    /// Stored bytes of the database when the load was settled.
    pub database_bytes: f64,
    /// What the engine might use, page cache included, bytes.
    pub budget_bytes: Option<f64>,
    /// Most that the group used, in units of its limit.
    pub peak_to_limit: Option<f64>,
    /// Page cache of the group at the end, bytes.
    pub page_cache_bytes: Option<f64>,
    /// Throughput of the last third within a tenth of the middle third's.
    pub steady: Option<bool>,
}

impl Evidence {
    /// From the counters of a cell and of one of its query phases.
    pub fn of(result: &CellResult, query: &PhaseResult) -> Evidence {
        let per_operation = |reads: f64, operations: u64| reads / operations.max(1) as f64;
        let group = query.group;
        let database = table_gb(&result.load).map(|gb| gb * 1e9);
        Evidence {
            reads_per_operation: query
                .usage
                .io()
                .device_reads()
                .map(|reads| per_operation(reads, query.operations)),
            reads_per_operation_later: query
                .second_half
                .and_then(|half| Some(per_operation(half.io.device_reads()?, half.operations))),
            device_share: query.usage.io().device_share(),
            database_bytes: database.unwrap_or(result.load.settle.directory.allocated_bytes as f64),
            budget_bytes: result.memory_limit.as_ref().map(|limit| limit.budget_bytes as f64),
            peak_to_limit: group
                .filter(|group| group.limit_bytes > 0)
                .map(|group| group.peak_bytes as f64 / group.limit_bytes as f64),
            page_cache_bytes: group.map(|group| group.page_cache_bytes as f64),
            steady: query.steady,
        }
    }
}

/// One condition with what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// What is asked for.
    pub name: &'static str,
    /// What was found, in words.
    pub found: String,
    /// Whether that is enough; what was not counted is not.
    pub passed: bool,
}

fn gate(name: &'static str, value: Option<f64>, enough: impl Fn(f64) -> bool) -> Gate {
    Gate {
        name,
        found: value.map_or_else(|| "not counted".to_owned(), figure),
        passed: value.is_some_and(enough),
    }
}

fn steady(evidence: &Evidence) -> Gate {
    let found = match evidence.steady {
        Some(true) => "yes",
        Some(false) => "no",
        None => "too short to say",
    };
    Gate {
        name: "throughput steady",
        found: found.to_owned(),
        passed: evidence.steady == Some(true),
    }
}

/// The gates of a claim, judged by the evidence.
pub fn judge(claim: Claim, evidence: &Evidence) -> Vec<Gate> {
    let later = evidence.reads_per_operation_later;
    match claim {
        Claim::IoBound => vec![
            gate("peak memory <= limit", evidence.peak_to_limit, |ratio| {
                ratio > 0.0 && ratio <= PEAK_TO_LIMIT_MAX
            }),
            gate(
                "database >= 4 budgets",
                evidence.budget_bytes.map(|budget| evidence.database_bytes / budget),
                |ratio| ratio >= DATABASE_TO_BUDGET_MIN,
            ),
            gate(
                "page cache <= 1/4 database",
                evidence.page_cache_bytes.map(|cache| cache / evidence.database_bytes),
                |share| share <= PAGE_CACHE_SHARE_MAX,
            ),
            gate("device reads >= 0.3 per op", evidence.reads_per_operation, |reads| {
                reads >= READS_PER_OPERATION_MIN
            }),
            gate("and in the second half", later, |reads| reads >= READS_PER_OPERATION_MIN),
            gate("device serves >= 1/2 of bytes", evidence.device_share, |share| {
                share >= DEVICE_SHARE_MIN
            }),
            steady(evidence),
        ],
        Claim::Cached => vec![
            gate("device reads < 0.01 per op in the second half", later, |reads| {
                reads < CACHED_READS_MAX
            }),
            steady(evidence),
        ],
    }
}

/// True when a query phase of a run is what its scale claims, or when that claims nothing.
pub fn passed(record: &LinkBenchRecord, result: &CellResult, query: &PhaseResult) -> bool {
    let gates = record.plan.claims().map(|claim| judge(claim, &Evidence::of(result, query)));
    gates.into_iter().flatten().all(|gate| gate.passed)
}

/// What is said behind the name of an arm of which a repeat failed a gate; nothing otherwise.
pub fn label(record: &LinkBenchRecord, results: &[&CellResult]) -> Option<String> {
    let claim = record.plan.claims()?;
    let failed = results.iter().filter(|result| !passed(record, result, &result.query)).count();
    (failed > 0).then(|| format!("NOT {}: {failed} of {} repeats", claim.name(), results.len()))
}

/// Every gate of every arm, repeat and number of clients; `None` when the scale claims nothing.
pub fn grid(record: &LinkBenchRecord, figures: &Figures<'_>) -> Option<Grid> {
    let claim = record.plan.claims()?;
    let mut rows = Vec::new();
    let mut columns = Vec::new();
    for arm in &record.plan.arms {
        let results = figures.results(arm).iter();
        for (result, (clients, query)) in
            results.flat_map(|result| result.queries().map(move |query| (result, query)))
        {
            let gates = judge(claim, &Evidence::of(result, query));
            let mut row: Vec<String> = gates
                .iter()
                .map(|gate| format!("{} {}", gate.found, if gate.passed { "pass" } else { "FAIL" }))
                .collect();
            let passed = gates.iter().all(|gate| gate.passed);
            row.push(if passed {
                claim.name().to_owned()
            } else {
                format!("NOT {}", claim.name())
            });
            row.push(match result.sweep.is_empty() {
                true => result.spec.id.clone(),
                false => format!("{}, {clients} clients", result.spec.id),
            });
            rows.push(row);
            columns = gates.iter().map(|gate| (gate.name, Align::Right)).collect();
        }
    }
    if rows.is_empty() {
        return None;
    }
    columns.extend([("verdict", Align::Left), ("cell", Align::Left)]);
    Some(Grid::new(&columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io_bound() -> Evidence {
        Evidence {
            reads_per_operation: Some(1.0),
            reads_per_operation_later: Some(0.9),
            device_share: Some(0.8),
            database_bytes: 660e6,
            budget_bytes: Some(128e6),
            peak_to_limit: Some(1.0),
            page_cache_bytes: Some(60e6),
            steady: Some(true),
        }
    }

    fn failed(claim: Claim, evidence: Evidence) -> Vec<&'static str> {
        judge(claim, &evidence).iter().filter(|gate| !gate.passed).map(|gate| gate.name).collect()
    }

    #[test]
    fn each_gate_of_an_io_bound_row_both_ways() {
        assert!(failed(Claim::IoBound, io_bound()).is_empty());
        let threshold = Evidence {
            reads_per_operation: Some(0.3),
            reads_per_operation_later: Some(0.3),
            device_share: Some(0.5),
            database_bytes: 400.0,
            budget_bytes: Some(100.0),
            peak_to_limit: Some(1.02),
            page_cache_bytes: Some(100.0),
            steady: Some(true),
        };
        assert!(failed(Claim::IoBound, threshold).is_empty());
        type Change = fn(&mut Evidence);
        let cases: [(&str, Change); 13] = [
            ("peak memory <= limit", |e| e.peak_to_limit = Some(1.03)),
            ("peak memory <= limit", |e| e.peak_to_limit = Some(0.0)),
            ("peak memory <= limit", |e| e.peak_to_limit = None),
            ("database >= 4 budgets", |e| e.budget_bytes = Some(200e6)),
            ("database >= 4 budgets", |e| e.budget_bytes = None),
            ("page cache <= 1/4 database", |e| e.page_cache_bytes = Some(170e6)),
            ("page cache <= 1/4 database", |e| e.page_cache_bytes = None),
            ("device reads >= 0.3 per op", |e| e.reads_per_operation = Some(0.29)),
            ("device reads >= 0.3 per op", |e| e.reads_per_operation = None),
            ("and in the second half", |e| e.reads_per_operation_later = Some(0.29)),
            ("device serves >= 1/2 of bytes", |e| e.device_share = Some(0.49)),
            ("throughput steady", |e| e.steady = Some(false)),
            ("throughput steady", |e| e.steady = None),
        ];
        for (name, change) in cases {
            let mut evidence = io_bound();
            change(&mut evidence);
            assert_eq!(failed(Claim::IoBound, evidence), [name], "{evidence:?}");
        }
    }

    #[test]
    fn a_cached_row_hardly_reads() {
        let cached = Evidence { reads_per_operation_later: Some(0.009), ..io_bound() };
        assert!(failed(Claim::Cached, cached).is_empty());
        assert_eq!(failed(Claim::Cached, io_bound()).len(), 1);
        let unknown = Evidence { reads_per_operation_later: None, ..cached };
        assert_eq!(failed(Claim::Cached, unknown).len(), 1);
        assert_eq!(judge(Claim::Cached, &unknown)[0].found, "not counted");
    }
}
