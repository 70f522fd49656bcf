//! The statistics page: the ledger with the shape of the tree, the cache and the memory.

use crate::base::Level;
use crate::codec::Compression;
use crate::compaction::Evidence;
use crate::compaction::levels::level_sizes;
use crate::db::inner::DbInner;
use crate::manifest::TableFile;
use crate::stats::{CacheFigures, LevelShape, StatisticsSnapshot};
use std::collections::HashMap;

impl DbInner {
    /// Everything counted so far, with the tree as it is now, summed over column families.
    pub(crate) fn statistics(&self) -> StatisticsSnapshot {
        let mut snapshot =
            StatisticsSnapshot::of_ledger(&self.ledger, self.world.environment.now_us())
                .with_memory(&self.workshop.budget);
        let cache = self.workshop.cache.statistics();
        snapshot.cache = CacheFigures {
            capacity_bytes: self.workshop.cache.capacity_bytes() as u64,
            used_bytes: cache.used_bytes,
            hits: cache.hits,
            misses: cache.misses,
            unwanted: cache.unwanted,
            evictions: cache.evicted,
            inserted_bytes: cache.inserted_bytes,
        };
        snapshot.row_locks_held = self.rows.held() as u64;
        snapshot.snapshots_held = self.visibility.snapshots_held() as u64;
        (snapshot.readers, snapshot.files_held_for_readers) = self.tree.readers_and_held_files();
        snapshot.last_refusal = self.jobs.last_refusal();
        snapshot.wal_live_bytes = self.commits.writer().wal.bytes();
        let oldest_snapshot = self.visibility.oldest();
        snapshot.levels = vec![LevelShape::default(); crate::db::LEVEL_COUNT];
        let mut files_by_codec: HashMap<(Level, Compression), u64> = HashMap::new();
        for family in self.tree.families().values() {
            let view = family.view();
            let targets = family.level_targets(&view.version);
            let sizes = level_sizes(&view.version);
            let scores = targets.scores(view.version.level(0).len(), &sizes);
            let formats = family.formats();
            let background = self.jobs.state();
            let busy = background.busy(family.id);
            snapshot.base_level = snapshot.base_level.max(targets.base_level);
            snapshot.pending_compaction_bytes += targets.pending_compaction_bytes(&sizes);
            for (level, shape) in snapshot.levels.iter_mut().enumerate() {
                shape.target_bytes += targets.target_bytes.get(level).copied().unwrap_or(0);
                shape.score = shape.score.max(scores.get(level).copied().unwrap_or(0.0));
                let format = formats.decide(&family.place(level), &Evidence::default());
                shape.compression = format.compression.to_string();
            }
            for (level, table) in view.version.tables() {
                let Some(shape) = snapshot.levels.get_mut(level) else { continue };
                shape.files += 1;
                shape.files_busy += u64::from(busy.is_some_and(|busy| busy.is_running(table)));
                shape.size_bytes += table.metadata.size_bytes;
                shape.raw_bytes += table.metadata.raw_bytes;
                shape.user_bytes += user_bytes(table);
                let metadata = &table.metadata;
                *files_by_codec.entry((level, metadata.compression)).or_default() += 1;
                if metadata.codec_debt {
                    shape.codec_debt_files += 1;
                    shape.codec_debt_bytes += metadata.size_bytes;
                }
                let obsolete = metadata.newest_obsolete_sequence;
                shape.obsolete_files += u64::from(obsolete > 0);
                if obsolete > 0 && obsolete <= oldest_snapshot {
                    shape.reclaim_debt_files += 1;
                    shape.reclaim_debt_bytes += metadata.size_bytes;
                }
            }
        }
        for ((level, codec), files) in files_by_codec {
            if let Some(shape) = snapshot.levels.get_mut(level) {
                shape.files_by_codec.insert(codec.to_string(), files);
            }
        }
        snapshot
    }
}

/// Keys and values of a table as they were written. A live table has its reader.
fn user_bytes(table: &TableFile) -> u64 {
    let properties = table.reader().map(|reader| reader.properties());
    properties.map_or(0, |properties| properties.key_bytes + properties.value_bytes)
}
