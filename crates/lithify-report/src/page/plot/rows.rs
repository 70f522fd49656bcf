//! Marks on a common logarithmic axis, or bars from 0, row by row: ratios with their intervals and
//! noise, percentiles, times of jobs, published beside measured.

use super::scale::{Scale, tick};
use super::svg::{Anchor, Svg, class, width_of};
use super::{Drawn, Size, open_mark};
use crate::model::{Group, Paint, Row, Rows};

/// Room for the axis above and below.
const TOP: f64 = 44.0;
const BOTTOM: f64 = 26.0;
/// Most room for names beside the axis on a wide page.
const NAMES_MAX: f64 = 330.0;
/// An interval may widen the axis so many times beyond the marks; what is longer is cut.
const WIDEN: f64 = 3.0;
/// From a line of a group's name to the next.
const LINE_HEIGHT: f64 = 15.0;

/// Where everything stands.
struct Layout {
    size: Size,
    /// Names of rows stand beside or above them; without names rows are thin.
    has_names: bool,
    /// Figures are bars from 0.
    bars: bool,
    row_height: f64,
    group_height: f64,
    left: f64,
    right: f64,
    horizontal: Scale,
    height: f64,
}

impl Layout {
    fn of(rows: &Rows, size: Size) -> Layout {
        let all = || rows.groups.iter().flat_map(|group| &group.rows);
        let has_names = all().any(|row| !row.name.is_empty());
        let wide = size.is_wide();
        let row_height = match (has_names, wide) {
            (true, true) => 22.0,
            (true, false) => 36.0,
            (false, _) => 14.0,
        };
        let group_height = match (has_names, wide) {
            (true, _) => 30.0,
            (false, true) => 10.0,
            (false, false) => 30.0,
        };
        let names: Vec<&str> = match has_names {
            true => all().map(|row| row.name.as_str()).collect(),
            false => rows.groups.iter().map(|group| group.name.as_str()).collect(),
        };
        let left = if wide { widest(names.into_iter()).min(NAMES_MAX) + 16.0 } else { 8.0 };
        let notes = widest(all().map(|row| row.note.as_str()));
        let right = match wide && notes > 0.0 {
            true => size.width() - notes - 14.0,
            false => size.width() - 12.0,
        };
        let horizontal = match rows.bars {
            true => Scale::linear([0.0, domain(rows)[1] * 1.02], [left, right]),
            false => Scale::log(domain(rows), [left, right]),
        };
        let bars = rows.bars;
        let mut layout = Layout {
            size,
            has_names,
            bars,
            row_height,
            group_height,
            left,
            right,
            horizontal,
            height: TOP + BOTTOM + all().count() as f64 * row_height,
        };
        layout.height += rows.groups.iter().map(|group| layout.above(group)).sum::<f64>();
        layout
    }

    /// Names of groups stand beside their rows, not above them.
    fn names_groups_beside(&self) -> bool {
        !self.has_names && self.size.is_wide()
    }

    /// The lines of a group's name above its rows.
    fn title(&self, group: &Group) -> Vec<String> {
        wrapped(&group.name, self.size.width())
    }

    /// The room of a group beside that of its rows.
    fn above(&self, group: &Group) -> f64 {
        let more = match self.names_groups_beside() {
            true => 0,
            false => self.title(group).len().saturating_sub(1),
        };
        self.group_height + more as f64 * LINE_HEIGHT
    }
}

/// About how wide the widest of some texts is.
fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts.map(width_of).fold(0.0, f64::max)
}

/// From the least to the greatest mark, and a part of the intervals beyond.
fn domain(rows: &Rows) -> [f64; 2] {
    let all = || rows.groups.iter().flat_map(|group| &group.rows);
    let marks = || {
        let marks = all().flat_map(|row| row.marks.iter().copied().chain(row.published));
        marks.chain(rows.reference).filter(|mark| *mark > 0.0 && mark.is_finite())
    };
    let (low, high) = (marks().fold(f64::INFINITY, f64::min), marks().fold(0.0, f64::max));
    if high == 0.0 {
        return [1.0, 10.0];
    }
    let spans = || all().filter_map(|row| row.span);
    let least = spans().map(|span| span.0.max(low / WIDEN)).fold(low, f64::min);
    let most = spans().map(|span| span.1.min(high * WIDEN)).fold(high, f64::max);
    [least, most]
}

/// Draws rows.
pub(super) fn draw(rows: &Rows, size: Size) -> Drawn {
    let layout = Layout::of(rows, size);
    let (mut svg, mut labels) = (Svg::default(), Svg::default());
    axis(&mut svg, rows, &layout);
    let mut y = TOP;
    for group in &rows.groups {
        y = draw_group([&mut svg, &mut labels], group, &layout, y);
    }
    svg.raw("<g aria-hidden=\"true\">");
    svg.raw(&labels.finish());
    svg.raw("</g>");
    Drawn { height: layout.height, attributes: " role=\"group\"".to_owned(), marks: svg.finish() }
}

fn axis(svg: &mut Svg, rows: &Rows, layout: &Layout) {
    let bottom = layout.height - BOTTOM;
    svg.raw("<g aria-hidden=\"true\">");
    // The names of two sides can be wider than a phone; the title has them whole.
    let name = clipped(&rows.x.name, layout.right);
    svg.text("", Anchor::Start, (layout.left.min(layout.right - width_of(&name)), 12.0), &name);
    let apart = if layout.size.is_wide() { 58.0 } else { 44.0 };
    for value in layout.horizontal.ticks(apart) {
        let x = layout.horizontal.place(value);
        svg.line("grid", (x, TOP - 8.0), (x, bottom));
        let text = tick(rows.x.unit, value);
        svg.text("", Anchor::Middle, (x, TOP - 14.0), &text);
        svg.text("", Anchor::Middle, (x, bottom + 16.0), &text);
    }
    if let Some(reference) = rows.reference {
        let x = layout.horizontal.place(reference);
        svg.line("one", (x, TOP - 8.0), (x, bottom));
    }
    svg.raw("</g>");
}

/// Draws a group from `y` on, marks and labels apart; gives where the next one begins.
fn draw_group([svg, labels]: [&mut Svg; 2], group: &Group, layout: &Layout, mut y: f64) -> f64 {
    let names_group_beside = layout.names_groups_beside();
    if names_group_beside {
        let middle = y + (layout.group_height + group.rows.len() as f64 * layout.row_height) / 2.0;
        let at = (layout.left - 14.0, middle + 4.0);
        labels.text("label", Anchor::End, at, &clipped(&group.name, layout.left - 14.0));
        svg.line("grid", (layout.left, y), (layout.right, y));
    } else {
        let lines = layout.title(group);
        let last = y + layout.above(group) - 9.0;
        for (below, line) in lines.iter().rev().enumerate() {
            let at = (0.0, last - below as f64 * LINE_HEIGHT);
            labels.text("group", Anchor::Start, at, line);
        }
    }
    y += if names_group_beside { layout.group_height / 2.0 } else { layout.above(group) };
    for row in &group.rows {
        let middle = draw_row(svg, row, layout, y);
        names(labels, row, layout, middle);
        y += layout.row_height;
    }
    y + if names_group_beside { layout.group_height / 2.0 } else { 0.0 }
}

/// Draws the marks of a row at `y`; gives the height that they stand at.
fn draw_row(svg: &mut Svg, row: &Row, layout: &Layout, y: f64) -> f64 {
    let wide = layout.size.is_wide();
    let middle = match layout.has_names && !wide {
        true => y + layout.row_height - 11.0,
        false => y + layout.row_height / 2.0,
    };
    svg.raw(&open_mark(&class(row.paint), &row.words, layout.size));
    let (left, width) = (layout.left - 4.0, layout.right - layout.left + 8.0);
    let room = if layout.has_names && !wide { 9.0 } else { layout.row_height / 2.0 };
    svg.rectangle("hit", left, middle - room, width, 2.0 * room);
    let place = |value: f64| layout.horizontal.place(value);
    if let Some((low, high)) = row.band {
        let thick = room.min(8.0);
        let (from, to) = (place(low), place(high));
        svg.rectangle("band", from, middle - thick, (to - from).max(1.0), 2.0 * thick);
    }
    if let Some(value) = row.marks.first().filter(|value| layout.bars && **value > 0.0) {
        let (from, to) = (place(0.0), place(*value));
        svg.rectangle("bar", from, middle - 6.0, (to - from).max(1.0), 12.0);
    }
    if let Some((low, high)) = row.span {
        svg.line("span", (place(low), middle), (place(high), middle));
    }
    if let Some(published) = row.published.filter(|value| layout.horizontal.holds(*value)) {
        svg.raw(&format!("<g class=\"{}\">", class(Paint::Published)));
        svg.shape(Paint::Published, (place(published), middle), 5.0, true);
        svg.raw("</g>");
    }
    let radius = if layout.has_names { 4.5 } else { 4.0 };
    // A bar is its own mark.
    let marks = row.marks.iter().skip(usize::from(layout.bars));
    let marks = marks.filter(|mark| layout.horizontal.holds(**mark));
    for (index, mark) in marks.enumerate() {
        let full = index % 2 == 0 && row.paint != Paint::Even;
        svg.shape(row.paint, (place(*mark), middle), radius, full);
    }
    svg.raw("</g>");
    middle
}

/// What stands beside a row on a wide page, above it on a phone.
fn names(svg: &mut Svg, row: &Row, layout: &Layout, middle: f64) {
    if layout.size.is_wide() {
        let room = layout.left - 14.0;
        svg.text("label", Anchor::End, (room, middle + 4.0), &clipped(&row.name, room));
        svg.text("", Anchor::Start, (layout.right + 14.0, middle + 4.0), &row.note);
    } else {
        let room = layout.right - width_of(&row.note) - 8.0;
        svg.text("label", Anchor::Start, (0.0, middle - 14.0), &clipped(&row.name, room));
        svg.text("", Anchor::End, (layout.right, middle - 14.0), &row.note);
    }
}

/// A text in lines that fit into `room`: broken after spaces and colons, clipped where there are none.
/// No line of an empty text.
fn wrapped(text: &str, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split_inclusive([' ', ':']) {
        match lines.last_mut().filter(|line| width_of(line) + width_of(part.trim_end()) <= room) {
            Some(line) => line.push_str(part),
            None => lines.push(part.to_owned()),
        }
    }
    lines.iter().map(|line| clipped(line.trim_end(), room)).collect()
}

/// A text that fits into `room`, its end left out where it must be.
fn clipped(text: &str, room: f64) -> String {
    if width_of(text) <= room {
        return text.to_owned();
    }
    let mut cut: String = text.to_owned();
    while !cut.is_empty() && width_of(&cut) + width_of("…") > room {
        cut.pop();
    }
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axis, Unit};

    fn row(mark: f64, span: (f64, f64)) -> Row {
        Row {
            name: String::new(),
            paint: Paint::Good,
            band: None,
            span: Some(span),
            marks: vec![mark],
            published: None,
            note: String::new(),
            words: String::new(),
        }
    }

    #[test]
    fn long_intervals_do_not_squeeze_the_marks() {
        let x = Axis { name: String::new(), unit: Unit::Times };
        let group =
            Group { name: String::new(), rows: vec![row(2.0, (0.5, 442.0)), row(0.0, (0.0, 0.1))] };
        let rows = Rows { x, bars: false, reference: Some(1.0), groups: vec![group] };
        assert_eq!(domain(&rows), [1.0 / WIDEN, 2.0 * WIDEN]);
        let none = Rows { reference: None, groups: Vec::new(), ..rows };
        assert_eq!(domain(&none), [1.0, 10.0]);
    }

    #[test]
    fn texts_are_cut_where_they_must_be() {
        assert_eq!(clipped("short", 100.0), "short");
        assert_eq!(clipped("a long name", 45.0), "a long…");
        assert_eq!(clipped("a long name", 0.0), "…");
    }

    #[test]
    fn long_names_of_groups_go_on_in_the_next_line() {
        assert_eq!(wrapped("", 100.0), [""; 0]);
        assert_eq!(wrapped("2. seek", 100.0), ["2. seek"]);
        assert_eq!(wrapped("2. seek:reverse:mb=2", 100.0), ["2. seek:", "reverse:mb=2"]);
        assert_eq!(wrapped("seekrandomwhilewriting", 60.0), ["seekran…"]);
    }
}
