//! One figure against another, with the frontier of what nothing beats in both.

use super::scale::{Scale, tick};
use super::svg::{Anchor, Svg, class, dash, width_of};
use super::{Drawn, Size, open_mark};
use crate::figure::figure;
use crate::model::{Axis, Paint, Plot, Point, Scatter};

const TOP: f64 = 26.0;
const BOTTOM: f64 = 42.0;
/// Height of a name, and its distance from its mark.
const NAME_HEIGHT: f64 = 15.0;
const NAME_OFF: f64 = 10.0;

/// Around what is marked.
const RING_RADIUS: f64 = 9.5;
const RING_ROOM: f64 = 4.0;

/// A rectangle that is taken: left, top, right, bottom.
type Place = [f64; 4];

/// Draws points.
pub(super) fn draw(scatter: &Scatter, plot: &Plot, size: Size) -> Drawn {
    let height = if size.is_wide() { 380.0 } else { 320.0 };
    let vertical = Scale::linear(domain(&scatter.points, |p| p.y), [height - BOTTOM, TOP]);
    let ticks = vertical.ticks(46.0);
    let widest = ticks.iter().map(|value| width_of(&tick(scatter.y.unit, *value)));
    let left = widest.fold(0.0, f64::max) + 8.0;
    let right = size.width() - 12.0;
    let horizontal = Scale::linear(domain(&scatter.points, |p| p.x), [left, right]);
    let mut svg = Svg::default();
    svg.raw("<g aria-hidden=\"true\">");
    for value in &ticks {
        let y = vertical.place(*value);
        svg.line("grid", (left, y), (right, y));
        svg.text("", Anchor::End, (left - 8.0, y + 4.0), &tick(scatter.y.unit, *value));
    }
    for value in horizontal.ticks(72.0) {
        let x = horizontal.place(value);
        svg.line("grid", (x, TOP), (x, height - BOTTOM));
        let at = (x, height - BOTTOM + 17.0);
        svg.text("", Anchor::Middle, at, &tick(scatter.x.unit, value));
    }
    svg.text("", Anchor::Start, (0.0, 12.0), &scatter.y.name);
    svg.text("", Anchor::End, (right, height - 5.0), &scatter.x.name);
    let at = |point: &Point| (horizontal.place(point.x[0]), vertical.place(point.y[0]));
    let steps = frontier(scatter, &at, [TOP, right]);
    svg.path("frontier", "", &steps, false);
    svg.raw("</g>");
    let mut taken: Vec<Place> = scatter.points.iter().map(|point| around(at(point))).collect();
    taken.extend(steps.windows(2).map(|pair| along(pair[0], pair[1])));
    for point in &scatter.points {
        let (x, y) = at(point);
        let [least_x, most_x] = [1, 2].map(|end| horizontal.place(point.x[end]));
        let [least_y, most_y] = [1, 2].map(|end| vertical.place(point.y[end]));
        taken.extend([along((least_x, y), (most_x, y)), along((x, least_y), (x, most_y))]);
    }
    if scatter.joined {
        join(&mut svg, &scatter.points, &at);
    }
    for point in &scatter.points {
        let series = plot.series.get(point.series).map_or("", String::as_str);
        let name = if point.label.is_empty() { series } else { &point.label };
        let name = &match point.note.as_str() {
            "" => name.to_owned(),
            note => format!("{name}: {note}"),
        };
        let mark =
            open_mark(&class(Paint::Series(point.series)), &words(scatter, point, name), size);
        svg.raw(&mark);
        draw_point(&mut svg, point, [&horizontal, &vertical]);
        let is_named = point.label.is_empty() || !point.note.is_empty();
        if !is_named && !on_frontier(scatter, point) {
            continue;
        }
        let off = if point.note.is_empty() { NAME_OFF } else { NAME_OFF + RING_ROOM };
        let inside = [left, TOP, right, height - BOTTOM];
        let place = free_place(name, at(point), off, inside, &taken);
        svg.raw("<g aria-hidden=\"true\">");
        let paint = class(Paint::Series(point.series));
        svg.text(&paint, Anchor::Start, (place[0], place[3] - 4.0), name);
        svg.raw("</g>");
        taken.push(place);
    }
    Drawn { height, attributes: " role=\"group\"".to_owned(), marks: svg.finish() }
}

/// Joins the points of each series in their order.
fn join(svg: &mut Svg, points: &[Point], at: &dyn Fn(&Point) -> (f64, f64)) {
    let last = points.iter().map(|point| point.series).max().unwrap_or(0);
    for series in 0..=last {
        let of_series = points.iter().filter(|point| point.series == series);
        let places: Vec<(f64, f64)> = of_series.map(at).collect();
        svg.raw(&format!("<g aria-hidden=\"true\" class=\"{}\">", class(Paint::Series(series))));
        svg.path("thin", &format!("{} fill=\"none\"", dash(series)), &places, false);
        svg.raw("</g>");
    }
}

/// Whether nothing beats a point in both figures.
fn on_frontier(scatter: &Scatter, point: &Point) -> bool {
    scatter.frontier().into_iter().any(|other| std::ptr::eq(other, point))
}

/// The range of the points with room around; from 0 where that costs little of it.
fn domain(points: &[Point], of: impl Fn(&Point) -> [f64; 3]) -> [f64; 2] {
    let low = points.iter().map(|point| of(point)[1]).fold(f64::INFINITY, f64::min);
    let high = points.iter().map(|point| of(point)[2]).fold(f64::NEG_INFINITY, f64::max);
    let room = ((high - low) * 0.18).max(high.abs() * 0.04);
    let from = if low >= 0.0 && low < (high - low) * 0.6 { 0.0 } else { low - room };
    [from, high + room]
}

/// The steps from point to point that nothing lies below and left of.
fn frontier(
    scatter: &Scatter,
    at: &dyn Fn(&Point) -> (f64, f64),
    [top, right]: [f64; 2],
) -> Vec<(f64, f64)> {
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for place in scatter.frontier().into_iter().map(at) {
        match steps.last() {
            Some((_, y)) => steps.push((place.0, *y)),
            None => steps.push((place.0, top)),
        }
        steps.push(place);
    }
    if let Some((_, y)) = steps.last().copied() {
        steps.push((right, y));
    }
    steps
}

/// What a point says.
fn words(scatter: &Scatter, point: &Point, name: &str) -> String {
    let says = |axis: &Axis, value: f64| format!("{}: {}", axis.name, figure(value));
    format!("{name}\n{}\n{}", says(&scatter.x, point.x[0]), says(&scatter.y, point.y[0]))
}

fn draw_point(svg: &mut Svg, point: &Point, scales: [&Scale; 2]) {
    let [horizontal, vertical] = scales;
    let paint = Paint::Series(point.series);
    let (x, y) = (horizontal.place(point.x[0]), vertical.place(point.y[0]));
    svg.rectangle("hit", x - 11.0, y - 11.0, 22.0, 22.0);
    svg.line("thin", (horizontal.place(point.x[1]), y), (horizontal.place(point.x[2]), y));
    svg.line("thin", (x, vertical.place(point.y[1])), (x, vertical.place(point.y[2])));
    svg.shape(paint, (x, y), 5.5, true);
    if !point.note.is_empty() {
        svg.circle("ring", (x, y), RING_RADIUS);
    }
    svg.raw("</g>");
}

fn around((x, y): (f64, f64)) -> Place {
    [x - 8.0, y - 8.0, x + 8.0, y + 8.0]
}

/// What a line from one place to another takes.
fn along(from: (f64, f64), to: (f64, f64)) -> Place {
    [from.0.min(to.0) - 2.0, from.1.min(to.1) - 2.0, from.0.max(to.0) + 2.0, from.1.max(to.1) + 2.0]
}

fn meet(a: &Place, b: &Place) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

/// A place for a name beside its mark that nothing has taken, inside of the plot; the first one
/// when there is none.
fn free_place(name: &str, (x, y): (f64, f64), off: f64, inside: Place, taken: &[Place]) -> Place {
    let (width, half) = (width_of(name), NAME_HEIGHT / 2.0);
    let far = NAME_HEIGHT + off - 6.0;
    let corners = [
        (x + off, y - half),
        (x - off - width, y - half),
        (x - width / 2.0, y - far - 4.0),
        (x - width / 2.0, y + off),
        (x + off, y - far),
        (x + off, y + 4.0),
        (x - off - width, y - far),
        (x - off - width, y + 4.0),
        (x - width / 2.0, y - 2.0 * far),
        (x - width / 2.0, y + off + far),
    ];
    let places = corners.map(|(left, top)| [left, top, left + width, top + NAME_HEIGHT]);
    let is_inside = |p: &&Place| p[0] >= inside[0] && p[2] <= inside[2] && p[1] >= inside[1];
    let is_free = |p: &&Place| p[3] <= inside[3] && !taken.iter().any(|other| meet(p, other));
    let found = places.iter().filter(is_inside).find(is_free);
    let or_inside = || places.iter().find(is_inside);
    *found.or_else(or_inside).unwrap_or(&places[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_clear_of_marks_and_of_each_other() {
        let inside = [0.0, 0.0, 400.0, 300.0];
        let marks = [(100.0, 100.0), (125.0, 100.0), (395.0, 150.0)];
        let mut taken: Vec<Place> = marks.iter().map(|mark| around(*mark)).collect();
        for mark in marks {
            let place = free_place("an-arm", mark, NAME_OFF, inside, &taken);
            assert!(taken.iter().all(|other| !meet(&place, other)), "{place:?}");
            assert!(place[0] >= 0.0 && place[2] <= 400.0, "{place:?}");
            taken.push(place);
        }
    }

    #[test]
    fn axes_begin_at_zero_only_where_that_is_near() {
        let points = |from: f64| {
            [from, 10.0].map(|x| {
                let label = String::new();
                Point { series: 0, x: [x; 3], y: [1.0; 3], label, note: String::new() }
            })
        };
        assert_eq!(domain(&points(1.0), |p| p.x)[0], 0.0);
        assert!(domain(&points(9.0), |p| p.x)[0] > 8.0);
        let [low, high] = domain(&points(10.0), |p| p.x);
        assert!(low < 10.0 && high > 10.0);
    }
}
