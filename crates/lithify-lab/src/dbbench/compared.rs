//! The figures of loops, to be set beside those of another run.

use super::figures::{METRICS, measured};
use super::plan::DbRecord;
use super::spec::{DbResult, Role};
use crate::comparison::collect::{machine, subject};
use crate::comparison::results::ResultSet;

/// Adds every figure of every step of one result.
pub(crate) fn add_steps(
    set: &mut ResultSet,
    name: &str,
    result: &DbResult,
    driver: Option<&DbResult>,
    test: impl Fn(usize, &str) -> String,
) {
    set.machine = machine(&result.machine);
    set.subject(subject(name, &result.engine_name, &result.cell.spec));
    set.note_start(name, result.cell.repeat, result.started_unix_s);
    let is_control = result.cell.role == Role::Control;
    for (index, measured) in measured(result, driver).enumerate() {
        let test = test(index, &measured.step.spec.to_string());
        for metric in &METRICS {
            if let Some(value) = (metric.value)(&measured) {
                let figure = [name, &test, &metric.heading()];
                set.add(figure, metric.reading(), (result.cell.repeat, value), is_control);
            }
        }
    }
}

/// All figures of all steps.
pub fn results(record: &DbRecord) -> ResultSet {
    let mut set = ResultSet { title: record.plan.name.clone(), ..ResultSet::default() };
    let stored = record.results().filter(|result| result.cell.role != Role::Driver);
    for result in stored {
        let spec = &result.cell.spec;
        let subject = format!("{} {}", spec.engine, spec.settings.ladder().file_name());
        let test = |index: usize, step: &str| format!("{}. {step}", index + 1);
        add_steps(&mut set, &subject, result, record.driver(), test);
    }
    set
}
