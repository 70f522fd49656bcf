//! The figures of a run, to be set beside those of another run.

use super::PolicyRecord;
use super::prices::{Bill, PRESETS};
use crate::comparison::collect::{machine, subject};
use crate::comparison::results::ResultSet;
use crate::report::paired::Better;

/// Costs of every cell under every preset that it was measured for.
pub fn results(record: &PolicyRecord) -> ResultSet {
    let mut set = ResultSet { title: "policies of compression".to_owned(), ..ResultSet::default() };
    for result in record.entries.results() {
        let cell = &result.cell;
        set.machine = machine(&result.machine);
        let mut subject = subject(&cell.arm.name, &cell.arm.name, &cell.arm.options);
        subject.without(&[]);
        set.subject(subject);
        for preset in PRESETS {
            if cell.preset.is_none_or(|own| own == preset) {
                let cost = Bill::of(result, &preset.prices()).total();
                let place = format!("{} {}", cell.place(), preset.name());
                set.add(
                    [&cell.arm.name, &place, "cost"],
                    Better::Lower,
                    (cell.repeat, cost),
                    false,
                );
            }
        }
    }
    set
}
