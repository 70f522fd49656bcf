//! What a plot shows, before it is drawn. Every plot carries the table of its figures.

use serde::{Deserialize, Serialize};

use super::Table;

/// A plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// How it is to be read, and what is to be seen.
    pub about: String,
    /// The names of the series, by their numbers; empty where marks have no series.
    pub series: Vec<String>,
    /// What is drawn.
    pub drawing: Drawing,
    /// The same as figures.
    pub table: Table,
}

impl Plot {
    /// Marks the point of a name, if this is a plot of points that has one.
    pub fn mark(&mut self, label: &str, note: &str) {
        let Drawing::Scatter(scatter) = &mut self.drawing else { return };
        let named = scatter.points.iter_mut().filter(|point| point.label == label);
        named.for_each(|point| point.note = note.to_owned());
    }
}

/// Kinds of plots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Drawing {
    /// Figures over time.
    Lines(Lines),
    /// Marks on a common axis, row by row.
    Rows(Rows),
    /// Figures over a number, with curves through them.
    Curves(Curves),
    /// One figure against another.
    Scatter(Scatter),
    /// Three figures around a centre.
    Triangle(Triangle),
}

/// What the numbers of an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Plain numbers.
    Number,
    /// Microseconds, shown as µs, ms or s.
    Microseconds,
    /// Seconds, shown as µs, ms or s.
    Seconds,
    /// Multiples of something.
    Times,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Name and unit.
    pub name: String,
    /// What its numbers are.
    pub unit: Unit,
}

/// Figures over time: x in seconds from 0, y from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// Seconds between two values.
    pub step_s: f64,
    /// The axis of the values.
    pub y: Axis,
    /// The values of each series, one per step.
    pub series: Vec<Line>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Number of the series.
    pub series: usize,
    /// The middle of the repeats, step by step.
    pub values: Vec<f64>,
    /// Their range, step by step; empty with one repeat.
    pub ranges: Vec<(f64, f64)>,
}

/// Figures over a number, both from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// The axis of the number.
    pub x: Axis,
    /// The axis of the figures.
    pub y: Axis,
    /// What is drawn, series by series.
    pub series: Vec<Curve>,
}

/// Measured points and the curve through them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Number of the series.
    pub series: usize,
    /// Measured: the number; value, least, most.
    pub points: Vec<(f64, [f64; 3])>,
    /// A smooth curve; points are joined by lines where there is none.
    pub fitted: Vec<(f64, f64)>,
    /// Where the curve is highest, when that is inside of the plot.
    pub peak: Option<(f64, f64)>,
}

/// Marks on a common axis, row by row, in groups. The axis is logarithmic, or begins at 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// The axis.
    pub x: Axis,
    /// Bars on an axis from 0, not marks on a logarithmic one.
    pub bars: bool,
    /// A line across all rows, for example at the ratio 1.
    pub reference: Option<f64>,
    /// What the row of a group is called only matters when rows have names.
    pub groups: Vec<Group>,
}

/// Rows under one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Their common name.
    pub name: String,
    /// The rows.
    pub rows: Vec<Row>,
}

/// How a mark is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Paint {
    /// As the series of that number.
    Series(usize),
    /// As something good.
    Good,
    /// As something bad.
    Bad,
    /// As something that is neither.
    Even,
    /// As something published.
    Published,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name; empty where series tell rows apart.
    pub name: String,
    /// How it is painted.
    pub paint: Paint,
    /// A grey band behind it: noise.
    pub band: Option<(f64, f64)>,
    /// A line from one value to another: an interval.
    pub span: Option<(f64, f64)>,
    /// Marks, from left to right full and hollow in turn.
    pub marks: Vec<f64>,
    /// A mark of another kind: what was published.
    pub published: Option<f64>,
    /// What stands behind it.
    pub note: String,
    /// What it says, in words.
    pub words: String,
}

/// One figure against another; less is better in both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scatter {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The points.
    pub points: Vec<Point>,
    /// The points of a series are joined by lines.
    pub joined: bool,
}

/// A point with what its repeats ranged over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Number of the series.
    pub series: usize,
    /// Horizontal: value, least, most.
    pub x: [f64; 3],
    /// Vertical: value, least, most.
    pub y: [f64; 3],
    /// What it is called where its series has several points; stands at the frontier only.
    pub label: String,
    /// Why it is marked: it has a ring, and these words behind its name. Empty for others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Scatter {
    /// The points that no other one beats in both figures, by their horizontal value.
    pub fn frontier(&self) -> Vec<&Point> {
        let mut points: Vec<&Point> = self.points.iter().collect();
        points.sort_by(|a, b| a.x[0].total_cmp(&b.x[0]).then(a.y[0].total_cmp(&b.y[0])));
        let mut lowest = f64::INFINITY;
        points.retain(|point| {
            let is_lower = point.y[0] < lowest;
            lowest = lowest.min(point.y[0]);
            is_lower
        });
        points
    }
}

/// Three figures around a centre; less is better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Triangle {
    /// The names of the three.
    pub corners: [String; 3],
    /// In which units; of the least of each figure where they are not given.
    pub units: Option<[f64; 3]>,
    /// A number of series with its three figures, all above 0.
    pub shapes: Vec<(usize, [f64; 3])>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frontier_holds_what_nothing_beats_in_both() {
        let axis = || Axis { name: String::new(), unit: Unit::Number };
        let point = |series, x, y| Point {
            series,
            x: [x; 3],
            y: [y; 3],
            label: String::new(),
            note: String::new(),
        };
        let points = vec![
            point(0, 3.0, 1.0),
            point(1, 1.0, 3.0),
            point(2, 2.0, 3.5),
            point(3, 2.0, 2.0),
            point(4, 3.0, 2.0),
        ];
        let scatter = Scatter { x: axis(), y: axis(), points, joined: false };
        let on: Vec<usize> = scatter.frontier().iter().map(|point| point.series).collect();
        assert_eq!(on, [1, 3, 0]);
    }
}
