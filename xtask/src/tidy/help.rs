//! The help texts of a program as a document, so that [`super::prose`] can check them.
//!
//! Help is what `clap` prints: doc comments, and the strings of attributes that end in `help` or
//! `about`. Every other line of the file becomes an empty one, so that line numbers stay. Indented
//! lines of a string are examples, and become empty too.

/// Attributes whose strings are printed, up to the opening quote.
const ATTRIBUTES: &[&str] = &["help = \"", "about = \""];

/// The help in the text of a Rust file, line by line.
pub(super) fn document(source: &str) -> String {
    let mut document = String::with_capacity(source.len());
    let mut is_string = false;
    for line in source.lines() {
        if is_string {
            let (text, has_ended) = string_line(line);
            if !line.starts_with("  ") {
                document.push_str(&text);
            }
            is_string = !has_ended;
        } else if let Some(comment) = line.trim().strip_prefix("///") {
            document.push_str(comment.trim());
        } else if let Some(start) = string_start(line) {
            let (text, has_ended) = string_line(start);
            document.push_str(&text);
            is_string = !has_ended;
        }
        document.push('\n');
    }
    document
}

/// What follows the opening quote of an attribute's string.
fn string_start(line: &str) -> Option<&str> {
    ATTRIBUTES.iter().find_map(|attribute| {
        let at = line.find(attribute)?;
        line.get(at + attribute.len()..)
    })
}

/// A line of a string up to its closing quote, without escapes, and whether the quote was there.
fn string_line(line: &str) -> (String, bool) {
    let mut text = String::new();
    let mut is_escaped = false;
    for c in line.chars() {
        match c {
            '\\' if !is_escaped => is_escaped = true,
            '"' if !is_escaped => return (text, true),
            _ => {
                text.push(c);
                is_escaped = false;
            }
        }
    }
    (text, false)
}
