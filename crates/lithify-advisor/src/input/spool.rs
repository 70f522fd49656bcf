//! Places of rows that can only be read from the start: kept while all of them pass by.

use std::ops::ControlFlow;

use crate::error::{AdviseError, Result};
use crate::rows::{Row, Rows};
use crate::sample::{PLACE_BYTES, PLACES_MAX};
use crate::watch::Watch;

/// Evenly spaced places. While rows come, every place is kept, then every second, then every fourth.
#[derive(Default)]
pub(super) struct Spool {
    places: Vec<Rows>,
    /// One of so many places is kept.
    stride: usize,
    /// Which place rows belong to now.
    number: usize,
    current: Rows,
    total_bytes: u64,
    told_bytes: u64,
    stopped: Option<AdviseError>,
}

impl Spool {
    /// One more row, after `done` bytes of about `total`.
    pub(super) fn take(
        &mut self,
        row: Row<'_>,
        done: u64,
        total: u64,
        watch: &dyn Watch,
    ) -> ControlFlow<()> {
        self.total_bytes += row.data_bytes;
        self.current.push(row);
        if self.current.data_bytes() >= PLACE_BYTES {
            self.end_place();
        }
        if done - self.told_bytes >= 1 << 20 {
            self.told_bytes = done;
            let heard = watch.hear("reading rows", done / 1_000_000, total / 1_000_000);
            if let Err(error) = heard {
                self.stopped = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn end_place(&mut self) {
        let place = std::mem::take(&mut self.current);
        let stride = self.stride.max(1);
        if self.number.is_multiple_of(stride) {
            self.places.push(place);
        }
        self.number += 1;
        if self.places.len() > PLACES_MAX {
            let mut at = 0;
            self.places.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride = stride * 2;
        }
    }

    /// All rows have passed; the bytes of them.
    ///
    /// # Errors
    /// The watch ended it.
    pub(super) fn finish(&mut self) -> Result<u64> {
        if let Some(error) = self.stopped.take() {
            return Err(error);
        }
        if !self.current.is_empty()
            && (self.places.is_empty() || self.current.data_bytes() >= PLACE_BYTES / 2)
        {
            self.end_place();
        }
        Ok(self.total_bytes)
    }

    /// How many places there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Rows of the place at a share of the data.
    pub(super) fn place(&self, share: f64, wanted_bytes: u64) -> Rows {
        let count = self.places.len();
        let at = ((share.clamp(0.0, 1.0) * count as f64) as usize).min(count.saturating_sub(1));
        let mut rows = Rows::default();
        for row in self.places.get(at).into_iter().flat_map(Rows::iter) {
            if rows.push_up_to(row, wanted_bytes).is_break() {
                break;
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Silent;

    #[test]
    fn kept_places_are_spread_over_all_rows() {
        let mut spool = Spool::default();
        let value = vec![0; 64 << 10];
        let rows = 4_000_u64;
        for number in 0..rows {
            let key = number.to_be_bytes();
            let row = Row {
                key: &key,
                partition_bytes: 8,
                value: &value,
                data_bytes: 64 << 10,
                file_bytes: 0,
            };
            assert!(spool.take(row, number << 16, rows << 16, &Silent).is_continue());
        }
        assert_eq!(spool.finish(), Ok(rows << 16));
        assert!((PLACES_MAX / 2..=PLACES_MAX).contains(&spool.len()), "{}", spool.len());
        let first = |share: f64| {
            let rows = spool.place(share, 1);
            rows.iter()
                .next()
                .map_or(0, |row| row.key.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
        };
        assert_eq!(first(0.0), 0);
        assert!((1_990..2_010).contains(&first(0.5)), "{}", first(0.5));
        assert!(first(1.0) > 3_950);
    }
}
