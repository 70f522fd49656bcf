//! Read, write and space amplification as triangles.

use crate::figure::figure_or_dash;
use crate::grid::{Align, Grid};
use crate::model::{Block, Drawing, Plot, Table, Triangle};

/// Read, write and space per unit of work, in any units that all series share.
pub struct Amplification {
    /// Number of the series.
    pub series: usize,
    /// Written, read, stored.
    pub values: [Option<f64>; 3],
}

/// The triangle of amplification and its table; the table alone where a corner is missing, nothing
/// where all are.
pub fn amplification(
    title: &str,
    corners: [&str; 3],
    series: &[String],
    rows: &[Amplification],
) -> Option<Block> {
    if rows.iter().all(|row| row.values == [None; 3]) {
        return None;
    }
    let mut columns = vec![("of", Align::Left)];
    columns.extend(corners.iter().map(|corner| (*corner, Align::Right)));
    let cells = |row: &Amplification| {
        let values = row.values.map(figure_or_dash);
        std::iter::once(series[row.series].clone()).chain(values).collect()
    };
    let grid = Grid::new(&columns, rows.iter().map(cells).collect());
    let whole = |row: &Amplification| match row.values {
        [Some(write), Some(read), Some(space)] if write > 0.0 && read > 0.0 && space > 0.0 => {
            Some((row.series, [write, read, space]))
        }
        _ => None,
    };
    let shapes: Vec<(usize, [f64; 3])> = rows.iter().filter_map(whole).collect();
    if shapes.len() < 2 {
        return Some(Table::new(title, grid).into());
    }
    let plot = Plot {
        title: title.to_owned(),
        about:
            "Each corner in units of its least: 1× is the best of these, and a smaller triangle \
                is better. Rings are logarithmic."
                .to_owned(),
        series: series.to_vec(),
        drawing: Drawing::Triangle(Triangle {
            corners: corners.map(str::to_owned),
            units: None,
            shapes,
        }),
        table: Table::new(title, grid),
    };
    Some(plot.into())
}
