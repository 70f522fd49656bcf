//! Merges that let rows go.

use super::copied_blocks::{Bench, Case, EVERYTHING, Entry, rows};
use crate::base::{Trailer, ValueKind};
use crate::codec::Compression;
use crate::compaction::RetainPlan;
use crate::manifest::Version;
use crate::retention::{CompactionFilter, FilterDecision};
use std::sync::Arc;

/// Lets rows of odd numbers go.
fn odd() -> RetainPlan {
    let filter = CompactionFilter::new("odd", |row| match row.key.last() {
        Some(byte) if byte % 2 == 1 => Ok(FilterDecision::Remove),
        _ => Ok(FilterDecision::Keep),
    });
    let filter = Some(Arc::new(filter));
    RetainPlan { expiry: None, filter, newest_snapshot: None, now_s: 0 }
}

fn merged(retain: RetainPlan, deeper: u64, snapshots: Vec<u64>) -> Vec<Entry> {
    let bench = Bench::new(1, Compression::LZ4, 1_000).with_retain(retain);
    let levels = vec![vec![], vec![], bench.tables(&rows(0..deeper, 0), &[], u64::MAX)];
    let case = Case {
        runs: vec![bench.tables(&rows(0..400, 9), &[], u64::MAX)],
        deeper: Arc::new(Version::new(levels)),
        snapshots,
        range: EVERYTHING,
        table_bytes: 20_000,
    };
    let (output, entries) = bench.merge(&case, true).unwrap();
    assert_eq!(output.copied.blocks, 0, "a copied block passes by the filter");
    assert_eq!((output.entries_in, output.entries_out), (400, entries.len() as u64));
    entries
}

/// A row leaves a delete of its own number where an older one may lie deeper, else nothing.
#[test]
fn a_row_that_goes_leaves_a_delete_unless_nothing_lies_deeper() {
    let entries = merged(odd(), 200, vec![40_000]);
    let deletes: Vec<&Entry> = entries
        .iter()
        .filter(|(_, trailer, _)| trailer.kind() == Some(ValueKind::Delete))
        .collect();
    assert_eq!((entries.len(), deletes.len()), (300, 100));
    for (key, trailer, value) in deletes {
        assert!(key[..] < b"link000200"[..] && key[9] % 2 == 1 && value.is_empty());
        assert_eq!(*trailer, Trailer::new(9, ValueKind::Delete));
    }
}

/// What a snapshot sees stays, and what goes above one leaves a delete.
#[test]
fn snapshots_keep_rows_and_deletes() {
    let seen = RetainPlan { newest_snapshot: Some(9), ..odd() };
    assert_eq!(merged(seen, 0, vec![9, 40_000]).len(), 400);
    let unseen = RetainPlan { newest_snapshot: Some(8), ..odd() };
    let entries = merged(unseen, 0, vec![8, 40_000]);
    let is_delete = |entry: &&Entry| entry.1.kind() == Some(ValueKind::Delete);
    assert_eq!((entries.len(), entries.iter().filter(is_delete).count()), (400, 200));
}
