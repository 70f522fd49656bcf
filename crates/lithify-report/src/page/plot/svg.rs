//! The words of an SVG: places with one decimal, texts escaped, marks of eight shapes.

use std::fmt::Write as _;

use crate::model::Paint;
use crate::page::escape;

/// About how wide a text of the 12 pixels that plots are labelled in is: enough for most fonts.
pub(crate) fn width_of(text: &str) -> f64 {
    let width = |character: char| match character {
        'i' | 'l' | 'j' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' | '(' | ')' | '[' | ']' => 4.4,
        'm' | 'w' | '%' | '→' | '↑' | '↓' => 9.5,
        upper if upper.is_uppercase() => 8.4,
        _ => 7.0,
    };
    text.chars().map(width).sum()
}

/// Where a text stands from its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// Number of series that look different.
const LOOKS: usize = 8;

/// Dashes of lines, so that series differ by more than colour.
const DASHES: [&str; LOOKS] =
    ["", "7 4", "2 3", "9 3 2 3", "12 4", "4 2 1 2", "1 4", "14 3 3 3 3 3"];

/// The classes that colour a mark.
pub(crate) fn class(paint: Paint) -> String {
    match paint {
        Paint::Series(series) => format!("c c{}", series % LOOKS),
        Paint::Good => "c good".to_owned(),
        Paint::Bad => "c bad".to_owned(),
        Paint::Even => "c even".to_owned(),
        Paint::Published => "c ink".to_owned(),
    }
}

/// Which dash and shape a series has: beyond as many series as there are colours those meet others.
fn look(series: usize) -> usize {
    (series + series / LOOKS) % LOOKS
}

/// The dash attribute of a series, with a space before it; nothing for a full line.
pub(crate) fn dash(series: usize) -> String {
    match DASHES[look(series)] {
        "" => String::new(),
        dash => format!(" stroke-dasharray=\"{dash}\""),
    }
}

/// A number with at most one decimal.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// An SVG on its way.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    text: String,
}

impl Svg {
    /// What was written.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// Markup as it is.
    pub(crate) fn raw(&mut self, markup: &str) {
        self.text.push_str(markup);
    }

    /// A line between two places.
    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
        // Writing to a String cannot fail.
        let _ = write!(
            self.text,
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        );
    }

    /// A rectangle.
    pub(crate) fn rectangle(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(number);
        let _ = write!(
            self.text,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    /// A text on a baseline.
    pub(crate) fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        let (x, y) = (number(x), number(y));
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let anchor = match anchor {
            Anchor::Start => String::new(),
            other => format!(" text-anchor=\"{}\"", other.name()),
        };
        let _ =
            write!(self.text, "<text{class}{anchor} x=\"{x}\" y=\"{y}\">{}</text>", escape(text));
    }

    /// A path through places, closed or not.
    pub(crate) fn path(&mut self, class: &str, more: &str, places: &[(f64, f64)], close: bool) {
        if places.is_empty() {
            return;
        }
        let _ = write!(self.text, "<path class=\"{class}\"{more} d=\"M");
        for (index, (x, y)) in places.iter().enumerate() {
            let space = if index > 0 { " " } else { "" };
            let _ = write!(self.text, "{space}{} {}", number(*x), number(*y));
        }
        self.text.push_str(if close { "Z\"/>" } else { "\"/>" });
    }

    /// A mark of the shape of its paint.
    pub(crate) fn shape(&mut self, paint: Paint, (x, y): (f64, f64), radius: f64, full: bool) {
        let class = if full { "full" } else { "hollow" };
        let at = |dx: f64, dy: f64| (x + dx * radius, y + dy * radius);
        let places: &[(f64, f64)] = match paint {
            Paint::Good | Paint::Even => &[],
            Paint::Series(series) => match look(series) {
                0 => &[],
                1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
                2 => &[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)],
                3 => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
                4 => &[(0.0, 1.15), (1.1, -0.85), (-1.1, -0.85)],
                5 => &CROSS,
                6 => &[(-0.6, -1.1), (0.6, -1.1), (1.2, 0.0), (0.6, 1.1), (-0.6, 1.1), (-1.2, 0.0)],
                _ => &[(-1.2, -0.6), (1.2, -0.6), (1.2, 0.6), (-1.2, 0.6)],
            },
            Paint::Bad => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
            Paint::Published => &[(-0.28, -1.5), (0.28, -1.5), (0.28, 1.5), (-0.28, 1.5)],
        };
        if places.is_empty() {
            return self.circle(class, (x, y), radius);
        }
        let places: Vec<(f64, f64)> = places.iter().map(|(dx, dy)| at(*dx, *dy)).collect();
        self.path(class, "", &places, true);
    }

    /// A circle.
    pub(crate) fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let [x, y, radius] = [x, y, radius].map(number);
        let _ =
            write!(self.text, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>");
    }
}

/// A plus.
const CROSS: [(f64, f64); 12] = [
    (-0.4, -1.2),
    (0.4, -1.2),
    (0.4, -0.4),
    (1.2, -0.4),
    (1.2, 0.4),
    (0.4, 0.4),
    (0.4, 1.2),
    (-0.4, 1.2),
    (-0.4, 0.4),
    (-1.2, 0.4),
    (-1.2, -0.4),
    (-0.4, -0.4),
];

/// The sample of a series in a legend.
pub(crate) fn swatch(series: usize) -> String {
    let mut svg = Svg::default();
    let paint = Paint::Series(series);
    let class = class(paint);
    let _ = write!(svg.text, "<svg class=\"{class}\" viewBox=\"0 0 30 12\" aria-hidden=\"true\">");
    svg.path("line", &dash(series), &[(0.0, 6.0), (30.0, 6.0)], false);
    svg.shape(paint, (15.0, 6.0), 4.0, true);
    svg.raw("</svg>");
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_numbers_are_short() {
        let mut svg = Svg::default();
        svg.text("label", Anchor::End, (1.04, 2.0), "<a & \"b\">");
        assert_eq!(
            svg.finish(),
            "<text class=\"label\" text-anchor=\"end\" x=\"1\" y=\"2\">\
             &lt;a &amp; &quot;b&quot;&gt;</text>"
        );
        assert_eq!([number(1.26), number(-0.04), number(3.0)], ["1.3", "-0", "3"]);
    }

    #[test]
    fn series_differ_by_shape_and_dash() {
        let drawn = |series| {
            let mut svg = Svg::default();
            svg.shape(Paint::Series(series), (0.0, 0.0), 4.0, true);
            [class(Paint::Series(series)), svg.finish(), dash(series)]
        };
        for one in 0..2 * LOOKS {
            for other in one + 1..2 * LOOKS {
                let pair = [drawn(one), drawn(other)];
                assert_ne!(pair[0], pair[1], "{one} and {other}");
                if other < LOOKS {
                    assert!((0..3).all(|part| pair[0][part] != pair[1][part]));
                }
            }
        }
    }
}
