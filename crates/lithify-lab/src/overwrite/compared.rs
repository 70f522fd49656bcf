//! The figures of overwrites, to be set beside those of another run.

use super::{OverwriteRecord, figures};
use crate::comparison::collect::{machine, subject};
use crate::comparison::results::ResultSet;

/// All figures.
pub fn results(record: &OverwriteRecord) -> ResultSet {
    let result = record.result.as_ref().unwrap_or(&record.driver);
    let spec = &result.spec;
    let name = format!("{} {}", spec.engine, spec.settings.ladder().file_name());
    let mut set = ResultSet {
        title: format!("overwrites on {}", result.engine_name),
        machine: machine(&result.machine),
        subjects: vec![subject(&name, &result.engine_name, spec)],
        ..ResultSet::default()
    };
    if let Some(moment) = result.started_unix_s {
        set.note_start(&name, 0, moment);
    }
    for figure in figures::of(result, &record.driver) {
        set.add([&name, "overwrite", figure.name], figure.reading, (0, figure.value), false);
    }
    set
}
