//! Writes JSON, so that the engine needs no library for it.

use std::fmt::Write;

/// Builds one JSON text from nested calls; commas and escapes are taken care of.
///
/// ```
/// let mut json = lithify::stats::JsonWriter::new();
/// json.object(|json| {
///     json.key("level").number(3);
///     json.key("codecs").array(|json| {
///         json.string("lz4");
///         json.real(0.5);
///     });
/// });
/// assert_eq!(json.finish(), r#"{"level":3,"codecs":["lz4",0.5]}"#);
/// ```
#[derive(Debug, Default)]
pub struct JsonWriter {
    text: String,
    after_value: bool,
}

impl JsonWriter {
    /// An empty text.
    pub fn new() -> Self {
        JsonWriter::default()
    }

    fn value(&mut self) -> &mut String {
        if self.after_value {
            self.text.push(',');
        }
        self.after_value = true;
        &mut self.text
    }

    fn nested(&mut self, open: char, close: char, inside: impl FnOnce(&mut Self)) {
        self.value().push(open);
        self.after_value = false;
        inside(self);
        self.text.push(close);
        self.after_value = true;
    }

    /// An object; `inside` writes its keys and values.
    pub fn object(&mut self, inside: impl FnOnce(&mut Self)) {
        self.nested('{', '}', inside);
    }

    /// An array; `inside` writes its values.
    pub fn array(&mut self, inside: impl FnOnce(&mut Self)) {
        self.nested('[', ']', inside);
    }

    /// The key of the value that follows.
    pub fn key(&mut self, key: &str) -> &mut Self {
        self.string(key);
        self.text.push(':');
        self.after_value = false;
        self
    }

    /// A string.
    pub fn string(&mut self, string: &str) {
        let text = self.value();
        text.push('"');
        for character in string.chars() {
            match character {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                control if control < ' ' => {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "\\u{:04x}", control as u32);
                }
                other => text.push(other),
            }
        }
        text.push('"');
    }

    /// A whole number.
    pub fn number(&mut self, number: u64) {
        let _ = write!(self.value(), "{number}");
    }

    /// A whole number of either sign.
    pub fn integer(&mut self, number: i64) {
        let _ = write!(self.value(), "{number}");
    }

    /// True or false.
    pub fn boolean(&mut self, value: bool) {
        let _ = write!(self.value(), "{value}");
    }

    /// A real number; what is none (infinite, undefined) becomes `null`.
    pub fn real(&mut self, number: f64) {
        let text = self.value();
        if number.is_finite() {
            let _ = write!(text, "{number}");
        } else {
            text.push_str("null");
        }
    }

    /// The text.
    pub fn finish(self) -> String {
        self.text
    }
}
