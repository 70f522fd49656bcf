//! The figures of a run of LinkBench, to be set beside those of another run.

use super::cell::Purpose;
use super::record::LinkBenchRecord;
use super::report::pairs;
use crate::comparison::collect::{machine, subject};
use crate::comparison::results::ResultSet;
use crate::linkbench::report::figures::Figures;

/// All figures of all arms.
pub fn results(record: &LinkBenchRecord) -> ResultSet {
    let figures = Figures::of(record);
    let plan = &record.plan;
    let mut set = ResultSet {
        title: format!("{} (scale {})", plan.experiment.title, plan.scale),
        ..ResultSet::default()
    };
    for arm in &plan.arms {
        let again = figures.control(arm);
        for result in figures.results(arm).iter().chain(&again) {
            set.measured_on(machine(&result.machine), result.file_system.is_some());
            set.subject(subject(arm, &result.engine_name, &result.spec));
            set.note_start(arm, result.spec.repeat, result.started_unix_s);
            let is_control = result.spec.purpose == Purpose::Control;
            for measure in pairs::measures(&figures, result) {
                let name = [arm.as_str(), measure.phase.name(), &measure.name];
                set.add(name, measure.reading, (result.spec.repeat, measure.value), is_control);
            }
        }
    }
    set
}
