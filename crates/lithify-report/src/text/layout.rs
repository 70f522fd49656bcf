//! Words in lines of a width.

use textwrap::WordSplitter;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of a text.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// A text without what a terminal would obey and not show.
pub(super) fn shown(text: &str) -> String {
    text.chars().filter(|c| c.width().is_some()).collect()
}

/// Lines of at most so many columns. Names and commands with hyphens stay whole.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    wrapped(text, columns, WordSplitter::NoHyphenation)
}

/// Lines of a cell: a word that is wider than the column is broken behind a hyphen.
pub(super) fn wrap_cell(text: &str, columns: usize) -> Vec<String> {
    let fits = text.split_whitespace().all(|word| width(&shown(word)) <= columns);
    let splitter = if fits { WordSplitter::NoHyphenation } else { WordSplitter::HyphenSplitter };
    wrapped(text, columns, splitter)
}

fn wrapped(text: &str, columns: usize, splitter: WordSplitter) -> Vec<String> {
    let shown = text.split('\n').map(shown).collect::<Vec<_>>().join("\n");
    let options = textwrap::Options::new(columns.max(1)).break_words(true).word_splitter(splitter);
    let lines = textwrap::wrap(&shown, options);
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// A text behind something that only its first line has; the others begin below its text.
pub(super) fn hang(first: &str, text: &str, columns: usize) -> Vec<String> {
    let first = shown(first);
    let indent = width(&first);
    if indent > columns / 2 {
        let mut lines = wrap(&first, columns);
        let behind = wrap(text, columns - 4);
        lines.extend(behind.into_iter().map(|line| format!("    {line}")));
        return lines;
    }
    let lines = wrap(text, columns - indent).into_iter().enumerate();
    let line = |(index, line): (usize, String)| match index {
        0 => format!("{first}{line}"),
        _ => format!("{}{line}", " ".repeat(indent)),
    };
    lines.map(line).collect()
}
