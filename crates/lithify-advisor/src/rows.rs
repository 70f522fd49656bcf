//! Rows, side by side in one piece of memory.

use std::ops::ControlFlow;

/// A row as the data have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// What the database sorts by; made of the row's number where no key is named.
    pub key: &'a [u8],
    /// The first bytes of the key that choose the partition, where a database hashes those alone.
    pub partition_bytes: usize,
    /// The row as it is in the input, without its line end.
    pub value: &'a [u8],
    /// What the row takes in the input, line end included.
    pub data_bytes: u64,
    /// The size of the file that ends with this row, where one does; 0 elsewhere.
    pub file_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Lengths {
    key: u32,
    partition: u32,
    value: u32,
    data: u32,
    file: u32,
}

/// Neighbouring rows.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    bytes: Vec<u8>,
    lengths: Vec<Lengths>,
    data_bytes: u64,
}

impl Rows {
    /// One more row, behind the others.
    pub fn push(&mut self, row: Row<'_>) {
        self.bytes.extend_from_slice(row.key);
        self.bytes.extend_from_slice(row.value);
        let short = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        self.lengths.push(Lengths {
            key: short(row.key.len()),
            partition: short(row.partition_bytes.min(row.key.len())),
            value: short(row.value.len()),
            data: u32::try_from(row.data_bytes).unwrap_or(u32::MAX),
            file: u32::try_from(row.file_bytes).unwrap_or(u32::MAX),
        });
        self.data_bytes += row.data_bytes;
    }

    /// One more row; breaks once they take so many bytes in the input.
    pub fn push_up_to(&mut self, row: Row<'_>, wanted_bytes: u64) -> ControlFlow<()> {
        self.push(row);
        match self.data_bytes >= wanted_bytes {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// What they take in the input.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// What they hold in memory.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.lengths.capacity() * size_of::<Lengths>()
    }

    /// The rows in their order.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        let mut rest = self.bytes.as_slice();
        self.lengths.iter().map(move |lengths| {
            let (key, behind) = rest.split_at(lengths.key as usize);
            let (value, behind) = behind.split_at(lengths.value as usize);
            rest = behind;
            let (partition_bytes, data_bytes) = (lengths.partition as usize, lengths.data.into());
            Row { key, partition_bytes, value, data_bytes, file_bytes: lengths.file.into() }
        })
    }

    /// The same rows by their key, or by whatever `rank` makes of them.
    pub fn sorted_by<K: Ord>(&self, rank: impl Fn(&Row<'_>) -> K) -> Rows {
        let mut rows: Vec<(K, Row<'_>)> = self.iter().map(|row| (rank(&row), row)).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        let mut sorted = Rows::default();
        // Rows in another order end no file.
        rows.into_iter().for_each(|(_, row)| sorted.push(Row { file_bytes: 0, ..row }));
        sorted
    }

    /// Pieces of about so many bytes each, without a rest of less than half of that. A piece with the ends
    /// of files ends with one,
    /// unless that makes it twice as large.
    pub fn split(&self, piece_bytes: u64) -> Vec<Rows> {
        let mut pieces: Vec<Rows> = vec![Rows::default()];
        let mut left = self.data_bytes;
        let (mut has_end, mut is_end) = (false, false);
        for row in self.iter() {
            let size = pieces.last().map_or(0, Rows::data_bytes);
            let may_end = is_end || !has_end || size >= 2 * piece_bytes;
            if size >= piece_bytes && left >= piece_bytes / 2 && may_end {
                pieces.push(Rows::default());
                has_end = false;
            }
            left -= row.data_bytes;
            is_end = row.file_bytes > 0;
            has_end |= is_end;
            if let Some(piece) = pieces.last_mut() {
                piece.push(row);
            }
        }
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(keys: &[&str]) -> Rows {
        let mut rows = Rows::default();
        for key in keys {
            rows.push(Row {
                key: key.as_bytes(),
                partition_bytes: 1,
                value: b"value",
                data_bytes: 6,
                file_bytes: 0,
            });
        }
        rows
    }

    #[test]
    fn rows_come_back_in_order_and_sorted() {
        let rows = rows(&["b", "", "abc"]);
        let keys = |rows: &Rows| rows.iter().map(|row| row.key.to_vec()).collect::<Vec<_>>();
        assert_eq!(keys(&rows), [b"b".to_vec(), b"".to_vec(), b"abc".to_vec()]);
        assert_eq!(keys(&rows.sorted_by(|row| row.key.to_vec())), [&b""[..], b"abc", b"b"]);
        assert_eq!((rows.len(), rows.data_bytes()), (3, 18));
        assert!(rows.iter().all(|row| row.value == b"value"));
    }

    #[test]
    fn pieces_hold_every_row_once_and_none_is_small() {
        let all = rows(&["a", "b", "c", "d", "e"]);
        let pieces: Vec<usize> = all.split(12).iter().map(Rows::len).collect();
        assert_eq!(pieces, [2, 2, 1]);
        let pieces: Vec<usize> = all.split(24).iter().map(Rows::len).collect();
        assert_eq!(pieces, [5], "a rest of a quarter stays with the piece before it");
        assert!(Rows::default().split(10).is_empty());
    }

    #[test]
    fn a_piece_with_the_ends_of_files_ends_with_one() {
        let mut of_files = Rows::default();
        for (number, row) in rows(&["a", "b", "c", "d", "e", "f", "g"]).iter().enumerate() {
            let file_bytes = if [0, 3, 6].contains(&number) { 18 } else { 0 };
            of_files.push(Row { file_bytes, ..row });
        }
        let pieces: Vec<usize> = of_files.split(12).iter().map(Rows::len).collect();
        assert_eq!(pieces, [4, 2, 1], "a long file is split as rows are");
    }
}
