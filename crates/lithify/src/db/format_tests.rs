//! A database whose policy for formats changes its mind, table by table.

use crate::codec::BlockFormat;
use crate::codec::{CodecId, Compression};
use crate::compaction::{Evidence, FormatPolicy, TablePlace};
use crate::fs::{MemoryEnvironment, MemoryFileSystem, World};
use crate::stats::{Counter, JobFigure};
use crate::{CfOptions, ColumnFamily, Db, Options};
use std::sync::Arc;

const ZSTD: Compression = Compression { codec: CodecId::Zstd, effort: 1, ..Compression::NONE };

/// LZ4, but for tables with an even number of entries: those have a codec of their own.
struct ByParity {
    of_even: Compression,
}

impl FormatPolicy for ByParity {
    fn decide(&self, place: &TablePlace, evidence: &Evidence) -> BlockFormat {
        assert!(place.family.is_some() && place.level < place.level_count);
        let is_even = evidence.entries > 0 && evidence.entries.is_multiple_of(2);
        BlockFormat::new(if is_even { self.of_even } else { Compression::LZ4 }, 1024)
    }
}

/// Gives the family another policy and records what its tables owe under it.
fn change_formats(db: &Db, family: &ColumnFamily, of_even: Compression) {
    let (inner, family) = (&db.inner, &family.family);
    let mut manifest = inner.tree.manifest();
    family.set_formats(Arc::new(ByParity { of_even }));
    let changes = family.debt_changes(&*family.formats());
    let state = inner.append_edit(&mut manifest, changes).unwrap();
    family.take_version(&state, &[]);
}

/// Tables by whether their number of entries is even, and those of codec zstd.
fn tables(family: &ColumnFamily) -> (u64, u64) {
    let version = Arc::clone(&family.family.view().version);
    let count = |wanted: &dyn Fn(&crate::manifest::FileMetadata) -> bool| {
        version.tables().filter(|(_, table)| wanted(&table.metadata)).count() as u64
    };
    (count(&|table| table.entries % 2 == 0), count(&|table| table.compression == ZSTD))
}

fn debt_files(db: &Db) -> u64 {
    db.stats().levels.iter().map(|level| level.codec_debt_files).sum()
}

#[test]
fn tables_that_the_policy_would_write_otherwise_are_rewritten_once() {
    let files = Arc::new(MemoryFileSystem::new());
    let world = World { files, environment: Arc::new(MemoryEnvironment::new(1)) };
    let options = Options { background_threads: 0, ..Options::default() };
    let db = Db::open_in("/db", options, world).unwrap();
    let family_options = CfOptions {
        compression: "lz4".parse().unwrap(),
        block_size_bytes: 1024,
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        ..CfOptions::default()
    };
    let family = db.column_family("rows", family_options).unwrap();
    for number in 0..9_000_u64 {
        let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let value = format!("{word:x} {}", "stone ".repeat((word >> 60) as usize));
        family.put(format!("key{number:05}").as_bytes(), value.as_bytes()).unwrap();
    }
    family.compact_range(..).unwrap();
    db.wait_for_compaction().unwrap();
    let (even, zstd) = tables(&family);
    let all = db.stats().levels.iter().map(|level| level.files).sum::<u64>();
    assert!(even > 0 && even < all && zstd == 0, "{even} of {all} are even");
    assert_eq!(debt_files(&db), 0);

    let repaid = || db.stats().figures.counter(Counter::CompactionsCodecDebt);
    let copied = || db.stats().figures.job_total(JobFigure::CopiedBlocks);
    let copied_before = copied();
    change_formats(&db, &family, ZSTD);
    assert_eq!(debt_files(&db), even, "only the tables that it would write otherwise");
    db.wait_for_compaction().unwrap();
    assert_eq!((debt_files(&db), repaid()), (0, even));
    assert_eq!(tables(&family), (even, even));
    assert_eq!(copied(), copied_before, "no block of LZ4 fits a table of zstd");

    change_formats(&db, &family, Compression::LZ4);
    assert_eq!(debt_files(&db), even, "it has changed its mind again");
    change_formats(&db, &family, ZSTD);
    assert_eq!(debt_files(&db), 0, "in time: nothing is left to do");
    db.wait_for_compaction().unwrap();
    assert_eq!(repaid(), even);
}
