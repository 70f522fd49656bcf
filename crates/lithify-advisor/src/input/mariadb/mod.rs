//! A table of a running MariaDB or MySQL, through the server's own client.
//!
//! Owns: rows by their key and where they are. `client` has the address and calls the program, `types`
//! knows what columns take. The client brings TLS, the user's configuration and every way to log in.
//!
//! Only SELECT is said. Rows come in the order of the primary key, which is that of InnoDB's pages.

mod client;
mod types;

use std::ops::ControlFlow;
use std::path::Path;

use super::positions::{Place, Positions};
use super::record::Record;
use super::size::{Range, rows_of_range, user_bytes};
use super::spool::Spool;
use super::{Facts, Source, column_of};
use crate::error::{AdviseError, Result};
use crate::rows::{Row, Rows};
use crate::watch::Watch;
use client::{Address, quoted_name, quoted_text};
use types::Column;

/// Rows that a place asks for at once; more are asked for where they are short.
const PLACE_ROWS: u64 = 4_096;

/// Whether a path is the address of a table.
pub(super) fn is_address(path: &Path) -> bool {
    path.to_str().is_some_and(|path| client::scheme(path).is_some())
}

/// The address as it may be printed.
pub(super) fn without_password(path: &Path) -> String {
    Address::parse(path).map_or_else(|_| "a server".to_owned(), |address| address.to_string())
}

/// A table.
pub(super) struct MariaDb {
    address: Address,
    table: String,
    columns: Vec<Column>,
    /// The declared key, by which rows come.
    primary_key: Vec<usize>,
    record: Record,
    positions: Positions,
    facts: Facts,
}

impl MariaDb {
    /// The table of an address, or the one that is named.
    ///
    /// # Errors
    /// The server cannot be reached or refuses; there is no such table, or no row in it.
    pub(super) fn open(
        path: &Path,
        table: Option<&str>,
        key: &[String],
        watch: &dyn Watch,
    ) -> Result<MariaDb> {
        let address = Address::parse(path)?;
        let table = match table.or(address.table.as_deref()) {
            Some(table) => table.to_owned(),
            None => largest_table(&address)?,
        };
        let columns = types::columns(&address, &table)?;
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let shown = address.to_string();
        let primary_key = types::primary_key(&address, &table, &columns)?;
        let key_columns: Vec<usize> = match key {
            [] => primary_key.clone(),
            _ => (key.iter().map(|name| column_of(Path::new(&shown), &names, name)))
                .collect::<Result<_>>()?,
        };
        let of_key: Vec<&str> = key_columns.iter().map(|at| names[*at]).collect();
        let facts = Facts {
            format: format!("{} table {table} with {} columns", address.kind, names.len()),
            files: 1,
            has_rows: true,
            has_bytes: false,
            native: &["innodb", "innodb-compressed", "myrocks"],
            key: of_key.join(", "),
            data_bytes: 0,
        };
        let record = Record::new(key_columns);
        let positions = Positions::none();
        let mut source = MariaDb { address, table, columns, primary_key, record, positions, facts };
        source.locate(watch)?;
        match source.facts.data_bytes {
            0 => Err(AdviseError::data(format_args!("{shown}: {} has no row", source.table))),
            _ => Ok(source),
        }
    }

    /// The column of the key, if rows can be found by its numbers.
    fn numbered_by(&self) -> Option<usize> {
        match self.primary_key.as_slice() {
            [at] => Some(*at).filter(|at| self.columns[*at].is_number()),
            _ => None,
        }
    }

    /// Finds out where rows are and how many.
    fn locate(&mut self, watch: &dyn Watch) -> Result<()> {
        let Some(at) = self.numbered_by() else { return self.keep(watch) };
        let name = quoted_name(&self.columns[at].name);
        let query = format!("SELECT MIN({name}), MAX({name}) FROM {}", quoted_name(&self.table));
        let mut ends = None;
        self.address.query(&query, &mut |fields| {
            let number = |at: usize| fields.text(at).parse::<i64>().ok();
            ends = number(0).zip(number(1));
            Ok(ControlFlow::Continue(()))
        })?;
        let Some((first, last)) = ends else { return self.keep(watch) };
        let range = Range { first, last };
        let rows = rows_of_range(range, &mut |from, each| {
            self.read(Some(from), &mut |number, _, _| each(number))
        })?;
        let Some(rows) = rows else { return self.keep(watch) };
        self.positions = Positions::Numbers(range);
        self.facts.data_bytes = user_bytes(self, rows)?;
        Ok(())
    }

    /// Reads all rows, and keeps some.
    fn keep(&mut self, watch: &dyn Watch) -> Result<()> {
        let mut spool = Spool::default();
        let total = types::data_bytes(&self.address, &self.table)?;
        self.read(None, &mut |_, row, done| spool.take(row, done, total, watch))?;
        self.facts.data_bytes = spool.finish()?;
        self.positions = Positions::Kept(spool);
        Ok(())
    }

    /// The statement for rows from a number on.
    fn statement(&self, from: Option<i64>, rows_max: Option<u64>) -> String {
        let wanted: Vec<String> = self.columns.iter().map(Column::expression).collect();
        let number = self
            .numbered_by()
            .map_or_else(|| "0".to_owned(), |at| quoted_name(&self.columns[at].name));
        let table = quoted_name(&self.table);
        let mut statement = format!("SELECT {number}, {} FROM {table}", wanted.join(", "));
        if let Some(from) = from {
            statement.push_str(&format!(" WHERE {number} >= {from}"));
        }
        if !self.primary_key.is_empty() {
            let key: Vec<String> =
                self.primary_key.iter().map(|at| quoted_name(&self.columns[*at].name)).collect();
            statement.push_str(&format!(" ORDER BY {}", key.join(", ")));
        }
        if let Some(rows) = rows_max {
            statement.push_str(&format!(" LIMIT {rows}"));
        }
        statement
    }

    /// Rows from a number on, each with its number and the bytes so far.
    fn read(
        &mut self,
        from: Option<i64>,
        each: &mut dyn FnMut(i64, Row<'_>, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let (mut rows_max, mut from) = (from.map(|_| PLACE_ROWS), from);
        let (mut count, mut done) = (0, 0);
        loop {
            let statement = self.statement(from, rows_max);
            let (mut flow, mut got, mut last) = (ControlFlow::Continue(()), 0, None);
            let (record, columns) = (&mut self.record, &self.columns);
            self.address.query(&statement, &mut |fields| {
                record.clear();
                for (at, column) in columns.iter().enumerate() {
                    column.push(fields, at + 1, record);
                }
                let number = fields.text(0).parse().unwrap_or(0);
                let row = record.row(count);
                count += 1;
                got += 1;
                done += row.data_bytes;
                last = Some(number);
                flow = each(number, row, done);
                Ok(flow)
            })?;
            // More rows are wanted than were asked for.
            let next = last.and_then(|last: i64| last.checked_add(1));
            match (rows_max, next) {
                (Some(limit), Some(next)) if flow.is_continue() && got == limit => {
                    (from, rows_max) = (Some(next), Some(limit.saturating_mul(4)));
                }
                _ => return Ok(()),
            }
        }
    }
}

/// The table of a database that has most bytes.
fn largest_table(address: &Address) -> Result<String> {
    let query = format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_TYPE = \
         'BASE TABLE' ORDER BY DATA_LENGTH DESC LIMIT 1",
        quoted_text(&address.database)
    );
    let mut found = None;
    address.query(&query, &mut |fields| {
        found = Some(fields.text(0).to_owned());
        Ok(ControlFlow::Continue(()))
    })?;
    found.ok_or_else(|| AdviseError::usage(format_args!("{address} has no table")))
}

impl Source for MariaDb {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn places_max(&self) -> usize {
        self.positions.places_max()
    }

    fn place(&mut self, share: f64, wanted_bytes: u64) -> Result<Rows> {
        let from = match self.positions.place(share, wanted_bytes) {
            Place::Kept(rows) => return Ok(rows),
            Place::From(number) => number,
        };
        let mut rows = Rows::default();
        self.read(Some(from), &mut |_, row, _| rows.push_up_to(row, wanted_bytes))?;
        Ok(rows)
    }

    fn scan(&mut self, each: &mut dyn FnMut(Row<'_>, u64) -> ControlFlow<()>) -> Result<()> {
        self.read(None, &mut |_, row, done| each(row, done))
    }

    fn check_unchanged(&self) -> Result<()> {
        // Rows of a running server change; each statement sees one state of them.
        Ok(())
    }
}
