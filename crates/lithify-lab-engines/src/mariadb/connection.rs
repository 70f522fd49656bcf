//! A connection to the server: statements as text and prepared ones, their rows, their errors.
//!
//! Owns: the client's side of the protocol, as far as a private server without a password asks for
//! it. Answers whose rows are not read to their end close the connection when they are dropped, and
//! with it what the server still does for them.
//!
//! Own code, because the client crate that there is brings more than fifty others, those of
//! domain names and character tables among them, for what is a few hundred lines on a local socket.
//!
//! A [`Connection`] belongs to one thread.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use lithify_lab::adapter::{EngineError, EngineResult};

use super::tally::{Tally, Verb};
use super::wire::{Fields, Wire, put_length};

/// Capabilities of this client.
mod capability {
    pub const LONG_PASSWORD: u32 = 1;
    pub const LONG_FLAG: u32 = 1 << 2;
    pub const PROTOCOL_41: u32 = 1 << 9;
    pub const TRANSACTIONS: u32 = 1 << 13;
    pub const SECURE_CONNECTION: u32 = 1 << 15;
    pub const PLUGIN_AUTH: u32 = 1 << 19;
}

const CAPABILITIES: u32 = capability::LONG_PASSWORD
    | capability::LONG_FLAG
    | capability::PROTOCOL_41
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::PLUGIN_AUTH;

/// The method by which an empty password is no answer at all.
const AUTHENTICATION: &[u8] = b"mysql_native_password\0";

/// Bytes are not converted.
const CHARACTER_SET_BINARY: u8 = 63;

const PACKET_BYTES_MAX: u32 = 1 << 30;

/// Commands by their first byte.
mod command {
    pub const QUERY: u8 = 3;
    pub const PREPARE: u8 = 22;
    pub const EXECUTE: u8 = 23;
    pub const CLOSE: u8 = 25;
}

/// Types of values and columns.
mod kind {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const LONG_LONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const BLOB: u8 = 252;
    /// Beside a type: the integer has no sign.
    pub const UNSIGNED: u8 = 0x80;
}

/// First bytes of answers.
const OK: u8 = 0;
const END: u8 = 0xFE;
const ERROR: u8 = 0xFF;

/// An end is shorter than this; a row may begin with the same byte.
const END_BYTES_MAX: usize = 9;

/// Errors after which the transaction is rolled back and may succeed when it is tried again: a row
/// that changed since it was read, a lock that was waited for too long, a deadlock.
const RETRYABLE: [u64; 3] = [1020, 1205, 1213];

/// The client's end of a connection.
#[derive(Debug)]
pub struct Connection {
    wire: Wire,
    tally: Arc<Tally>,
    /// True while rows of an answer are still to be received.
    unread: bool,
}

/// A statement that the server has parsed.
#[derive(Debug)]
pub struct Statement {
    id: u32,
    parameters: usize,
    columns: Vec<u8>,
    verb: Verb,
    /// The server knows the types of the arguments since they were sent first.
    types_known: bool,
}

/// Values for the parameters of a statement, each time of the same types.
#[derive(Debug, Default)]
pub struct Arguments {
    types: Vec<u8>,
    values: Vec<u8>,
}

/// What a statement without rows did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Rows that are not as they were. Of an insert that updates what it finds: 1 inserted, 2
    /// updated, 0 found as it should be.
    pub affected: u64,
    /// Rows that an update found.
    pub matched: u64,
}

/// How an answer begins.
enum Head {
    /// It has rows of so many columns.
    Rows(usize),
    /// It has none.
    Done(Changes),
}

/// A row of an answer, column by column.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    values: Fields<'a>,
    columns: &'a [u8],
}

fn broken(error: &io::Error) -> EngineError {
    EngineError::fatal(format!("{CONNECTION_LOST}: {error}"))
}

/// How the error begins that says that the server is not there any more.
pub const CONNECTION_LOST: &str = "the connection to the server is lost";

#[cold]
fn unexpected(what: &str) -> EngineError {
    EngineError::fatal(format!("the server sent an unexpected answer: {what}"))
}

/// The error in a packet.
#[cold]
fn failure(payload: &[u8]) -> EngineError {
    let mut fields = Fields(payload);
    let code = fields.take(1).and_then(|_| fields.integer(2)).unwrap_or(0);
    // A sign and five characters of a state go before the words.
    let words = fields.0.strip_prefix(b"#").and_then(|rest| rest.get(5..)).unwrap_or(fields.0);
    let text = format!("error {code}: {}", String::from_utf8_lossy(words));
    if RETRYABLE.contains(&code) { EngineError::retryable(text) } else { EngineError::fatal(text) }
}

fn changes(payload: &[u8]) -> Changes {
    let mut fields = Fields(payload);
    let affected = fields.take(1).and_then(|_| fields.length()).unwrap_or(0);
    // The words behind an update: "Rows matched: 1  Changed: 1  Warnings: 0".
    let words = String::from_utf8_lossy(fields.0);
    let matched = words
        .split_once("Rows matched: ")
        .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    Changes { affected, matched: matched.unwrap_or(0) }
}

fn is_end(payload: &[u8]) -> bool {
    payload.first() == Some(&END) && payload.len() < END_BYTES_MAX
}

impl Connection {
    /// Connects to the server at `socket` as its first user, who has no password. What it asks for
    /// counts in `tally`.
    ///
    /// # Errors
    /// There is no server, or it does not let this client in.
    pub fn open(socket: &Path, tally: Arc<Tally>) -> EngineResult<Connection> {
        let stream = UnixStream::connect(socket).map_err(|error| broken(&error))?;
        let mut connection = Connection { wire: Wire::new(stream), tally, unread: false };
        connection.shake_hands()?;
        Ok(connection)
    }

    fn shake_hands(&mut self) -> EngineResult<()> {
        let greeting = self.receive()?;
        if greeting.first() == Some(&ERROR) {
            return Err(failure(greeting));
        }
        if greeting.first() != Some(&10) {
            return Err(unexpected("the greeting of another protocol"));
        }
        let mut answer = Vec::with_capacity(64);
        answer.extend_from_slice(&CAPABILITIES.to_le_bytes());
        answer.extend_from_slice(&PACKET_BYTES_MAX.to_le_bytes());
        answer.push(CHARACTER_SET_BINARY);
        answer.extend_from_slice(&[0; 23]);
        answer.extend_from_slice(b"root\0");
        // No password: an answer of no bytes.
        answer.push(0);
        answer.extend_from_slice(AUTHENTICATION);
        self.send(&[&answer])?;
        loop {
            let payload = self.receive()?;
            match payload.first() {
                Some(&OK) => return Ok(()),
                Some(&ERROR) => return Err(failure(payload)),
                // Another method is asked for; no password is nothing in that one too.
                Some(&END) => self.send(&[])?,
                _ => return Err(unexpected("neither let in nor refused")),
            }
        }
    }

    fn send(&mut self, payload: &[&[u8]]) -> EngineResult<()> {
        self.wire.send(payload).map_err(|error| broken(&error))
    }

    fn command(&mut self, payload: &[&[u8]]) -> EngineResult<()> {
        if self.unread {
            return Err(EngineError::fatal("rows of another statement are still to be read"));
        }
        self.wire.send_first(payload).map_err(|error| broken(&error))
    }

    fn receive(&mut self) -> EngineResult<&[u8]> {
        self.wire.receive().map_err(|error| broken(&error))
    }

    fn head(&mut self) -> EngineResult<Head> {
        let payload = self.receive()?;
        match payload.first() {
            Some(&OK) => Ok(Head::Done(changes(payload))),
            Some(&ERROR) => Err(failure(payload)),
            _ => Fields(payload)
                .length()
                .and_then(|columns| usize::try_from(columns).ok())
                .map(Head::Rows)
                .ok_or_else(|| unexpected("no number of columns")),
        }
    }

    /// Receives `count` descriptions of columns and the end behind them; gives their types.
    fn descriptions(&mut self, count: usize) -> EngineResult<Vec<u8>> {
        let mut types = Vec::with_capacity(count);
        for _ in 0..count {
            let mut fields = Fields(self.receive()?);
            // Catalog, schema, twice the table and twice the column, then a length of fixed fields:
            // character set and greatest length come before the type.
            let names = (0..6).try_for_each(|_| fields.bytes().map(|_| ()));
            let kind = names.and_then(|()| fields.take(7)).and_then(|_| fields.integer(1));
            types.push(kind.ok_or_else(|| unexpected("no description of a column"))? as u8);
        }
        if count > 0 {
            self.receive()?;
        }
        Ok(types)
    }

    fn text(&mut self, sql: &str) -> EngineResult<()> {
        self.tally.sent(Verb::of(sql));
        self.command(&[&[command::QUERY], sql.as_bytes()])
    }

    /// Does a statement that has no rows.
    ///
    /// # Errors
    /// The server's own.
    pub fn run(&mut self, sql: &str) -> EngineResult<Changes> {
        self.text(sql)?;
        match self.head()? {
            Head::Done(changes) => {
                self.tally.done(Verb::of(sql), changes);
                Ok(changes)
            }
            Head::Rows(columns) => {
                self.descriptions(columns)?;
                self.text_rows(columns, &mut |_| ())?;
                Ok(Changes::default())
            }
        }
    }

    /// The rows of a query as text; a missing value is empty.
    ///
    /// # Errors
    /// The server's own.
    pub fn query(&mut self, sql: &str) -> EngineResult<Vec<Vec<String>>> {
        self.text(sql)?;
        let Head::Rows(columns) = self.head()? else { return Ok(Vec::new()) };
        self.descriptions(columns)?;
        let mut rows = Vec::new();
        self.text_rows(columns, &mut |row| rows.push(row))?;
        Ok(rows)
    }

    fn text_rows(
        &mut self,
        columns: usize,
        found: &mut dyn FnMut(Vec<String>),
    ) -> EngineResult<()> {
        loop {
            let payload = self.receive()?;
            if is_end(payload) {
                return Ok(());
            }
            if payload.first() == Some(&ERROR) {
                return Err(failure(payload));
            }
            let mut fields = Fields(payload);
            let mut row = Vec::with_capacity(columns);
            for _ in 0..columns {
                let value = match fields.0.first() {
                    Some(0xFB) => fields.take(1).map(|_| &[][..]),
                    _ => fields.bytes(),
                };
                let value = value.ok_or_else(|| unexpected("a row that is too short"))?;
                row.push(String::from_utf8_lossy(value).into_owned());
            }
            found(row);
        }
    }

    /// Has a statement parsed.
    ///
    /// # Errors
    /// The server's own.
    pub fn prepare(&mut self, sql: &str) -> EngineResult<Statement> {
        self.command(&[&[command::PREPARE], sql.as_bytes()])?;
        let payload = self.receive()?;
        if payload.first() == Some(&ERROR) {
            return Err(failure(payload));
        }
        let mut fields = Fields(payload);
        let numbers = fields.take(1).and_then(|_| {
            Some((fields.integer(4)?, fields.integer(2)? as usize, fields.integer(2)? as usize))
        });
        let (id, columns, parameters) =
            numbers.ok_or_else(|| unexpected("no prepared statement"))?;
        self.descriptions(parameters)?;
        let columns = self.descriptions(columns)?;
        let verb = Verb::of(sql);
        Ok(Statement { id: id as u32, parameters, columns, verb, types_known: false })
    }

    /// Forgets a statement.
    ///
    /// # Errors
    /// The connection is lost.
    fn forget(&mut self, statement: &Statement) -> EngineResult<()> {
        self.command(&[&[command::CLOSE], &statement.id.to_le_bytes()])
    }

    /// Does a prepared statement that has no rows.
    ///
    /// # Errors
    /// The server's own.
    pub fn execute(
        &mut self,
        statement: &mut Statement,
        arguments: &Arguments,
    ) -> EngineResult<Changes> {
        self.begin(statement, arguments)?;
        match self.head()? {
            Head::Done(changes) => {
                self.tally.done(statement.verb, changes);
                Ok(changes)
            }
            Head::Rows(_) => Err(unexpected("rows where there are none")),
        }
    }

    /// Does a prepared statement and shows each of its rows. Returns how many there were.
    ///
    /// # Errors
    /// The server's own, and what `row` finds wrong.
    pub fn select(
        &mut self,
        statement: &mut Statement,
        arguments: &Arguments,
        row: &mut dyn FnMut(Row<'_>) -> EngineResult<()>,
    ) -> EngineResult<u64> {
        self.stream(statement, arguments)?;
        let mut rows = 0;
        let mut verdict = Ok(());
        while let Some(found) = self.next_row(statement)? {
            rows += 1;
            // The rest is received all the same: the connection is used again.
            verdict = verdict.and_then(|()| row(found));
        }
        verdict.map(|()| rows)
    }

    /// Begins a prepared statement whose rows [`Connection::next_row`] gives.
    ///
    /// # Errors
    /// The server's own.
    pub fn stream(&mut self, statement: &mut Statement, arguments: &Arguments) -> EngineResult<()> {
        self.begin(statement, arguments)?;
        let Head::Rows(columns) = self.head()? else { return Err(unexpected("no rows")) };
        // Described as when it was prepared, and an end.
        for _ in 0..=columns {
            self.receive()?;
        }
        self.unread = true;
        Ok(())
    }

    /// The next row of the statement that was begun; `None` when there is no other one.
    ///
    /// # Errors
    /// The server's own.
    pub fn next_row<'a>(&'a mut self, statement: &'a Statement) -> EngineResult<Option<Row<'a>>> {
        if !std::mem::take(&mut self.unread) {
            return Ok(None);
        }
        let payload = self.wire.receive().map_err(|error| broken(&error))?;
        match payload.first() {
            Some(&OK) => {
                self.unread = true;
                // A bit for each column that has no value; two are reserved.
                let absent = (statement.columns.len() + 9) / 8;
                let mut values = Fields(payload);
                match values.take(1 + absent) {
                    Some(head) if head.iter().all(|byte| *byte == 0) => {
                        Ok(Some(Row { values, columns: &statement.columns }))
                    }
                    _ => Err(unexpected("a row with a missing value")),
                }
            }
            Some(&ERROR) => Err(failure(payload)),
            _ if is_end(payload) => Ok(None),
            _ => Err(unexpected("neither a row nor an end")),
        }
    }

    fn begin(&mut self, statement: &mut Statement, arguments: &Arguments) -> EngineResult<()> {
        if arguments.types.len() != 2 * statement.parameters {
            return Err(EngineError::fatal(format!(
                "a statement takes {} arguments, not {}",
                statement.parameters,
                arguments.types.len() / 2
            )));
        }
        self.tally.sent(statement.verb);
        let mut head = [0; 10];
        head[0] = command::EXECUTE;
        head[1..5].copy_from_slice(&statement.id.to_le_bytes());
        // No cursor; done once.
        head[6] = 1;
        if statement.parameters == 0 {
            return self.command(&[&head]);
        }
        let absent = vec![0; statement.parameters.div_ceil(8)];
        if statement.types_known {
            self.command(&[&head, &absent, &[0], &arguments.values])
        } else {
            statement.types_known = true;
            self.command(&[&head, &absent, &[1], &arguments.types, &arguments.values])
        }
    }
}

/// A statement that is parsed when it is needed first, always on the same connection.
#[derive(Debug)]
pub struct Prepared {
    sql: String,
    statement: Option<Statement>,
}

impl Prepared {
    /// The statement of that text.
    pub fn new(sql: impl Into<String>) -> Prepared {
        Prepared { sql: sql.into(), statement: None }
    }

    fn on(&mut self, connection: &mut Connection) -> EngineResult<&mut Statement> {
        match &mut self.statement {
            Some(statement) => Ok(statement),
            slot @ None => Ok(slot.insert(connection.prepare(&self.sql)?)),
        }
    }

    /// Has the server forget it.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn forget(self, connection: &mut Connection) -> EngineResult<()> {
        self.statement.map_or(Ok(()), |statement| connection.forget(&statement))
    }

    /// As [`Connection::execute`].
    ///
    /// # Errors
    /// As there.
    pub fn execute(
        &mut self,
        connection: &mut Connection,
        arguments: &Arguments,
    ) -> EngineResult<Changes> {
        let statement = self.on(connection)?;
        connection.execute(statement, arguments)
    }

    /// As [`Connection::select`].
    ///
    /// # Errors
    /// As there.
    pub fn select(
        &mut self,
        connection: &mut Connection,
        arguments: &Arguments,
        row: &mut dyn FnMut(Row<'_>) -> EngineResult<()>,
    ) -> EngineResult<u64> {
        let statement = self.on(connection)?;
        connection.select(statement, arguments, row)
    }
}

impl Arguments {
    /// Empties it.
    pub fn clear(&mut self) -> &mut Self {
        self.types.clear();
        self.values.clear();
        self
    }

    /// Adds a number.
    pub fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.types.extend_from_slice(&[kind::LONG_LONG, kind::UNSIGNED]);
        self.values.extend_from_slice(&number.into().to_le_bytes());
        self
    }

    /// Adds a number with a sign.
    pub fn signed(&mut self, number: i64) -> &mut Self {
        self.types.extend_from_slice(&[kind::LONG_LONG, 0]);
        self.values.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// Adds a floating-point number.
    pub fn float(&mut self, number: f32) -> &mut Self {
        self.types.extend_from_slice(&[kind::FLOAT, 0]);
        self.values.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.types.extend_from_slice(&[kind::BLOB, 0]);
        put_length(&mut self.values, bytes.len());
        self.values.extend_from_slice(bytes);
        self
    }
}

impl<'a> Row<'a> {
    fn column(&mut self) -> EngineResult<u8> {
        let (kind, rest) = self.columns.split_first().ok_or_else(|| unexpected("no column"))?;
        self.columns = rest;
        Ok(*kind)
    }

    /// The next column, an integer without a sign.
    ///
    /// # Errors
    /// It is none.
    pub fn number(&mut self) -> EngineResult<u64> {
        let bytes = match self.column()? {
            kind::TINY => 1,
            kind::SHORT => 2,
            kind::LONG | kind::INT24 => 4,
            kind::LONG_LONG => 8,
            _ => return Err(unexpected("no integer")),
        };
        self.values.integer(bytes).ok_or_else(|| unexpected("a row that is too short"))
    }

    /// The next column, an integer of at most 32 bits.
    ///
    /// # Errors
    /// It is none.
    pub fn short(&mut self) -> EngineResult<u32> {
        u32::try_from(self.number()?).map_err(|_| unexpected("an integer that is too large"))
    }

    /// The next column, bytes.
    ///
    /// # Errors
    /// It is none.
    pub fn bytes(&mut self) -> EngineResult<&'a [u8]> {
        self.column()?;
        self.values.bytes().ok_or_else(|| unexpected("a row that is too short"))
    }
}
