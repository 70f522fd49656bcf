//! Texts on their way into markup.

use maud::{Markup, PreEscaped, Render};

/// A text as it may stand in markup and in attributes. What a page cannot hold becomes a
/// replacement character.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A text as it is.
pub(super) struct Plain<'a>(pub &'a str);

impl Render for Plain<'_> {
    fn render(&self) -> Markup {
        PreEscaped(escape(self.0))
    }
}

/// A text whose long whole numbers stand in groups of three.
pub(super) struct Grouped<'a>(pub &'a str);

impl Render for Grouped<'_> {
    fn render(&self) -> Markup {
        PreEscaped(escape(&grouped(self.0)))
    }
}

/// Long whole numbers in groups of three, by spaces that do not break.
fn grouped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let before = rest[..start].chars().last();
        let digits =
            rest[start..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - start);
        let number = &rest[start..start + digits];
        out.push_str(&rest[..start]);
        let is_part = before.is_some_and(|c| c.is_alphanumeric() || ".-_".contains(c));
        if number.len() < 5 || is_part {
            out.push_str(number);
        } else {
            for (index, digit) in number.chars().enumerate() {
                if index > 0 && (number.len() - index).is_multiple_of(3) {
                    out.push('\u{202f}');
                }
                out.push(digit);
            }
        }
        rest = &rest[start + digits..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped() {
        assert_eq!(grouped("142101 [62493, 999]"), "142\u{202f}101 [62\u{202f}493, 999]");
        assert_eq!(grouped("lz4-123456 0.123456 b958e94"), "lz4-123456 0.123456 b958e94");
        assert_eq!(grouped("-"), "-");
    }

    #[test]
    fn markup_stays_text() {
        assert_eq!(escape("a&b<c>\"d'\n\u{1}"), "a&amp;b&lt;c&gt;&quot;d&#39;\n\u{fffd}");
    }
}
