//! Documents are read once: short sentences, and the field's words.
//!
//! 1. A document is cut into blocks: paragraphs and items of lists. Code blocks, tables and headings
//!    are skipped.
//! 2. A piece of inline code becomes one word, a link its text.
//! 3. A sentence ends at `.`, `?` or `!` before a space and a word that does not begin small, and at
//!    the end of its block.
//!
//! The help texts of the program are checked in the same way. Not a parser of English.

#[cfg(test)]
mod tests;

use super::{Complaint, Tree, help};

/// Most words of a sentence.
const WORDS_MAX: usize = 30;

/// Where the program is whose help texts are checked.
const PROGRAM: &str = "crates/lithify-cli/src/";

/// Longer sentences that files still have: path, number. It only ever gets shorter.
pub(super) const LONG_SENTENCES: &[(&str, usize)] = &[];

/// Phrases that a reader has to guess at, and what to say.
const PHRASES: &[(&str, &str)] = &[
    ("told apart", "significant, or n.s."),
    ("come to rest", "steady, settled or idle"),
    ("came to rest", "was steady, settled or idle"),
    ("comes to rest", "is steady, settled or idle"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("went on", "continued"),
    ("going on", "continuing"),
    ("looks at", "checks"),
    ("looked at", "checked"),
    ("two looks", "two checks"),
    ("is taken on", "is adopted"),
    ("held back by its host", "throttled by the host"),
    ("is held back", "is throttled, or waits"),
    ("the same arm twice", "A/A control"),
    ("the same engine twice", "A/A control"),
    ("until all work is done", "including compaction debt"),
    ("what an operation costs", "CPU and I/O per operation"),
    ("not waited for", "excluded from the wait"),
    ("of one's own", "separate"),
    ("in its own right", "separate"),
    ("floors are missed", "targets are missed"),
    ("missed floors", "missed targets"),
];

/// Complains about long sentences and about phrases that say less than they could.
pub fn check(tree: &Tree, complaints: &mut Vec<Complaint>) {
    check_with(tree, LONG_SENTENCES, complaints);
}

/// [`check`] with another table of what is recorded.
pub(super) fn check_with(tree: &Tree, recorded: &[(&str, usize)], complaints: &mut Vec<Complaint>) {
    for file in &tree.files {
        let text = String::from_utf8_lossy(&file.bytes);
        let blocks = match &file.path {
            path if is_document(path) => blocks(&text),
            path if path.starts_with(PROGRAM) && path.ends_with(".rs") => {
                blocks(&help::document(&text))
            }
            _ => continue,
        };
        check_phrases(&file.path, &blocks, complaints);
        let allowed = recorded.iter().find(|(path, _)| *path == file.path).map_or(0, |row| row.1);
        check_sentences(&file.path, &blocks, allowed, complaints);
    }
}

fn is_document(path: &str) -> bool {
    path.ends_with(".md") && (path.starts_with("docs/") || !path.contains('/'))
}

fn check_phrases(path: &str, blocks: &[Block], complaints: &mut Vec<Complaint>) {
    for block in blocks {
        let text = block.text.to_lowercase();
        for (phrase, better) in PHRASES {
            for at in super::source::words(&text, phrase) {
                complaints.push(Complaint {
                    path: path.to_owned(),
                    line: block.line_at(at),
                    what: format!("\"{phrase}\": say {better}"),
                });
            }
        }
    }
}

fn check_sentences(path: &str, blocks: &[Block], allowed: usize, complaints: &mut Vec<Complaint>) {
    let mut complain = |line: usize, what: String| {
        complaints.push(Complaint { path: path.to_owned(), line, what });
    };
    let long: Vec<(usize, usize, &str)> = blocks
        .iter()
        .flat_map(|block| {
            let sentences = sentences(&block.text).into_iter();
            sentences.map(|(at, text)| (block.line_at(at), count_words(text), text))
        })
        .filter(|(_, words, _)| *words > WORDS_MAX)
        .collect();
    if long.len() < allowed {
        complain(0, format!("{} long sentences, {allowed} recorded: record less", long.len()));
    }
    if long.len() > allowed {
        for (line, words, text) in long {
            let start: String = text.chars().take(50).collect();
            complain(
                line,
                format!("a sentence of {words} words; at most {WORDS_MAX}: \"{start}\""),
            );
        }
    }
}

/// A paragraph or an item of a list: its text in one line, without markup.
struct Block {
    text: String,
    /// Where each of its lines begins in the text, and its number.
    lines: Vec<(usize, usize)>,
}

impl Block {
    /// The line, from 1, of a byte offset of the text.
    fn line_at(&self, offset: usize) -> usize {
        let after = self.lines.partition_point(|(start, _)| *start <= offset);
        after.checked_sub(1).map_or(0, |index| self.lines[index].1)
    }
}

/// The blocks of a Markdown document.
fn blocks(document: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_code = false;
    let mut is_open = false;
    for (index, line) in document.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            is_code = !is_code;
        }
        let is_skipped = ["```", "#", "|"].iter().any(|mark| trimmed.starts_with(mark));
        if is_code || is_skipped || trimmed.is_empty() {
            is_open = false;
            continue;
        }
        let item = item_text(trimmed);
        if item.is_some() || !is_open {
            blocks.push(Block { text: String::new(), lines: Vec::new() });
        }
        is_open = true;
        if let Some(block) = blocks.last_mut() {
            if !block.text.is_empty() {
                block.text.push(' ');
            }
            block.lines.push((block.text.len(), index + 1));
            block.text.push_str(item.unwrap_or(trimmed));
        }
    }
    blocks.into_iter().map(without_markup).collect()
}

/// What follows the mark of a list's item.
fn item_text(line: &str) -> Option<&str> {
    let bullet = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark));
    bullet.or_else(|| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == line.len() { None } else { rest.strip_prefix(". ") }
    })
}

/// The block with each piece of inline code as the word `code` and each link as its text. Offsets
/// of lines follow.
fn without_markup(block: Block) -> Block {
    let mut text = String::with_capacity(block.text.len());
    let mut lines = block.lines.iter().peekable();
    let mut kept_lines = Vec::new();
    let mut inside = Inside::Prose;
    let mut previous = ' ';
    for (at, c) in block.text.char_indices() {
        while let Some((_, number)) = lines.next_if(|(start, _)| *start <= at) {
            kept_lines.push((text.len(), *number));
        }
        match (&inside, c) {
            (Inside::Prose, '`') => {
                text.push_str("code");
                inside = Inside::Code;
            }
            (Inside::Code, '`') => inside = Inside::Prose,
            (Inside::Prose, '(') if previous == ']' => inside = Inside::Address,
            (Inside::Address, ')') => inside = Inside::Prose,
            (Inside::Prose, '*' | '[' | ']') => {}
            (Inside::Prose, _) => text.push(c),
            (Inside::Code | Inside::Address, _) => {}
        }
        previous = c;
    }
    Block { text, lines: kept_lines }
}

/// Where a character stands.
enum Inside {
    Prose,
    Code,
    Address,
}

/// The sentences of a text, each with its offset.
fn sentences(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(['.', '?', '!']) {
        let rest = text[at + 1..].trim_start_matches([')', '"']);
        let Some(next) = rest.strip_prefix(' ') else { continue };
        if next.starts_with(char::is_lowercase) && !next.starts_with("code") {
            continue;
        }
        let end = text.len() - next.len();
        found.push((start, text[start..end].trim_end()));
        start = end;
    }
    found.push((start, text[start..].trim_end()));
    found
}

/// Words: what stands between spaces and has a letter or a digit.
fn count_words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}
