//! Lithify through its public API, like any other engine here.

use crate::adapter::codec::Codec;
use crate::adapter::cross_count::CrossCounts;
use crate::adapter::settings::DurabilityMode;
use crate::adapter::window::Window;
use crate::adapter::{
    BatchOp, Capabilities, Engine, EngineError, EngineResult, EngineStatistics, LevelStatistics,
    RowVisitor, ScanRange, Session, SpaceId, SpaceSpec, StallStatistics, WriteBatch,
};
use lithify::fs::World;
use lithify::stats::{Cause, DelayCause, JobFigure, StatisticsSnapshot, TrafficFigure};
use lithify::{CfOptions, ColumnFamily, Db, Options, Transaction};
use std::path::Path;

/// An open Lithify database, one column family per space.
pub struct LithifyEngine {
    db: Db,
    families: Vec<ColumnFamily>,
}

/// What it can do.
pub fn capabilities() -> Capabilities {
    Capabilities {
        transactions: true,
        prefix_filter: true,
        single_delete: true,
        multi_get: true,
        ordered_scan: true,
        codec_per_level: true,
        codecs: Codec::kinds().map(str::to_owned).collect(),
        block_size: true,
        durability: DurabilityMode::ALL.map(|mode| mode.name().to_owned()).into(),
        own_statistics: true,
        labels: Vec::new(),
    }
}

fn failed(error: lithify::Error) -> EngineError {
    if error.kind().is_retryable() {
        EngineError::retryable(error.to_string())
    } else {
        EngineError::fatal(error.to_string())
    }
}

impl LithifyEngine {
    /// Opens or makes the database in `directory`, with a column family for every space.
    ///
    /// # Errors
    /// What the engine refuses.
    pub fn open(
        directory: &Path,
        spaces: &[SpaceSpec],
        options: Options,
        family: CfOptions,
    ) -> EngineResult<Self> {
        LithifyEngine::open_in(World::system(), directory, spaces, options, family)
    }

    /// The same over files of the caller's.
    ///
    /// # Errors
    /// What the engine refuses.
    pub fn open_in(
        world: World,
        directory: &Path,
        spaces: &[SpaceSpec],
        options: Options,
        family: CfOptions,
    ) -> EngineResult<Self> {
        let db = Db::open_in(directory, options, world).map_err(failed)?;
        let open_family = |space: &SpaceSpec| {
            let prefix_length_bytes = space.prefix_bytes.unwrap_or(0);
            db.column_family(space.name, CfOptions { prefix_length_bytes, ..family.clone() })
        };
        let families = spaces.iter().map(open_family).collect::<Result<_, _>>().map_err(failed)?;
        Ok(LithifyEngine { db, families })
    }

    /// The database.
    pub fn database(&self) -> &Db {
        &self.db
    }
}

impl Engine for LithifyEngine {
    fn name(&self) -> String {
        format!("lithify {}", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn options(&self) -> serde_json::Value {
        let families: serde_json::Map<_, _> = self
            .families
            .iter()
            .map(|family| (family.name().to_owned(), format!("{:?}", family.options()).into()))
            .collect();
        serde_json::json!({
            "database": format!("{:?}", self.db.options()),
            "families": families,
        })
    }

    fn session(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(LithifySession { engine: self, transaction: None }))
    }

    fn flush(&self) -> EngineResult<()> {
        self.db.flush().map_err(failed)
    }

    fn wait_for_compaction(&self) -> EngineResult<()> {
        self.db.wait_for_compaction().map_err(failed)
    }

    fn settle_tree(&self) -> EngineResult<String> {
        self.flush()?;
        self.wait_for_compaction()?;
        self.families.iter().try_for_each(ColumnFamily::compact_level0).map_err(failed)?;
        // The base level may have more than it should now.
        self.wait_for_compaction()?;
        Ok("flushed, level 0 merged into the base level (compact_level0), compactions waited for"
            .to_owned())
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        let snapshot = self.db.stats();
        let raw = serde_json::from_str(&snapshot.to_json())
            .map_err(|error| EngineError::fatal(format!("the engine's statistics: {error}")))?;
        Ok(EngineStatistics {
            live_bytes: snapshot.table_bytes() + snapshot.wal_live_bytes,
            levels: level_statistics(&snapshot),
            // Reserved space is booked too, and written by nobody.
            written_bytes_by_cause: by_cause(|cause| match cause {
                Cause::WalPreallocation => 0,
                cause => snapshot.figures.traffic_of_cause(cause, TrafficFigure::WrittenBytes),
            }),
            read_bytes_by_cause: by_cause(|cause| {
                snapshot.figures.traffic_of_cause(cause, TrafficFigure::ReadBytes)
            }),
            cpu_us_by_cause: by_cause(|cause| snapshot.figures.cpu_ns_of_cause(cause) / 1000),
            stalls: stall_statistics(&snapshot),
            cross_counts: CrossCounts::new(),
            raw,
        })
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        self.db.close().map_err(failed)
    }
}

fn by_cause(figure: impl Fn(Cause) -> u64) -> std::collections::BTreeMap<String, u64> {
    let named = |cause: &Cause| (cause.name().to_owned(), figure(*cause));
    Cause::ALL.iter().map(named).filter(|(_, value)| *value > 0).collect()
}

fn level_statistics(snapshot: &StatisticsSnapshot) -> Vec<LevelStatistics> {
    let statistics = |(level, shape): (usize, &lithify::stats::LevelShape)| {
        let job = |figure| snapshot.figures.job(level, figure);
        LevelStatistics {
            level: level as u32,
            files: shape.files,
            stored_bytes: shape.size_bytes,
            raw_bytes: shape.raw_bytes,
            user_bytes: shape.user_bytes,
            codec: match shape.files {
                0 => shape.compression.clone(),
                _ => LevelStatistics::describe_codecs(&shape.files_by_codec),
            },
            compaction_read_bytes: job(JobFigure::ReadSourceBytes)
                + job(JobFigure::ReadTargetBytes),
            compaction_write_bytes: job(JobFigure::WrittenBytes),
            compaction_cpu_us: job(JobFigure::CpuNs) / 1000,
            compaction_wall_us: job(JobFigure::WallUs),
            compactions: job(JobFigure::Jobs),
        }
    };
    snapshot.levels.iter().enumerate().map(statistics).collect()
}

fn stall_statistics(snapshot: &StatisticsSnapshot) -> StallStatistics {
    let figures = &snapshot.figures;
    let causes = DelayCause::ALL.iter();
    let count = |cause: &DelayCause| figures.delays(*cause).count + figures.stops(*cause).count;
    StallStatistics {
        is_timed: true,
        delayed_us: causes.clone().map(|cause| figures.delays(*cause).sum_us).sum(),
        stopped_us: causes.clone().map(|cause| figures.stops(*cause).sum_us).sum(),
        by_cause: causes
            .map(|cause| (cause.name().to_owned(), count(cause)))
            .filter(|(_, count)| *count > 0)
            .collect(),
    }
}

struct LithifySession<'a> {
    engine: &'a LithifyEngine,
    transaction: Option<Transaction>,
}

impl LithifySession<'_> {
    fn family(&self, space: SpaceId) -> EngineResult<&ColumnFamily> {
        self.engine.families.get(space.index()).ok_or_else(|| EngineError::no_space(space))
    }

    /// Runs a call of the open transaction.
    fn within<R>(
        &mut self,
        space: SpaceId,
        call: impl FnOnce(&mut Transaction, &ColumnFamily) -> lithify::Result<R>,
    ) -> EngineResult<R> {
        let family = self.engine.families.get(space.index());
        match (&mut self.transaction, family) {
            (Some(transaction), Some(family)) => call(transaction, family).map_err(failed),
            (None, _) => Err(EngineError::no_transaction()),
            (_, None) => Err(EngineError::no_space(space)),
        }
    }
}

impl Session for LithifySession<'_> {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> EngineResult<bool> {
        value.clear();
        let found = self.family(space)?.get(key).map_err(failed)?;
        value.extend_from_slice(found.as_deref().unwrap_or_default());
        Ok(found.is_some())
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]),
    ) -> EngineResult<()> {
        let values = self.family(space)?.multi_get(keys).map_err(failed)?;
        for (index, value) in values.iter().enumerate() {
            if let Some(value) = value {
                found(index, value);
            }
        }
        Ok(())
    }

    fn scan(
        &mut self,
        space: SpaceId,
        range: &ScanRange<'_>,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        let Some(mut window) = Window::new(range, row) else { return Ok(0) };
        let mut cursor = self.family(space)?.prefix_cursor(range.prefix).map_err(failed)?;
        let mut found = match range.start.is_empty() {
            true => cursor.next(),
            false => cursor.seek(range.start),
        }
        .map_err(failed)?;
        while found && window.offer(cursor.key(), cursor.value()).is_continue() {
            found = cursor.next().map_err(failed)?;
        }
        Ok(window.visited())
    }

    fn scan_back(
        &mut self,
        space: SpaceId,
        from: &[u8],
        limit: u64,
        row: &mut RowVisitor<'_>,
    ) -> EngineResult<u64> {
        let range = ScanRange::first_rows(limit);
        let Some(mut window) = Window::new(&range, row) else { return Ok(0) };
        let mut cursor = self.family(space)?.prefix_cursor(b"").map_err(failed)?;
        let mut found = cursor.seek_for_prev(from).map_err(failed)?;
        while found && window.offer(cursor.key(), cursor.value()).is_continue() {
            found = cursor.prev().map_err(failed)?;
        }
        Ok(window.visited())
    }

    fn write_batch(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        let mut own = self.engine.db.batch();
        for op in batch.ops() {
            let family = self.family(op.row().0)?;
            match op {
                BatchOp::Put(_, key, value) => own.put(family, key, value),
                BatchOp::Delete(_, key) => own.delete(family, key),
                BatchOp::SingleDelete(_, key) => own.single_delete(family, key),
            };
        }
        own.commit().map_err(failed)
    }

    fn begin(&mut self, _row_group: u64) -> EngineResult<()> {
        self.transaction = Some(self.engine.db.transaction());
        Ok(())
    }

    fn get_for_update(
        &mut self,
        space: SpaceId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        value.clear();
        let found =
            self.within(space, |transaction, family| transaction.get_for_update(family, key))?;
        value.extend_from_slice(found.as_deref().unwrap_or_default());
        Ok(found.is_some())
    }

    fn change(&mut self, op: BatchOp<'_>) -> EngineResult<()> {
        self.within(op.row().0, |transaction, family| match op {
            BatchOp::Put(_, key, value) => transaction.put(family, key, value),
            BatchOp::Delete(_, key) => transaction.delete(family, key),
            BatchOp::SingleDelete(_, key) => transaction.single_delete(family, key),
        })
    }

    fn commit(&mut self) -> EngineResult<()> {
        match self.transaction.take() {
            Some(transaction) => transaction.commit().map_err(failed),
            None => Err(EngineError::no_transaction()),
        }
    }

    fn rollback(&mut self) -> EngineResult<()> {
        self.transaction = None;
        Ok(())
    }
}
