//! Opening: lock, manifest, tables, log.
//!
//! 1. The directory is made or found, and locked.
//! 2. The manifest is read, or made for a new database. A directory with the engine's files but
//!    without `CURRENT` is damage, not a new database.
//! 3. Every live table is opened, so that a missing or damaged one is an error here.
//! 4. The log is replayed into memtables; its segments stay until those are flushed.
//! 5. What no state needs is removed, and background work begins.

use crate::base::{BudgetShare, FileNumber, MemoryBudget, SequenceNumber, ValueKind};
use crate::cache::BlockCache;
use crate::codec::ContextPool;
use crate::compaction::Workshop;
use crate::compaction::scheduler::{Scheduler, SchedulerOptions};
use crate::compaction::{ReadHeat, recall_decisions, recorded_in, warm_up};
use crate::db::committing::Commits;
use crate::db::committing::batch::{BatchData, Entries, Entry, GroupHead};
use crate::db::committing::wal_set::WalSet;
use crate::db::inner::DbInner;
use crate::db::jobs::Jobs;
use crate::db::jobs::stall::Flow;
use crate::db::lifecycle::Lifecycle;
use crate::db::reading::Visibility;
use crate::db::resources::Resources;
use crate::db::rows::Rows;
use crate::db::tree::{Families, Tree};
use crate::events::Events;
use crate::fs::{Environment, FileLock, World, make_directory, sync_name};
use crate::manifest::{DirectoryListing, FileName, INCOMPLETE, Manifest, ManifestState};
use crate::memtable::chunk_pool::ChunkPool;
use crate::options::{CfOptions, Options};
use crate::stats::{Cause, Ledger, WorkMeter};
use crate::table::TableReader;
use crate::wal::{
    LogKind, LogRecord, Recovery, RecoveryOptions, SegmentFile, WalReader, recover_segments,
};
use crate::{Error, ErrorKind, Result};
use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Opens or makes the database in `path`.
pub(crate) fn open(
    path: &Path,
    options: Options,
    world: World,
    resources: Option<&Resources>,
) -> Result<Arc<DbInner>> {
    options.validate()?;
    prepare_directory(path, &options, &world)?;
    let file_lock = world.files.lock_directory(&FileName::Lock.path(path))?;
    check_direct_reads(path, &options, &world)?;
    let listing = DirectoryListing::read(&*world.files, path)?;
    let mut manifest = open_manifest(path, &options, &world, &listing)?;
    manifest.set_rotate_size_bytes(options.manifest_bytes_max);
    check_never_empty(path, manifest.state(), &listing)?;
    let inner = assemble(path, options, world, manifest, Access::Write(file_lock, resources))?;
    let state = Arc::clone(inner.tree.manifest().state());
    let manifest_number = inner.tree.manifest().number();
    let started = open_families(&inner, &state, None).and_then(|()| {
        let recovery = recover_log(&inner, &state, &listing)?;
        inner.remove_orphans(listing.orphans(&state, manifest_number))?;
        let segments = recovery.reports.len();
        inner.lifecycle.set_recovery(recovery.reports);
        inner.update_flow();
        inner.start_background()?;
        shorten_log(&inner, segments);
        Ok(())
    });
    if let Err(error) = started {
        inner.lifecycle.begin_close();
        inner.lifecycle.end_close();
        inner.jobs.shutdown();
        return Err(error);
    }
    Ok(inner)
}

/// A program that opens, writes little and closes leaves a segment each time. From so many on their rows go into
/// tables, and the segments go: else they and the time of an opening grew with every run.
const RECOVERED_SEGMENTS_MAX: usize = 8;

/// More than that in memory is flushed as writes go on: no opening waits for it.
const FLUSHED_AT_OPEN_BYTES_MAX: usize = 1 << 20;

/// Flushes what many short segments hold, if it is little.
fn shorten_log(inner: &Arc<DbInner>, recovered_segments: usize) {
    if recovered_segments <= RECOVERED_SEGMENTS_MAX {
        return;
    }
    if inner.commits.writer().active.total_bytes() <= FLUSHED_AT_OPEN_BYTES_MAX {
        // Refused, on a full disk say, the segments stay, as they would have.
        let _ = inner.flush_all();
    }
}

/// Refuses a directory in which a database is still being made, or was not made to the end.
pub(crate) fn check_complete(path: &Path, world: &World) -> Result<()> {
    let mark = path.join(INCOMPLETE);
    if world.files.exists(&mark)? {
        let what =
            "a repair into this directory has not ended: run it again, or remove the directory";
        return Err(Error::invalid(what).in_file(mark));
    }
    Ok(())
}

pub(crate) fn prepare_directory(path: &Path, options: &Options, world: &World) -> Result<()> {
    if world.files.exists(path)? {
        if !world.files.is_directory(path)? {
            return Err(Error::invalid("a database is a directory, this is a file").in_file(path));
        }
        return check_place(path, options, world);
    }
    if !options.create_if_missing {
        return Err(no_database(path));
    }
    make_directory(path, &*world.files)
}

/// Refuses a directory that holds no database and is no place for a new one, before anything is
/// made there: files of somebody else are no neighbours for files that come and go.
fn check_place(path: &Path, options: &Options, world: &World) -> Result<()> {
    if world.files.exists(&FileName::Current.path(path))? {
        return Ok(());
    }
    let found = world.files.list(path)?;
    let ours: Vec<_> = found.iter().filter_map(|path| FileName::of_path(path)).collect();
    let has_data =
        |name: &FileName| matches!(name, FileName::Current | FileName::Table(_) | FileName::Wal(_));
    if ours.iter().any(has_data) {
        return Ok(());
    }
    if !options.create_if_missing {
        return Err(no_database(path));
    }
    let is_strange = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        FileName::of_path(path).is_none()
            && !name.starts_with('.')
            && name != "lost+found"
            && name != INCOMPLETE
    };
    match found.iter().find(is_strange) {
        Some(other) => Err(Error::other_files("database", path, other)),
        None => Ok(()),
    }
}

/// Tables and log segments come after the first column family, durably. A manifest that knows of
/// none ever made, beside them, has lost its end, and they must not go as orphans.
fn check_never_empty(path: &Path, state: &ManifestState, listing: &DirectoryListing) -> Result<()> {
    let has_data = |name: &FileName| matches!(name, FileName::Table(_) | FileName::Wal(_));
    let is_new = state.next_family_id == ManifestState::default().next_family_id;
    match listing.names.iter().find(|name| has_data(name)) {
        Some(name) if is_new => Err(Error::corruption(
            "there are data, but the manifest knows of no column family that was ever made",
        )
        .in_file(name.path(path))),
        _ => Ok(()),
    }
}

fn no_database(path: &Path) -> Error {
    Error::new(ErrorKind::NotFound, "there is no database, and create_if_missing is off")
        .in_file(path)
}

/// Refuses direct reads where they are not to be had: reading through the page cache instead
/// would make every figure of the database one of another setting.
fn check_direct_reads(path: &Path, options: &Options, world: &World) -> Result<()> {
    if !options.direct_reads {
        return Ok(());
    }
    let lock = FileName::Lock.path(path);
    if world.files.open_direct(&lock)?.direct_io_alignment().is_some() {
        return Ok(());
    }
    let found = world.files.kind_name(path);
    Err(Error::new(
        ErrorKind::Unsupported,
        "files cannot be read past the page cache here: open with direct_reads off",
    )
    .in_file(path)
    .expected("a file system with direct I/O", found))
}

fn open_manifest(
    path: &Path,
    options: &Options,
    world: &World,
    listing: &DirectoryListing,
) -> Result<Manifest> {
    let files = &world.files;
    if files.exists(&FileName::Current.path(path))? {
        return Ok(Manifest::open_listed(Arc::clone(files), path, listing)?.0);
    }
    let has_data = |name: &FileName| matches!(name, FileName::Table(_) | FileName::Wal(_));
    if listing.names.iter().any(has_data) {
        return Err(Error::corruption("there are tables or log segments, but no CURRENT")
            .in_file(FileName::Current.path(path)));
    }
    if !options.create_if_missing {
        return Err(no_database(path));
    }
    sync_name(path, &**files)?;
    Manifest::create(Arc::clone(files), path, world.environment.random_u128())
}

/// As what a database is opened.
pub(crate) enum Access<'a> {
    /// For writing, under the lock; with what it shares with other databases.
    Write(Box<dyn FileLock>, Option<&'a Resources>),
    /// For reading; with the memory of the state before, if there was one.
    Read(Option<&'a DbInner>),
}

/// A workshop with a memory budget of its own, for a database that is opened anew.
fn new_workshop(
    path: &Path,
    options: &Options,
    world: &World,
    manifest: &Manifest,
    resources: Option<&Resources>,
) -> Arc<Workshop> {
    let (budget, cache, pool) = match resources {
        Some(resources) => resources.memory(),
        None => {
            let budget = MemoryBudget::new(options.memory_budget_bytes);
            let cache = BlockCache::new(Arc::clone(&budget), options.memory_budget_bytes / 16);
            let pool = ContextPool::new(Arc::clone(&budget));
            (budget, cache, pool)
        }
    };
    Arc::new(Workshop {
        world: world.clone(),
        directory: path.to_path_buf(),
        file_numbers: Arc::clone(manifest.file_numbers()),
        pool,
        cache,
        share: resources.map(|_| BudgetShare::of(&budget)),
        budget,
        ledger: Ledger::new(&*world.environment),
        direct_reads: options.direct_reads,
    })
}

pub(crate) fn assemble(
    path: &Path,
    options: Options,
    world: World,
    manifest: Manifest,
    access: Access<'_>,
) -> Result<Arc<DbInner>> {
    let environment = Arc::clone(&world.environment);
    let (file_lock, resources, before) = match access {
        Access::Write(file_lock, resources) => (Some(file_lock), resources, None),
        Access::Read(before) => (None, None, before),
    };
    let workshop = match before {
        Some(before) => Arc::clone(&before.workshop),
        None => new_workshop(path, &options, &world, &manifest, resources),
    };
    let ledger = Arc::clone(&workshop.ledger);
    let myself = Arc::default();
    let (changed, slowed) = (environment.new_event(), environment.new_event());
    let told_of_failure = [Arc::clone(&changed), Arc::clone(&slowed)];
    let lifecycle = Lifecycle::new(path, file_lock, environment.new_event(), told_of_failure);
    let scheduler = start_scheduler(&options, &environment, &ledger, &myself, resources)?;
    let flow = Flow::new(&options, environment.now_us());
    let listener = options.event_listener.clone();
    let events = Events::new(listener, Arc::clone(&ledger), Arc::clone(&environment));
    let chunks = ChunkPool::new(&workshop.budget, options.memtable_bytes);
    let inner = Arc::new(DbInner {
        path: path.to_path_buf(),
        database_id: manifest.database_id(),
        events,
        lifecycle,
        commits: Commits::new(&options, manifest.file_numbers().next(), &*environment),
        tree: Tree::new(manifest, &ledger, chunks),
        jobs: Jobs::new(scheduler, flow, changed, slowed),
        rows: Rows::new(&options, &ledger, &environment),
        visibility: Visibility::default(),
        resources: Mutex::new(resources.cloned()),
        ledger,
        workshop,
        options,
        world,
    });
    let _ = myself.set(Arc::downgrade(&inner));
    Ok(inner)
}

/// Starts the workers. A job that panics stops all writing of the database `myself`.
fn start_scheduler(
    options: &Options,
    environment: &Arc<dyn Environment>,
    ledger: &Arc<Ledger>,
    myself: &Arc<OnceLock<Weak<DbInner>>>,
    resources: Option<&Resources>,
) -> Result<Scheduler> {
    let (myself, told) = (Arc::clone(myself), Arc::clone(myself));
    let on_panic = Box::new(move |message: &str| {
        if let Some(inner) = myself.get().and_then(Weak::upgrade) {
            let error = Error::invalid(format!("a background job panicked: {message}"));
            inner.lifecycle.poison(&error);
            inner.tell_failure();
        }
    });
    let on_tick = Box::new(move || {
        if let Some(inner) = told.get().and_then(Weak::upgrade) {
            inner.check_log();
            inner.review_formats();
            inner.schedule_all_compactions();
        }
    });
    let (threads, nice) = (options.background_threads, options.background_nice);
    let pool = resources.map(|resources| resources.workers(environment, nice)).transpose()?;
    let options = SchedulerOptions { threads, pool, nice, on_panic, on_tick, order: None };
    Scheduler::new(Arc::clone(environment), Arc::clone(ledger), options)
}

/// Makes the column families of a state and opens all of their tables.
/// Tables that the state `before` has open already are not opened again.
pub(crate) fn open_families(
    inner: &Arc<DbInner>,
    state: &ManifestState,
    before: Option<&DbInner>,
) -> Result<()> {
    let mut open: BTreeMap<FileNumber, Arc<TableReader>> = BTreeMap::new();
    for family in before.iter().flat_map(|before| before.tree.all_families()) {
        let version = Arc::clone(&family.view().version);
        for (_, table) in version.tables() {
            open.insert(table.metadata.number, Arc::clone(table.reader()?));
        }
    }
    // Only a family that decides has use for it.
    let heat =
        LazyCell::new(|| ReadHeat::read(&*inner.world.files, &inner.path, inner.database_id));
    let now_us = inner.world.environment.now_us();
    let mut families = Families::new();
    let mut meter = WorkMeter::default();
    for (id, stored) in &state.families {
        let options = CfOptions::of_family(stored)?;
        for (_, table) in stored.version.tables() {
            let metadata = &table.metadata;
            let reader = match open.remove(&metadata.number) {
                Some(reader) => reader,
                None => {
                    let opened = inner.workshop.open_table(metadata.number, &mut meter);
                    opened.map_err(missing_table)?
                }
            };
            let mut is_the_one = reader.table_id() == metadata.table_id
                && reader.size_bytes() == metadata.size_bytes;
            if planted!(ForeignTableAccepted) {
                is_the_one = true;
            }
            if !is_the_one {
                return Err(Error::corruption("this is another table than the manifest names")
                    .in_file(inner.workshop.table_path(metadata.number)));
            }
            table.set_reader(reader);
        }
        let version = Arc::clone(&stored.version);
        let family = inner.tree.new_family(*id, &stored.name, options, version);
        recall_decisions(&*family.formats(), &stored.version, recorded_in);
        if family.formats().deciding().is_some() {
            warm_up(&*family.formats(), *id, &stored.version, &heat, now_us);
        }
        families.insert(*id, family);
    }
    inner.tree.set_families(families);
    inner.watch_families();
    inner.ledger.book_codecs(Cause::Recovery, 0, &meter, 0.0);
    Ok(())
}

/// A missing table is not a missing database: the manifest names it.
fn missing_table(error: Error) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    let path = error.path().map(Path::to_path_buf).unwrap_or_default();
    let what = "the manifest names a table that is not there";
    Error::corruption(what).in_file(path).because(error)
}

/// Replays the log into the memtables.
pub(crate) fn recover_log(
    inner: &Arc<DbInner>,
    state: &ManifestState,
    listing: &DirectoryListing,
) -> Result<Recovery> {
    let needed = listing.needed_segments(state);
    check_begun(inner, state)?;
    let segment = |number: &u64| SegmentFile {
        log_number: *number,
        path: FileName::Wal(*number).path(&inner.path),
    };
    let segments: Vec<_> = needed.iter().map(segment).collect();
    let options = RecoveryOptions {
        database_id: inner.database_id,
        oldest_needed: state.oldest_log_needed(),
        clean_close: state.clean_close.map(|close| close.log_end),
        read_only: inner.lifecycle.is_read_only(),
    };
    let tables = state.families.values().flat_map(|family| family.version.tables());
    let largest_in_tables = tables.map(|(_, table)| table.metadata.largest_sequence).max();
    let closed_at = state.clean_close.map_or(0, |close| close.last_sequence);
    let mut last_sequence = state.last_sequence.max(closed_at).max(largest_in_tables.unwrap_or(0));
    let recovered = recover_segments(&*inner.world.files, &segments, &options, &mut |record| {
        replay(inner, state, &record, &mut last_sequence)
    });
    // One that names no file misses the segment of the clean close.
    let missing = state.clean_close.map(|close| FileName::Wal(close.log_end.log_number));
    let recovery = recovered.map_err(|error| match missing {
        Some(name) => error.in_file(name.path(&inner.path)),
        None => error.in_file(&inner.path),
    })?;
    if recovery.rewritten_bytes > 0 {
        inner.ledger.book_written(Cause::Recovery, 0, 0, recovery.rewritten_bytes);
    }
    if planted!(RecoveredSequenceTooLow) {
        last_sequence /= 2;
    }
    let mut writer = inner.commits.writer();
    writer.last_sequence = last_sequence;
    for family in inner.tree.families().values() {
        writer.active.note(family.id, family.view().active.recharge());
    }
    writer.wal = WalSet::recovered(recovery.end, &recovery.reports);
    inner.visibility.publish(last_sequence);
    Ok(recovery)
}

/// The newest segment that is known to have begun is there with its header, if it is needed still.
/// No other file would tell.
fn check_begun(inner: &DbInner, state: &ManifestState) -> Result<()> {
    let number = inner.tree.witness().log_number();
    if number == 0 || number < state.oldest_log_needed() {
        return Ok(());
    }
    let path = FileName::Wal(number).path(&inner.path);
    let opened =
        WalReader::open(&*inner.world.files, &path, LogKind::Wal, inner.database_id, number);
    match opened {
        Ok(reader) => reader.header().map(drop),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(Error::corruption("a log segment that had begun is missing")
                .in_file(path)
                .because(error))
        }
        Err(error) => Err(error),
    }
}

/// Replays one logged group. What is in tables already is passed over, family by family.
fn replay(
    inner: &Arc<DbInner>,
    state: &ManifestState,
    record: &LogRecord<'_>,
    last_sequence: &mut SequenceNumber,
) -> Result<()> {
    let path = FileName::Wal(record.position.log_number).path(&inner.path);
    let at = |error: Error| error.at(&path, record.position.offset);
    let (head, mut entries) = GroupHead::split(record.payload).map_err(at)?;
    let GroupHead { first_sequence, entry_count } = head;
    let mut renewed = BatchData::default();
    if planted!(ReplayedRowsRenewed) {
        for entry in entries.clone().flatten() {
            match inner.tree.family(entry.family).filter(|_| entry.kind == ValueKind::Put) {
                Some(family) => {
                    let value = family.rows.value_of(entry.value).map_err(at)?;
                    renewed.push_to(&family, Entry { value, ..entry });
                }
                None => renewed.push(entry),
            }
        }
        renewed.set_write_time(|| inner.world.environment.unix_time_s());
        entries = renewed.entries();
    }
    let mut only_family = None;
    if planted!(BatchReplayedInPart) {
        only_family = entries.clone().flatten().next().map(|entry| entry.family);
    }
    let flushed = |family: &u32| {
        if planted!(FlushedWritesReplayed) {
            return 0;
        }
        if only_family.is_some_and(|only| only != *family) {
            return SequenceNumber::MAX;
        }
        state.families.get(family).map_or(0, |stored| stored.flushed_through)
    };
    let segment = record.position.log_number;
    check_families_known(entries.clone(), state).map_err(at)?;
    let next = inner
        .insert_entries(entries, first_sequence, segment, &mut Vec::new(), &flushed)
        .map_err(at)?;
    if next != first_sequence + u64::from(entry_count) {
        return Err(at(GroupHead::miscounted(entry_count, next - first_sequence)));
    }
    *last_sequence = (*last_sequence).max(next.saturating_sub(1));
    Ok(())
}

/// A family is in the manifest, durably, before any write to it is logged. One that was dropped
/// since has an id below the next; any other one means that the manifest has lost its end.
fn check_families_known(entries: Entries<'_>, state: &ManifestState) -> Result<()> {
    for entry in entries {
        let family = entry?.family;
        if family >= state.next_family_id {
            return Err(Error::corruption(
                "the log holds writes to a column family that the manifest does not know",
            )
            .expected(format_args!("ids below {}", state.next_family_id), family));
        }
    }
    Ok(())
}
