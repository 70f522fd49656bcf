//! The log: replayed into the new database, up to the first damage or beyond it.

use super::Repair;
use super::families::{SourceFamily, name_of_id};
use crate::base::{ColumnFamilyId, FileNumber, SequenceNumber, ValueKind};
use crate::db::{ColumnFamily, Db, GroupHead};
use crate::manifest::FileName;
use crate::options::CfOptions;
use crate::verify::{
    Finding, FoundManifest, Structure, Weight, is_missing, named_end, read_header,
};
use crate::wal::{LogKind, LogRecord, WalReader};
use crate::{Error, Result};
use std::collections::BTreeMap;

/// Where the writes of the log go.
pub(super) struct Targets {
    families: BTreeMap<ColumnFamilyId, (ColumnFamily, SequenceNumber)>,
    /// With a whole manifest: families that are not there and have a smaller id were dropped.
    next_id: Option<ColumnFamilyId>,
}

impl Targets {
    pub(super) fn new(found: &FoundManifest) -> Self {
        let next_id = found.is_whole.then_some(found.state.next_family_id);
        Targets { families: BTreeMap::new(), next_id }
    }

    pub(super) fn add(&mut self, source: &SourceFamily, target: ColumnFamily) {
        if let Some(id) = source.id {
            self.families.insert(id, (target, source.flushed_through));
        }
    }

    /// The family with that id, made if nothing but the log tells of it; `None` for one that was
    /// dropped.
    fn find(
        &mut self,
        db: &Db,
        id: ColumnFamilyId,
    ) -> Result<Option<&(ColumnFamily, SequenceNumber)>> {
        if !self.families.contains_key(&id) {
            match self.next_id {
                Some(next_id) if id < next_id => return Ok(None),
                Some(_) => {
                    let what = "the log holds writes to a column family that was never made";
                    return Err(Error::corruption(what));
                }
                None => {}
            }
            let family = db.column_family(&name_of_id(id), CfOptions::default())?;
            self.families.insert(id, (family, 0));
        }
        Ok(self.families.get(&id))
    }
}

/// How the replay stands.
struct Replay<'t> {
    targets: &'t mut Targets,
    /// Segments with smaller numbers are needed no more, if that is known.
    oldest_needed: Option<FileNumber>,
    /// Behind the first damage.
    is_behind: bool,
    before: Option<FileNumber>,
}

impl Repair<'_> {
    /// Replays the segments, which ascend.
    pub(super) fn log(
        &mut self,
        db: &Db,
        segments: &[FileNumber],
        found: &FoundManifest,
        targets: &mut Targets,
    ) -> Result<()> {
        let mut readers = Vec::new();
        for number in segments {
            match self.open_segment(*number, found.database_id) {
                Ok(reader) => readers.push((*number, reader)),
                Err(error) => {
                    let path = FileName::Wal(*number).path(self.source);
                    self.damage_in_log(error.in_file(path), Structure::LogSegment);
                }
            }
        }
        let close = found.state.clean_close.map(|close| close.log_end).filter(|_| found.is_whole);
        let oldest = found.is_whole.then(|| found.state.oldest_log_needed());
        let missing_at = readers.len() < segments.len();
        let mut replay =
            Replay { targets, oldest_needed: oldest, is_behind: missing_at, before: None };
        for index in 0..readers.len() {
            let (passed, rest) = readers.split_at_mut(index + 1);
            let Some((number, reader)) = passed.last_mut() else { break };
            let end = named_end(*number, rest, close);
            self.check_predecessor(reader, oldest, &mut replay);
            self.segment(db, reader, end, &mut replay)?;
        }
        let closed = close.map_or(0, |end| end.log_number);
        for number in [closed, found.begun_log] {
            if is_missing(&readers, oldest, number) && self.report.log.damaged_at.is_none() {
                let path = FileName::Wal(number).path(self.source);
                let what = "a log segment that had begun is missing or has no header";
                self.damage_in_log(Error::corruption(what).in_file(path), Structure::LogSegment);
            }
        }
        Ok(())
    }

    fn open_segment(&self, number: FileNumber, database_id: Option<u128>) -> Result<WalReader> {
        let files = &*self.world.files;
        let path = FileName::Wal(number).path(self.source);
        let id = match database_id {
            Some(id) => id,
            None => read_header(files, &path, LogKind::Wal)?.database_id,
        };
        WalReader::open(files, &path, LogKind::Wal, id, number)
    }

    fn damage_in_log(&mut self, error: Error, structure: Structure) {
        let place = error.path().map(|path| (path.to_path_buf(), error.offset().unwrap_or(0)));
        if self.report.log.damaged_at.is_none() {
            self.report.log.damaged_at = place;
        }
        self.found_damage(Finding {
            weight: Weight::Damage,
            structure,
            family: None,
            error,
            lost_keys: None,
        });
    }

    /// A segment that does not follow the one before it comes behind something that is lost.
    fn check_predecessor(
        &mut self,
        reader: &WalReader,
        oldest: Option<FileNumber>,
        replay: &mut Replay<'_>,
    ) {
        let Ok(header) = reader.header() else { return };
        let named = header.previous.map(|end| end.log_number);
        let is_broken = match replay.before {
            Some(_) => named != replay.before,
            None => named.is_some_and(|named| oldest.is_some_and(|oldest| named >= oldest)),
        };
        if is_broken {
            let error = Error::corruption("a log segment is missing before this one");
            self.damage_in_log(error.at(reader.path(), 48), Structure::LogSegment);
            replay.is_behind = true;
        }
        replay.before = Some(header.log_number);
    }

    fn segment(
        &mut self,
        db: &Db,
        reader: &mut WalReader,
        end: Option<u64>,
        replay: &mut Replay<'_>,
    ) -> Result<()> {
        let path = reader.path().to_path_buf();
        if let Err(damage) = reader.header() {
            if !reader.lost_its_header(replay.oldest_needed)? {
                return Ok(());
            }
            self.damage_in_log(damage, Structure::LogSegment);
            replay.is_behind = true;
        }
        let mut passed_bytes = 0;
        while end.is_none_or(|end| reader.offset() < end) {
            let offset = reader.offset();
            self.pace.advance(offset - passed_bytes)?;
            passed_bytes = offset;
            match reader.next_record()? {
                Some(record) if end.is_none_or(|end| record.position.end_offset <= end) => {
                    if let Err(error) = self.group(db, &record, replay)? {
                        self.damage_in_log(error.at(&path, offset), Structure::LogRecord);
                        replay.is_behind = true;
                    }
                }
                _ => {
                    let stop = reader.stop()?;
                    if end.unwrap_or(stop.watermark) <= stop.offset {
                        break;
                    }
                    let error = Error::corruption("log damaged below what was synced");
                    self.damage_in_log(error.at(&path, stop.offset), Structure::LogRecord);
                    replay.is_behind = true;
                    if !reader.skip_damage()? {
                        break;
                    }
                }
            }
        }
        let length = self.world.files.length(&path).unwrap_or(0);
        self.pace.advance(length.saturating_sub(passed_bytes))
    }

    /// Replays one group, as a whole, as far as it is not in tables. The inner error is of a group
    /// that makes no sense.
    fn group(
        &mut self,
        db: &Db,
        record: &LogRecord<'_>,
        replay: &mut Replay<'_>,
    ) -> Result<Result<()>> {
        if replay.is_behind && !self.options.beyond_damage {
            self.report.log.left_out_groups += 1;
            return Ok(Ok(()));
        }
        let (head, entries) = match GroupHead::split(record.payload) {
            Ok(group) => group,
            Err(error) => return Ok(Err(error)),
        };
        let mut batch = db.batch();
        let mut count = 0;
        for (entry, sequence) in entries.zip(head.first_sequence..) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return Ok(Err(error)),
            };
            count += 1;
            let target = match replay.targets.find(db, entry.family) {
                Ok(target) => target,
                Err(error) if error.path().is_none() => return Ok(Err(error)),
                Err(error) => return Err(error),
            };
            let Some((family, flushed_through)) = target else { continue };
            if sequence <= *flushed_through {
                continue;
            }
            match entry.kind {
                ValueKind::Put => batch.put_stored(family, entry.key, entry.value),
                ValueKind::Delete => batch.delete(family, entry.key),
                ValueKind::SingleDelete => batch.single_delete(family, entry.key),
                ValueKind::Merge => batch.merge_blindly(family, entry.key, entry.value),
                ValueKind::RangeDelete => batch.delete_range(family, entry.key, entry.value),
            };
        }
        if count != u64::from(head.entry_count) {
            return Ok(Err(GroupHead::miscounted(head.entry_count, count)));
        }
        if !batch.is_empty() {
            batch.commit()?;
        }
        self.report.log.replayed_groups += 1;
        self.report.log.groups_beyond_damage += u64::from(replay.is_behind);
        Ok(Ok(()))
    }
}
