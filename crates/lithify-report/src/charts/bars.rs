//! Figures as bars from 0, and matrices of figures as shaded tables.

use crate::figure::{Spread, figure, figure_or_dash};
use crate::grid::{Align, Grid};
use crate::model::{Axis, Drawing, Group, Paint, Plot, Row, Rows, Table, Unit};

/// A figure as a bar.
pub struct Bar {
    /// Its group: an engine, a test.
    pub group: String,
    /// Its own name.
    pub name: String,
    /// Number of the series that it is painted as.
    pub series: usize,
    /// The figure over the repeats.
    pub value: Spread,
}

/// Bars in groups; `None` without any. `axis` is name and unit of the figures.
pub fn bars(
    title: &str,
    about: &str,
    [figure_name, axis]: [&str; 2],
    bars: &[Bar],
) -> Option<Plot> {
    let mut groups: Vec<Group> = Vec::new();
    for bar in bars {
        let value = figure(bar.value.median);
        let row = Row {
            name: bar.name.clone(),
            paint: Paint::Series(bar.series),
            band: None,
            span: (bar.value.min < bar.value.max).then_some((bar.value.min, bar.value.max)),
            marks: vec![bar.value.median],
            published: None,
            note: value,
            words: format!(
                "{}, {}\n{figure_name}: {}",
                bar.group,
                bar.name,
                bar.value.with_range()
            ),
        };
        match groups.iter_mut().find(|group| group.name == bar.group) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { name: bar.group.clone(), rows: vec![row] }),
        }
    }
    let columns = [("in", Align::Left), ("of", Align::Left), (axis, Align::Right)];
    let row = |bar: &Bar| vec![bar.group.clone(), bar.name.clone(), bar.value.with_range()];
    let grid = Grid::new(&columns, bars.iter().map(row).collect());
    (!groups.is_empty()).then(|| Plot {
        title: title.to_owned(),
        about: about.to_owned(),
        series: Vec::new(),
        drawing: Drawing::Rows(Rows {
            x: Axis { name: axis.to_owned(), unit: Unit::Number },
            bars: true,
            reference: None,
            groups,
        }),
        table: Table::folded(title, grid),
    })
}

/// A matrix of figures, the larger the deeper its shade, by their logarithms; `None` without any.
pub fn heat(
    caption: &str,
    corner: &str,
    [rows, columns]: [&[String]; 2],
    value: impl Fn(usize, usize) -> Option<f64>,
) -> Option<Table> {
    // What was not measured at all has no row and no column.
    let in_row = |row: &usize| (0..columns.len()).any(|column| value(*row, column).is_some());
    let in_column = |column: &usize| (0..rows.len()).any(|row| value(row, *column).is_some());
    let numbers: Vec<usize> = (0..rows.len()).filter(in_row).collect();
    let places: Vec<usize> = (0..columns.len()).filter(in_column).collect();
    let values: Vec<Vec<Option<f64>>> = numbers
        .iter()
        .map(|row| places.iter().map(|column| value(*row, *column)).collect())
        .collect();
    let all = || values.iter().flatten().flatten().copied().filter(|value| *value > 0.0);
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if values.is_empty() {
        return None;
    }
    let shade = |value: &Option<f64>| {
        let value = (*value)?;
        let share = match value > 0.0 && high > low {
            true => (value / low).ln() / (high / low).ln(),
            false => 0.0,
        };
        Some((100.0 * share).round() as u8)
    };
    let mut headings = vec![(corner, Align::Left)];
    headings.extend(places.iter().map(|column| (columns[*column].as_str(), Align::Right)));
    let cells = |(row, values): (&usize, &Vec<Option<f64>>)| {
        std::iter::once(rows[*row].clone())
            .chain(values.iter().map(|v| figure_or_dash(*v)))
            .collect()
    };
    let grid = Grid::new(&headings, numbers.iter().zip(&values).map(cells).collect());
    let shades = values.iter().map(|row| row.iter().map(shade).collect()).collect();
    Some(Table { shades, ..Table::new(caption, grid) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_shaded_by_logarithms() {
        let [rows, columns] = [["a", "b"], ["4", "64"]].map(|names| names.map(str::to_owned));
        let values = [[Some(1.0), Some(10.0)], [Some(100.0), None]];
        let table = heat("c", "codec", [&rows, &columns], |row, column| values[row][column]);
        let table = table.expect("has figures");
        assert_eq!(table.shades, [[Some(0), Some(50)], [Some(100), None]]);
        assert_eq!(table.texts(1), ["b", "100", "-"]);
        assert_eq!(heat("c", "codec", [&rows, &columns], |_, _| None), None);
        let few = heat("c", "codec", [&rows, &columns], |row, column| {
            (row == 1 && column == 0).then_some(2.0)
        });
        let few = few.expect("has a figure");
        assert_eq!((few.rows.len(), few.columns.len()), (1, 2), "what was measured alone");
        let even = heat("c", "codec", [&rows, &columns], |_, _| Some(3.0)).expect("has figures");
        assert_eq!(even.shades[1][1], Some(0), "equal figures have no shade");
    }

    #[test]
    fn bars_of_a_group_stay_together() {
        let bar = |group: &str, name: &str, value| Bar {
            group: group.to_owned(),
            name: name.to_owned(),
            series: 0,
            value: Spread::of(vec![value]).expect("a value"),
        };
        let all = [bar("x", "a", 1.0), bar("y", "a", 2.0), bar("x", "b", 0.0)];
        let plot = bars("t", "", ["load", "load, s"], &all).expect("has bars");
        let Drawing::Rows(rows) = &plot.drawing else { panic!("rows") };
        assert!(rows.bars);
        let sizes: Vec<usize> = rows.groups.iter().map(|group| group.rows.len()).collect();
        assert_eq!((sizes, plot.table.rows.len()), (vec![2, 1], 3));
        assert!(bars("t", "", ["load", "load, s"], &[]).is_none());
    }
}
