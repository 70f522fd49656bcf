//! Figures over time: lines from 0, the range of the repeats behind them, names at their ends.

use super::scale::{Scale, tick};
use super::svg::{Anchor, Svg, class, dash, number, width_of};
use super::{Drawn, Size};
use crate::model::{Line, Lines, Paint, Plot, Unit};

/// Room above the plot for the name of the axis, and below it for ticks and the name of time.
const TOP: f64 = 26.0;
const BOTTOM: f64 = 38.0;
/// Least distance of two names at the ends of lines.
const NAME_APART: f64 = 15.0;

/// Draws lines.
pub(super) fn draw(lines: &Lines, plot: &Plot, size: Size) -> Drawn {
    let height = if size.is_wide() { 300.0 } else { 250.0 };
    let steps = lines.series.iter().map(|line| line.values.len()).max().unwrap_or(0);
    let last_s = (steps.saturating_sub(1)) as f64 * lines.step_s;
    let top = highest(lines);
    let vertical = Scale::linear([0.0, top], [height - BOTTOM, TOP]);
    let ticks = vertical.ticks(36.0);
    let widest = ticks.iter().map(|value| width_of(&tick(lines.y.unit, *value)));
    let left = widest.fold(0.0, f64::max) + 8.0;
    let names = plot.series.iter().map(|name| width_of(name)).fold(0.0, f64::max).min(220.0);
    let right = size.width() - if size.is_wide() { names + 22.0 } else { 10.0 };
    let horizontal = Scale::linear([0.0, last_s.max(lines.step_s)], [left, right]);
    let mut svg = Svg::default();
    svg.raw("<g aria-hidden=\"true\">");
    for value in &ticks {
        let y = vertical.place(*value);
        svg.line(if *value == 0.0 { "axis" } else { "grid" }, (left, y), (right, y));
        svg.text("", Anchor::End, (left - 8.0, y + 4.0), &tick(lines.y.unit, *value));
    }
    svg.text("", Anchor::Start, (0.0, 12.0), &lines.y.name);
    for second in horizontal.ticks(64.0) {
        let x = horizontal.place(second);
        svg.line("axis", (x, height - BOTTOM), (x, height - BOTTOM + 4.0));
        let text = if second == 0.0 { "0 s".to_owned() } else { tick(Unit::Number, second) };
        svg.text("", Anchor::Middle, (x, height - BOTTOM + 17.0), &text);
    }
    svg.text("", Anchor::End, (right, height - 4.0), "seconds since the start");
    for line in &lines.series {
        one(&mut svg, line, lines.step_s, &horizontal, &vertical);
    }
    if size.is_wide() {
        names_at_ends(&mut svg, lines, plot, right, &vertical);
    }
    svg.line("cursor", (left, TOP), (left, height - BOTTOM));
    svg.raw("</g>");
    let attributes = format!(
        " role=\"img\" tabindex=\"0\" data-table=\"TABLE\" data-lines=\"{} {} 0 {}\"",
        number(left),
        number(right),
        number(last_s.max(lines.step_s))
    );
    Drawn { height, attributes, marks: svg.finish() }
}

/// The top of the axis: the highest value, unless few seconds stand far above all others' ranges.
fn highest(lines: &Lines) -> f64 {
    let values = lines.series.iter().flat_map(|line| line.values.iter().copied());
    let ranges = lines.series.iter().flat_map(|line| line.ranges.iter().map(|range| range.1));
    let (value, range) = (values.fold(0.0, f64::max), ranges.fold(0.0, f64::max));
    let highest = value.max(range.min(value * 1.3));
    if highest > 0.0 { highest * 1.04 } else { 1.0 }
}

fn one(svg: &mut Svg, line: &Line, step_s: f64, horizontal: &Scale, vertical: &Scale) {
    let paint = Paint::Series(line.series);
    svg.raw(&format!("<g class=\"{}\">", class(paint)));
    let x = |index: usize| horizontal.place(index as f64 * step_s);
    let upper = line.ranges.iter().enumerate().map(|(i, range)| (x(i), vertical.place(range.1)));
    let lower = line.ranges.iter().enumerate().map(|(i, range)| (x(i), vertical.place(range.0)));
    let around: Vec<(f64, f64)> = upper.chain(lower.rev()).collect();
    svg.path("range", "", &around, true);
    let values = line.values.iter().enumerate();
    let places: Vec<(f64, f64)> = values.map(|(i, value)| (x(i), vertical.place(*value))).collect();
    svg.path("line", &dash(line.series), &places, false);
    if let Some(end) = places.last() {
        svg.shape(paint, *end, 3.5, true);
    }
    svg.raw("</g>");
}

/// The name of each line at the height of its end, moved apart where they would meet.
fn names_at_ends(svg: &mut Svg, lines: &Lines, plot: &Plot, right: f64, vertical: &Scale) {
    let end = |line: &Line| line.values.last().map(|value| vertical.place(*value));
    let mut ends: Vec<(f64, usize)> =
        lines.series.iter().filter_map(|line| Some((end(line)?, line.series))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lowest = vertical.place(0.0);
    for (place, (_, series)) in apart(&ends, lowest).iter().zip(&ends) {
        let Some(name) = plot.series.get(*series) else { continue };
        let class = class(Paint::Series(*series));
        svg.text(&class, Anchor::Start, (right + 10.0, place + 4.0), name);
    }
}

/// Ascending places moved apart, so that none is below `lowest`.
fn apart(ends: &[(f64, usize)], lowest: f64) -> Vec<f64> {
    let mut places: Vec<f64> = ends.iter().map(|(place, _)| *place).collect();
    for index in 1..places.len() {
        places[index] = places[index].max(places[index - 1] + NAME_APART);
    }
    let mut bound = lowest;
    for place in places.iter_mut().rev() {
        *place = place.min(bound);
        bound = *place - NAME_APART;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_moved_apart_and_stay_inside() {
        let ends = [(100.0, 0), (102.0, 1), (250.0, 2), (258.0, 3)];
        assert_eq!(apart(&ends, 262.0), [100.0, 115.0, 247.0, 262.0]);
        assert!(apart(&[], 262.0).is_empty());
    }
}
