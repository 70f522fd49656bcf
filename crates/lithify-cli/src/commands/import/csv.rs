//! Rows of CSV, byte by byte as they are written: quotes as RFC 4180 has them, no character set.

use std::io::BufRead;

use super::{Bad, Line, RECORD_BYTES_MAX, read_line};

/// Reads records one after the other.
pub struct CsvReader<R> {
    input: R,
    /// What stands between fields.
    separator: u8,
    line: Line,
    /// What of the input is being read.
    buffer: Vec<u8>,
    /// The fields of the last record.
    pub fields: Vec<Vec<u8>>,
}

/// Where in a record the reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    FieldBegins,
    Plain,
    Quoted,
    /// Behind a quote in a quoted field: its end, or half of a quote.
    Quote,
}

impl<R: BufRead> CsvReader<R> {
    /// Reads from the beginning of a file.
    pub fn new(input: R, separator: u8) -> Self {
        CsvReader {
            input,
            separator,
            line: Line::default(),
            buffer: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// Where it is.
    pub fn line(&self) -> Line {
        self.line
    }

    /// Reads the next record; false at the end. Empty lines are passed over.
    pub fn read(&mut self) -> Result<bool, Bad> {
        loop {
            self.fields.clear();
            let mut state = State::FieldBegins;
            let mut field = Vec::new();
            let mut is_quoted = false;
            self.line.first = self.line.last + 1;
            let mut record_bytes = 0;
            loop {
                let is_there = read_line(&mut self.input, &mut self.buffer, &mut self.line)?;
                record_bytes += self.buffer.len();
                if record_bytes > RECORD_BYTES_MAX {
                    return Err(self.bad("a row of more than 256 MiB"));
                }
                if !is_there && record_bytes == 0 {
                    return Ok(false);
                }
                if !is_there && state == State::Quoted {
                    return Err(self.bad("a quote is never closed"));
                }
                let buffer = std::mem::take(&mut self.buffer);
                for byte in &buffer {
                    is_quoted |= *byte == b'"';
                    state = self.step(state, *byte, &mut field)?;
                }
                self.buffer = buffer;
                if state != State::Quoted {
                    break;
                }
            }
            if state == State::Plain && self.buffer.ends_with(b"\r\n") {
                field.pop();
            }
            self.end_field(&mut field);
            let is_empty = self.fields.len() == 1 && self.fields[0].is_empty() && !is_quoted;
            if !is_empty {
                return Ok(true);
            }
        }
    }

    fn step(&mut self, state: State, byte: u8, field: &mut Vec<u8>) -> Result<State, Bad> {
        match (state, byte) {
            (State::FieldBegins, b'"') => return Ok(State::Quoted),
            (State::Quoted, b'"') => return Ok(State::Quote),
            (State::Quote, b'"') => field.push(b'"'),
            (State::Quoted, byte) => field.push(byte),
            (_, byte) if byte == self.separator => {
                self.end_field(field);
                return Ok(State::FieldBegins);
            }
            // The end of the line.
            (state, b'\n') => return Ok(state),
            (State::Quote, b'\r') => return Ok(State::Quote),
            (State::Quote, _) => return Err(self.bad("text behind the quote that ends a field")),
            (_, byte) => {
                field.push(byte);
                return Ok(State::Plain);
            }
        }
        Ok(State::Quoted)
    }

    fn end_field(&mut self, field: &mut Vec<u8>) {
        self.fields.push(std::mem::take(field));
    }

    fn bad(&self, what: &str) -> Bad {
        Bad::Row(self.line.first, what.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records with the lines where they begin.
    type Records = Vec<(u64, Vec<Vec<u8>>)>;

    fn records(text: &[u8]) -> Result<Records, Bad> {
        let mut reader = CsvReader::new(text, b',');
        let mut records = Vec::new();
        while reader.read()? {
            records.push((reader.line().first, reader.fields.clone()));
        }
        Ok(records)
    }

    #[test]
    fn records_are_read_with_their_lines() {
        let text = b"a,b\r\n\r\n\"x,\"\"y\"\"\n\r\nz\",\n\"\",5\" pipe\n\xff,\"\r\"";
        let expected: Records = vec![
            (1, vec![b"a".to_vec(), b"b".to_vec()]),
            (3, vec![b"x,\"y\"\n\r\nz".to_vec(), vec![]]),
            (6, vec![vec![], b"5\" pipe".to_vec()]),
            (7, vec![b"\xff".to_vec(), b"\r".to_vec()]),
        ];
        assert_eq!(records(text).ok(), Some(expected));
    }

    #[test]
    fn what_is_wrong_has_the_line_where_the_row_begins() {
        let wrong = |text: &[u8]| match records(text) {
            Err(Bad::Row(line, what)) => (line, what),
            _ => panic!("is refused"),
        };
        assert_eq!(wrong(b"a\nb\n\"c\nd"), (3, "a quote is never closed".to_owned()));
        assert_eq!(wrong(b"a\n\"b\"c"), (2, "text behind the quote that ends a field".to_owned()));
    }
}
