//! Size against CPU, or any two figures of which less is better, with the Pareto frontier.

use crate::figure::Spread;
use crate::grid::{Align, Grid};
use crate::model::{Axis, Drawing, Plot, Point, Scatter, Table, Unit};

/// What an arm costs.
pub struct Cost {
    /// Number of the series.
    pub series: usize,
    /// Its name; empty where the series has no other point.
    pub label: String,
    /// What is drawn from left to right.
    pub size: Spread,
    /// What is drawn upwards.
    pub cpu: Spread,
}

/// A point for each series; `None` with fewer than two. `names` are the two figures with their
/// units.
pub fn of_series(
    title: &str,
    names: [&str; 2],
    series: &[String],
    points: &[(usize, Spread, Spread)],
) -> Option<Plot> {
    let cost = |(series, size, cpu): &(usize, Spread, Spread)| Cost {
        series: *series,
        label: String::new(),
        size: *size,
        cpu: *cpu,
    };
    of_arms(title, names, series, &points.iter().map(cost).collect::<Vec<_>>(), false)
}

/// The arms of each series; joined in their order where that means something. `None` with fewer
/// than two arms.
pub fn of_arms(
    title: &str,
    [size, cpu]: [&str; 2],
    series: &[String],
    costs: &[Cost],
    joined: bool,
) -> Option<Plot> {
    if costs.len() < 2 {
        return None;
    }
    let triple = |spread: &Spread| [spread.median, spread.min, spread.max];
    let point = |cost: &Cost| Point {
        series: cost.series,
        x: triple(&cost.size),
        y: triple(&cost.cpu),
        label: cost.label.clone(),
        note: String::new(),
    };
    let name = |number: usize, label: &str| match label {
        "" => series[number].clone(),
        label => label.to_owned(),
    };
    let axis = |name: &str| Axis { name: name.to_owned(), unit: Unit::Number };
    let points = costs.iter().map(point).collect();
    let scatter = Scatter { x: axis(size), y: axis(cpu), points, joined };
    let on: Vec<(usize, String)> =
        scatter.frontier().iter().map(|point| (point.series, point.label.clone())).collect();
    let names: Vec<String> = on.iter().map(|(number, label)| name(*number, label)).collect();
    let columns = [
        ("of", Align::Left),
        (size, Align::Right),
        (cpu, Align::Right),
        ("on the frontier", Align::Left),
    ];
    let row = |cost: &Cost| {
        let is_on = on.iter().any(|(series, label)| (*series, label) == (cost.series, &cost.label));
        let on = if is_on { "yes" } else { "no" };
        let name = name(cost.series, &cost.label);
        vec![name, cost.size.with_range(), cost.cpu.with_range(), on.to_owned()]
    };
    let grid = Grid::new(&columns, costs.iter().map(row).collect());
    let has_labels = costs.iter().any(|cost| !cost.label.is_empty());
    let lines = match (joined, has_labels) {
        (true, _) => {
            " Thin lines join what differs in one setting only; names stand at the frontier."
        }
        (false, true) => " Thin lines are the range of the repeats; names stand at the frontier.",
        (false, false) => " Thin lines are the range of the repeats.",
    };
    Some(Plot {
        title: title.to_owned(),
        about: format!(
            "Less is better in both.{lines} On the Pareto frontier (dashed), where nothing else is \
             better in both: {}. Axes need not begin at 0.",
            names.join(", ")
        ),
        series: series.to_vec(),
        drawing: Drawing::Scatter(scatter),
        table: Table::folded(title, grid),
    })
}
