//! One thing that a file holds, as named values: printed as text or as one line of JSON.

use crate::stats::JsonWriter;
use std::fmt;

/// Bytes of a key or value that are shown unless everything is asked for.
const SHOWN_BYTES_MAX: usize = 64;

/// The width of the names in an item of one field a line.
const NAME_WIDTH: usize = 26;

/// A field of an [`Item`].
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number without sign.
    Number(u64),
    /// A number with sign.
    Signed(i64),
    /// A one-bit field.
    Flag(bool),
    /// A word, name or id.
    Text(String),
    /// Bytes, escaped; printed in quotes.
    Bytes(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Signed(number) => write!(f, "{number}"),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Text(text) => f.write_str(text),
            Value::Bytes(text) => write!(f, "\"{text}\""),
        }
    }
}

/// One thing that a file holds: a header, a record, a change, a block, an entry.
///
/// `Display` gives its text, [`Item::to_json`] one JSON object with `item`, `offset` and the
/// fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    name: &'static str,
    depth: usize,
    is_long: bool,
    offset: Option<u64>,
    fields: Vec<(&'static str, Value)>,
}

impl Item {
    /// An item on one line, inside of `depth` others.
    pub(super) fn line(name: &'static str, depth: usize) -> Self {
        Item { name, depth, is_long: false, offset: None, fields: Vec::new() }
    }

    /// An item with one field a line.
    pub(super) fn long(name: &'static str) -> Self {
        Item { is_long: true, ..Item::line(name, 0) }
    }

    /// Its offset in the file.
    pub(super) fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    fn with(mut self, name: &'static str, value: Value) -> Self {
        self.fields.push((name, value));
        self
    }

    pub(super) fn number(self, name: &'static str, number: impl Into<u64>) -> Self {
        self.with(name, Value::Number(number.into()))
    }

    pub(super) fn signed(self, name: &'static str, number: impl Into<i64>) -> Self {
        self.with(name, Value::Signed(number.into()))
    }

    pub(super) fn flag(self, name: &'static str, flag: bool) -> Self {
        self.with(name, Value::Flag(flag))
    }

    pub(super) fn text(self, name: &'static str, text: impl fmt::Display) -> Self {
        self.with(name, Value::Text(text.to_string()))
    }

    /// A word of bits, or a checksum, as hexadecimal digits.
    pub(super) fn bits(self, name: &'static str, bits: u32) -> Self {
        self.text(name, format_args!("{bits:#010x}"))
    }

    /// Bytes, escaped. `full` shows all of them, however many.
    pub(super) fn bytes(self, name: &'static str, bytes: &[u8], full: bool) -> Self {
        self.with(name, Value::Bytes(escape(bytes, full)))
    }

    /// What it is, by the name that docs/format gives it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Where it lies in the file, if that is one place.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// Its fields, in the order of the format.
    pub fn fields(&self) -> &[(&'static str, Value)] {
        &self.fields
    }

    /// One JSON object on one line, without the line feed.
    pub fn to_json(&self) -> String {
        let mut json = JsonWriter::new();
        json.object(|json| {
            json.key("item").string(self.name);
            if let Some(offset) = self.offset {
                json.key("offset").number(offset);
            }
            for (name, value) in &self.fields {
                let json = json.key(name);
                match value {
                    Value::Number(number) => json.number(*number),
                    Value::Signed(number) => json.integer(*number),
                    Value::Flag(flag) => json.boolean(*flag),
                    Value::Text(text) | Value::Bytes(text) => json.string(text),
                }
            }
        });
        json.finish()
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:indent$}{}", "", self.name, indent = 2 * self.depth)?;
        if let Some(offset) = self.offset {
            write!(f, " @{offset}")?;
        }
        if self.is_long {
            for (name, value) in &self.fields {
                write!(f, "\n  {name:<NAME_WIDTH$}{value}")?;
            }
            return Ok(());
        }
        f.write_str(":")?;
        for (name, value) in &self.fields {
            write!(f, " {name}={value}")?;
        }
        Ok(())
    }
}

/// Bytes as text: what is not printable ASCII is escaped. Long ones are cut, and what is left out
/// is counted behind the last byte shown.
pub(super) fn escape(bytes: &[u8], full: bool) -> String {
    let limit = if full { bytes.len() } else { SHOWN_BYTES_MAX };
    match bytes.split_at_checked(limit) {
        Some((shown, rest)) if !rest.is_empty() => {
            format!("{}... {} bytes more", shown.escape_ascii(), rest.len())
        }
        _ => bytes.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_a_line_or_a_list_or_json() {
        let item = Item::line("entry", 1)
            .at(72)
            .number("family", 3_u32)
            .bytes("key", b"a\"\x00", false)
            .signed("effort", -5)
            .flag("codec_debt", true)
            .text("kind", "put");
        let text = r#"  entry @72: family=3 key="a\"\x00" effort=-5 codec_debt=true kind=put"#;
        assert_eq!(item.to_string(), text);
        let json = r#"{"item":"entry","offset":72,"family":3,"key":"a\\\"\\x00","effort":-5,"codec_debt":true,"kind":"put"}"#;
        assert_eq!(item.to_json(), json);
        let item = Item::long("header").number("version", 1_u32).bits("compatible", 10);
        let text = "header\n  version                   1\n  compatible                0x0000000a";
        assert_eq!(item.to_string(), text);
    }

    #[test]
    fn long_bytes_are_cut_and_counted() {
        assert_eq!(escape(&[b'x'; 64], false), "x".repeat(64));
        assert_eq!(escape(&[b'x'; 66], false), format!("{}... 2 bytes more", "x".repeat(64)));
        assert_eq!(escape(&[b'x'; 66], true), "x".repeat(66));
    }
}
