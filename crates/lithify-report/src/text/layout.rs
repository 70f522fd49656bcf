//! Words in lines of a width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of a text.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Lines of at most so many columns. What a terminal would obey and not show is left out.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let shown: String = text.chars().filter(|c| *c == '\n' || c.width().is_some()).collect();
    let options = textwrap::Options::new(columns.max(1)).break_words(true);
    let lines = textwrap::wrap(&shown, options);
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// A text behind something that only its first line has; the others begin below its text.
pub(super) fn hang(first: &str, text: &str, columns: usize) -> Vec<String> {
    let indent = width(first);
    if indent > columns / 2 {
        let mut lines = wrap(first, columns);
        let behind = wrap(text, columns - 4);
        lines.extend(behind.into_iter().map(|line| format!("    {line}")));
        return lines;
    }
    let first: String = first.chars().filter(|c| c.width().is_some()).collect();
    let lines = wrap(text, columns - indent).into_iter().enumerate();
    let line = |(index, line): (usize, String)| match index {
        0 => format!("{first}{line}"),
        _ => format!("{}{line}", " ".repeat(indent)),
    };
    lines.map(line).collect()
}
