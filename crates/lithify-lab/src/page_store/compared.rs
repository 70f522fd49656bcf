//! The figures of a run, to be set beside those of another run.

use super::PagesRecord;
use super::report::columns;
use crate::comparison::collect::{machine, subject};
use crate::comparison::results::ResultSet;
use crate::report::paired::Better;

/// All figures; there are no pairs and no controls.
pub fn results(record: &PagesRecord) -> ResultSet {
    let mut set = ResultSet {
        title: "pages with holes in files".to_owned(),
        machine: machine(&record.machine),
        ..ResultSet::default()
    };
    for cell in &record.cells {
        let (name, test) = (cell.layout.name(), cell.file_system.to_string());
        let Some(figures) = &cell.figures else { continue };
        let mut subject = subject(name, name, &record.spec);
        subject.without(&["file_systems", "layouts"]);
        set.subject(subject);
        for (figure, of) in columns() {
            let better = if *figure == "writes/s" { Better::Higher } else { Better::Lower };
            if let Some(value) = of(figures) {
                set.add([name, &test, figure], better, (cell.repeat, value), false);
            }
        }
    }
    set
}
