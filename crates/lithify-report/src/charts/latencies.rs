//! Percentiles by operation, and times of jobs by level, on logarithmic axes.

use crate::figure::{figure, figure_or_dash};
use crate::grid::{Align, Grid};
use crate::model::{Axis, Drawing, Group, Paint, Plot, Row, Rows, Table, Unit};

/// Latencies of an operation of a series: medians over the repeats, microseconds.
pub struct LatencyRow {
    /// The operation.
    pub operation: String,
    /// Number of the series.
    pub series: usize,
    /// 50th, 99th, 99.9th percentile, longest.
    pub us: [Option<f64>; 4],
}

/// Percentiles by operation; `None` without any.
pub fn latencies(title: &str, series: &[String], rows: &[LatencyRow]) -> Option<Plot> {
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let marks: Vec<f64> = row.us[..3].iter().flatten().copied().collect();
        let (Some(first), Some(last)) = (marks.first(), marks.last()) else { continue };
        let name = &series[row.series];
        let [p50, p99, p999, max] = row.us.map(figure_or_dash);
        let drawn = Row {
            name: String::new(),
            paint: Paint::Series(row.series),
            band: None,
            span: Some((*first, *last)),
            published: None,
            note: String::new(),
            words: format!(
                "{}, {name}\np50 {p50} µs, p99 {p99} µs, p99.9 {p999} µs, longest {max} µs",
                row.operation
            ),
            marks,
        };
        match groups.iter_mut().find(|group| group.name == row.operation) {
            Some(group) => group.rows.push(drawn),
            None => groups.push(Group { name: row.operation.clone(), rows: vec![drawn] }),
        }
    }
    let columns = [
        ("operation", Align::Left),
        ("of", Align::Left),
        ("p50 µs", Align::Right),
        ("p99 µs", Align::Right),
        ("p99.9 µs", Align::Right),
        ("longest µs", Align::Right),
    ];
    let cells = |row: &LatencyRow| {
        let mut cells = vec![row.operation.clone(), series[row.series].clone()];
        cells.extend(row.us.map(figure_or_dash));
        cells
    };
    let grid = Grid::new(&columns, rows.iter().map(cells).collect());
    (!groups.is_empty()).then(|| Plot {
        title: title.to_owned(),
        about: "From left to right: median (full), 99th percentile (hollow), 99.9th (full). \
                Medians over the repeats; the axis is logarithmic."
            .to_owned(),
        series: series.to_vec(),
        drawing: Drawing::Rows(Rows {
            x: Axis { name: "time per operation".to_owned(), unit: Unit::Microseconds },
            bars: false,
            reference: None,
            groups,
        }),
        table: Table::folded(title, grid),
    })
}

/// Wall seconds of a job of a series by level: level, series, value.
pub fn jobs(title: &str, series: &[String], times: &[(String, usize, f64)]) -> Option<Plot> {
    let mut groups: Vec<Group> = Vec::new();
    for (level, number, seconds) in times.iter().filter(|time| time.2 > 0.0) {
        let row = Row {
            name: String::new(),
            paint: Paint::Series(*number),
            band: None,
            span: None,
            marks: vec![*seconds],
            published: None,
            note: String::new(),
            words: format!("{level}, {}: {} s a job", series[*number], figure(*seconds)),
        };
        match groups.iter_mut().find(|group| group.name == *level) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { name: level.clone(), rows: vec![row] }),
        }
    }
    groups.sort_by_key(|group| depth(&group.name));
    let columns = [("level", Align::Left), ("of", Align::Left), ("wall s/job", Align::Right)];
    let row = |(level, number, seconds): &(String, usize, f64)| {
        vec![level.clone(), series[*number].clone(), figure(*seconds)]
    };
    let grid = Grid::new(&columns, times.iter().map(row).collect());
    (!groups.is_empty()).then(|| Plot {
        title: title.to_owned(),
        about: "Average wall time of a flush (L0) or of a compaction into the level. The axis is \
                logarithmic."
            .to_owned(),
        series: series.to_vec(),
        drawing: Drawing::Rows(Rows {
            x: Axis { name: "time per job".to_owned(), unit: Unit::Seconds },
            bars: false,
            reference: None,
            groups,
        }),
        table: Table::folded(title, grid),
    })
}

/// The place of a level from the top, by its number or its role.
fn depth(level: &str) -> u64 {
    match level {
        "base" => 1,
        "next" => 2,
        "deeper" => 3,
        number => number.trim_start_matches('L').parse().unwrap_or(u64::MAX),
    }
}
