//! The figures of a run, to be set beside those of another run.

use super::report::Row;
use super::{AmplificationRecord, QueryKind};
use crate::comparison::collect::{machine, subject};
use crate::comparison::results::ResultSet;
use crate::report::paired::Better;
use crate::statistics::verdicts::Scale;

/// All figures; there are no pairs and no controls.
pub fn results(record: &AmplificationRecord) -> ResultSet {
    let title = "read, write and space amplification".to_owned();
    let mut set = ResultSet { title, ..ResultSet::default() };
    for row in record.cells.iter().filter_map(Row::of) {
        let (result, measured) = (row.result, &row.measured);
        let (name, test) = (result.spec.engine.name(), result.spec.workload.name());
        set.machine = machine(&result.machine);
        let mut subject = subject(name, &result.engine_name, &result.spec);
        subject.without(&["workload", "rows"]);
        set.subject(subject);
        if let Some(moment) = result.started_unix_s {
            set.note_start(name, 0, moment);
        }
        let figures = [
            ("written by the process", Some(measured.write_process)),
            ("written to the device", measured.write_device),
            ("stored, settled", Some(measured.space_settled)),
            ("stored, at most", Some(measured.space_peak)),
            ("reads per point query, cold", row.cold_reads(QueryKind::Point)),
            ("reads per range, cold", row.cold_reads(QueryKind::Range)),
            ("reads per absent key, cold", row.cold_reads(QueryKind::Absent)),
        ];
        for (figure, value) in figures.into_iter().filter_map(|(name, v)| Some((name, v?))) {
            let scale = match figure.starts_with("reads") {
                true => Scale::Difference { resolution: 0.01 },
                false => Scale::Ratio,
            };
            set.add([name, test, figure], Better::Lower.by(scale), (0, value), false);
        }
    }
    set
}
