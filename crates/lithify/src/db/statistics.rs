//! The statistics page: the ledger with the shape of the tree, the cache and the memory.

use crate::base::{Level, SequenceNumber};
use crate::codec::Compression;
use crate::compaction::levels::{LevelTargets, level_sizes};
use crate::db::inner::DbInner;
use crate::db::tree::family::{Family, View};
use crate::manifest::TableFile;
use crate::stats::{CacheFigures, FamilyStatistics, LevelShape, StatisticsSnapshot};
use std::collections::HashMap;

impl DbInner {
    /// Everything counted so far, with the tree as it is now: summed over column families, and of
    /// each.
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
        let (running, waiting) = self.jobs.running_and_waiting();
        (snapshot.jobs_running, snapshot.jobs_waiting) = (running as u64, waiting as u64);
        let since_us = self.visibility.oldest_snapshot_since_us();
        let now_us = self.world.environment.now_us();
        snapshot.oldest_snapshot_age_us = since_us.map_or(0, |since| now_us.saturating_sub(since));
        snapshot.levels = vec![LevelShape::default(); crate::db::LEVEL_COUNT];
        for family in self.tree.families().values() {
            let statistics = self.family_statistics(family);
            snapshot.base_level = snapshot.base_level.max(statistics.base_level);
            snapshot.pending_compaction_bytes += statistics.pending_compaction_bytes;
            for (sum, shape) in snapshot.levels.iter_mut().zip(&statistics.levels) {
                sum.add(shape);
            }
            snapshot.families.push(statistics);
        }
        snapshot
    }

    /// What a column family holds, and what was done with it.
    pub(crate) fn family_statistics(&self, family: &Family) -> FamilyStatistics {
        // First: a family's book is never ahead of the tables that it tells of.
        let figures = family.ledger.figures();
        let view = family.view();
        let targets = family.level_targets(&view.version);
        let sizes = level_sizes(&view.version);
        let is_due = targets.is_due(view.version.level(0).len(), &sizes);
        FamilyStatistics {
            id: family.id,
            name: family.name.clone(),
            compression: family.options().compression.to_string(),
            figures,
            memtable_bytes: view.memories().map(|memory| memory.memory_bytes() as u64).sum(),
            immutable_memtables: view.immutable.len() as u64,
            base_level: targets.base_level as u64,
            longest_pass: family.rows.longest_pass.get(),
            pending_compaction_bytes: match is_due {
                true => targets.pending_compaction_bytes(&sizes),
                false => 0,
            },
            ..FamilyStatistics::default()
        }
        .with_levels(self.level_shapes(family, &view, &targets))
    }

    fn level_shapes(
        &self,
        family: &Family,
        view: &View,
        targets: &LevelTargets,
    ) -> Vec<LevelShape> {
        let sizes = level_sizes(&view.version);
        let scores = targets.scores(view.version.level(0).len(), &sizes);
        let formats = family.formats();
        let oldest_snapshot = self.visibility.oldest();
        let mut levels = vec![LevelShape::default(); crate::db::LEVEL_COUNT];
        for (level, shape) in levels.iter_mut().enumerate() {
            shape.target_bytes = targets.target_bytes.get(level).copied().unwrap_or(0);
            shape.score = scores.get(level).copied().unwrap_or(0.0);
            let format = formats.peek(&family.place(level));
            shape.compression = format.compression.to_string();
        }
        let mut files_by_codec: HashMap<(Level, Compression), u64> = HashMap::new();
        let background = self.jobs.state();
        let busy = background.busy(family.id);
        for (level, table) in view.version.tables() {
            let Some(shape) = levels.get_mut(level) else { continue };
            shape.files_busy += u64::from(busy.is_some_and(|busy| busy.is_running(table)));
            add_table(shape, table, oldest_snapshot);
            *files_by_codec.entry((level, table.metadata.compression)).or_default() += 1;
        }
        drop(background);
        for ((level, codec), files) in files_by_codec {
            if let Some(shape) = levels.get_mut(level) {
                shape.files_by_codec.insert(codec.to_string(), files);
            }
        }
        levels
    }
}

fn add_table(shape: &mut LevelShape, table: &TableFile, oldest_snapshot: SequenceNumber) {
    let metadata = &table.metadata;
    shape.files += 1;
    shape.size_bytes += metadata.size_bytes;
    shape.raw_bytes += metadata.raw_bytes;
    shape.user_bytes += user_bytes(table);
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

/// Keys and values of a table as they were written. A live table has its reader.
fn user_bytes(table: &TableFile) -> u64 {
    let properties = table.reader().map(|reader| reader.properties());
    properties.map_or(0, |properties| properties.key_bytes + properties.value_bytes)
}
