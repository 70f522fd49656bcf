//! CSV and its relatives: fields with a delimiter, and quotes that may hold line ends.

use std::cell::RefCell;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::format::{Found, Parsed, Start, behind_line, trimmed_end};
use super::key;

/// Rows that a guess at the start of a row is tested with.
const TRIED_ROWS: usize = 24;
/// Line ends that are tried as the end of a row.
const TRIED_LINES: usize = 40;
/// So many bytes are read to see whether a row starts that goes on behind the others.
const TRIED_BYTES: usize = 16 << 20;
/// A row of so many lines may be one whose quote was meant to close before.
pub(super) const MANY_LINES: usize = 100;

/// A table of fields.
#[derive(Debug)]
pub(super) struct Delimited {
    /// Knows what stands between fields. Its state is that of one call.
    pub(super) reader: RefCell<Reader>,
    /// What stands between fields.
    pub(super) delimiter: u8,
    /// Fields of every row.
    pub(super) fields: usize,
    /// The columns of the key, by their numbers from 0.
    pub(super) key: Vec<usize>,
}

/// A row with its fields.
pub(super) struct Record {
    /// The row's bytes end there.
    pub(super) end: usize,
    output: Vec<u8>,
    ends: Vec<usize>,
}

impl Record {
    /// How many fields it has.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A field without its quotes.
    pub(super) fn field(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.output[start..self.ends[at]]
    }
}

/// What stands at the start of some bytes.
pub(super) enum Read {
    /// A record.
    Record(Record),
    /// No record, only line ends.
    End,
    /// It goes on behind the bytes.
    More,
    /// The data end inside of quotes.
    Open,
}

/// A reader of records. Making one is dear, so it is used again.
pub(super) fn reader(delimiter: u8) -> Reader {
    ReaderBuilder::new().delimiter(delimiter).build()
}

/// The record at the start of `bytes`.
pub(super) fn read_record(reader: &mut Reader, bytes: &[u8], is_end: bool) -> Read {
    reader.reset();
    let mut record = Record { end: 0, output: vec![0; 512], ends: vec![0; 32] };
    let (mut written, mut fields) = (0, 0);
    loop {
        let rest = &bytes[record.end..];
        if rest.is_empty() && !is_end {
            return Read::More;
        }
        // A line end behind the data ends the last record, unless a quote is open.
        let is_probe = rest.is_empty() && !is_blank(bytes);
        let rest = if is_probe { b"\n".as_slice() } else { rest };
        let (result, read, wrote, ended) =
            reader.read_record(rest, &mut record.output[written..], &mut record.ends[fields..]);
        record.end += if is_probe { 0 } else { read };
        written += wrote;
        fields += ended;
        match result {
            ReadRecordResult::InputEmpty if is_probe => return Read::Open,
            // An empty input is how this reader is told that no more will come.
            ReadRecordResult::InputEmpty if is_end => continue,
            ReadRecordResult::InputEmpty => return Read::More,
            ReadRecordResult::OutputFull => record.output.resize(record.output.len() * 2, 0),
            ReadRecordResult::OutputEndsFull => record.ends.resize(record.ends.len() * 2, 0),
            ReadRecordResult::Record => {
                record.output.truncate(written);
                record.ends.truncate(fields);
                return Read::Record(record);
            }
            ReadRecordResult::End => return Read::End,
        }
    }
}

/// Whether there are line ends alone.
pub(super) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

impl Delimited {
    /// The row at the start of `bytes`.
    pub(super) fn parse(&self, bytes: &[u8], is_end: bool) -> Found {
        // Line ends before the row are no part of it.
        let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let bytes = &bytes[blank..];
        if bytes.is_empty() {
            return if is_end { Found::Blank(blank) } else { Found::More };
        }
        let record = match read_record(&mut self.reader.borrow_mut(), bytes, is_end) {
            Read::Record(record) => record,
            Read::End => return Found::Blank(blank + bytes.len()),
            Read::More => return Found::More,
            Read::Open => {
                let what =
                    "the quote that opens here never closes; if quotes are data: --format lines";
                return Found::Wrong(blank + self.open_quote(bytes), what.to_owned());
            }
        };
        let is_last = is_end && record.end == bytes.len() && !bytes.ends_with(b"\n");
        if is_last && record.len() < self.fields && !bytes.ends_with(b"\r") {
            return Found::Cut(blank);
        }
        if record.len() != self.fields {
            let (expected, found) = (self.fields, record.len());
            let noun = if found == 1 { "field" } else { "fields" };
            let lines = bytes[..record.end].iter().filter(|byte| **byte == b'\n').count();
            let over = match lines {
                0..MANY_LINES => String::new(),
                lines => format!(" over {lines} lines (is a quote left open?)"),
            };
            let what = format!(
                "a row of {found} {noun}{over} where others have {expected}; if lines are rows: \
                 --format lines"
            );
            return Found::Wrong(blank, what);
        }
        let (mut key, mut partition_bytes) = (Vec::new(), 0);
        for (at, column) in self.key.iter().enumerate() {
            key::append_part(&mut key, record.field(*column), at + 1 == self.key.len());
            if at == 0 {
                partition_bytes = key.len();
            }
        }
        // The reader stops between the two bytes of a line end.
        let is_between =
            bytes[..record.end].ends_with(b"\r") && bytes.get(record.end) == Some(&b'\n');
        let next = record.end + usize::from(is_between);
        let text = blank..blank + trimmed_end(bytes, next);
        Found::Row(Parsed { text, end: blank + next, key, partition_bytes })
    }

    /// Where the last quote opens in a row whose end is inside of quotes. Quotes open a field or are data.
    fn open_quote(&self, bytes: &[u8]) -> usize {
        let (mut opened, mut is_start) = (0, true);
        let mut at = 0;
        while at < bytes.len() {
            if !is_start || bytes[at] != b'"' {
                is_start = bytes[at] == self.delimiter;
                at += 1;
                continue;
            }
            opened = at;
            at += 1;
            // To the quote that closes; two of them are one that is data.
            while at < bytes.len() && (bytes[at] != b'"' || bytes.get(at + 1) == Some(&b'"')) {
                at += if bytes[at] == b'"' { 2 } else { 1 };
            }
            at += 1;
            is_start = false;
        }
        opened
    }

    /// Where the first row starts that begins in `bytes`. Any line end may be inside of quotes, so
    /// the start is the one behind which most rows are whole. Where none is, a row may be longer than the
    /// bytes.
    pub(super) fn first_start(&self, bytes: &[u8], is_end: bool) -> Start {
        let (mut best, mut open) = ((0, bytes.len()), None);
        let mut candidate = 0;
        for _ in 0..TRIED_LINES {
            candidate = behind_line(bytes, candidate);
            if candidate >= bytes.len() {
                break;
            }
            let Some(whole) = self.whole_rows(&bytes[candidate..], is_end) else {
                // From its line end on it is tried again.
                open = open.or(Some(candidate - 1));
                continue;
            };
            if whole > best.0 {
                best = (whole, candidate);
            }
            if whole >= TRIED_ROWS {
                break;
            }
        }
        match open {
            _ if best.0 > 0 => Start::At(best.1),
            Some(before) if !is_end && bytes.len() < TRIED_BYTES => Start::NotBefore(before),
            _ => Start::NotBefore(bytes.len()),
        }
    }

    /// How many rows are whole from the start on, up to as many as are tried; all of them if the
    /// bytes end first. `None` if the first one goes on behind them.
    fn whole_rows(&self, bytes: &[u8], is_end: bool) -> Option<usize> {
        let mut at = 0;
        for whole in 0..TRIED_ROWS {
            match self.parse(&bytes[at..], is_end) {
                Found::Row(parsed) => at += parsed.end.max(1),
                Found::Wrong(..) => return Some(whole),
                Found::Blank(_) | Found::More | Found::Cut(_) if whole > 0 => {
                    return Some(TRIED_ROWS);
                }
                Found::More => return None,
                Found::Blank(_) | Found::Cut(_) => return Some(0),
            }
        }
        Some(TRIED_ROWS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(fields: usize, key: &[usize]) -> Delimited {
        let reader = RefCell::new(reader(b','));
        Delimited { reader, delimiter: b',', fields, key: key.to_vec() }
    }

    fn rows(table: &Delimited, bytes: &[u8]) -> Vec<String> {
        let (mut at, mut rows) = (0, Vec::new());
        while let Found::Row(parsed) = table.parse(&bytes[at..], true) {
            let text = &bytes[at + parsed.text.start..at + parsed.text.end];
            rows.push(String::from_utf8_lossy(text).into_owned());
            at += parsed.end;
        }
        rows
    }

    #[test]
    fn a_quoted_line_end_splits_no_row() {
        let bytes = b"1,\"two\nlines\"\r\n2,plain\n\n3,last";
        assert_eq!(rows(&table(2, &[0]), bytes), ["1,\"two\nlines\"", "2,plain", "3,last"]);
    }

    #[test]
    fn a_start_inside_of_quotes_is_found_out() {
        let mut bytes = Vec::new();
        for row in 0..200 {
            bytes.extend_from_slice(format!("{row},\"a\nb {row}\nc\",z\n").as_bytes());
        }
        let table = table(3, &[]);
        for offset in 0..bytes.len() / 2 {
            let Start::At(start) = table.first_start(&bytes[offset..], true) else {
                panic!("offset {offset}");
            };
            let start = offset + start;
            let line = bytes[start..].split(|byte| *byte == b'\n').next().unwrap_or_default();
            let number = line.split(|byte| *byte == b',').next().unwrap_or_default();
            let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
            assert!(is_number, "offset {offset}: {:?}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn a_start_of_a_row_that_goes_on_is_seen_with_more_bytes() {
        let table = table(2, &[]);
        let bytes = format!("rest of it\n1,{}\n2,b\n", "x".repeat(5000));
        assert_eq!(table.first_start(&bytes.as_bytes()[..3000], false), Start::NotBefore(10));
        assert_eq!(table.first_start(&bytes.as_bytes()[10..], true), Start::At(1));
        assert_eq!(table.first_start(b"rest of", false), Start::NotBefore(7));
        // Lines of a quoted text are no rows.
        let text = format!("one\n{}", "two\n".repeat(100));
        assert_eq!(table.first_start(text.as_bytes(), false), Start::NotBefore(text.len()));
    }

    #[test]
    fn a_quote_that_never_closes_is_named_where_it_opens() {
        let table = table(2, &[]);
        for (bytes, quote) in [
            ("1,\"two\n3,four\n", 2),
            ("\"a\"\"b\",\"c\"\"d", 7),
            ("5\" wide,\"open", 8),
            ("\n\n1,\"", 4),
        ] {
            let Found::Wrong(at, what) = table.parse(bytes.as_bytes(), true) else {
                panic!("{bytes:?}");
            };
            assert!(at == quote && what.contains("never closes"), "{bytes:?}: {at} {what}");
            assert_eq!(table.parse(bytes.as_bytes(), false), Found::More, "{bytes:?}");
        }
        assert_eq!(rows(&table, b"1,\"2\""), ["1,\"2\""]);
        assert_eq!(rows(&table, b"1,"), ["1,"]);
        assert_eq!(rows(&table, b"1,5\" wide"), ["1,5\" wide"]);
    }

    #[test]
    fn a_last_row_without_its_end_is_cut() {
        let table = table(3, &[]);
        for cut in ["1", "1,2", "1,\"2\""] {
            assert_eq!(table.parse(cut.as_bytes(), true), Found::Cut(0), "{cut}");
            for end in ["\n", "\r", "\r\n"] {
                let ended = format!("{cut}{end}");
                assert!(matches!(table.parse(ended.as_bytes(), true), Found::Wrong(0, _)), "{cut}");
            }
        }
        assert!(matches!(table.parse(b"1,2,3,4", true), Found::Wrong(0, _)));
    }

    #[test]
    fn a_ragged_row_is_named_and_a_row_may_go_on() {
        assert!(matches!(table(2, &[]).parse(b"\n1,2,3\n", true), Found::Wrong(1, _)));
        assert_eq!(table(2, &[]).parse(b"1,\"2", false), Found::More);
        assert_eq!(table(2, &[]).parse(b"\n\n", true), Found::Blank(2));
        let wide = format!("{},{}\n", "x".repeat(5000), "y".repeat(100));
        assert!(matches!(table(2, &[1]).parse(wide.as_bytes(), true), Found::Row(_)));
        let many = vec!["1"; 300].join(",");
        assert!(matches!(table(300, &[]).parse(many.as_bytes(), true), Found::Row(_)));
    }
}
