//! Figures over a number of something, both axes from 0: points with the range of their repeats,
//! and the curve through them.

use super::scale::{Scale, tick};
use super::svg::{Anchor, Svg, class, dash, width_of};
use super::{Drawn, Size, open_mark};
use crate::figure::figure;
use crate::model::{Curve, Curves, Paint, Plot};

const TOP: f64 = 26.0;
const BOTTOM: f64 = 42.0;

/// Draws curves.
pub(super) fn draw(curves: &Curves, plot: &Plot, size: Size) -> Drawn {
    let height = if size.is_wide() { 320.0 } else { 270.0 };
    let [most_x, most_y] = most(curves);
    let vertical = Scale::linear([0.0, most_y * 1.05], [height - BOTTOM, TOP]);
    let ticks = vertical.ticks(36.0);
    let widest = ticks.iter().map(|value| width_of(&tick(curves.y.unit, *value)));
    let left = widest.fold(0.0, f64::max) + 8.0;
    let right = size.width() - 14.0;
    let horizontal = Scale::linear([0.0, most_x * 1.03], [left, right]);
    let mut svg = Svg::default();
    svg.raw("<g aria-hidden=\"true\">");
    for value in &ticks {
        let y = vertical.place(*value);
        svg.line(if *value == 0.0 { "axis" } else { "grid" }, (left, y), (right, y));
        svg.text("", Anchor::End, (left - 8.0, y + 4.0), &tick(curves.y.unit, *value));
    }
    for value in horizontal.ticks(56.0) {
        let x = horizontal.place(value);
        svg.line("axis", (x, height - BOTTOM), (x, height - BOTTOM + 4.0));
        let at = (x, height - BOTTOM + 17.0);
        svg.text("", Anchor::Middle, at, &tick(curves.x.unit, value));
    }
    svg.text("", Anchor::Start, (0.0, 12.0), &curves.y.name);
    svg.text("", Anchor::End, (right, height - 5.0), &curves.x.name);
    for curve in &curves.series {
        line(&mut svg, curve, [&horizontal, &vertical]);
    }
    svg.raw("</g>");
    for curve in &curves.series {
        let name = plot.series.get(curve.series).map_or("", String::as_str);
        points(&mut svg, curve, name, curves, [&horizontal, &vertical], size);
    }
    Drawn { height, attributes: " role=\"group\"".to_owned(), marks: svg.finish() }
}

/// The largest number and figure of all points and curves.
fn most(curves: &Curves) -> [f64; 2] {
    let all = |of: fn(&Curve) -> [f64; 2]| {
        curves.series.iter().map(of).fold([0.0_f64; 2], |a, b| [a[0].max(b[0]), a[1].max(b[1])])
    };
    let measured = all(|curve| {
        let last = curve.points.iter().map(|(x, _)| *x).fold(0.0, f64::max);
        [last, curve.points.iter().map(|(_, y)| y[2]).fold(0.0, f64::max)]
    });
    let fitted = all(|curve| {
        let last = curve.fitted.iter().map(|(x, _)| *x).fold(0.0, f64::max);
        [last, curve.fitted.iter().map(|(_, y)| *y).fold(0.0, f64::max)]
    });
    [0, 1].map(|axis| match measured[axis].max(fitted[axis]) {
        most if most > 0.0 => most,
        _ => 1.0,
    })
}

/// The curve of a series, or lines from point to point.
fn line(svg: &mut Svg, curve: &Curve, [horizontal, vertical]: [&Scale; 2]) {
    let place = |x: f64, y: f64| (horizontal.place(x), vertical.place(y));
    let places: Vec<(f64, f64)> = match curve.fitted.is_empty() {
        true => curve.points.iter().map(|(x, y)| place(*x, y[0])).collect(),
        false => curve.fitted.iter().map(|(x, y)| place(*x, *y)).collect(),
    };
    svg.raw(&format!("<g class=\"{}\">", class(Paint::Series(curve.series))));
    svg.path("line", &dash(curve.series), &places, false);
    if let Some((x, y)) = curve.peak {
        let (x, y) = place(x, y);
        svg.line("span", (x, y - 7.0), (x, y + 7.0));
    }
    svg.raw("</g>");
}

/// The points of a series, each with what it says.
fn points(
    svg: &mut Svg,
    curve: &Curve,
    name: &str,
    curves: &Curves,
    [horizontal, vertical]: [&Scale; 2],
    size: Size,
) {
    let paint = Paint::Series(curve.series);
    for (number, [value, least, most]) in &curve.points {
        let (x, y) = (horizontal.place(*number), vertical.place(*value));
        let range = match least == most {
            true => String::new(),
            false => format!(" [{}, {}]", figure(*least), figure(*most)),
        };
        let [at, of] = [&curves.x.name, &curves.y.name];
        let words = format!("{name}\n{at}: {number}\n{of}: {}{range}", figure(*value));
        svg.raw(&open_mark(&class(paint), &words, size));
        svg.rectangle("hit", x - 10.0, y - 10.0, 20.0, 20.0);
        svg.line("thin", (x, vertical.place(*least)), (x, vertical.place(*most)));
        svg.shape(paint, (x, y), 5.0, true);
        svg.raw("</g>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axis, Unit};

    #[test]
    fn axes_hold_points_ranges_and_curves() {
        let axis = || Axis { name: String::new(), unit: Unit::Number };
        let curve = Curve {
            points: vec![(1.0, [5.0, 4.0, 6.0]), (4.0, [9.0, 9.0, 9.0])],
            fitted: vec![(8.0, 12.0)],
            ..Curve::default()
        };
        let mut curves = Curves { x: axis(), y: axis(), series: vec![curve] };
        assert_eq!(most(&curves), [8.0, 12.0]);
        curves.series[0].fitted.clear();
        assert_eq!(most(&curves), [4.0, 9.0]);
        curves.series.clear();
        assert_eq!(most(&curves), [1.0, 1.0], "nothing measured has axes too");
    }
}
