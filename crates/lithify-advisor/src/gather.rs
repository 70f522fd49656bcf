//! Rows that follow a position of an order, gathered while rows come in any other.
//!
//! Owns: what rows are compared by ([`Rank`]), and the places that a pass fills. A place keeps up to half
//! as many rows again as it needs, and drops the last ones together: a heap took four times as long for
//! rows of 30 bytes.

use crate::rows::{Row, Rows};
use crate::sample::{Order, PLACE_BYTES};

/// What rows are compared by: the hash of their first part where that is the order, then the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank<'a> {
    hash: u64,
    key: &'a [u8],
}

impl<'a> Rank<'a> {
    /// Of a row in an order.
    pub(crate) fn of(order: Order, row: &Row<'a>) -> Rank<'a> {
        let hash = match order {
            Order::Input | Order::Key => 0,
            Order::Hash => hash(&row.key[..row.partition_bytes]),
        };
        Rank { hash, key: row.key }
    }

    /// A copy that stays.
    pub(crate) fn keep(self) -> KeptRank {
        KeptRank { hash: self.hash, key: self.key.to_vec() }
    }
}

/// A rank with a key of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeptRank {
    hash: u64,
    key: Vec<u8>,
}

impl KeptRank {
    /// To compare with.
    pub(crate) fn borrow(&self) -> Rank<'_> {
        Rank { hash: self.hash, key: &self.key }
    }
}

/// FNV-1a with a last mix: spreads evenly, which is all that is asked of it. Cassandra's Murmur3 puts
/// other rows side by side, and as much by chance.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

/// A place that is being filled.
pub(crate) struct Gathering {
    order: Order,
    rows: Rows,
    /// No row behind this one is among the first that fill the place.
    last: Option<KeptRank>,
}

impl Gathering {
    /// An empty one.
    pub(crate) fn new(order: Order) -> Gathering {
        Gathering { order, rows: Rows::default(), last: None }
    }

    /// Takes a row, unless enough rows are in front of it.
    pub(crate) fn take(&mut self, rank: Rank<'_>, row: Row<'_>) {
        if self.last.as_ref().is_some_and(|last| last.borrow() < rank) {
            return;
        }
        // Rows in another order end no file.
        self.rows.push(Row { file_bytes: 0, ..row });
        if self.rows.data_bytes() >= PLACE_BYTES + PLACE_BYTES / 2 {
            self.shrink();
        }
    }

    /// Keeps the first rows that fill the place, in their order. Rows of one rank stay as they came.
    fn shrink(&mut self) {
        let mut all: Vec<(Rank<'_>, Row<'_>)> =
            self.rows.iter().map(|row| (Rank::of(self.order, &row), row)).collect();
        all.sort_by_key(|(rank, _)| *rank);
        let (mut rows, mut last) = (Rows::default(), None);
        for (rank, row) in all {
            if rows.push_up_to(row, PLACE_BYTES).is_break() {
                last = Some(rank.keep());
                break;
            }
        }
        *self = Gathering { order: self.order, rows, last };
    }

    /// The rows in their order.
    pub(crate) fn into_rows(mut self) -> Rows {
        self.shrink();
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rows_are_kept_whatever_order_they_come_in() {
        let count = 5_000_u64;
        let mut gathering = Gathering::new(Order::Key);
        for number in 0..count {
            // Each number once, all over.
            let key = (number * 1_234_577 % count).to_be_bytes();
            let row = Row {
                key: &key,
                partition_bytes: 8,
                value: &[0; 192],
                data_bytes: 200,
                file_bytes: 0,
            };
            gathering.take(Rank::of(Order::Key, &row), row);
        }
        let rows = gathering.into_rows();
        let numbers: Vec<u64> = rows
            .iter()
            .map(|row| u64::from_be_bytes(row.key.try_into().expect("eight bytes")))
            .collect();
        let expected = PLACE_BYTES.div_ceil(200);
        assert_eq!(numbers, (0..expected).collect::<Vec<u64>>());
    }

    #[test]
    fn hashes_go_by_the_first_part_of_the_key() {
        let row = |key: &'static [u8]| Row {
            key,
            partition_bytes: 2,
            value: &[],
            data_bytes: 1,
            file_bytes: 0,
        };
        let rank = |key: &'static [u8]| Rank::of(Order::Hash, &row(key));
        assert_eq!(rank(b"abx").hash, rank(b"aby").hash);
        assert!(rank(b"abx") < rank(b"aby"));
        assert_ne!(rank(b"acx").hash, rank(b"abx").hash);
    }
}
