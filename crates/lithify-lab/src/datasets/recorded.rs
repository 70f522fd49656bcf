//! Real data as rows: edits of an encyclopedia, quarter hours of an electric grid.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

use super::{DataError, Table, page_counts};
use crate::adapter::table::schema::{Column, Kind, Query, Range, Row, Schema, Value};

/// Rows that were read.
enum Rows {
    Any(Vec<Row>),
    /// Numbers only, so many to a row: a third of the memory.
    Numbers(Vec<i64>),
}

/// A table that was recorded, held in memory.
pub(super) struct Recorded {
    schema: Schema,
    rows: Rows,
    query: Query,
    updated: usize,
}

impl Table for Recorded {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn rows(&self) -> u64 {
        match &self.rows {
            Rows::Any(rows) => rows.len() as u64,
            Rows::Numbers(numbers) => (numbers.len() / self.schema.columns.len()) as u64,
        }
    }

    fn row(&self, index: u64, row: &mut Row) {
        match &self.rows {
            Rows::Any(rows) => row.clone_from(&rows[index as usize]),
            Rows::Numbers(numbers) => {
                let width = self.schema.columns.len();
                let own = &numbers[index as usize * width..][..width];
                row.clear();
                row.extend(own.iter().map(|number| Value::Whole(*number)));
            }
        }
    }

    fn query(&self) -> Query {
        self.query.clone()
    }

    fn updated_column(&self) -> usize {
        self.updated
    }
}

/// The lines of a file that are not empty, with their numbers from 1.
fn lines(
    path: &Path,
) -> Result<impl Iterator<Item = (usize, Result<String, DataError>)>, DataError> {
    let file = File::open(path).map_err(|error| DataError::of(path.display(), error))?;
    let place = path.to_owned();
    let lines = BufReader::new(file).lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.as_ref().is_ok_and(String::is_empty));
    Ok(lines.map(move |(index, line)| {
        let line = line.map_err(|error| DataError::of(place.display(), error));
        (index + 1, line)
    }))
}

fn bad_line(path: &Path, number: usize, what: impl std::fmt::Display) -> DataError {
    DataError(format!("{}:{number}: {what}", path.display()))
}

/// What is used of an edit.
#[derive(Deserialize)]
struct Edit {
    time: String,
    channel: String,
    page: String,
    added: u32,
    deleted: u32,
}

impl Edit {
    /// Day and hour of a time `2015-09-12T23:48:46.051Z`.
    fn day_and_hour(&self) -> Option<(i64, i64)> {
        let number = |from: usize, to: usize| self.time.get(from..to)?.parse::<i64>().ok();
        let day = number(0, 4)? * 10_000 + number(5, 7)? * 100 + number(8, 10)?;
        Some((day, number(11, 13)?))
    }
}

/// `Amata mochlotis` as the title of a page in an address.
fn escaped(title: &str) -> Vec<u8> {
    let mut text = Vec::new();
    for byte in title.bytes() {
        match byte {
            b' ' => text.push(b'_'),
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'_'
            | b'-'
            | b'.'
            | b'('
            | b')'
            | b':'
            | b'/'
            | b',' => text.push(byte),
            _ => text.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    text
}

/// A day of edits in the shape of page counts: a row per edit, with one request and the bytes that
/// it added and removed; sorted by hour, project and title, as page counts are.
pub(super) fn wiki_edits(path: &Path, rows: u64) -> Result<Recorded, DataError> {
    let mut edits = Vec::new();
    for (number, line) in lines(path)? {
        if edits.len() as u64 == rows {
            break;
        }
        let edit: Edit =
            serde_json::from_str(&line?).map_err(|error| bad_line(path, number, error))?;
        let Some((day, hour)) = edit.day_and_hour() else {
            return Err(bad_line(path, number, format!("{} is no time", edit.time)));
        };
        let project = edit.channel.trim_start_matches('#').trim_end_matches(".wikipedia");
        let size = edit.added.saturating_add(edit.deleted);
        edits.push((day, hour, project.to_owned(), escaped(&edit.page), i64::from(size)));
    }
    let Some(day) = edits.iter().map(|edit| edit.0).min() else {
        return Err(bad_line(path, 1, "there is no edit"));
    };
    edits.sort();
    let row = |(index, (day, hour, project, title, size)): (usize, (i64, i64, String, _, i64))| {
        vec![
            Value::Whole(index as i64 + 1),
            Value::Whole(day),
            Value::Whole(hour),
            Value::Text(project.into_bytes()),
            Value::Text(title),
            Value::Whole(1),
            Value::Whole(size),
        ]
    };
    let rows = edits.into_iter().enumerate().map(row).collect();
    let schema = page_counts::schema();
    let updated = schema.column("request").unwrap_or(0);
    Ok(Recorded { schema, rows: Rows::Any(rows), query: page_counts::query(day), updated })
}

/// The parts of a unit that whole numbers count: every number of the files is one of them.
const PARTS: f64 = 1e9;

/// Quarter hours of a day.
const QUARTERS: u64 = 96;

/// Columns before the numbers of a file.
const GRID_KEY: usize = 2;

/// Quarter hours of a grid: a number of record, the quarter of the day, and every number of the
/// file in billionths.
pub(super) fn grid(path: &Path, rows: u64) -> Result<Recorded, DataError> {
    let mut lines = lines(path)?;
    let (_, head) = lines.next().ok_or_else(|| bad_line(path, 1, "there is no head"))?;
    let head = head?;
    let mut columns =
        vec![Column::new("record", Kind::Unsigned32), Column::new("quarter", Kind::Unsigned8)];
    let names = head.split(';').skip(1);
    columns.extend(names.map(|name| Column::new(name.replace(['-', '.'], "_"), Kind::Signed64)));
    let mut numbers = Vec::new();
    let mut records = 0;
    for (number, line) in lines {
        if records == rows {
            break;
        }
        numbers.extend([records as i64, (records % QUARTERS) as i64]);
        for text in line?.split(';').skip(1) {
            let value: f64 = text.parse().map_err(|error| bad_line(path, number, error))?;
            let parts = (value * PARTS).round();
            if parts / PARTS != value {
                let what = format!("{text} is no whole number of billionths");
                return Err(bad_line(path, number, what));
            }
            numbers.push(parts as i64);
        }
        records += 1;
        if numbers.len() as u64 != records * columns.len() as u64 {
            return Err(bad_line(path, number, "not as many numbers as the head names"));
        }
    }
    let query = Query {
        range: Some(Range { column: 0, from: records as i64 / 4, to: records as i64 * 3 / 4 }),
        group: vec![1],
        figures: vec![GRID_KEY],
        top: Some(10),
    };
    let schema = Schema::new("grid", columns, &[0], &[1]);
    Ok(Recorded { schema, rows: Rows::Numbers(numbers), query, updated: GRID_KEY })
}
