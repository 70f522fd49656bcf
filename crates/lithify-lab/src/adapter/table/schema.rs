//! Tables: columns, rows, their one encoding as keys and values, queries and answers.
//!
//! A row as a key-value pair:
//!
//! ```text
//! primary key    the key columns one after the other, each big-endian in the width of its kind;
//!                signed ones with the sign bit flipped. Bytes order as the columns do.
//! value          the other columns: those of fixed width in the order of the table, little-endian;
//!                behind them the texts, each its length (u16, little-endian) and its bytes.
//! secondary key  the index columns, encoded as key columns, then the primary key; its value is
//!                empty.
//! ```
//!
//! Only columns of whole numbers may be in a key, a condition, a group or a sum: sums of them are
//! exact on any engine and in any order.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 0 to 255.
    Unsigned8,
    /// 0 to 2^32 - 1.
    Unsigned32,
    /// A day, as the number `yyyymmdd`.
    Date,
    /// A signed number of 64 bits.
    Signed64,
    /// A floating-point number of 32 bits.
    Float32,
    /// Bytes of text, so many at most.
    Text(u16),
}

impl Kind {
    /// Bytes in a key or value; `None` for text.
    pub fn width(self) -> Option<usize> {
        match self {
            Kind::Unsigned8 => Some(1),
            Kind::Unsigned32 | Kind::Date | Kind::Float32 => Some(4),
            Kind::Signed64 => Some(8),
            Kind::Text(_) => None,
        }
    }

    /// The type of a column of this kind in SQL.
    pub fn sql_type(self) -> String {
        match self {
            Kind::Unsigned8 => "TINYINT UNSIGNED".to_owned(),
            Kind::Unsigned32 => "INT UNSIGNED".to_owned(),
            Kind::Date => "DATE".to_owned(),
            Kind::Signed64 => "BIGINT".to_owned(),
            Kind::Float32 => "FLOAT".to_owned(),
            // Longer ones would not fit into a row with others.
            Kind::Text(bytes) if bytes <= 255 => format!("VARCHAR({bytes})"),
            Kind::Text(_) => "TEXT".to_owned(),
        }
    }

    /// True for whole numbers.
    pub fn is_whole(self) -> bool {
        !matches!(self, Kind::Float32 | Kind::Text(_))
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
}

impl Column {
    /// A column.
    pub fn new(name: impl Into<String>, kind: Kind) -> Column {
        Column { name: name.into(), kind }
    }
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a column of whole numbers.
    Whole(i64),
    /// Of a column of floating-point numbers.
    Float(f32),
    /// Of a column of text.
    Text(Vec<u8>),
}

impl Value {
    /// The number; 0 of anything else.
    pub fn whole(&self) -> i64 {
        if let Value::Whole(number) = self { *number } else { 0 }
    }
}

/// A row: a value per column.
pub type Row = Vec<Value>;

/// Where the bytes of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Key(usize),
    Value(usize),
    /// Behind the fixed part of the value, not to be read by place.
    Text,
}

/// The columns of a table and its keys.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: Vec<Column>,
    /// The columns of the primary key.
    pub primary: Vec<usize>,
    /// The columns of the secondary index; empty without one.
    pub secondary: Vec<usize>,
    places: Vec<Place>,
    /// Length of a primary key, bytes.
    key_bytes: usize,
}

impl Schema {
    /// A table whose keys are of whole numbers.
    pub fn new(
        name: &'static str,
        columns: Vec<Column>,
        primary: &[usize],
        secondary: &[usize],
    ) -> Schema {
        let mut places = vec![Place::Text; columns.len()];
        let width = |column: usize| columns[column].kind.width().unwrap_or(0);
        let mut key_bytes = 0;
        for column in primary {
            places[*column] = Place::Key(key_bytes);
            key_bytes += width(*column);
        }
        let mut value_bytes = 0;
        for (column, place) in places.iter_mut().enumerate() {
            if *place == Place::Text && columns[column].kind.width().is_some() {
                *place = Place::Value(value_bytes);
                value_bytes += width(column);
            }
        }
        debug_assert!(
            primary.iter().chain(secondary).all(|column| columns[*column].kind.is_whole())
        );
        let (primary, secondary) = (primary.to_vec(), secondary.to_vec());
        Schema { name, columns, primary, secondary, places, key_bytes }
    }

    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Appends a number as a part of a key.
    fn push_key_part(&self, column: usize, number: i64, key: &mut Vec<u8>) {
        match self.columns[column].kind {
            Kind::Unsigned8 => key.push(number as u8),
            Kind::Signed64 => key.extend_from_slice(&(number ^ i64::MIN).to_be_bytes()),
            _ => key.extend_from_slice(&(number as u32).to_be_bytes()),
        }
    }

    /// Writes the primary key of the numbers of its columns into `key` (cleared first); of fewer
    /// numbers, the beginning of a key.
    pub fn key_of(&self, numbers: &[i64], key: &mut Vec<u8>) {
        key.clear();
        for (column, number) in self.primary.iter().zip(numbers) {
            self.push_key_part(*column, *number, key);
        }
    }

    /// Writes the primary key of a row into `key` (cleared first).
    pub fn encode_key(&self, row: &Row, key: &mut Vec<u8>) {
        key.clear();
        for column in &self.primary {
            self.push_key_part(*column, row[*column].whole(), key);
        }
    }

    /// Writes the key of a row in the secondary index into `key` (cleared first).
    pub fn encode_secondary(&self, row: &Row, key: &mut Vec<u8>) {
        key.clear();
        for column in self.secondary.iter().chain(&self.primary) {
            self.push_key_part(*column, row[*column].whole(), key);
        }
    }

    /// Writes the beginning of the keys of the secondary index whose first column is `number`.
    pub fn secondary_prefix(&self, number: i64, key: &mut Vec<u8>) {
        key.clear();
        if let Some(column) = self.secondary.first() {
            self.push_key_part(*column, number, key);
        }
    }

    /// The primary key at the end of a key of the secondary index; `None` for what is none.
    pub fn primary_of_secondary<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        key.get(key.len().checked_sub(self.key_bytes)?..)
    }

    /// Writes the value of a row into `value` (cleared first).
    pub fn encode_value(&self, row: &Row, value: &mut Vec<u8>) {
        value.clear();
        for (column, place) in self.places.iter().enumerate() {
            if let Place::Value(_) = place {
                match (&row[column], self.columns[column].kind) {
                    (Value::Float(number), _) => value.extend_from_slice(&number.to_le_bytes()),
                    (number, Kind::Unsigned8) => value.push(number.whole() as u8),
                    (number, Kind::Signed64) => {
                        value.extend_from_slice(&number.whole().to_le_bytes());
                    }
                    (number, _) => {
                        value.extend_from_slice(&(number.whole() as u32).to_le_bytes());
                    }
                }
            }
        }
        for (column, place) in self.places.iter().enumerate() {
            if let (Place::Text, Value::Text(text)) = (place, &row[column]) {
                let length = text.len().min(usize::from(u16::MAX));
                value.extend_from_slice(&(length as u16).to_le_bytes());
                value.extend_from_slice(&text[..length]);
            }
        }
    }

    /// The number of a column of whole numbers in a row's key and value; `None` where the bytes are
    /// not those of a row.
    pub fn read(&self, column: usize, key: &[u8], value: &[u8]) -> Option<i64> {
        let kind = self.columns.get(column)?.kind;
        let width = kind.width()?;
        Some(match (self.places[column], kind) {
            (Place::Key(at), Kind::Signed64) => {
                i64::from_be_bytes(key.get(at..at + width)?.try_into().ok()?) ^ i64::MIN
            }
            (Place::Key(at), Kind::Unsigned8) => i64::from(*key.get(at)?),
            (Place::Key(at), _) => {
                i64::from(u32::from_be_bytes(key.get(at..at + width)?.try_into().ok()?))
            }
            (Place::Value(at), Kind::Signed64) => {
                i64::from_le_bytes(value.get(at..at + width)?.try_into().ok()?)
            }
            (Place::Value(at), Kind::Unsigned8) => i64::from(*value.get(at)?),
            (Place::Value(at), _) => {
                i64::from(u32::from_le_bytes(value.get(at..at + width)?.try_into().ok()?))
            }
            (Place::Text, _) => return None,
        })
    }

    /// Adds to a column of whole numbers in a row's value; false where that has no such column.
    pub fn add(&self, column: usize, amount: i64, value: &mut [u8]) -> bool {
        let Some(old) = self.read(column, &[], value) else { return false };
        let Place::Value(at) = self.places[column] else { return false };
        let new = old.wrapping_add(amount);
        match self.columns[column].kind {
            Kind::Unsigned8 => value[at] = new as u8,
            Kind::Signed64 => value[at..at + 8].copy_from_slice(&new.to_le_bytes()),
            _ => value[at..at + 4].copy_from_slice(&(new as u32).to_le_bytes()),
        }
        true
    }

    /// Bytes of the columns of a row, without any overhead: texts and fixed widths.
    pub fn logical_bytes(&self, row: &Row) -> u64 {
        let bytes = self.columns.iter().zip(row).map(|(column, value)| match value {
            Value::Text(text) => text.len(),
            _ => column.kind.width().unwrap_or(0),
        });
        bytes.sum::<usize>() as u64
    }
}

/// A condition on one column of whole numbers: both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Which column.
    pub column: usize,
    /// The smallest number.
    pub from: i64,
    /// The largest number.
    pub to: i64,
}

/// An aggregate over a range of rows: numbers of rows, sums and maxima by group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Which rows; all of them without one.
    pub range: Option<Range>,
    /// By which columns they are grouped; all rows are one group without any.
    pub group: Vec<usize>,
    /// Columns whose sums and maxima are asked for.
    pub figures: Vec<usize>,
    /// Only so many groups, those of the largest first sums, equal ones by group.
    pub top: Option<usize>,
}

/// One line of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The values of the columns of the group.
    pub key: Vec<i64>,
    /// Rows in it.
    pub rows: u64,
    /// Sums of the columns.
    pub sums: Vec<i64>,
    /// Maxima of the columns.
    pub maxima: Vec<i64>,
}

/// What a query finds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The groups, by their keys, or by their first sums where the query has a limit.
    pub groups: Vec<Group>,
}

impl Answer {
    /// Rows in all groups.
    pub fn rows(&self) -> u64 {
        self.groups.iter().map(|group| group.rows).sum()
    }

    /// A number that two different answers hardly have in common.
    pub fn checksum(&self) -> u64 {
        let mut text = String::new();
        for Group { key, rows, sums, maxima } in &self.groups {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{key:?} {rows} {sums:?} {maxima:?}");
        }
        twox_hash::XxHash3_64::oneshot(text.as_bytes())
    }
}

/// Sums rows up for a query.
pub struct Aggregation<'a> {
    query: &'a Query,
    groups: BTreeMap<Vec<i64>, Group>,
    key: Vec<i64>,
}

impl<'a> Aggregation<'a> {
    /// Nothing so far.
    pub fn new(query: &'a Query) -> Self {
        Aggregation { query, groups: BTreeMap::new(), key: Vec::new() }
    }

    /// Adds a row, whose whole numbers `read` gives; false when it gives none.
    pub fn add(&mut self, read: impl Fn(usize) -> Option<i64>) -> bool {
        let Query { range, group, figures, .. } = self.query;
        if let Some(Range { column, from, to }) = range {
            let Some(number) = read(*column) else { return false };
            if !(*from..=*to).contains(&number) {
                return true;
            }
        }
        self.key.clear();
        for column in group {
            let Some(number) = read(*column) else { return false };
            self.key.push(number);
        }
        if !self.groups.contains_key(&self.key) {
            let (sums, maxima) = (vec![0; figures.len()], vec![i64::MIN; figures.len()]);
            let group = Group { key: self.key.clone(), rows: 0, sums, maxima };
            self.groups.insert(self.key.clone(), group);
        }
        let Some(line) = self.groups.get_mut(&self.key) else { return false };
        line.rows += 1;
        for (index, column) in figures.iter().enumerate() {
            let Some(number) = read(*column) else { return false };
            line.sums[index] = line.sums[index].wrapping_add(number);
            line.maxima[index] = line.maxima[index].max(number);
        }
        true
    }

    /// The answer.
    pub fn finish(self) -> Answer {
        let mut groups: Vec<Group> = self.groups.into_values().collect();
        if let Some(top) = self.query.top {
            let first = |group: &Group| group.sums.first().copied().unwrap_or(0);
            groups.sort_by(|a, b| first(b).cmp(&first(a)).then_with(|| a.key.cmp(&b.key)));
            groups.truncate(top);
        }
        Answer { groups }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let columns = vec![
            Column::new("text", Kind::Text(20)),
            Column::new("id", Kind::Signed64),
            Column::new("hour", Kind::Unsigned8),
            Column::new("size", Kind::Unsigned32),
            Column::new("share", Kind::Float32),
            Column::new("total", Kind::Signed64),
        ];
        Schema::new("t", columns, &[1, 2], &[3])
    }

    fn row(id: i64, hour: i64, size: i64) -> Row {
        let text = Value::Text(format!("row {id}").into_bytes());
        let (id, hour, size) = (Value::Whole(id), Value::Whole(hour), Value::Whole(size));
        vec![text, id, hour, size, Value::Float(0.5), Value::Whole(-7)]
    }

    #[test]
    fn keys_order_as_their_columns_do() {
        let schema = schema();
        let numbers = [(i64::MIN, 0), (-2, 255), (-1, 3), (0, 0), (0, 1), (5, 0), (i64::MAX, 9)];
        let mut keys = Vec::new();
        for (id, hour) in numbers {
            let (mut key, mut again) = (Vec::new(), Vec::new());
            schema.encode_key(&row(id, hour, 1), &mut key);
            schema.key_of(&[id, hour], &mut again);
            assert_eq!(key, again);
            keys.push(key);
        }
        assert!(keys.is_sorted() && keys.iter().all(|key| key.len() == 9));
        let mut low = Vec::new();
        let mut high = Vec::new();
        schema.encode_secondary(&row(9, 9, 255), &mut low);
        schema.encode_secondary(&row(-9, 0, 256), &mut high);
        assert!(low < high);
        let mut key = Vec::new();
        schema.encode_key(&row(-9, 0, 256), &mut key);
        assert_eq!(schema.primary_of_secondary(&high), Some(key.as_slice()));
        assert_eq!(schema.primary_of_secondary(b"short"), None);
        schema.secondary_prefix(256, &mut key);
        assert!(high.starts_with(&key) && !low.starts_with(&key));
    }

    #[test]
    fn numbers_are_read_and_added_to_in_place() {
        let schema = schema();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let row = row(-3, 23, 4_000_000_000);
        schema.encode_key(&row, &mut key);
        schema.encode_value(&row, &mut value);
        let read = |value: &[u8], column| schema.read(column, &key, value);
        assert_eq!(
            [1, 2, 3, 5].map(|column| read(&value, column)),
            [Some(-3), Some(23), Some(4_000_000_000), Some(-7)]
        );
        assert_eq!(read(&value, 0), None, "text has no place");
        assert_eq!(value.len() as u64 + 9, schema.logical_bytes(&row) + 2, "and a length");
        assert!(schema.add(5, 10, &mut value) && schema.add(3, 1, &mut value));
        assert_eq!((read(&value, 5), read(&value, 3)), (Some(3), Some(4_000_000_001)));
        assert!(!schema.add(1, 1, &mut value), "a key stays");
        assert!(!schema.add(5, 1, &mut value[..3]) && read(b"", 5).is_none());
    }

    #[test]
    fn kinds_have_names_in_sql() {
        let types: Vec<String> = schema().columns.iter().map(|c| c.kind.sql_type()).collect();
        assert_eq!(types[..3], ["VARCHAR(20)", "BIGINT", "TINYINT UNSIGNED"]);
        assert_eq!(
            (Kind::Date.sql_type(), Kind::Text(4096).sql_type()),
            ("DATE".into(), "TEXT".into())
        );
    }

    #[test]
    fn groups_and_their_largest() {
        let rows = [(1, 7, 10), (2, 8, 30), (3, 7, 5), (4, 9, 15), (5, 9, 100)];
        let query = |top| Query {
            range: Some(Range { column: 1, from: 1, to: 4 }),
            group: vec![2],
            figures: vec![3],
            top,
        };
        let answer = |query: &Query| {
            let mut sum = Aggregation::new(query);
            for (id, hour, size) in rows {
                let row = row(id, hour, size);
                assert!(sum.add(|column| row.get(column).map(Value::whole)));
            }
            assert!(!sum.add(|_| None));
            sum.finish()
        };
        let all = answer(&query(None));
        let lines: Vec<_> =
            all.groups.iter().map(|g| (g.key[0], g.rows, g.sums[0], g.maxima[0])).collect();
        assert_eq!(lines, [(7, 2, 15, 10), (8, 1, 30, 30), (9, 1, 15, 15)]);
        let top = answer(&query(Some(2)));
        let keys: Vec<i64> = top.groups.iter().map(|group| group.key[0]).collect();
        assert_eq!((keys, top.rows()), (vec![8, 7], 3), "equal sums go by group");
        assert_ne!(top.checksum(), all.checksum());
        assert_eq!(all.checksum(), answer(&query(None)).checksum());
    }
}
