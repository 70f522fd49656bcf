//! How rows lie in bytes.

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use super::delimited::Delimited;
use super::key;

/// A row at the start of some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed {
    /// Where its text is, without its line end.
    pub(super) text: std::ops::Range<usize>,
    /// Where the next one may start.
    pub(super) end: usize,
    /// Its key; empty where none is named.
    pub(super) key: Vec<u8>,
    /// The part of the key that chooses the partition.
    pub(super) partition_bytes: usize,
}

/// What was found at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A row.
    Row(Parsed),
    /// Nothing but line ends, up to there.
    Blank(usize),
    /// The row goes on behind the bytes.
    More,
    /// The last row, which begins there, is not whole: the data end in it, without a line end.
    Cut(usize),
    /// Something else, which begins there.
    Wrong(usize, String),
}

/// Where the first row starts that begins in some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// There.
    At(usize),
    /// Not before there. What is behind has to be seen with more bytes.
    NotBefore(usize),
}

/// A format of rows.
#[derive(Debug)]
pub(super) enum RowFormat {
    /// Rows of fields with a delimiter.
    Delimited(Box<Delimited>),
    /// A JSON object in each line, and the paths of the key.
    Json(Vec<Vec<String>>),
    /// A line is a row.
    Lines,
    /// Pieces of so many bytes.
    Bytes(usize),
}

impl RowFormat {
    /// The row at the start of `bytes`; `is_end` says that none follow them.
    pub(super) fn parse(&self, bytes: &[u8], is_end: bool) -> Found {
        match self {
            RowFormat::Delimited(delimited) => delimited.parse(bytes, is_end),
            RowFormat::Json(paths) => match line(bytes, is_end) {
                Found::Row(parsed) if is_end && is_cut(bytes, &parsed) => Found::Cut(0),
                Found::Row(parsed) => json_row(bytes, parsed, paths),
                other => other,
            },
            RowFormat::Lines => line(bytes, is_end),
            RowFormat::Bytes(size) => {
                let end = bytes.len().min(*size);
                match end {
                    0 => Found::Blank(0),
                    _ if end < *size && !is_end => Found::More,
                    _ => Found::Row(Parsed { text: 0..end, end, ..Parsed::default() }),
                }
            }
        }
    }

    /// Where the first row starts that begins in `bytes`, which begin anywhere in the data.
    pub(super) fn first_start(&self, bytes: &[u8], is_end: bool) -> Start {
        match self {
            RowFormat::Delimited(delimited) => delimited.first_start(bytes, is_end),
            RowFormat::Bytes(_) => Start::At(0),
            RowFormat::Json(_) | RowFormat::Lines => match behind_line(bytes, 0) {
                at if at < bytes.len() => Start::At(at),
                end => Start::NotBefore(end),
            },
        }
    }

    /// Whether it has rows that mean something.
    pub(super) fn has_rows(&self) -> bool {
        !matches!(self, RowFormat::Bytes(_))
    }
}

/// Where the line behind the next line end starts.
pub(super) fn behind_line(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| from + at + 1)
}

fn line(bytes: &[u8], is_end: bool) -> Found {
    let end = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(at) => at + 1,
        None if is_end => bytes.len(),
        None => return Found::More,
    };
    let text = trimmed_end(bytes, end);
    match text {
        0 => Found::Blank(end),
        _ => Found::Row(Parsed { text: 0..text, end, ..Parsed::default() }),
    }
}

/// The end without the line end.
pub(super) fn trimmed_end(bytes: &[u8], end: usize) -> usize {
    let line = &bytes[..end];
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line).len()
}

/// Whether an object that nothing follows, no line end either, lacks its end.
fn is_cut(bytes: &[u8], parsed: &Parsed) -> bool {
    let text = bytes[parsed.text.clone()].trim_ascii();
    if bytes[..parsed.end].ends_with(b"\n") || !text.starts_with(b"{") {
        return false;
    }
    let read = serde_json::from_slice::<IgnoredAny>(text);
    read.is_err_and(|error| error.is_eof() || !text.ends_with(b"}"))
}

fn json_row(bytes: &[u8], parsed: Parsed, paths: &[Vec<String>]) -> Found {
    let text = &bytes[parsed.text.clone()];
    let (key, partition_bytes) = match json_key(text, paths) {
        Ok(key) => key,
        Err(what) => return Found::Wrong(0, what),
    };
    Found::Row(Parsed { key, partition_bytes, ..parsed })
}

/// The key of an object and the length of its first part. Without paths the object is not parsed.
fn json_key(text: &[u8], paths: &[Vec<String>]) -> Result<(Vec<u8>, usize), String> {
    let (mut key, mut partition_bytes) = (Vec::new(), 0);
    if paths.is_empty() {
        return match text.trim_ascii_start().first() {
            Some(b'{') => Ok((key, 0)),
            _ => Err("no JSON object: every line has to be one".to_owned()),
        };
    }
    let text = std::str::from_utf8(text).map_err(|error| format!("no UTF-8: {error}"))?;
    for (at, path) in paths.iter().enumerate() {
        let value = json_value(text, path)?;
        // A text without its quotes sorts as the text does.
        let unquoted = serde_json::from_str::<String>(value);
        let part = unquoted.as_deref().unwrap_or(value);
        key::append_part(&mut key, part.as_bytes(), at + 1 == paths.len());
        if at == 0 {
            partition_bytes = key.len();
        }
    }
    Ok((key, partition_bytes))
}

fn json_value<'a>(text: &'a str, path: &[String]) -> Result<&'a str, String> {
    let mut value = text;
    for (depth, name) in path.iter().enumerate() {
        let mut deserializer = serde_json::Deserializer::from_str(value);
        let found = Field(name)
            .deserialize(&mut deserializer)
            .and_then(|found| deserializer.end().map(|()| found))
            .map_err(|error| format!("no JSON object in one line: {error}"))?;
        value = found.map(RawValue::get).ok_or_else(|| missing(value, &path[..=depth]))?;
    }
    Ok(value)
}

/// What is said where a field is not there.
fn missing(object: &str, path: &[String]) -> String {
    type Object<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;
    let object: Object<'_> = serde_json::from_str(object).unwrap_or_default();
    let names: Vec<&str> = object.keys().map(AsRef::as_ref).take(12).collect();
    format!("no field '{}' here; there are: {}", path.join("."), names.join(", "))
}

/// Finds a field of an object, the last one of its name. Others are passed over, which spares a map.
struct Field<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for Field<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Field<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_wanted) = fields.next_key_seed(Name(self.0))? {
            match is_wanted {
                true => found = Some(fields.next_value()?),
                false => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// Whether a name of a field is the one, without a copy of it.
struct Name<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(found: Found) -> Parsed {
        match found {
            Found::Row(parsed) => parsed,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_end_with_either_line_end_or_the_data() {
        let bytes = b"one\r\ntwo\n\nlast";
        let first = row(RowFormat::Lines.parse(bytes, true));
        assert_eq!((&bytes[first.text], first.end), (&b"one"[..], 5));
        assert_eq!(RowFormat::Lines.parse(b"\nx", true), Found::Blank(1));
        assert_eq!(RowFormat::Lines.parse(b"last", false), Found::More);
        assert_eq!(row(RowFormat::Lines.parse(b"last", true)).end, 4);
        assert_eq!(RowFormat::Lines.first_start(bytes, true), Start::At(5));
        assert_eq!(RowFormat::Lines.first_start(b"no line end", true), Start::NotBefore(11));
    }

    #[test]
    fn an_object_without_its_end_is_cut_where_the_data_end() {
        let json = RowFormat::Json(Vec::new());
        for cut in ["{\"id\": 1", "{\"id\": {\"a\": 1}", "{\"id\": \"x}", "{", "{\"id\": tr"] {
            assert_eq!(json.parse(cut.as_bytes(), true), Found::Cut(0), "{cut}");
            assert_eq!(json.parse(cut.as_bytes(), false), Found::More, "{cut}");
            let ended = format!("{cut}\n");
            assert!(matches!(json.parse(ended.as_bytes(), true), Found::Row(_)), "{cut}");
        }
        assert!(matches!(json.parse(b"{\"id\": \"\xff\"}", true), Found::Row(_)));
        assert!(matches!(json.parse(b"plain", true), Found::Wrong(..)));
    }

    #[test]
    fn keys_of_objects_follow_paths() {
        let paths = |text: &[&str]| -> Vec<Vec<String>> {
            text.iter().map(|path| path.split('.').map(str::to_owned).collect()).collect()
        };
        let text = br#"{"id": 7, "user": {"name": "a\"b"}}"#;
        let (key, partition) = json_key(text, &paths(&["id", "user.name"])).expect("has both");
        assert_eq!(partition, 8);
        assert_eq!(&key[8..], b"a\"b");
        let missing = json_key(text, &paths(&["user.age"])).expect_err("is not there");
        assert!(missing.contains("'user.age'") && missing.contains("name"), "{missing}");
        assert!(json_key(b"[1]", &paths(&["id"])).is_err());
        assert!(json_key(b"plain", &[]).is_err());
        assert!(json_key(b"{\xff}", &[]).is_ok(), "what is not UTF-8 is data");
    }
}
