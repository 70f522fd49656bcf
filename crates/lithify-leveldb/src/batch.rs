//! Write batches: writes in the order of their insertion, copied into one buffer.
//!
//! The engine's own batches cannot be gone through and belong to one database; LevelDB's can and do not.

/// A write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write<'a> {
    /// Sets a key to a value.
    Put(&'a [u8], &'a [u8]),
    /// Removes a key.
    Delete(&'a [u8]),
}

impl<'a> Write<'a> {
    /// The key that it is about.
    pub fn key(self) -> &'a [u8] {
        match self {
            Write::Put(key, _) | Write::Delete(key) => key,
        }
    }
}

/// How long the parts of a write are that stand in the buffer.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    key: usize,
    /// Nothing for a delete.
    value: Option<usize>,
}

/// Writes that are applied together.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    lengths: Vec<Lengths>,
}

impl WriteBatch {
    /// Adds one write.
    pub fn push(&mut self, write: Write<'_>) {
        let (key, value) = match write {
            Write::Put(key, value) => (key, Some(value)),
            Write::Delete(key) => (key, None),
        };
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.lengths.push(Lengths { key: key.len(), value: value.map(<[u8]>::len) });
    }

    /// Adds copies of all writes of another batch behind its own.
    pub fn append(&mut self, other: &WriteBatch) {
        self.bytes.extend_from_slice(&other.bytes);
        self.lengths.extend_from_slice(&other.lengths);
    }

    /// Adds copies of its own writes behind them.
    pub fn double(&mut self) {
        self.bytes.extend_from_within(..);
        self.lengths.extend_from_within(..);
    }

    /// Forgets all writes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.lengths.clear();
    }

    /// Whether there is no write.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The writes in the order of their insertion.
    pub fn writes(&self) -> impl Iterator<Item = Write<'_>> {
        let mut rest = &self.bytes[..];
        self.lengths.iter().map(move |lengths| {
            let (key, behind) = rest.split_at(lengths.key);
            let (value, behind) = behind.split_at(lengths.value.unwrap_or(0));
            rest = behind;
            match lengths.value {
                Some(_) => Write::Put(key, value),
                None => Write::Delete(key),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_come_back_in_their_order() {
        let mut batch = WriteBatch::default();
        batch.push(Write::Put(b"basalt", b"igneous"));
        batch.push(Write::Put(b"", b""));
        batch.push(Write::Delete(b"basalt"));
        let own: Vec<_> = batch.writes().collect();
        let expected =
            [Write::Put(b"basalt", b"igneous"), Write::Put(b"", b""), Write::Delete(b"basalt")];
        assert_eq!(own, expected);
        let mut other = WriteBatch::default();
        other.push(Write::Delete(b"chalk"));
        other.append(&batch);
        assert_eq!(other.writes().count(), 4);
        assert_eq!(other.writes().last(), Some(Write::Delete(b"basalt")));
        other.double();
        assert_eq!(other.writes().nth(4), Some(Write::Delete(b"chalk")));
        other.clear();
        assert!(other.is_empty() && other.writes().next().is_none());
    }
}
