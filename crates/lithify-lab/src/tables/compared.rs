//! The figures of a run, to be set beside those of another run.

use super::figures::column_value;
use super::plan::TablePlan;
use crate::comparison::collect::{machine, subject};
use crate::comparison::results::{ResultSet, Subject};
use crate::experiment::tables::TableColumn;
use crate::report::paired::Better;
use crate::run::cells::Run;

/// All figures; there are no pairs and no controls.
pub fn results(run: &Run<TablePlan>) -> ResultSet {
    let title = format!("{} (scale {})", run.plan.experiment.title, run.plan.scale);
    let mut set = ResultSet { title, ..ResultSet::default() };
    for outcome in run.entries.results() {
        let cell = &outcome.cell;
        let name = format!("{} {}", cell.engine, cell.arm);
        set.measured_on(machine(&outcome.machine), outcome.file_system.is_some());
        let mut subject = subject(&name, &outcome.engine_name, cell);
        // The number of rows belongs to the table, the arm to the name.
        subject.without(&["rows", "table", "block_bytes"]);
        set.subject(Subject { arm: cell.arm.clone(), ..subject });
        set.note_start(&name, cell.repeat, outcome.started_unix_s);
        for column in TableColumn::MAIN {
            if let Some(value) = column_value(outcome, *column) {
                let test = format!("{}, {} rows", cell.table, cell.rows);
                let series = [name.as_str(), &test, column.name()];
                set.add(series, Better::Lower, (cell.repeat, value), false);
            }
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_cells_become_series() {
        let run = crate::tables::sample::run(&crate::tables::sample::small_plan());
        let set = results(&run);
        assert!(set.tests()[0].contains(" rows"), "{:?}", set.tests());
        assert_eq!(set.figures(set.tests()[0]).len(), TableColumn::MAIN.len());
    }
}
