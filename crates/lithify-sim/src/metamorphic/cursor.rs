//! What a cursor has to show: the same moves over an ordered map.

use crate::model::{Rows, rows_in};
use crate::operation::{Change, Move, Span, Write, operators};
use lithify::{Cursor, ScanRange};
use std::ops::Bound;
use std::sync::Arc;

/// Where a cursor stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Position {
    /// Not placed yet: before the first and behind the last row at once.
    Fresh,
    On(Arc<[u8]>),
    BehindLast,
    BeforeFirst,
}

/// A cursor over rows that stay as they are.
pub(super) struct ModelCursor {
    rows: Arc<Rows>,
    span: Span,
    position: Position,
}

/// The engine's range of a span. A prefix has a cursor of its own where no transaction reads.
pub(super) fn scan_range(span: &Span) -> ScanRange {
    match span {
        Span::All => ScanRange::from(..),
        Span::From(lower) => ScanRange::from(&lower[..]..),
        Span::To(upper) => ScanRange::from(..&upper[..]),
        Span::Between(lower, upper) => ScanRange::from(&lower[..]..&upper[..]),
        Span::Through(lower, upper) => ScanRange::from(&lower[..]..=&upper[..]),
        Span::Prefix(prefix) => ScanRange::prefix(prefix),
    }
}

/// Rows with the puts and deletes of a transaction on top.
pub(super) fn overlaid<'w>(rows: &Arc<Rows>, own: impl Iterator<Item = &'w Write>) -> Arc<Rows> {
    let mut rows = Arc::clone(rows);
    for write in own {
        match &write.change {
            Change::Put(key, value) => {
                Arc::make_mut(&mut rows).insert(key[..].into(), value.bytes().into());
            }
            Change::Delete(key) | Change::SingleDelete(key) => {
                Arc::make_mut(&mut rows).remove(&key[..]);
            }
            Change::Merge(key, operand) => {
                let rows = Arc::make_mut(&mut rows);
                let base = rows.get(&key[..]).map(|value| &value[..]);
                let value = operators::merged(write.family, base, &operand.bytes());
                rows.insert(key[..].into(), value.into());
            }
            Change::DeleteRange(..) | Change::Once(..) => {}
        }
    }
    rows
}

impl ModelCursor {
    pub(super) fn new(rows: Arc<Rows>, span: Span) -> Self {
        ModelCursor { rows, span, position: Position::Fresh }
    }

    /// Makes the same moves with both and compares where they stand after every row.
    ///
    /// # Errors
    /// The first difference, or what the engine refused. Adds to `compared` what was compared.
    pub(super) fn check(
        &mut self,
        cursor: &mut Cursor,
        moves: &[Move],
        compared: &mut u64,
    ) -> Result<(), String> {
        for one in moves {
            let times = match one {
                Move::Next(count) | Move::Previous(count) => *count,
                _ => 1,
            };
            for _ in 0..times {
                let found = make(cursor, one).map_err(|error| format!("{one:?}: {error}"))?;
                self.make(one);
                self.compare(cursor, found).map_err(|what| format!("{one:?}: {what}"))?;
                *compared += 1;
                if !found {
                    break;
                }
            }
        }
        Ok(())
    }

    fn make(&mut self, one: &Move) {
        self.position = match one {
            Move::First => self.first(),
            Move::Last => self.last(),
            Move::Next(_) => match &self.position {
                Position::Fresh | Position::BeforeFirst => self.first(),
                Position::BehindLast => Position::BehindLast,
                Position::On(key) => self.at_or_behind((Bound::Excluded(key), Bound::Unbounded)),
            },
            Move::Previous(_) => match &self.position {
                Position::Fresh | Position::BehindLast => self.last(),
                Position::BeforeFirst => Position::BeforeFirst,
                Position::On(key) => self.at_or_before((Bound::Unbounded, Bound::Excluded(key))),
            },
            Move::Seek(key) => self.at_or_behind((Bound::Included(key), Bound::Unbounded)),
            Move::SeekForPrevious(key) => {
                self.at_or_before((Bound::Unbounded, Bound::Included(key)))
            }
        };
    }

    fn first(&self) -> Position {
        let row = rows_in(&self.rows, &self.span).next();
        row.map_or(Position::BehindLast, |(key, _)| Position::On(Arc::clone(key)))
    }

    fn last(&self) -> Position {
        let row = rows_in(&self.rows, &self.span).next_back();
        row.map_or(Position::BeforeFirst, |(key, _)| Position::On(Arc::clone(key)))
    }

    /// Whether a key is before the span, in it, or behind it.
    fn place(&self, key: &[u8]) -> std::cmp::Ordering {
        use std::cmp::Ordering::{Equal, Greater, Less};
        match &self.span {
            Span::From(lower) | Span::Between(lower, _) | Span::Through(lower, _)
                if key < &lower[..] =>
            {
                Less
            }
            Span::To(upper) | Span::Between(_, upper) if key >= &upper[..] => Greater,
            Span::Through(_, upper) if key > &upper[..] => Greater,
            Span::Prefix(prefix) if !key.starts_with(prefix) => key.cmp(&prefix[..]),
            _ => Equal,
        }
    }

    /// The first row of the span within a range that has no end.
    fn at_or_behind(&self, range: (Bound<&[u8]>, Bound<&[u8]>)) -> Position {
        let mut rows = self.rows.range::<[u8], _>(range);
        match rows.next() {
            Some((key, _)) if self.place(key).is_lt() => self.first(),
            Some((key, _)) if self.place(key).is_eq() => Position::On(Arc::clone(key)),
            _ => Position::BehindLast,
        }
    }

    /// The last row of the span within a range that has no beginning.
    fn at_or_before(&self, range: (Bound<&[u8]>, Bound<&[u8]>)) -> Position {
        let mut rows = self.rows.range::<[u8], _>(range);
        match rows.next_back() {
            Some((key, _)) if self.place(key).is_gt() => self.last(),
            Some((key, _)) if self.place(key).is_eq() => Position::On(Arc::clone(key)),
            _ => Position::BeforeFirst,
        }
    }

    fn compare(&self, cursor: &Cursor, found: bool) -> Result<(), String> {
        let row = match &self.position {
            Position::On(key) => self.rows.get_key_value(key),
            _ => None,
        };
        let text = |key: &[u8]| format!("\"{}\"", key.escape_ascii());
        match row {
            None if found => Err(format!("stands on {}, not nowhere", text(cursor.key()))),
            None if cursor.valid() => Err("says that it stands on a row".to_string()),
            None => Ok(()),
            Some((key, _)) if !found => Err(format!("stands nowhere, not on {}", text(key))),
            Some((key, _)) if cursor.key() != &key[..] => {
                Err(format!("stands on {}, not on {}", text(cursor.key()), text(key)))
            }
            Some((key, value)) if cursor.value() != &value[..] => Err(format!(
                "another value at {}: {} bytes, not {}",
                text(key),
                cursor.value().len(),
                value.len()
            )),
            Some(_) => Ok(()),
        }
    }
}

fn make(cursor: &mut Cursor, one: &Move) -> lithify::Result<bool> {
    match one {
        Move::First => cursor.seek_to_first(),
        Move::Last => cursor.seek_to_last(),
        Move::Next(_) => cursor.next(),
        Move::Previous(_) => cursor.prev(),
        Move::Seek(key) => cursor.seek(key),
        Move::SeekForPrevious(key) => cursor.seek_for_prev(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_over_a_span() {
        let rows: Rows =
            ["a", "b", "ba", "c", "d"].map(|k| (k.as_bytes().into(), k.as_bytes().into())).into();
        let span = Span::Between(b"b".to_vec(), b"d".to_vec());
        let mut cursor = ModelCursor::new(Arc::new(rows), span);
        let mut stand = |one: Move| {
            cursor.make(&one);
            match &cursor.position {
                Position::On(key) => String::from_utf8_lossy(key).into_owned(),
                Position::BehindLast => ">".into(),
                Position::BeforeFirst => "<".into(),
                Position::Fresh => "?".into(),
            }
        };
        assert_eq!(stand(Move::Next(1)), "b");
        assert_eq!(stand(Move::Previous(1)), "<");
        assert_eq!(stand(Move::Previous(1)), "<");
        assert_eq!(stand(Move::Next(1)), "b");
        assert_eq!(stand(Move::Next(1)), "ba");
        assert_eq!(stand(Move::Seek(b"c0".to_vec())), ">");
        assert_eq!(stand(Move::Previous(1)), "c");
        assert_eq!(stand(Move::Next(1)), ">");
        assert_eq!(stand(Move::Seek(b"".to_vec())), "b");
        assert_eq!(stand(Move::SeekForPrevious(b"zz".to_vec())), "c");
        assert_eq!(stand(Move::SeekForPrevious(b"a".to_vec())), "<");
        assert_eq!(stand(Move::SeekForPrevious(b"bz".to_vec())), "ba");
        assert_eq!((stand(Move::First), stand(Move::Last)), ("b".into(), "c".into()));
        assert_eq!(stand(Move::Seek(b"d".to_vec())), ">");
    }
}
