//! Three figures around a centre, in units of the least of each or in given ones: the smaller a
//! triangle, the better.

use super::scale::tick;
use super::svg::{Anchor, Svg, class, dash};
use super::{Drawn, Size, open_mark};
use crate::figure::figure;
use crate::model::{Paint, Plot, Triangle, Unit};

const HEIGHT: f64 = 340.0;
/// Distance of the outermost ring from the centre, and of the ring of the least figures.
const OUTER: f64 = 150.0;
const INNER: f64 = 45.0;
/// Room for the number of a ring.
const NUMBER_HEIGHT: f64 = 13.0;
/// What the outermost ring may stand for.
const ROUND: [f64; 10] = [1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1_000.0, 1_000_000.0];

/// Draws triangles.
pub(super) fn draw(triangle: &Triangle, plot: &Plot, size: Size) -> Drawn {
    let centre = (size.width() / 2.0, 195.0);
    let units = units(triangle);
    let most = triangle.shapes.iter().flat_map(|(_, values)| {
        values.iter().zip(units).map(|(value, unit)| value / unit).collect::<Vec<_>>()
    });
    let times: Vec<f64> = most.collect();
    let most = times.iter().copied().fold(1.0, f64::max);
    let outer = ROUND.iter().copied().find(|round| *round >= most).unwrap_or(most);
    let least = times.iter().copied().fold(1.0, f64::min);
    let inner = ROUND.iter().map(|round| 1.0 / round).find(|round| *round <= least);
    let inner = if least < 1.0 { inner.unwrap_or(least) } else { 1.0 };
    let place = |corner: usize, times: f64| {
        let share = (times.clamp(inner, outer) / inner).ln() / (outer / inner).ln();
        let radius = INNER + share * (OUTER - INNER);
        let angle = (corner as f64 * 120.0 - 90.0).to_radians();
        (centre.0 + radius * angle.cos(), centre.1 + radius * angle.sin())
    };
    let mut svg = Svg::default();
    svg.raw("<g aria-hidden=\"true\">");
    let mut free_below = f64::NEG_INFINITY;
    for ring in rings(inner, outer).into_iter().rev() {
        let corners: Vec<(f64, f64)> = (0..3).map(|corner| place(corner, ring)).collect();
        svg.path("axis", " fill=\"none\"", &corners, true);
        let (x, y) = place(0, ring);
        // Numbers of rings that lie close would meet: the outer one stands.
        if y >= free_below {
            svg.text("", Anchor::Start, (x + 6.0, y + 4.0), &tick(Unit::Times, ring));
            free_below = y + NUMBER_HEIGHT;
        }
    }
    for corner in 0..3 {
        svg.line("axis", centre, place(corner, outer));
    }
    let names = &triangle.corners;
    svg.text("label", Anchor::Middle, (centre.0, centre.1 - OUTER - 12.0), &names[0]);
    let (right, left) = (place(1, outer), place(2, outer));
    svg.text("label", Anchor::End, (size.width(), right.1 + 22.0), &names[1]);
    svg.text("label", Anchor::Start, (left.0.clamp(0.0, 30.0), left.1 + 22.0), &names[2]);
    svg.raw("</g>");
    for (series, values) in &triangle.shapes {
        let times = [0, 1, 2].map(|corner| values[corner] / units[corner]);
        let corners: Vec<(f64, f64)> = (0..3).map(|c| place(c, times[c])).collect();
        let name = plot.series.get(*series).map_or("", String::as_str);
        let says = (0..3).map(|c| format!("{}: {}×", names[c], figure(times[c])));
        let words = format!("{name}\n{}", says.collect::<Vec<_>>().join("\n"));
        let paint = Paint::Series(*series);
        svg.raw(&open_mark(&class(paint), &words, size));
        svg.path("shape hit", &dash(*series), &corners, true);
        corners.iter().for_each(|corner| svg.shape(paint, *corner, 4.0, true));
        svg.raw("</g>");
    }
    Drawn { height: HEIGHT, attributes: " role=\"group\"".to_owned(), marks: svg.finish() }
}

/// The given units, or the least of each figure.
fn units(triangle: &Triangle) -> [f64; 3] {
    if let Some(units) = triangle.units {
        return units;
    }
    [0, 1, 2].map(|corner| {
        triangle.shapes.iter().map(|(_, values)| values[corner]).fold(f64::INFINITY, f64::min)
    })
}

/// The rings from the innermost to the outermost.
fn rings(inner: f64, outer: f64) -> Vec<f64> {
    let inside = [0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, 1_000.0].into_iter();
    let inside = inside.filter(|ring| *ring >= inner);
    // One just inside of the outermost would meet its number.
    inside.filter(|ring| *ring <= outer / 1.3).chain([outer]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_in_units_of_the_least() {
        let corners = ["a", "b", "c"].map(str::to_owned);
        let shapes = vec![(0, [2.0, 3.0, 10.0]), (1, [4.0, 1.0, 10.0])];
        let mut triangle = Triangle { corners, units: None, shapes };
        assert_eq!(units(&triangle), [2.0, 1.0, 10.0]);
        triangle.units = Some([1.0; 3]);
        assert_eq!(units(&triangle), [1.0; 3], "the given ones");
        assert_eq!(rings(1.0, 1.5), [1.0, 1.5]);
        assert_eq!(rings(1.0, 10.0), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(rings(0.5, 2.0), [0.5, 1.0, 2.0]);
    }
}
