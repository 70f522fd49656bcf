//! Batches of writes, encoded as they are made: the bytes of a batch are what the WAL carries.
//!
//! ```text
//! entry := kind u8, family varint, key length varint, key [, value length varint, value]
//! ```
//! A delete and a single delete have no value; a range delete has its first key as key and the
//! first key behind the range as value, a merge its operand. `docs/format/wal.md` has the whole payload.

use crate::base::{
    COMMIT_SEQUENCE_MAX, ColumnFamilyId, KEY_SIZE_MAX, SequenceNumber, VALUE_SIZE_MAX, ValueKind,
};
use crate::db::family_handle::ColumnFamily;
use crate::db::tree::family::Family;
use crate::format::{Decoder, put_varint};
use crate::retention::{PENDING, STAMP_BYTES, stamped, write_time};
use crate::stats::Cause;
use crate::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// The most bytes of an entry beside key and value: kind, family, two lengths.
const ENTRY_HEAD_SIZE_MAX: usize = 16;

/// One write of a batch, borrowed from its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) kind: ValueKind,
    pub(crate) family: ColumnFamilyId,
    pub(crate) key: &'a [u8],
    /// The value of a put, the operand of a merge, the end of a range delete, else empty.
    pub(crate) value: &'a [u8],
}

/// The encoded entries of a batch. Checks limits as entries come; the first violation is kept
/// and given by [`BatchData::check`].
#[derive(Default)]
pub(crate) struct BatchData {
    bytes: Vec<u8>,
    count: u32,
    error: Option<Error>,
    /// The families written to, as far as somebody has to look at them again at the commit.
    families: Vec<Arc<Family>>,
    /// Where values end with the time of their writing: that is put in by the commit.
    write_times: Vec<usize>,
}

/// How far a batch was.
#[derive(Clone, Copy, Default)]
pub(crate) struct BatchMark {
    /// Where the next entry starts.
    pub(crate) bytes: usize,
    count: u32,
    families: usize,
}

impl BatchData {
    pub(crate) fn push(&mut self, entry: Entry<'_>) {
        if let Err(error) = check_entry(&entry) {
            self.error.get_or_insert(error);
            return;
        }
        // At once, for byte by byte a first entry would grow the buffer five times over.
        self.bytes.reserve(ENTRY_HEAD_SIZE_MAX + entry.key.len() + entry.value.len());
        self.bytes.push(entry.kind as u8);
        put_varint(&mut self.bytes, u64::from(entry.family));
        put_varint(&mut self.bytes, entry.key.len() as u64);
        self.bytes.extend_from_slice(entry.key);
        if matches!(entry.kind, ValueKind::Put | ValueKind::RangeDelete | ValueKind::Merge) {
            put_varint(&mut self.bytes, entry.value.len() as u64);
            self.bytes.extend_from_slice(entry.value);
        }
        self.count += 1;
    }

    /// Adds a write of a user.
    #[inline]
    pub(crate) fn push_to(&mut self, family: &Family, entry: Entry<'_>) {
        match entry.kind == ValueKind::Put && family.rows.have_special_puts() {
            true => self.push_special(family, entry),
            false => self.push(entry),
        }
    }

    /// Adds a put to a family with a time to live, or with an operator that folds values of one length:
    /// one of another length would make its row unreadable with the next operand.
    #[cold]
    #[inline(never)]
    fn push_special(&mut self, family: &Family, entry: Entry<'_>) {
        if family.rows.have_write_times() {
            return self.push_timed(entry);
        }
        match family.rows.check_operand(entry.value) {
            Ok(()) => self.push(entry),
            Err(error) => self.fail(error),
        }
    }

    /// Adds a put whose value is stored with the time of its writing.
    fn push_timed(&mut self, entry: Entry<'_>) {
        let value = stamped(entry.value, PENDING);
        let count = self.count;
        self.push(Entry { value: &value, ..entry });
        if self.count > count {
            self.write_times.push(self.bytes.len() - STAMP_BYTES);
        }
    }

    /// Puts the time of writing into the values that are stored with it.
    #[inline]
    pub(crate) fn set_write_time(&mut self, now_s: impl FnOnce() -> u64) {
        if self.write_times.is_empty() {
            return;
        }
        let written_s = write_time(now_s()).to_le_bytes();
        for place in self.write_times.drain(..) {
            if let Some(stamp) = self.bytes.get_mut(place..place + STAMP_BYTES) {
                stamp.copy_from_slice(&written_s);
            }
        }
    }

    /// Remembers a family that may be dropped before the commit.
    pub(crate) fn note_family(&mut self, family: &Arc<Family>) {
        if !self.families.iter().any(|known| Arc::ptr_eq(known, family)) {
            self.families.push(Arc::clone(family));
        }
    }

    /// Keeps an error that the commit will give.
    pub(crate) fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// The first error met while the batch was made, or a family that was dropped meanwhile.
    pub(crate) fn check(&self) -> Result<()> {
        self.families.iter().try_for_each(|family| family.check_alive())?;
        self.error.clone().map_or(Ok(()), Err)
    }

    /// Refuses more bytes than a commit takes.
    #[inline]
    pub(crate) fn check_size(&self, bytes_max: usize) -> Result<()> {
        match self.bytes.len() <= bytes_max {
            true => Ok(()),
            false => Err(self.too_large(bytes_max)),
        }
    }

    #[cold]
    fn too_large(&self, bytes_max: usize) -> Error {
        Error::limit("a batch or transaction is larger than half of memory_budget_bytes")
            .expected(format_args!("at most {bytes_max} bytes"), self.bytes.len())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A mark to come back to with [`BatchData::truncate`].
    pub(crate) fn mark(&self) -> BatchMark {
        BatchMark { bytes: self.bytes.len(), count: self.count, families: self.families.len() }
    }

    /// The entry that starts at an offset.
    pub(crate) fn entry_at(&self, offset: usize) -> Result<Entry<'_>> {
        let bytes = self.bytes.get(offset..).unwrap_or_default();
        Entries::new(bytes).decode()
    }

    /// Forgets everything behind a mark, a refused write and families among it.
    pub(crate) fn truncate(&mut self, mark: BatchMark) {
        self.bytes.truncate(mark.bytes);
        self.count = mark.count;
        self.families.truncate(mark.families);
        self.write_times.retain(|place| *place < mark.bytes);
        self.error = None;
    }

    /// Takes back what is behind a mark, and keeps the error that the commit will give, after an earlier one.
    #[cold]
    fn refuse(&mut self, mark: BatchMark, error: Error) {
        let first = self.error.take();
        self.truncate(mark);
        self.error = Some(first.unwrap_or(error));
    }

    pub(crate) fn clear(&mut self) {
        self.truncate(BatchMark::default());
    }

    pub(crate) fn entries(&self) -> Entries<'_> {
        Entries::new(&self.bytes)
    }
}

fn check_entry(entry: &Entry<'_>) -> Result<()> {
    if entry.key.len() > KEY_SIZE_MAX {
        return Err(Error::limit("a key is too long")
            .expected(format_args!("at most {KEY_SIZE_MAX} bytes"), entry.key.len()));
    }
    match entry.kind {
        ValueKind::RangeDelete if entry.value.len() > KEY_SIZE_MAX => {
            Err(Error::limit("the end of a range delete is too long")
                .expected(format_args!("at most {KEY_SIZE_MAX} bytes"), entry.value.len()))
        }
        ValueKind::RangeDelete if entry.key > entry.value => {
            Err(Error::invalid("a range delete ends before it starts"))
        }
        _ if entry.value.len() > VALUE_SIZE_MAX => Err(Error::limit("a value is too long")
            .expected(format_args!("at most {VALUE_SIZE_MAX} bytes"), entry.value.len())),
        _ => Ok(()),
    }
}

/// The head of a logged group, in front of its entries.
///
/// ```text
/// first_sequence u64 | entry_count u32
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHead {
    /// The sequence number of the first entry; the others follow it one by one.
    pub(crate) first_sequence: SequenceNumber,
    pub(crate) entry_count: u32,
}

impl GroupHead {
    const SIZE_BYTES: usize = 12;

    pub(crate) fn encode(self) -> [u8; GroupHead::SIZE_BYTES] {
        let mut bytes = [0; GroupHead::SIZE_BYTES];
        bytes[..8].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[8..].copy_from_slice(&self.entry_count.to_le_bytes());
        bytes
    }

    /// Splits the payload of a log record. No more entries come of it than the head says, and none
    /// has a sequence number over the limit.
    pub(crate) fn split(payload: &[u8]) -> Result<(GroupHead, Entries<'_>)> {
        let mut decoder = Decoder::new(payload);
        let (Ok(first_sequence), Ok(entry_count)) = (decoder.u64(), decoder.u32()) else {
            return Err(Error::corruption("a logged group is shorter than its head")
                .expected(GroupHead::SIZE_BYTES, payload.len()));
        };
        let entries = decoder.remaining();
        let limit = COMMIT_SEQUENCE_MAX - u64::from(entry_count.saturating_sub(1));
        if first_sequence > limit {
            return Err(Error::corruption("sequence number of a logged group")
                .expected(format_args!("at most {limit}"), first_sequence));
        }
        if u64::from(entry_count) > entries.len() as u64 {
            return Err(GroupHead::miscounted(
                entry_count,
                format_args!("{} bytes", entries.len()),
            ));
        }
        Ok((GroupHead { first_sequence, entry_count }, Entries::of_group(entries, entry_count)))
    }

    /// The error of a group that holds `found` entries, not what its head says.
    #[cold]
    pub(crate) fn miscounted(expected: u32, found: impl std::fmt::Display) -> Error {
        Error::corruption("a logged group does not hold what its head says")
            .expected(format_args!("{expected} entries"), found)
    }
}

/// Decodes entries one after the other; damaged bytes give an error, once.
#[derive(Clone)]
pub(crate) struct Entries<'a> {
    decoder: Decoder<'a>,
    /// How many may still come; what is behind them is an error.
    left: u64,
    count: u32,
}

impl<'a> Entries<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Entries { decoder: Decoder::new(bytes), left: u64::MAX, count: u32::MAX }
    }

    /// Those of a logged group, whose head says how many there are.
    fn of_group(bytes: &'a [u8], count: u32) -> Self {
        Entries { decoder: Decoder::new(bytes), left: u64::from(count), count }
    }

    /// Where the next entry starts.
    pub(crate) fn offset(&self) -> usize {
        self.decoder.position()
    }

    fn decode(&mut self) -> Result<Entry<'a>> {
        let kind_byte = self.decoder.u8()?;
        let kind = ValueKind::from_u8(kind_byte).ok_or_else(|| {
            Error::corruption("a logged write has an unknown kind").expected("0 to 4", kind_byte)
        })?;
        let family: ColumnFamilyId = self.decoder.varint_u32()?;
        let key = self.decoder.sized_bytes(KEY_SIZE_MAX)?;
        let value = match kind {
            ValueKind::Put | ValueKind::Merge => self.decoder.sized_bytes(VALUE_SIZE_MAX)?,
            ValueKind::RangeDelete => self.decoder.sized_bytes(KEY_SIZE_MAX)?,
            ValueKind::Delete | ValueKind::SingleDelete => &[],
        };
        let entry = Entry { kind, family, key, value };
        check_entry(&entry).map_err(|error| {
            Error::corruption("a logged write is over the limits").because(error)
        })?;
        Ok(entry)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.decoder.is_empty() {
            return None;
        }
        let entry = match self.left {
            0 => Err(GroupHead::miscounted(self.count, "more")),
            _ => self.decode(),
        };
        self.left = self.left.saturating_sub(1);
        if entry.is_err() {
            self.decoder = Decoder::new(&[]);
        }
        Some(entry)
    }
}

/// Writes that become visible together or not at all, across column families. Made by
/// [`crate::Db::batch`]; a limit that a write exceeds is reported by the commit, and then
/// nothing of the batch is written. A write with which the batch would be larger than half of
/// `memory_budget_bytes` is not kept.
pub struct Batch<'db> {
    pub(crate) db: &'db crate::Db,
    pub(crate) data: BatchData,
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("writes", &self.data.count()).finish_non_exhaustive()
    }
}

impl Batch<'_> {
    /// Sets the value of a key.
    pub fn put(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.push(family, ValueKind::Put, key.as_ref(), value.as_ref())
    }

    /// Removes a key.
    pub fn delete(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> &mut Self {
        self.push(family, ValueKind::Delete, key.as_ref(), &[])
    }

    /// Adds an operand to a key; see [`ColumnFamily::merge`]. A family without merge operator, or
    /// an operand that it refuses, is reported by the commit.
    pub fn merge(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> &mut Self {
        match family.family.check_operand(operand.as_ref()) {
            Ok(()) => self.push(family, ValueKind::Merge, key.as_ref(), operand.as_ref()),
            Err(error) => {
                self.data.fail(error);
                self
            }
        }
    }

    /// [`Batch::merge`] for who brings operands back that were there, whatever the family has.
    pub(crate) fn merge_blindly(
        &mut self,
        family: &ColumnFamily,
        key: &[u8],
        operand: &[u8],
    ) -> &mut Self {
        self.push(family, ValueKind::Merge, key, operand)
    }

    /// [`Batch::put`] of a value as it was stored, with the time of its writing where it has one.
    pub(crate) fn put_stored(
        &mut self,
        family: &ColumnFamily,
        key: &[u8],
        stored: &[u8],
    ) -> &mut Self {
        self.data.note_family(&family.family);
        let kind = ValueKind::Put;
        self.data.push(Entry { kind, family: family.id(), key, value: stored });
        self
    }

    /// Removes a key that was put exactly once since it was last removed; see
    /// [`ColumnFamily::single_delete`] for the contract.
    pub fn single_delete(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> &mut Self {
        self.push(family, family.family.single_delete_kind(), key.as_ref(), &[])
    }

    /// Removes all keys from `start` on, up to but without `end`.
    pub fn delete_range(
        &mut self,
        family: &ColumnFamily,
        start: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.push(family, ValueKind::RangeDelete, start.as_ref(), end.as_ref())
    }

    fn push(
        &mut self,
        family: &ColumnFamily,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
    ) -> &mut Self {
        let inner = &self.db.inner;
        let clock = &*inner.world.environment;
        // Across batches no two entries have one number.
        let number = inner.visibility.last() + u64::from(self.data.count());
        let sample = inner.ledger.sample(number, Cause::UserWrite, clock);
        match family.check_belongs_to(self.db) {
            Ok(()) => {
                let mark = self.data.mark();
                self.data.note_family(&family.family);
                self.data.push_to(&family.family, Entry { kind, family: family.id(), key, value });
                if let Err(error) = self.data.check_size(inner.options.batch_bytes_max()) {
                    self.data.refuse(mark, error);
                }
            }
            Err(error) => self.data.fail(error),
        }
        inner.ledger.end_unmetered_call(sample, Cause::UserWrite, clock);
        self
    }

    /// The number of writes so far.
    pub fn len(&self) -> usize {
        self.data.count() as usize
    }

    /// Whether there are no writes yet.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The size of the batch as it will be logged, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.data.bytes().len()
    }

    /// Forgets all writes, so that the batch can be filled again.
    pub fn clear(&mut self) {
        self.data.clear();
    }

    /// Writes everything with the database's own durability.
    ///
    /// # Errors
    /// The first limit exceeded while the batch was made; a dropped column family; anything that
    /// the log or the disk refuses. After an error nothing of the batch is visible.
    pub fn commit(self) -> Result<()> {
        self.db.inner.write_plain(self.data, None)
    }

    /// Writes everything with a durability of its own; [`crate::Durability::Sync`] also makes all
    /// earlier logged writes durable.
    ///
    /// # Errors
    /// As [`Batch::commit`]; also a durability that can only be had per database.
    pub fn commit_with(self, durability: crate::Durability) -> Result<()> {
        self.db.inner.write_plain(self.data, Some(durability))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_cannot_number_its_entries_over_the_limit() {
        let entries = [ValueKind::Delete as u8, 0, 1, b'k'];
        let split = |first_sequence, entry_count| {
            let head = GroupHead { first_sequence, entry_count };
            let payload = [&head.encode()[..], &entries].concat();
            GroupHead::split(&payload).map(|(found, _)| assert_eq!(found, head))
        };
        split(COMMIT_SEQUENCE_MAX, 1).unwrap();
        split(COMMIT_SEQUENCE_MAX - 1, 2).unwrap();
        assert!(split(COMMIT_SEQUENCE_MAX, 2).is_err());
        assert!(split(u64::MAX, 1).is_err());
        assert!(split(1, 5).is_err());
        let head = GroupHead { first_sequence: COMMIT_SEQUENCE_MAX, entry_count: 1 };
        let payload = [&head.encode()[..], &entries, &entries].concat();
        let (_, mut both) = GroupHead::split(&payload).unwrap();
        assert!(both.next().is_some_and(|entry| entry.is_ok()));
        assert!(both.next().is_some_and(|entry| entry.is_err()) && both.next().is_none());
        assert!(GroupHead::split(&[0; 11]).is_err());
    }
}
