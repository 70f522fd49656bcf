//! Rows of typed columns as bytes, laid out as SQL databases do: a bit for each column that is null,
//! the lengths of texts, then the columns. The columns of the key are in the key alone.

use super::key;
use crate::rows::Row;

/// The value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// A whole number, and the bytes that its type takes: 1 to 8.
    Whole(i64, usize),
    /// A number that is not whole, and whether it takes four bytes instead of eight.
    Float(f64, bool),
    /// Something that always has the same length.
    Fixed(&'a [u8]),
    /// Something of any length.
    Text(&'a [u8]),
}

/// Lays the values of columns out as a row, those of the key apart.
///
/// ```
/// use lithify_advisor::input::{Record, Value};
/// let mut record = Record::new(vec![0]);
/// for value in [Value::Whole(7, 8), Value::Text(b"basalt"), Value::Null] {
///     record.push(value);
/// }
/// let row = record.row(0);
/// assert_eq!((row.key.len(), row.value.len()), (8, 1 + 1 + 6));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Which columns make the key, in its order.
    key_columns: Vec<usize>,
    /// Where the value of each column of the key is in `key_bytes`.
    key_parts: Vec<(usize, usize, bool)>,
    key_bytes: Vec<u8>,
    columns: usize,
    nulls: Vec<u8>,
    lengths: Vec<u8>,
    fields: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Record {
    /// Of rows whose key is made of these columns, by their numbers; of none, rows are numbered.
    pub fn new(key_columns: Vec<usize>) -> Record {
        let key_parts = vec![(0, 0, false); key_columns.len()];
        Record { key_columns, key_parts, ..Record::default() }
    }

    /// Begins a row.
    pub fn clear(&mut self) {
        self.columns = 0;
        for bytes in [&mut self.nulls, &mut self.lengths, &mut self.fields, &mut self.key_bytes] {
            bytes.clear();
        }
    }

    /// The next column's value.
    pub fn push(&mut self, value: Value<'_>) {
        let column = self.columns;
        self.columns += 1;
        if let Some(at) = self.key_columns.iter().position(|key| *key == column) {
            let start = self.key_bytes.len();
            let is_number = match value {
                Value::Null => false,
                Value::Whole(number, _) => {
                    self.key_bytes.extend_from_slice(&key::sorting(number));
                    true
                }
                Value::Float(number, _) => {
                    self.key_bytes.extend_from_slice(&key::sorting_float(number));
                    true
                }
                Value::Fixed(bytes) | Value::Text(bytes) => {
                    self.key_bytes.extend_from_slice(bytes);
                    false
                }
            };
            self.key_parts[at] = (start, self.key_bytes.len(), is_number);
            return;
        }
        let bit = column % 8;
        if bit == 0 || self.nulls.len() <= column / 8 {
            self.nulls.resize(column / 8 + 1, 0);
        }
        match value {
            Value::Null => self.nulls[column / 8] |= 1 << bit,
            // Big-endian, the sign bit turned over: as rows are compared.
            Value::Whole(number, bytes) => {
                let sign = 1_u64 << (8 * bytes.clamp(1, 8) - 1);
                let encoded = ((number as u64) ^ sign).to_be_bytes();
                self.fields.extend_from_slice(&encoded[8 - bytes.clamp(1, 8)..]);
            }
            // Little-endian, as most databases keep them.
            Value::Float(number, true) => {
                self.fields.extend_from_slice(&(number as f32).to_le_bytes());
            }
            Value::Float(number, false) => self.fields.extend_from_slice(&number.to_le_bytes()),
            Value::Fixed(bytes) => self.fields.extend_from_slice(bytes),
            Value::Text(bytes) => {
                push_length(&mut self.lengths, bytes.len());
                self.fields.extend_from_slice(bytes);
            }
        }
    }

    /// The row; `number` is its key where no column is one.
    pub fn row(&mut self, number: u64) -> Row<'_> {
        self.value.clear();
        for bytes in [&self.nulls, &self.lengths, &self.fields] {
            self.value.extend_from_slice(bytes);
        }
        self.key.clear();
        let mut partition_bytes = 0;
        for (at, (start, end, is_number)) in self.key_parts.iter().enumerate() {
            self.key.extend_from_slice(&self.key_bytes[*start..*end]);
            if !is_number && at + 1 < self.key_parts.len() {
                self.key.push(0);
            }
            if at == 0 {
                partition_bytes = self.key.len();
            }
        }
        if self.key_parts.is_empty() {
            self.key.extend_from_slice(&key::of_number(number));
            partition_bytes = self.key.len();
        }
        // The number of a row is no data of it.
        let key_bytes = if self.key_parts.is_empty() { 0 } else { self.key.len() };
        let data_bytes = (key_bytes + self.value.len()) as u64;
        Row { key: &self.key, partition_bytes, value: &self.value, data_bytes, file_bytes: 0 }
    }
}

/// One byte up to 127, else two or four with the first bit set (as InnoDB has lengths).
pub(super) fn push_length(lengths: &mut Vec<u8>, length: usize) {
    match length {
        0..=0x7f => lengths.push(length as u8),
        0x80..=0x3fff => lengths.extend_from_slice(&(length as u16 | 0x8000).to_be_bytes()),
        _ => lengths.extend_from_slice(&(length as u32 | 0xc000_0000).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_the_key_are_in_the_key_alone() {
        let mut record = Record::new(vec![2, 0]);
        for value in [
            Value::Whole(-1, 4),
            Value::Text(b"text"),
            Value::Text(b"ab"),
            Value::Null,
            Value::Fixed(&[7, 8]),
        ] {
            record.push(value);
        }
        let row = record.row(9);
        let number = 0x7fff_ffff_ffff_ffff_u64.to_be_bytes();
        assert_eq!(row.key, [b"ab\0".as_slice(), number.as_slice()].concat());
        assert_eq!(row.partition_bytes, 3);
        assert_eq!(row.value, [0b1000, 4, b't', b'e', b'x', b't', 7, 8]);
        assert_eq!(row.data_bytes, 11 + 8);
    }

    #[test]
    fn rows_without_a_key_are_numbered() {
        let mut record = Record::new(Vec::new());
        record.push(Value::Whole(1, 2));
        let row = record.row(5);
        assert_eq!((row.key, row.data_bytes), (&5_u64.to_be_bytes()[..], 3));
        assert_eq!(row.value, [0, 0x80, 1]);
        record.clear();
        record.push(Value::Text(&[b'x'; 300]));
        assert_eq!(record.row(6).value.len(), 1 + 2 + 300);
    }

    #[test]
    fn many_columns_have_a_bit_each() {
        let mut record = Record::new(vec![0]);
        (0..17).for_each(|_| record.push(Value::Null));
        assert_eq!(record.row(0).value, [0b1111_1110, 0xff, 1]);
    }
}
