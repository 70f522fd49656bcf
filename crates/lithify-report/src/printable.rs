//! Texts of a user on their way to a terminal.

/// A text as a terminal may get it: control characters and those that turn the direction of text are escaped.
/// Line ends stay.
///
/// ```
/// use lithify_report::printable;
/// assert_eq!(printable("red: \u{1b}[31m\0 ümlaut"), r"red: \u{1b}[31m\0 ümlaut");
/// ```
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push('\n'),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                shown.extend(character.escape_unicode());
            }
            character if character.is_control() => shown.extend(character.escape_debug()),
            character => shown.push(character),
        }
    }
    shown
}
