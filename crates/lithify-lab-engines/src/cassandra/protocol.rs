//! CQL's native protocol, version 4: frames over a socket, statements, rows.
//!
//! Owns: a connection to a node on loopback, one request after the other, and what of the protocol
//! a table of text needs: statements without rows, prepared ones with pages of rows, batches. By
//! hand, because the clients there are as crates bring an asynchronous runtime, pools and the
//! topology of clusters: more of each client's CPU, and of each build, than these few hundred lines.
//!
//! Promises: no answer makes this panic, and none makes it hold more than [`FRAME_BYTES_MAX`]. A
//! connection that is lost is an error that begins with [`CONNECTION_LOST`]. Does not: encrypt,
//! compress, authenticate, or speak with another node than its own.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use lithify_lab::adapter::{EngineError, EngineResult};

/// How the error of a lost connection begins.
pub const CONNECTION_LOST: &str = "the connection is lost";

/// The largest frame that the protocol has.
const FRAME_BYTES_MAX: usize = 256 << 20;

/// Version, flags, stream, opcode, length.
const HEADER_BYTES: usize = 9;
const REQUEST: u8 = 0x04;
const RESPONSE: u8 = 0x84;

/// Longer than the node's own patience, by which it gives up.
const PATIENCE: Duration = Duration::from_secs(180);

/// Rows that come at once.
const PAGE_ROWS: i32 = 2_000;

mod opcode {
    pub const ERROR: u8 = 0x00;
    pub const STARTUP: u8 = 0x01;
    pub const READY: u8 = 0x02;
    pub const QUERY: u8 = 0x07;
    pub const RESULT: u8 = 0x08;
    pub const PREPARE: u8 = 0x09;
    pub const EXECUTE: u8 = 0x0A;
    pub const BATCH: u8 = 0x0D;
}

mod result {
    pub const ROWS: i32 = 2;
    pub const PREPARED: i32 = 4;
}

mod query_flag {
    pub const VALUES: u8 = 0x01;
    pub const SKIP_METADATA: u8 = 0x02;
    pub const PAGE_SIZE: u8 = 0x04;
    pub const PAGING_STATE: u8 = 0x08;
}

mod rows_flag {
    pub const MORE_PAGES: i32 = 0x02;
    pub const NO_METADATA: i32 = 0x04;
}

/// Warnings stand before the answer.
const FRAME_WARNING: u8 = 0x08;

/// One node: each consistency is the same.
const CONSISTENCY_ONE: u16 = 1;

const BATCH_UNLOGGED: u8 = 1;
const BATCH_PREPARED: u8 = 1;

/// A statement that the node has parsed.
#[derive(Debug)]
pub struct Statement(Vec<u8>);

/// Arguments of a statement, in its order.
#[derive(Debug, Default)]
pub struct Values {
    count: u16,
    bytes: Vec<u8>,
}

impl Values {
    /// None.
    pub fn new() -> Values {
        Values::default()
    }

    /// Adds an `int`.
    #[must_use]
    pub fn int(mut self, number: i32) -> Values {
        put_bytes(&mut self.bytes, &number.to_be_bytes());
        self.count += 1;
        self
    }
}

/// Rows of one statement that are written at once.
#[derive(Debug, Default)]
pub struct Batch {
    rows: u16,
    bytes: Vec<u8>,
}

impl Batch {
    /// Adds a row of a prepared statement whose arguments are two numbers and bytes.
    pub fn add(&mut self, insert: &Statement, numbers: [i32; 2], line: &[u8]) {
        self.bytes.push(BATCH_PREPARED);
        put_short_bytes(&mut self.bytes, &insert.0);
        self.bytes.extend_from_slice(&3u16.to_be_bytes());
        for number in numbers {
            put_bytes(&mut self.bytes, &number.to_be_bytes());
        }
        put_bytes(&mut self.bytes, line);
        self.rows += 1;
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// True when so many bytes are in it, or as many rows as one may have.
    pub fn is_full(&self, bytes: usize) -> bool {
        self.bytes.len() >= bytes || self.rows == u16::MAX
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.bytes.clear();
    }
}

/// A connection to a node.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    frame: Vec<u8>,
    body: Vec<u8>,
}

#[cold]
fn broken(error: &io::Error) -> EngineError {
    EngineError::fatal(format!("{CONNECTION_LOST}: {error}"))
}

#[cold]
fn unexpected(what: &str) -> EngineError {
    EngineError::fatal(format!("the node answers what the protocol does not have: {what}"))
}

impl Connection {
    /// Connects to the node that listens on `port` of this machine.
    ///
    /// # Errors
    /// There is none, or it lets nobody in without a password.
    pub fn open(port: u16) -> EngineResult<Connection> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .and_then(|stream| {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Ok(stream)
            })
            .map_err(|error| broken(&error))?;
        let mut connection = Connection { stream, frame: Vec::new(), body: Vec::new() };
        connection.begin(opcode::STARTUP);
        connection.frame.extend_from_slice(&1u16.to_be_bytes());
        put_string(&mut connection.frame, "CQL_VERSION");
        put_string(&mut connection.frame, "3.0.0");
        match connection.exchange()? {
            (opcode::READY, _) => Ok(connection),
            _ => Err(EngineError::fatal("the node wants a password")),
        }
    }

    /// Does a statement that has no rows.
    ///
    /// # Errors
    /// The node's own.
    pub fn run(&mut self, cql: &str) -> EngineResult<()> {
        self.begin(opcode::QUERY);
        put_long_string(&mut self.frame, cql);
        self.frame.extend_from_slice(&CONSISTENCY_ONE.to_be_bytes());
        self.frame.push(0);
        self.result().map(|_| ())
    }

    /// Has a statement parsed.
    ///
    /// # Errors
    /// The node's own.
    pub fn prepare(&mut self, cql: &str) -> EngineResult<Statement> {
        self.begin(opcode::PREPARE);
        put_long_string(&mut self.frame, cql);
        let mut fields = self.result()?;
        let id = match fields.int() {
            Some(result::PREPARED) => fields.short_bytes(),
            _ => None,
        };
        id.map(|id| Statement(id.to_vec())).ok_or_else(|| unexpected("no prepared statement"))
    }

    /// Writes the rows of a batch, of one partition: all of them or none.
    ///
    /// # Errors
    /// The node's own.
    pub fn write(&mut self, batch: &Batch) -> EngineResult<()> {
        self.begin(opcode::BATCH);
        self.frame.push(BATCH_UNLOGGED);
        self.frame.extend_from_slice(&batch.rows.to_be_bytes());
        self.frame.extend_from_slice(&batch.bytes);
        self.frame.extend_from_slice(&CONSISTENCY_ONE.to_be_bytes());
        self.frame.push(0);
        self.result().map(|_| ())
    }

    /// Does a prepared statement and shows each of its rows, page after page. Returns how many
    /// there were.
    ///
    /// # Errors
    /// The node's own, and what `row` finds wrong.
    pub fn select(
        &mut self,
        statement: &Statement,
        values: &Values,
        row: &mut dyn FnMut(&mut Fields<'_>) -> EngineResult<()>,
    ) -> EngineResult<u64> {
        let mut rows = 0;
        let mut state: Option<Vec<u8>> = None;
        loop {
            self.begin_page(statement, values, state.as_deref());
            let mut fields = self.result()?;
            let head =
                RowsHead::read(&mut fields).ok_or_else(|| unexpected("no rows, or of no kind"))?;
            for _ in 0..head.rows {
                row(&mut fields)?;
            }
            rows += head.rows;
            match head.state {
                Some(next) => state = Some(next.to_vec()),
                None => return Ok(rows),
            }
        }
    }

    fn begin_page(&mut self, statement: &Statement, values: &Values, state: Option<&[u8]>) {
        self.begin(opcode::EXECUTE);
        let frame = &mut self.frame;
        put_short_bytes(frame, &statement.0);
        frame.extend_from_slice(&CONSISTENCY_ONE.to_be_bytes());
        let mut flags = query_flag::VALUES | query_flag::SKIP_METADATA | query_flag::PAGE_SIZE;
        if state.is_some() {
            flags |= query_flag::PAGING_STATE;
        }
        frame.push(flags);
        frame.extend_from_slice(&values.count.to_be_bytes());
        frame.extend_from_slice(&values.bytes);
        frame.extend_from_slice(&PAGE_ROWS.to_be_bytes());
        if let Some(state) = state {
            put_bytes(frame, state);
        }
    }

    /// Begins a request; its length is filled in when it is sent.
    fn begin(&mut self, opcode: u8) {
        self.frame.clear();
        self.frame.extend_from_slice(&[REQUEST, 0, 0, 0, opcode, 0, 0, 0, 0]);
    }

    /// Sends the request; gives the answer to a statement.
    fn result(&mut self) -> EngineResult<Fields<'_>> {
        match self.exchange()? {
            (opcode::RESULT, fields) => Ok(fields),
            _ => Err(unexpected("no result")),
        }
    }

    /// Sends the request; gives the opcode and the fields of the answer, unless it is an error.
    fn exchange(&mut self) -> EngineResult<(u8, Fields<'_>)> {
        let length = u32::try_from(self.frame.len() - HEADER_BYTES)
            .map_err(|_| EngineError::fatal("a request of more than 4 GiB"))?;
        self.frame[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
        self.stream.write_all(&self.frame).map_err(|error| broken(&error))?;
        let mut header = [0; HEADER_BYTES];
        self.stream.read_exact(&mut header).map_err(|error| broken(&error))?;
        let [version, flags, _, _, answer, length @ ..] = header;
        let length = u32::from_be_bytes(length) as usize;
        if version != RESPONSE || length > FRAME_BYTES_MAX {
            return Err(unexpected("a frame of another version or length"));
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).map_err(|error| broken(&error))?;
        let mut fields = Fields(&self.body);
        if flags & FRAME_WARNING != 0 {
            fields.strings().ok_or_else(|| unexpected("no warnings"))?;
        }
        match answer {
            opcode::ERROR => Err(failure(fields)),
            _ => Ok((answer, fields)),
        }
    }
}

/// The error in a frame.
#[cold]
fn failure(mut fields: Fields<'_>) -> EngineError {
    let code = fields.int().unwrap_or(0);
    let words = fields.string().map(String::from_utf8_lossy).unwrap_or_default();
    EngineError::fatal(format!("error {code:#06x}: {words}"))
}

/// What stands before rows.
#[derive(Debug, PartialEq, Eq)]
struct RowsHead<'a> {
    /// Where the next page begins; `None` on the last one.
    state: Option<&'a [u8]>,
    rows: u64,
}

impl<'a> RowsHead<'a> {
    /// Reads it; `None` for something else, or columns that are described although nobody asked.
    fn read(fields: &mut Fields<'a>) -> Option<RowsHead<'a>> {
        if fields.int()? != result::ROWS {
            return None;
        }
        let (flags, _columns) = (fields.int()?, fields.int()?);
        let state = match flags & rows_flag::MORE_PAGES {
            0 => None,
            _ => Some(fields.bytes()?),
        };
        if flags & rows_flag::NO_METADATA == 0 {
            return None;
        }
        let rows = u64::try_from(fields.int()?).ok()?;
        Some(RowsHead { state, rows })
    }
}

/// What is left of a body, read field by field; `None` where it is too short.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// 32 bits.
    pub(super) fn int(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// 64 bits.
    pub(super) fn long(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    fn short(&mut self) -> Option<usize> {
        self.array().map(|bytes| usize::from(u16::from_be_bytes(bytes)))
    }

    /// Bytes behind 16 bits of length.
    pub(super) fn short_bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.short()?;
        self.take(length)
    }

    /// A text behind 16 bits of length.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        self.short_bytes()
    }

    fn strings(&mut self) -> Option<()> {
        let count = self.short()?;
        (0..count).try_for_each(|_| self.string().map(|_| ()))
    }

    /// Bytes behind 32 bits of length; `None` for a value that is missing, too.
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.int()?).ok()?;
        self.take(length)
    }

    /// The next column of a row, which has a value.
    ///
    /// # Errors
    /// It has none, or the row is too short.
    pub fn column(&mut self) -> EngineResult<&'a [u8]> {
        self.bytes().ok_or_else(|| unexpected("a row without a value, or too short"))
    }

    /// The next column of a row, an `int`.
    ///
    /// # Errors
    /// It is none.
    pub fn column_int(&mut self) -> EngineResult<i32> {
        let bytes =
            self.column()?.try_into().map_err(|_| unexpected("an int of other than 32 bits"));
        bytes.map(i32::from_be_bytes)
    }

    /// The next column of a row, a map of texts.
    ///
    /// # Errors
    /// It is none.
    pub fn column_map(&mut self) -> EngineResult<Vec<(String, String)>> {
        let mut fields = Fields(self.column()?);
        let mut pairs = || {
            let count = fields.int()?;
            let mut text = || Some(String::from_utf8_lossy(fields.bytes()?).into_owned());
            (0..count).map(|_| Some((text()?, text()?))).collect::<Option<Vec<_>>>()
        };
        pairs().ok_or_else(|| unexpected("no map of texts"))
    }
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    // What is longer than a frame is refused when the frame is sent, by its length.
    to.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    to.extend_from_slice(bytes);
}

fn put_short_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    to.extend_from_slice(bytes);
}

fn put_string(to: &mut Vec<u8>, text: &str) {
    put_short_bytes(to, text.as_bytes());
}

fn put_long_string(to: &mut Vec<u8>, text: &str) {
    put_bytes(to, text.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread::{JoinHandle, spawn};

    use super::*;

    /// An answer as a node sends it.
    fn frame(flags: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![RESPONSE, flags, 0, 0, opcode];
        put_bytes(&mut frame, body);
        frame
    }

    fn ready() -> Vec<u8> {
        frame(0, opcode::READY, &[])
    }

    /// Rows of a number and bytes, as a body.
    fn rows(state: Option<&[u8]>, rows: &[(i32, &[u8])]) -> Vec<u8> {
        let mut body = result::ROWS.to_be_bytes().to_vec();
        let more = if state.is_some() { rows_flag::MORE_PAGES } else { 0 };
        body.extend_from_slice(&(rows_flag::NO_METADATA | more).to_be_bytes());
        body.extend_from_slice(&2i32.to_be_bytes());
        if let Some(state) = state {
            put_bytes(&mut body, state);
        }
        body.extend_from_slice(&(rows.len() as i32).to_be_bytes());
        for (number, line) in rows {
            put_bytes(&mut body, &number.to_be_bytes());
            put_bytes(&mut body, line);
        }
        body
    }

    /// A node that sends one answer after each request, then hangs up. Gives what it was sent.
    fn node(answers: Vec<Vec<u8>>) -> (u16, JoinHandle<Vec<Vec<u8>>>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listens");
        let port = listener.local_addr().expect("has one").port();
        let served = spawn(move || {
            let (mut stream, _) = listener.accept().expect("accepts");
            let mut requests = Vec::new();
            for answer in answers {
                let mut header = [0; HEADER_BYTES];
                stream.read_exact(&mut header).expect("a request");
                let length = u32::from_be_bytes(header[5..].try_into().expect("4 bytes"));
                let mut body = vec![header[4]];
                body.resize(1 + length as usize, 0);
                stream.read_exact(&mut body[1..]).expect("its body");
                requests.push(body);
                stream.write_all(&answer).expect("is sent");
            }
            requests
        });
        (port, served)
    }

    #[test]
    fn statements_are_prepared_and_read_page_by_page() {
        let mut prepared = result::PREPARED.to_be_bytes().to_vec();
        put_short_bytes(&mut prepared, b"id");
        let mut warned = 1u16.to_be_bytes().to_vec();
        put_string(&mut warned, "a warning");
        warned.extend_from_slice(&rows(None, &[(-3, b"")]));
        let (port, served) = node(vec![
            ready(),
            frame(0, opcode::RESULT, &prepared),
            frame(0, opcode::RESULT, &rows(Some(b"next"), &[(1, b"one"), (2, b"two")])),
            frame(FRAME_WARNING, opcode::RESULT, &warned),
        ]);
        let mut connection = Connection::open(port).expect("connects");
        let statement = connection.prepare("SELECT b, c").expect("prepares");
        let mut seen = Vec::new();
        let read = connection.select(&statement, &Values::new().int(7), &mut |row| {
            seen.push((row.column_int()?, row.column()?.to_vec()));
            Ok(())
        });
        assert_eq!(read.expect("reads"), 3);
        assert_eq!(seen, [(1, b"one".to_vec()), (2, b"two".to_vec()), (-3, Vec::new())]);
        let requests = served.join().expect("serves");
        assert_eq!(requests[0][0], opcode::STARTUP);
        assert!(requests[1].ends_with(b"SELECT b, c"));
        let first = b"\x0a\0\x02id\0\x01\x07\0\x01\0\0\0\x04\0\0\0\x07\0\0\x07\xd0";
        assert_eq!(requests[2], first);
        assert!(requests[3].ends_with(b"\0\0\0\x04next"), "{:?}", requests[3]);
    }

    #[test]
    fn batches_hold_rows_of_one_statement() {
        let (port, served) = node(vec![ready(), frame(0, opcode::RESULT, &1i32.to_be_bytes())]);
        let mut connection = Connection::open(port).expect("connects");
        let mut batch = Batch::default();
        assert!(batch.is_empty());
        batch.add(&Statement(b"id".to_vec()), [1, 2], b"x");
        assert!(batch.is_full(10) && !batch.is_full(100));
        connection.write(&batch).expect("writes");
        batch.clear();
        assert!(batch.is_empty());
        let requests = served.join().expect("serves");
        let row = b"\x01\0\x02id\0\x03\0\0\0\x04\0\0\0\x01\0\0\0\x04\0\0\0\x02\0\0\0\x01x";
        assert_eq!(requests[1], [&b"\x0d\x01\0\x01"[..], row, b"\0\x01\0"].concat());
    }

    #[test]
    fn errors_are_those_of_the_node_or_of_the_connection() {
        let mut error = 0x2200i32.to_be_bytes().to_vec();
        put_string(&mut error, "no such table");
        let mut other = frame(0, opcode::RESULT, &[]);
        other[0] = 0x85;
        let answers = vec![
            ready(),
            frame(0, opcode::ERROR, &error),
            frame(0, opcode::RESULT, &[0, 0]),
            frame(0, opcode::READY, &[]),
            other,
        ];
        let (port, served) = node(answers);
        let mut connection = Connection::open(port).expect("connects");
        let mut error = || connection.run("USE lab").expect_err("fails").to_string();
        assert_eq!(error(), "error 0x2200: no such table");
        let mut prepare = || connection.prepare("SELECT").expect_err("fails").to_string();
        assert!(prepare().ends_with("no prepared statement"));
        let mut error = || connection.run("USE lab").expect_err("fails").to_string();
        assert!(error().ends_with("no result"));
        assert!(error().ends_with("another version or length"));
        served.join().expect("serves");
        assert!(error().starts_with(CONNECTION_LOST));
        let (port, _) = node(vec![frame(0, 0x03, &[])]);
        let error = Connection::open(port).expect_err("is refused").to_string();
        assert_eq!(error, "the node wants a password");
    }

    #[test]
    fn rows_that_make_no_sense_are_refused() {
        let good = rows(Some(b"s"), &[]);
        for length in 0..good.len() {
            assert_eq!(RowsHead::read(&mut Fields(&good[..length])), None, "{length}");
        }
        let head = RowsHead::read(&mut Fields(&good)).expect("is one");
        assert_eq!(head, RowsHead { state: Some(b"s"), rows: 0 });
        let mut described = rows(None, &[]);
        described[7] = 0;
        assert_eq!(RowsHead::read(&mut Fields(&described)), None);
        let missing = (-1i32).to_be_bytes();
        assert!(Fields(&missing).column().is_err() && Fields(&[0, 0]).column_int().is_err());
        assert!(Fields(&[0, 0, 0, 1, 9]).column_int().is_err());
        let map = [&[0, 0, 0, 20][..], &[0, 0, 0, 1], &[0, 0, 0, 1, b'k'], &[0, 0, 0, 3], b"value"];
        let map = map.concat();
        let pairs = Fields(&map).column_map().expect_err("is too short").to_string();
        assert!(pairs.ends_with("too short"), "{pairs}");
        let map = [&[0, 0, 0, 14][..], &[0, 0, 0, 1], &[0, 0, 0, 1, b'k'], &[0, 0, 0, 1], b"v"];
        let pairs = Fields(&map.concat()).column_map().expect("is one");
        assert_eq!(pairs, [("k".to_owned(), "v".to_owned())]);
    }
}
