//! Rows that are read one by one: what a chunk costs of which one line is wanted.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::adapter::EngineResult;
use crate::adapter::text::{TextRow, TextSession, key_of};
use crate::latency::Latencies;

/// Rows that are read, at most.
pub const ROW_READS: u64 = 1_000;

/// How long reads of single rows took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowReads {
    /// How many.
    pub reads: u64,
    /// The median, microseconds.
    pub p50_us: f64,
    /// The 99th percentile, microseconds.
    pub p99_us: f64,
    /// The mean, microseconds.
    pub mean_us: f64,
    /// Rows that were not there, or not as they were loaded.
    pub wrong: u64,
}

/// Rows all over the text, none twice, in an order that has nothing to do with theirs.
pub struct Sample {
    step: u64,
    rows: Vec<SampledRow>,
}

struct SampledRow {
    key: [u32; 2],
    hash: u64,
}

fn hash_of((partition, number, line): TextRow<'_>) -> u64 {
    let seed = twox_hash::XxHash3_64::oneshot(&key_of(partition, number));
    twox_hash::XxHash3_64::oneshot_with_seed(seed, line)
}

impl Sample {
    /// A sample of a text of so many rows.
    pub fn of(rows: u64) -> Sample {
        Sample { step: rows.div_ceil(ROW_READS).max(1), rows: Vec::new() }
    }

    /// Takes a row if it belongs to the sample.
    pub fn offer(&mut self, row: TextRow<'_>) {
        let (partition, number, _) = row;
        if u64::from(number) % self.step == self.step / 2 {
            self.rows.push(SampledRow { key: [partition, number], hash: hash_of(row) });
        }
    }

    /// Reads the rows.
    ///
    /// # Errors
    /// The engine's.
    pub fn read(mut self, session: &mut dyn TextSession) -> EngineResult<RowReads> {
        self.rows.sort_unstable_by_key(|row| row.hash);
        let (mut latencies, mut wrong) = (Latencies::default(), 0);
        let mut line = Vec::new();
        for SampledRow { key: [partition, number], hash } in self.rows {
            let began = Instant::now();
            let found = session.get(partition, number, &mut line)?;
            latencies.record(began.elapsed().as_nanos() as u64);
            wrong += u64::from(!found || hash_of((partition, number, &line)) != hash);
        }
        Ok(RowReads {
            reads: latencies.count(),
            p50_us: latencies.percentile(50.0) as f64 / 1e3,
            p99_us: latencies.percentile(99.0) as f64 / 1e3,
            mean_us: latencies.mean() / 1e3,
            wrong,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::text::SPACES;
    use crate::adapter::text::{OrderedText, TextEngine as _};
    use crate::engines::model::ModelEngine;

    #[test]
    fn a_sample_is_spread_and_notices_what_is_wrong() {
        let text = OrderedText::new(Box::new(ModelEngine::new(&SPACES)));
        let mut session = text.session().expect("is there");
        let mut sample = Sample::of(2_500);
        for number in 0..2_500 {
            let line = format!("line {number}");
            sample.offer((number / 1_000, number, line.as_bytes()));
            // One of the sample is another, one is missing.
            let stored = if number == 1 { "other" } else { &line };
            if number != 4 {
                session.insert((number / 1_000, number, stored.as_bytes())).expect("inserts");
            }
        }
        session.finish().expect("writes");
        let keys: Vec<u32> = sample.rows.iter().map(|row| row.key[1]).collect();
        assert_eq!((&keys[..3], keys.len()), (&[1, 4, 7][..], 833));
        let reads = sample.read(&mut *session).expect("reads");
        assert_eq!((reads.reads, reads.wrong), (833, 2));
        assert!(reads.p50_us <= reads.p99_us, "{reads:?}");
        assert_eq!(Sample::of(0).read(&mut *session).expect("reads").reads, 0);
    }
}
