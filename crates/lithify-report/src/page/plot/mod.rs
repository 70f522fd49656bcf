//! Plots as SVG: drawn twice, for a wide page and for a phone, each with labels of readable size.
//!
//! Owns: scales and ticks (`scale`), the words of an SVG (`svg`), the five kinds of plots
//! (`lines`, `curves`, `rows`, `scatter`, `triangle`) and the figure around each (`figure`).
//!
//! Promises: readable without scripts; colours come from the page, so that one drawing serves light,
//! dark and paper; series differ by colour and by shape or dash; every mark that can be reached by
//! keyboard says in words what it is. Numbers in, markup out.
//!
//! Why no library: what is drawn here are five kinds of plots in few hundred lines. Libraries that
//! draw SVG fix colours and sizes when they draw, so that dark pages and phones would need drawings
//! of their own, and know nothing of readers that listen; those that draw in the browser show
//! nothing without scripts and on paper.

mod curves;
mod lines;
mod rows;
mod scale;
mod scatter;
mod svg;
mod triangle;

use std::fmt::Write as _;

use super::{escape, table};
use crate::model::{Drawing, Plot};

/// Which of the two drawings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    /// For a column of text.
    Wide,
    /// For a phone.
    Narrow,
    /// For both: small enough.
    Single,
}

impl Size {
    /// Width of the drawing, pixels.
    fn width(self) -> f64 {
        match self {
            Size::Wide => 860.0,
            Size::Narrow => 356.0,
            Size::Single => 400.0,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Size::Wide => "plot wide",
            Size::Narrow => "plot narrow",
            Size::Single => "plot single",
        }
    }

    fn is_wide(self) -> bool {
        self == Size::Wide
    }
}

/// A drawing with its height and what its element needs beside that.
struct Drawn {
    height: f64,
    attributes: String,
    marks: String,
}

/// The figure of a plot: caption, legend, drawings, and its table to be unfolded. `id` is unique in
/// the page.
pub(crate) fn figure(plot: &Plot, id: &str) -> String {
    let mut html = format!("<figure id=\"{id}\" aria-labelledby=\"{id}-t\">");
    // Writing to a String cannot fail.
    let _ = write!(html, "<figcaption id=\"{id}-t\">{}</figcaption>", escape(&plot.title));
    let _ = write!(html, "<p class=\"about\" id=\"{id}-a\">{}</p>", escape(&plot.about));
    html.push_str(&legend(plot));
    let sizes: &[Size] = match &plot.drawing {
        Drawing::Triangle(_) => &[Size::Single],
        _ => &[Size::Wide, Size::Narrow],
    };
    for size in sizes {
        let drawn = match &plot.drawing {
            Drawing::Lines(lines) => lines::draw(lines, plot, *size),
            Drawing::Curves(curves) => curves::draw(curves, plot, *size),
            Drawing::Rows(rows) => rows::draw(rows, *size),
            Drawing::Scatter(scatter) => scatter::draw(scatter, plot, *size),
            Drawing::Triangle(triangle) => triangle::draw(triangle, plot, *size),
        };
        let more = drawn.attributes.replace("TABLE", &format!("{id}-d"));
        let _ = write!(
            html,
            "<svg class=\"{}\" viewBox=\"0 0 {} {}\" aria-labelledby=\"{id}-t {id}-a\"{more}>{}</svg>",
            size.class(),
            svg::number(size.width()),
            svg::number(drawn.height),
            drawn.marks
        );
    }
    html.push_str(&table(&plot.table, &format!("{id}-d")).into_string());
    html.push_str("</figure>");
    html
}

/// The names of the series with their looks. Lines carry their names at their ends where there is
/// room for that.
fn legend(plot: &Plot) -> String {
    let direct = match &plot.drawing {
        Drawing::Lines(_) => " direct",
        Drawing::Scatter(scatter) if scatter.points.iter().all(|p| p.label.is_empty()) => {
            return String::new();
        }
        Drawing::Scatter(_) | Drawing::Curves(_) | Drawing::Rows(_) | Drawing::Triangle(_) => "",
    };
    if plot.series.is_empty() {
        return String::new();
    }
    let mut html = format!("<ul class=\"legend{direct}\">");
    for (series, name) in plot.series.iter().enumerate() {
        let _ = write!(html, "<li>{}{}</li>", svg::swatch(series), escape(name));
    }
    html.push_str("</ul>");
    html
}

/// What a group of marks begins with that says what it is. On a phone the same words are those of
/// its twin in the wide drawing: scripts find them there.
fn open_mark(class: &str, words: &str, size: Size) -> String {
    let title = match size {
        Size::Narrow => String::new(),
        Size::Wide | Size::Single => format!("<title>{}</title>", escape(words)),
    };
    format!("<g class=\"mark {class}\">{title}")
}
