//! Figures over time: the middle of the repeats, second by second, and their range.

use crate::figure::{figure_or_dash, median};
use crate::grid::{Align, Grid, SECOND};
use crate::model::{Axis, Drawing, Line, Lines, Plot, Table, Unit};

/// Most places along a line, and rows of its table: more are averaged.
const STEPS_MAX: usize = 150;

/// Lines with a shaded range behind them; the ranges of more would hide the lines.
const RANGES_MAX: usize = 3;

/// The values of every second, repeat by repeat.
pub struct Course {
    /// The name of the series.
    pub name: String,
    /// One list per repeat.
    pub repeats: Vec<Vec<f64>>,
}

/// Figures over time; `None` without any second.
pub fn over_time(title: &str, y: &str, unit: Unit, courses: &[Course]) -> Option<Plot> {
    let seconds = |course: &Course| course.repeats.iter().map(Vec::len).min().unwrap_or(0);
    let longest = courses.iter().map(seconds).max().unwrap_or(0);
    let step = longest.div_ceil(STEPS_MAX).max(1);
    let mut lines = Vec::new();
    for (series, course) in courses.iter().enumerate() {
        let averaged = |repeat: &Vec<f64>| -> Vec<f64> {
            let whole = &repeat[..seconds(course)];
            whole.chunks(step).map(|part| part.iter().sum::<f64>() / part.len() as f64).collect()
        };
        let repeats: Vec<Vec<f64>> = course.repeats.iter().map(averaged).collect();
        lines.push(line(series, &repeats));
    }
    if longest == 0 {
        return None;
    }
    let several = courses.iter().any(|course| course.repeats.len() > 1);
    if courses.len() > RANGES_MAX {
        lines.iter_mut().for_each(|line| line.ranges.clear());
    }
    let mut about = match several {
        true if courses.len() > RANGES_MAX => "Medians over the repeats, second by second.",
        true => "Lines are medians over the repeats, second by second; shaded is their range.",
        false => "One run, second by second.",
    }
    .to_owned();
    if step > 1 {
        about.push_str(&format!(" Each place is the mean of {step} seconds."));
    }
    let names: Vec<String> = courses.iter().map(|course| course.name.clone()).collect();
    let grid = grid_over_time(&names, &lines, step);
    Some(Plot {
        title: title.to_owned(),
        about,
        series: names,
        drawing: Drawing::Lines(Lines {
            step_s: step as f64,
            y: Axis { name: y.to_owned(), unit },
            series: lines,
        }),
        table: Table::folded(format!("{title}: {y}"), grid),
    })
}

/// The median and the range of the repeats, step by step.
fn line(series: usize, repeats: &[Vec<f64>]) -> Line {
    let steps = repeats.iter().map(Vec::len).min().unwrap_or(0);
    let mut line = Line { series, ..Line::default() };
    for step in 0..steps {
        let mut values: Vec<f64> = repeats.iter().map(|repeat| repeat[step]).collect();
        values.sort_by(f64::total_cmp);
        line.values.extend(median(&values));
        if let [first, .., last] = values[..] {
            line.ranges.push((first, last));
        }
    }
    line
}

fn grid_over_time(names: &[String], lines: &[Line], step: usize) -> Grid {
    let mut columns = vec![(SECOND, Align::Right)];
    columns.extend(names.iter().map(|name| (name.as_str(), Align::Right)));
    let steps = lines.iter().map(|line| line.values.len()).max().unwrap_or(0);
    let row = |index: usize| {
        let values = lines.iter().map(|line| figure_or_dash(line.values.get(index).copied()));
        std::iter::once((index * step).to_string()).chain(values).collect()
    };
    Grid::new(&columns, (0..steps).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_become_a_line_with_a_range() {
        let course = |repeats: &[&[f64]]| Course {
            name: "an arm".to_owned(),
            repeats: repeats.iter().map(|values| values.to_vec()).collect(),
        };
        let plot = over_time("t", "y", Unit::Number, &[course(&[&[1.0, 5.0, 9.0], &[3.0, 5.0]])]);
        let plot = plot.expect("has seconds");
        let Drawing::Lines(lines) = &plot.drawing else { panic!("lines") };
        assert_eq!(lines.series[0].values, [2.0, 5.0], "the seconds that all repeats have");
        assert_eq!(lines.series[0].ranges, [(1.0, 3.0), (5.0, 5.0)]);
        assert_eq!(plot.table.texts(0), ["0", "2.00"]);
        assert!(over_time("t", "y", Unit::Number, &[course(&[&[]])]).is_none());
        let long = over_time("t", "y", Unit::Number, &[course(&[&[7.0; 400]])]).expect("seconds");
        assert_eq!(long.table.rows.len(), 134, "means of three seconds");
        assert!(long.about.contains("3 seconds"));
    }
}
