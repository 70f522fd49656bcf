//! What engines wrote for what, by their own account beside that of the kernel: a table of the load
//! and one of the modes of updates, of the engines that count by cause.

use super::figures::{mode_log_bytes, mode_pages, mode_spread, results, spread};
use super::plan::TablePlan;
use super::report::arms;
use crate::adapter::EngineName;
use crate::datasets::TableData;
use crate::experiment::tables::{TableArm, TableColumn, UpdateMode};
use crate::report::figures::figure_or_dash;
use crate::report::tables::{Align, Grid};
use crate::run::cells::Run;

const LOAD: &str = "GB written by the load and its maintenance, by cause as the engine counts; \
                    load_other is what its process handed to write calls beyond them; files grew by \
                    load_extend; pages compressed in thousands";

const MODES: &str = "pages written per update by mode, second copies included, and bytes of log, as \
                     the engine counts";

/// The tables that have rows, each with its heading.
pub(crate) fn grids(run: &Run<TablePlan>, data: TableData) -> Vec<(&'static str, Grid)> {
    let grids = [(LOAD, load(run, data)), (MODES, modes(run, data))];
    grids.into_iter().filter(|(_, grid)| !grid.rows.is_empty()).collect()
}

/// A grid of the arms for which `figures` gives any figure, without the columns that none has.
fn grid(
    run: &Run<TablePlan>,
    headings: &[String],
    figures: impl Fn(&str, &EngineName) -> Vec<Option<f64>>,
) -> Grid {
    let rows: Vec<_> = arms(run)
        .into_iter()
        .map(|(engine, arm)| (engine, arm, figures(&arm.name, engine)))
        .filter(|(_, _, figures)| figures.iter().any(Option::is_some))
        .collect();
    let used: Vec<usize> = (0..headings.len())
        .filter(|column| rows.iter().any(|(_, _, figures)| figures[*column].is_some()))
        .collect();
    let mut columns = vec![("engine", Align::Left), ("arm", Align::Left)];
    columns.extend(used.iter().map(|column| (headings[*column].as_str(), Align::Right)));
    let row = |(engine, arm, figures): &(&EngineName, &TableArm, Vec<Option<f64>>)| {
        let names = [engine.to_string(), arm.name.clone()];
        names
            .into_iter()
            .chain(used.iter().map(|c| figure_or_dash(figures[*c])))
            .collect::<Vec<String>>()
    };
    Grid::new(&columns, rows.iter().map(row).collect())
}

fn load(run: &Run<TablePlan>, data: TableData) -> Grid {
    let headings: Vec<String> = TableColumn::BY_CAUSE.iter().map(TableColumn::to_string).collect();
    grid(run, &headings, |arm, engine| {
        let outcomes = results(run, data, engine, arm);
        let median = |column| spread(&outcomes, column).map(|spread| spread.median);
        TableColumn::BY_CAUSE.iter().copied().map(median).collect()
    })
}

fn modes(run: &Run<TablePlan>, data: TableData) -> Grid {
    let of_mode = |mode: UpdateMode| [mode.name().to_owned(), "log bytes".to_owned()];
    let headings: Vec<String> = UpdateMode::ALL.into_iter().flat_map(of_mode).collect();
    grid(run, &headings, |arm, engine| {
        let outcomes = results(run, data, engine, arm);
        let median = |mode, value| mode_spread(&outcomes, mode, value).map(|spread| spread.median);
        // Engines that count no pages tell the log in other tables already.
        let pages = |mode| [median(mode, mode_pages), median(mode, mode_log_bytes)];
        let figures: Vec<Option<f64>> = UpdateMode::ALL.into_iter().flat_map(pages).collect();
        match figures.iter().step_by(2).any(Option::is_some) {
            true => figures,
            false => vec![None; figures.len()],
        }
    })
}
