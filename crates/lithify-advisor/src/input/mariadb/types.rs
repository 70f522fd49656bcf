//! Columns of a table: what they are, how they are asked for, what InnoDB stores of them.

use std::ops::ControlFlow;

use super::super::record::{Record, Value};
use super::client::{Address, Fields, quoted_name, quoted_text};
use crate::error::{AdviseError, Result};

/// How a column is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A whole number of so many bytes.
    Whole(usize),
    /// A whole number of eight bytes without a sign.
    Unsigned,
    /// A number that InnoDB keeps in another form, by what turns it into a whole one.
    Turned(&'static str, usize),
    /// Four or eight bytes.
    Float(usize),
    /// So many digits in front of the point and behind it.
    Decimal(usize, usize),
    /// Anything else is as it is printed.
    Text,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    kind: Kind,
}

impl Column {
    fn new(name: &str, data_type: &str, [digits, behind_point]: [usize; 2]) -> Column {
        let kind = match data_type {
            "bigint unsigned" => Kind::Unsigned,
            "tinyint" => Kind::Whole(1),
            "smallint" => Kind::Whole(2),
            "mediumint" => Kind::Whole(3),
            "int" | "integer" => Kind::Whole(4),
            "bigint" => Kind::Whole(8),
            "year" => Kind::Turned("+0", 1),
            "enum" => Kind::Turned("+0", 1),
            "set" | "bit" => Kind::Turned("+0", 8),
            "date" => Kind::Turned("TO_DAYS", 3),
            "time" => Kind::Turned("TIME_TO_SEC", 3),
            "datetime" => Kind::Turned("TO_SECONDS", 5),
            "timestamp" => Kind::Turned("UNIX_TIMESTAMP", 4),
            "float" => Kind::Float(4),
            "double" | "real" => Kind::Float(8),
            "decimal" | "numeric" => {
                Kind::Decimal(digits.saturating_sub(behind_point), behind_point)
            }
            _ => Kind::Text,
        };
        Column { name: name.to_owned(), kind }
    }

    /// Whether rows can be found by its numbers.
    pub(super) fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Whole(_))
    }

    /// What is asked for.
    pub(super) fn expression(&self) -> String {
        let name = quoted_name(&self.name);
        match self.kind {
            Kind::Turned("+0", _) => format!("{name}+0"),
            Kind::Turned(function, _) => format!("FLOOR({function}({name}))"),
            // A text that reads NULL is printed as a null is: what is in front tells them apart.
            Kind::Text => format!("CONCAT('=', {name})"),
            _ => name,
        }
    }

    /// Adds its value to a row.
    pub(super) fn push(&self, fields: &Fields, at: usize, record: &mut Record) {
        let Some(bytes) = fields.get(at) else { return record.push(Value::Null) };
        let text = fields.text(at);
        match self.kind {
            Kind::Whole(width) | Kind::Turned(_, width) => {
                // Numbers without a sign may be larger than those with one.
                let number = text.parse::<i64>().or_else(|_| text.parse::<u64>().map(|n| n as i64));
                record.push(number.map_or(Value::Text(bytes), |n| Value::Whole(n, width)));
            }
            Kind::Float(width) => match text.parse() {
                Ok(number) => record.push(Value::Float(number, width == 4)),
                Err(_) => record.push(Value::Text(bytes)),
            },
            Kind::Decimal(before, behind) => {
                record.push(Value::Fixed(&decimal(text, before, behind)));
            }
            Kind::Unsigned => match text.parse::<u64>() {
                Ok(number) => record.push(Value::Fixed(&number.to_be_bytes())),
                Err(_) => record.push(Value::Text(bytes)),
            },
            Kind::Text => record.push(Value::Text(bytes.strip_prefix(b"=").unwrap_or(bytes))),
        }
    }
}

/// Digits of a group, and the bytes of so many digits (`strings/decimal.c` of the server).
const GROUP_DIGITS: usize = 9;
const DIGIT_BYTES: [usize; GROUP_DIGITS + 1] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// A decimal number as InnoDB stores it: groups of nine digits from the point on in both directions; all
/// bits turned over where it is negative, the first one where it is not.
fn decimal(text: &str, before: usize, behind: usize) -> Vec<u8> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let (whole, part) = (format!("{whole:0>before$}"), format!("{part:0<behind$}"));
    let whole = &whole[whole.len().saturating_sub(before)..];
    let mut bytes = Vec::new();
    let mut push = |digits: &str| {
        let number = digits.parse::<u32>().unwrap_or(0).to_be_bytes();
        bytes.extend_from_slice(&number[4 - DIGIT_BYTES[digits.len()]..]);
    };
    let (first, groups) = whole.split_at(whole.len() % GROUP_DIGITS);
    push(first);
    groups_of(groups).for_each(&mut push);
    let (groups, last) = part.split_at(part.len() - part.len() % GROUP_DIGITS);
    groups_of(groups).for_each(&mut push);
    push(last);
    if is_negative {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
    if let Some(first) = bytes.first_mut() {
        *first ^= 0x80;
    }
    bytes
}

fn groups_of(digits: &str) -> impl Iterator<Item = &str> {
    (0..digits.len() / GROUP_DIGITS).map(|at| &digits[at * GROUP_DIGITS..(at + 1) * GROUP_DIGITS])
}

/// The columns of a table in their order.
pub(super) fn columns(address: &Address, table: &str) -> Result<Vec<Column>> {
    let query = format!(
        "SELECT COLUMN_NAME, IF(COLUMN_TYPE LIKE 'bigint%unsigned%', 'bigint unsigned', DATA_TYPE), NUMERIC_PRECISION, NUMERIC_SCALE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND \
         TABLE_NAME = {} ORDER BY ORDINAL_POSITION",
        quoted_text(&address.database),
        quoted_text(table)
    );
    let mut columns = Vec::new();
    address.query(&query, &mut |fields| {
        let digits = [2, 3].map(|at| fields.text(at).parse().unwrap_or(0));
        columns.push(Column::new(fields.text(0), &fields.text(1).to_lowercase(), digits));
        Ok(ControlFlow::Continue(()))
    })?;
    match columns.is_empty() {
        true => Err(AdviseError::usage(format_args!("{address}: there is no table '{table}'"))),
        false => Ok(columns),
    }
}

/// The columns of the primary key in its order; none if there is no such key.
pub(super) fn primary_key(
    address: &Address,
    table: &str,
    columns: &[Column],
) -> Result<Vec<usize>> {
    let query = format!(
        "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {} AND TABLE_NAME \
         = {} AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX",
        quoted_text(&address.database),
        quoted_text(table)
    );
    let mut key = Vec::new();
    address.query(&query, &mut |fields| {
        key.extend(columns.iter().position(|column| column.name == fields.text(0)));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(key)
}

/// What the server thinks that the rows of a table take.
pub(super) fn data_bytes(address: &Address, table: &str) -> Result<u64> {
    let query = format!(
        "SELECT DATA_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        quoted_text(&address.database),
        quoted_text(table)
    );
    let mut bytes = 0;
    address.query(&query, &mut |fields| {
        bytes = fields.text(0).parse().unwrap_or(0);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_take_what_innodb_gives_them() {
        let kind = |data_type: &str| Column::new("c", data_type, [10, 2]).kind;
        assert_eq!((kind("mediumint"), kind("json")), (Kind::Whole(3), Kind::Text));
        assert_eq!(Column::new("c", "datetime", [0, 0]).expression(), "FLOOR(TO_SECONDS(`c`))");
        assert_eq!(Column::new("c", "enum", [0, 0]).expression(), "`c`+0");
        // The example in the server's own source: 1234567890.1234 as DECIMAL(14,4).
        let expected = [0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2];
        assert_eq!(decimal("1234567890.1234", 10, 4), expected);
        assert_eq!(decimal("-1234567890.1234", 10, 4), expected.map(|byte: u8| !byte));
        assert_eq!(decimal("0.5", 8, 2), [0x80, 0, 0, 0, 50]);
    }
}
