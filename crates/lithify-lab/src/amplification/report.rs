//! Predicted beside measured amplification: tables for people, CSV.

use lithify_report::csv::Columns;

use super::formulas::{
    FILL_RANDOM, Step, btree_rows_per_page_write, btree_space, btree_write, leveled_absent,
    leveled_space, leveled_steps, leveled_write,
};
use super::{AmplificationCell, AmplificationRecord, AmplificationResult, QueryCost, QueryKind};
use crate::adapter::EngineStatistics;
use crate::meter::process::ProcessIo;
use crate::report::figures::{figure, figure_or_dash};
use crate::report::tables::{Align, Grid};

/// Page of an engine that does not follow the settings' size of a block, bytes.
const PAGE_BYTES: f64 = 4096.0;

/// What kind of tree an engine turned out to have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    /// Levels: what the data of each compress to, level 0 first.
    Leveled { compressed: Vec<f64>, fanout: f64 },
    /// Pages that are overwritten or copied.
    Pages { page_bytes: f64 },
}

impl Tree {
    fn of(result: &AmplificationResult) -> Tree {
        let settings = &result.spec.settings;
        let levels = &result.statistics.levels;
        let full = levels.iter().filter(|level| level.raw_bytes > 0);
        let ratios: Vec<(u32, f64)> = full
            .map(|level| (level.level, level.stored_bytes as f64 / level.raw_bytes as f64))
            .collect();
        let Some((top, first)) = ratios.first().copied() else {
            let page_bytes = match result.capabilities.block_size {
                true => settings.block_bytes as f64,
                false => PAGE_BYTES,
            };
            return Tree::Pages { page_bytes };
        };
        // Flushes go into level 0 although nothing is left there: like the level below it.
        let flushed = (top > 0).then_some(first);
        let compressed = flushed.into_iter().chain(ratios.iter().map(|(_, ratio)| *ratio));
        Tree::Leveled { compressed: compressed.collect(), fanout: settings.fanout as f64 }
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Tree::Leveled { compressed, fanout } => {
                format!("levels {}, T {}", compressed.len(), figure(*fanout))
            }
            Tree::Pages { page_bytes } => format!("pages {} KiB", figure(page_bytes / 1024.0)),
        }
    }
}

/// What the formulas say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Predicted {
    /// Bytes written per byte: full levels, or a page for each row.
    pub write: f64,
    /// Levels that are rarely full; `None` for pages.
    pub write_in_practice: Option<f64>,
    /// Bytes of the directory per byte of live rows.
    pub space: f64,
    /// Reads of the device per query, cache for all but the lowest blocks: point, range, absent.
    pub reads: [f64; 3],
}

impl Predicted {
    fn of(tree: &Tree, row_bytes: f64) -> Predicted {
        match tree {
            Tree::Leveled { compressed, fanout } => {
                let write = |is_practice| {
                    let steps: Vec<Step> = leveled_steps(compressed, *fanout, is_practice);
                    leveled_write(&steps)
                };
                let levels = compressed.len().saturating_sub(1);
                let lowest = compressed.last().copied().unwrap_or(1.0);
                Predicted {
                    write: write(false),
                    write_in_practice: Some(write(true)),
                    space: leveled_space(levels, *fanout) * lowest,
                    reads: [1.0, 1.0, leveled_absent(compressed.len())],
                }
            }
            Tree::Pages { page_bytes } => Predicted {
                write: btree_write(row_bytes, *page_bytes, 1.0, 1.0),
                write_in_practice: None,
                space: btree_space(FILL_RANDOM, row_bytes, 0.0),
                reads: [1.0, 1.0, 1.0],
            },
        }
    }
}

/// What was measured, per byte of users' rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    /// Bytes of a row, on average.
    pub row_bytes: f64,
    /// Tables or pages, by the engine's account.
    pub write_tables: Option<f64>,
    /// The log too.
    pub write_with_log: Option<f64>,
    /// What the process handed to the system. Not what it made dirty: where nobody syncs, the page cache
    /// takes a page's later versions and a log's whole life, and neither reaches the device.
    pub write_process: f64,
    /// What reached the device.
    pub write_device: Option<f64>,
    /// The directory when nothing is due.
    pub space_settled: f64,
    /// The directory at most.
    pub space_peak: f64,
}

impl Measured {
    fn of(result: &AmplificationResult) -> Measured {
        let user_bytes = result.user_bytes.max(1) as f64;
        let booked = |is_counted: fn(&str) -> bool| {
            let sum = |statistics: &EngineStatistics| -> u64 {
                let causes = statistics.written_bytes_by_cause.iter();
                causes.filter(|(cause, _)| is_counted(cause)).map(|(_, bytes)| bytes).sum()
            };
            let (before, after) = (sum(&result.statistics_before), sum(&result.statistics));
            (after > 0).then(|| after.saturating_sub(before) as f64 / user_bytes)
        };
        let phases = [&result.usage, &result.settle];
        let process: u64 = phases.iter().map(|usage| handed_over(&usage.process_io)).sum();
        let device = phases.iter().map(|usage| usage.device.map(|device| device.written_bytes));
        let device: Option<u64> = device.sum();
        let live_bytes = result.live_bytes.max(1) as f64;
        Measured {
            row_bytes: user_bytes / result.changes.max(1) as f64,
            write_tables: booked(|cause| !cause.starts_with("wal")),
            write_with_log: booked(|_| true),
            write_process: process as f64 / user_bytes,
            write_device: device.map(|bytes| bytes as f64 / user_bytes),
            space_settled: result.settle.directory.allocated_bytes as f64 / live_bytes,
            space_peak: result.directory_peak_bytes as f64 / live_bytes,
        }
    }
}

/// Bytes of write calls, or of pages made dirty where that is more: by a memory map.
fn handed_over(io: &ProcessIo) -> u64 {
    io.written_syscall_bytes.max(io.written_device_bytes)
}

/// A cell with what is predicted and measured of it.
pub(crate) struct Row<'a> {
    /// What was found.
    pub result: &'a AmplificationResult,
    /// What kind of tree it is of.
    pub tree: Tree,
    /// What the formulas say.
    pub predicted: Predicted,
    /// What came out.
    pub measured: Measured,
}

impl<'a> Row<'a> {
    /// Of a cell; `None` for one that failed.
    pub(crate) fn of(cell: &'a AmplificationCell) -> Option<Row<'a>> {
        let result = cell.result.as_ref()?;
        let (tree, measured) = (Tree::of(result), Measured::of(result));
        let predicted = Predicted::of(&tree, measured.row_bytes);
        Some(Row { result, tree, predicted, measured })
    }

    fn name(&self) -> [String; 2] {
        let workload = self.result.spec.workload.name().to_owned();
        [workload, self.result.engine_name.clone()]
    }

    fn query(&self, kind: QueryKind, cold: bool) -> Option<&QueryCost> {
        self.result.queries.iter().find(|cost| cost.kind == kind && cost.cold == cold)
    }

    /// Reads of the device per query of a kind, with nothing in any cache before.
    pub(crate) fn cold_reads(&self, kind: QueryKind) -> Option<f64> {
        let cost = self.query(kind, true)?;
        Some(cost.device_reads? / cost.queries.max(1) as f64)
    }
}

pub(crate) fn write_table(rows: &[Row<'_>]) -> Grid {
    let columns = [
        ("workload", Align::Left),
        ("engine", Align::Left),
        ("tree", Align::Left),
        ("R", Align::Right),
        ("theory", Align::Right),
        ("practice", Align::Right),
        ("tables", Align::Right),
        ("with log", Align::Right),
        ("process", Align::Right),
        ("device", Align::Right),
        ("process/theory", Align::Right),
        ("rows/page", Align::Right),
    ];
    let row = |row: &Row<'_>| {
        let (predicted, measured) = (&row.predicted, &row.measured);
        let rows_per_page = match row.tree {
            Tree::Pages { page_bytes } => {
                btree_rows_per_page_write(measured.row_bytes, page_bytes, measured.write_process)
            }
            Tree::Leveled { .. } => None,
        };
        let mut cells = row.name().to_vec();
        cells.extend([
            row.tree.describe(),
            figure(measured.row_bytes),
            figure(predicted.write),
            figure_or_dash(predicted.write_in_practice),
            figure_or_dash(measured.write_tables),
            figure_or_dash(measured.write_with_log),
            figure(measured.write_process),
            figure_or_dash(measured.write_device),
            figure(measured.write_process / predicted.write),
            figure_or_dash(rows_per_page),
        ]);
        cells
    };
    Grid::new(&columns, rows.iter().map(row).collect())
}

pub(crate) fn space_table(rows: &[Row<'_>]) -> Grid {
    let columns = [
        ("workload", Align::Left),
        ("engine", Align::Left),
        ("live MB", Align::Right),
        ("predicted", Align::Right),
        ("settled", Align::Right),
        ("peak", Align::Right),
        ("settled/predicted", Align::Right),
    ];
    let row = |row: &Row<'_>| {
        let (predicted, measured) = (&row.predicted, &row.measured);
        let mut cells = row.name().to_vec();
        cells.extend([
            figure(row.result.live_bytes as f64 / 1e6),
            figure(predicted.space),
            figure(measured.space_settled),
            figure(measured.space_peak),
            figure(measured.space_settled / predicted.space),
        ]);
        cells
    };
    Grid::new(&columns, rows.iter().map(row).collect())
}

pub(crate) fn read_table(rows: &[Row<'_>]) -> Grid {
    let columns = [
        ("workload", Align::Left),
        ("engine", Align::Left),
        ("query", Align::Left),
        ("rows", Align::Right),
        ("predicted", Align::Right),
        ("cold reads", Align::Right),
        ("cold KB", Align::Right),
        ("warm reads", Align::Right),
        ("warm KB", Align::Right),
        ("warm cpu_us", Align::Right),
    ];
    let mut lines = Vec::new();
    for row in rows {
        for (kind, predicted) in QueryKind::ALL.into_iter().zip(row.predicted.reads) {
            let of = |cold, value: fn(&QueryCost) -> Option<f64>| {
                let cost = row.query(kind, cold);
                figure_or_dash(cost.and_then(|cost| Some(value(cost)? / cost.queries as f64)))
            };
            let reads: fn(&QueryCost) -> Option<f64> = |cost| cost.device_reads;
            let kb: fn(&QueryCost) -> Option<f64> = |cost| Some(cost.device_bytes as f64 / 1024.0);
            let mut cells = row.name().to_vec();
            cells.extend([
                kind.name().to_owned(),
                of(true, |cost| Some(cost.rows as f64)),
                figure(predicted),
                of(true, reads),
                of(true, kb),
                of(false, reads),
                of(false, kb),
                of(false, |cost| Some(cost.cpu_us as f64)),
            ]);
            lines.push(cells);
        }
    }
    Grid::new(&columns, lines)
}

type OfQuery = fn(&QueryCost) -> Option<f64>;

/// What a query costs, with the end of its columns' names.
const QUERY_FIGURES: [(&str, OfQuery); 3] = [
    ("reads", |cost| cost.device_reads),
    ("bytes", |cost| Some(cost.device_bytes as f64)),
    ("cpu_us", |cost| Some(cost.cpu_us as f64)),
];

/// One line per cell, nothing rounded.
pub fn csv(record: &AmplificationRecord) -> String {
    let mut columns = Columns::new()
        .with("workload", |row: &Row<'_>| row.result.spec.workload.name())
        .with("engine", |row| row.result.spec.engine.name().to_owned())
        .with("changes", |row| row.result.changes)
        .with("user_bytes", |row| row.result.user_bytes)
        .with("live_bytes", |row| row.result.live_bytes)
        .with("w_predicted", |row| row.predicted.write)
        .with("w_practice", |row| row.predicted.write_in_practice)
        .with("w_amp_flush", |row| row.measured.write_tables)
        .with("w_amp_wal", |row| row.measured.write_with_log)
        .with("w_amp_process", |row| row.measured.write_process)
        .with("w_amp_dev", |row| row.measured.write_device)
        .with("s_predicted", |row| row.predicted.space)
        .with("s_amp", |row| row.measured.space_settled)
        .with("s_amp_peak", |row| row.measured.space_peak);
    for kind in QueryKind::ALL {
        for (state, is_cold) in [("cold", true), ("warm", false)] {
            for (name, figure) in QUERY_FIGURES {
                columns = columns.with(format!("{}_{state}_{name}", kind.name()), move |row| {
                    let cost = row.query(kind, is_cold)?;
                    Some(figure(cost)? / cost.queries as f64)
                });
            }
        }
    }
    let rows: Vec<Row<'_>> = record.cells.iter().filter_map(Row::of).collect();
    columns.csv(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_take_what_was_measured() {
        let leveled = Tree::Leveled { compressed: vec![1.0, 1.0, 0.5], fanout: 8.0 };
        let predicted = Predicted::of(&leveled, 420.0);
        assert_eq!(predicted.write, 1.0 + 1.0 + 1.0 + 4.0);
        assert_eq!(predicted.write_in_practice, Some(1.0 + 1.0 + 1.0 + 0.5 * (8.0 * 0.7)));
        assert_eq!(predicted.space, (1.0 + 1.0 / 8.0) * 0.5);
        assert!((predicted.reads[2] - 0.03).abs() < 1e-12);
        let pages = Tree::Pages { page_bytes: 4096.0 };
        let predicted = Predicted::of(&pages, 128.0);
        assert_eq!((predicted.write, predicted.write_in_practice), (33.0, None));
        assert_eq!((predicted.space, predicted.reads), (1.5, [1.0, 1.0, 1.0]));
        assert_eq!(pages.describe(), "pages 4.00 KiB");
        assert_eq!(leveled.describe(), "levels 3, T 8.00");
    }
}
