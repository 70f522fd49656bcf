//! The cursor over rows: of every user key the newest entry that a snapshot sees, unless that
//! is a tombstone or a range tombstone covers it.
//!
//! Going forward the value is lent straight from the source that holds it. Going back, the
//! entries of a key come oldest first, so the cursor has passed the row when it knows it: there
//! the value is copied into a buffer that is reused. Neither way allocates per row.

use super::merging::Lead;
use super::{DeadRanges, FamilyRows, MergingCursor, TombstoneSet};
use crate::base::{
    COMMIT_SEQUENCE_MAX, Level, SequenceNumber, Trailer, ValueKind, compare_keys, key_behind,
};
use crate::fs::Environment;
use crate::manifest::{KeyRange, Version};
use crate::retention::Expiry;
use crate::stats::WorkMeter;
use crate::table::ReadContext;
use crate::{Error, Result};
use folding::Folding;
use paying::Account;
use std::ops::Range;
use std::sync::Arc;

/// The keys that a cursor may show: from `lower` on, up to but without `upper`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) lower: Option<Box<[u8]>>,
    pub(crate) upper: Option<Box<[u8]>>,
}

impl Bounds {
    fn before_lower(&self, key: &[u8]) -> bool {
        self.lower.as_ref().is_some_and(|lower| key < &lower[..])
    }

    fn behind_upper(&self, key: &[u8]) -> bool {
        if planted!(UpperBoundInclusive) && self.upper.as_deref() == Some(key) {
            return false;
        }
        self.upper.as_ref().is_some_and(|upper| key >= &upper[..])
    }

    /// Whether a table's range may hold keys within the bounds.
    pub(crate) fn may_overlap(&self, range: &KeyRange) -> bool {
        !self.behind_upper(&range.smallest)
            && !self.lower.as_ref().is_some_and(|lower| range.ends_before(lower))
    }

    /// The places of the tables of a sorted level that may hold keys within the bounds.
    pub(crate) fn places_in(&self, version: &Version, level: Level) -> Range<usize> {
        version.places_between(level, self.lower.as_deref(), self.upper.as_deref())
    }
}

/// What a move of the merge reads with; borrows clock and meter beside the merge.
macro_rules! context {
    ($self:expr) => {
        &mut ReadContext {
            clock: &*$self.environment,
            meter: Some(&mut $self.meter),
            fill_cache: true,
        }
    };
}

mod folding;
mod jumping;
mod paying;

/// After so many dead entries in one move, it is asked whether a known dead range lies ahead.
const PASSED_PER_LOOK: u32 = 8;

/// A move that passes so many dead entries has its range noted: what a scan passes that begins at
/// the head of a queue, on average, and the price of a note each.
const PASSED_NOTED_MIN: u32 = 24;

/// How a cursor knows and learns of ranges without rows.
struct DeadWatch {
    /// Every write up to here is in what the cursor reads.
    horizon: SequenceNumber,
    /// False where the cursor sees writes of its own, which hide rows from nobody else.
    may_note: bool,
}

/// Sequence numbers from here on are a transaction's own writes, which it always sees.
pub(crate) const OWN_SEQUENCE_MIN: SequenceNumber = COMMIT_SEQUENCE_MAX + 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Not placed yet: `next` goes to the first row, `prev` to the last.
    Fresh,
    /// On a row; the merge stands on its entry.
    Forward,
    /// The same, and the merge may lead to the next row: `key` is not that of the row.
    Leading,
    /// On a row, saved in the buffers; the merge stands behind the entries that were folded.
    Folded,
    /// On a row, saved in the buffers; the merge stands on the last entry that it was made of.
    Saved,
    /// On a row, saved in the buffers; the merge stands before its key.
    Backward,
    /// On a row; the merge stands on its entry and may lead to the row before.
    LeadingBack,
    /// Behind the last row.
    AtEnd,
    /// Before the first row.
    AtStart,
}

/// What the moves of a cursor come to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved {
    /// Positionings: seeks to a key or an end, a first move among them.
    pub(crate) seeks: u64,
    /// Entries passed that were no row: tombstones, shadowed and invisible ones.
    pub(crate) skipped_entries: u64,
    /// Merge operands that became values.
    pub(crate) folded_operands: u64,
    /// Scans have paid for a memtable or table to be written anew.
    pub(crate) owes_rewrite: bool,
}

/// A cursor over the rows that one snapshot sees.
pub(crate) struct RowCursor {
    environment: Arc<dyn Environment>,
    merge: MergingCursor,
    tombstones: TombstoneSet,
    snapshot: SequenceNumber,
    bounds: Bounds,
    position: Position,
    /// The key of the current row, or the last one resolved.
    key: Vec<u8>,
    /// The value of the current row when going back, or when it was folded.
    value: Vec<u8>,
    /// Made for the first row that has operands: it would be moved with each cursor.
    folding: Option<Box<Folding>>,
    moved: Moved,
    /// What loading blocks took; the owner books it.
    meter: WorkMeter,
    family: Option<Arc<FamilyRows>>,
    /// Values are stored with the times of their writing, and some have expired.
    expiry: Option<Expiry>,
    dead: Option<DeadWatch>,
    /// Whether dead entries are booked to the runs that they are passed in.
    books_passes: bool,
    /// Where the move at hand had passed some dead entries, if it began at no given key.
    walk_start: Vec<u8>,
}

impl RowCursor {
    pub(crate) fn new(
        environment: Arc<dyn Environment>,
        merge: MergingCursor,
        tombstones: TombstoneSet,
        snapshot: SequenceNumber,
        bounds: Bounds,
    ) -> Self {
        RowCursor {
            environment,
            merge,
            tombstones,
            snapshot,
            bounds,
            position: Position::Fresh,
            key: Vec::new(),
            value: Vec::new(),
            folding: None,
            moved: Moved::default(),
            meter: WorkMeter::default(),
            family: None,
            expiry: None,
            dead: None,
            books_passes: false,
            walk_start: Vec::new(),
        }
    }

    /// Shows the rows of that family as users see them.
    pub(crate) fn show_rows_of(&mut self, family: Arc<FamilyRows>) {
        self.family = Some(family);
    }

    /// Shows the users' values of stored ones, and no expired row.
    pub(crate) fn hide_expired(&mut self, expiry: Expiry) {
        self.expiry = Some(expiry);
    }

    /// From now on ranges without rows are jumped over, and noted if `may_note`: not where the cursor
    /// sees writes of its own, which hide rows from nobody else. All up to `horizon` is in what is read.
    pub(crate) fn watch_dead_ranges(&mut self, horizon: SequenceNumber, may_note: bool) {
        self.dead = Some(DeadWatch { horizon, may_note });
    }

    /// The family, if it was said.
    pub(crate) fn family(&self) -> Option<&FamilyRows> {
        self.family.as_deref()
    }

    fn known_dead(&self) -> Option<(&DeadRanges, &DeadWatch)> {
        Some((&self.family.as_deref()?.dead_ranges, self.dead.as_ref()?))
    }

    fn sees(&self, sequence: SequenceNumber) -> bool {
        sequence <= self.snapshot || sequence >= OWN_SEQUENCE_MIN
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        !matches!(self.position, Position::Fresh | Position::AtEnd | Position::AtStart)
    }

    /// Leaves the row: the cursor stands nowhere, as after an error.
    pub(crate) fn leave(&mut self) {
        self.position = Position::AtEnd;
    }

    /// The key of the current row; empty when there is none.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self.position {
            Position::Leading | Position::LeadingBack => self.merge.key(),
            Position::Forward | Position::Folded | Position::Saved | Position::Backward => {
                &self.key
            }
            _ => &[],
        }
    }

    /// The value of the current row; empty when there is none.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self.position {
            Position::Forward | Position::Leading | Position::LeadingBack => self.merge.value(),
            Position::Folded | Position::Saved | Position::Backward => &self.value,
            _ => &[],
        }
    }

    pub(crate) fn meter(&mut self) -> &mut WorkMeter {
        &mut self.meter
    }

    /// What was counted since the last call.
    pub(crate) fn take_moved(&mut self) -> Moved {
        if let Some(folding) = &mut self.folding {
            self.moved.folded_operands = std::mem::take(&mut folding.folded);
        }
        std::mem::take(&mut self.moved)
    }

    /// To the first row at or behind `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.moved.seeks += 1;
        self.position = Position::AtEnd;
        if self.bounds.behind_upper(key) {
            return Ok(false);
        }
        match self.bounds.before_lower(key) {
            true => self.seek_lower(),
            false => self.seek_within(key),
        }
    }

    /// To the first row within the bounds.
    fn seek_lower(&mut self) -> Result<bool> {
        // Taken and put back: a copy would cost each short scan 1 % of its instructions.
        let lower = self.bounds.lower.take();
        let found = self.seek_within(lower.as_deref().unwrap_or_default());
        self.bounds.lower = lower;
        found
    }

    fn seek_within(&mut self, key: &[u8]) -> Result<bool> {
        let dead = self.known_dead();
        let end = dead.and_then(|(ranges, watch)| ranges.end_behind(key, watch.horizon));
        match (end.as_deref(), key) {
            (None, []) => self.merge.seek_to_first(context!(self))?,
            (end, key) => {
                self.merge.seek(end.unwrap_or(key), Trailer(u64::MAX), context!(self))?;
            }
        }
        self.find_next(false, Some(key))
    }

    /// To the last row at or before `key`.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        if self.bounds.behind_upper(key) && !self.bounds.before_lower(key) {
            return self.seek_to_last();
        }
        self.moved.seeks += 1;
        self.position = Position::AtStart;
        if self.bounds.before_lower(key) {
            return Ok(false);
        }
        let is_watched = self.known_dead().is_some_and(|(ranges, _)| ranges.is_watched());
        let limit = is_watched.then(|| key_behind(key));
        let has_jumped = match &limit {
            Some(limit) => self.jump_back(limit)?,
            None => false,
        };
        if !has_jumped {
            // All versions of the key itself come before its smallest trailer.
            self.merge.seek_for_prev(key, Trailer(0), context!(self))?;
        }
        self.find_prev(limit.as_deref())
    }

    pub(crate) fn seek_to_first(&mut self) -> Result<bool> {
        self.moved.seeks += 1;
        self.position = Position::AtEnd;
        self.seek_lower()
    }

    pub(crate) fn seek_to_last(&mut self) -> Result<bool> {
        self.moved.seeks += 1;
        self.position = Position::AtStart;
        // Taken and put back, as the lower one is.
        let upper = self.bounds.upper.take();
        let found = match &upper {
            Some(upper) => self.seek_before(upper),
            None => self.merge.seek_to_last(context!(self)).and_then(|()| self.find_prev(None)),
        };
        self.bounds.upper = upper;
        found
    }

    /// To the last row before `limit`.
    fn seek_before(&mut self, limit: &[u8]) -> Result<bool> {
        if !self.jump_back(limit)? {
            // The largest trailer sorts first: this is the last entry before the limit.
            self.merge.seek_for_prev(limit, Trailer(u64::MAX), context!(self))?;
        }
        self.find_prev(Some(limit))
    }

    /// To the next row. A call of its own would cost each row 18 instructions.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<bool> {
        match self.position {
            Position::Fresh | Position::AtStart => self.seek_to_first(),
            Position::AtEnd => Ok(false),
            Position::Leading => self.lead(),
            Position::Forward | Position::Saved => {
                self.position = Position::AtEnd;
                self.merge.next(context!(self))?;
                self.find_next(true, None)
            }
            Position::Folded => {
                self.position = Position::AtEnd;
                self.find_next(true, None)
            }
            Position::Backward | Position::LeadingBack => {
                self.keep_key();
                self.position = Position::AtEnd;
                let key = std::mem::take(&mut self.key);
                self.merge.seek(&key, Trailer(0), context!(self))?;
                self.key = key;
                self.find_next(true, None)
            }
        }
    }

    /// To the row before. A call of its own would cost each row 17 instructions.
    #[inline(always)]
    pub(crate) fn prev(&mut self) -> Result<bool> {
        match self.position {
            Position::Fresh | Position::AtEnd => self.seek_to_last(),
            Position::AtStart => Ok(false),
            Position::Forward | Position::Leading | Position::Folded | Position::Saved => {
                self.keep_key();
                self.position = Position::AtStart;
                let key = std::mem::take(&mut self.key);
                self.merge.seek_for_prev(&key, Trailer(u64::MAX), context!(self))?;
                self.key = key;
                self.find_prev(None)
            }
            Position::LeadingBack => self.lead_back(),
            Position::Backward => {
                self.position = Position::AtStart;
                self.find_prev(None)
            }
        }
    }

    /// Copies the key of the row, where it is only the merge's.
    fn keep_key(&mut self) {
        if matches!(self.position, Position::Leading | Position::LeadingBack) {
            self.key.clear();
            self.key.extend_from_slice(self.merge.key());
        }
    }

    /// To the next row, from one that the merge may lead on from.
    #[inline]
    fn lead(&mut self) -> Result<bool> {
        let lead = match self.merge.lead(&mut self.moved.skipped_entries) {
            Ok(Lead::Row) if self.bounds.upper.is_none() => return Ok(true),
            Ok(Lead::Row) if !self.bounds.behind_upper(self.merge.key()) => return Ok(true),
            lead => lead,
        };
        let is_at_end_of_block = matches!(lead, Ok(Lead::BlockEnd));
        if is_at_end_of_block {
            self.keep_key();
        }
        self.position = Position::AtEnd;
        match lead? {
            Lead::Row => Ok(false),
            Lead::Overtaken => self.find_next(false, None),
            Lead::BlockEnd => {
                self.merge.next(context!(self))?;
                self.find_next(true, None)
            }
        }
    }

    /// To the row before, from one that the merge may lead back from.
    #[inline]
    fn lead_back(&mut self) -> Result<bool> {
        let lead = match self.merge.lead_back() {
            Ok(Lead::Row) if self.bounds.lower.is_none() => return Ok(true),
            Ok(Lead::Row) if !self.bounds.before_lower(self.merge.key()) => return Ok(true),
            lead => lead,
        };
        self.position = Position::AtStart;
        match lead? {
            Lead::Row => Ok(false),
            Lead::Overtaken => self.find_prev(None),
            Lead::BlockEnd => {
                self.merge.prev(context!(self))?;
                self.find_prev(None)
            }
        }
    }

    /// Forward from the merge's entry to the next row; `resolved` says that `self.key` was dealt
    /// with, so its older entries are passed over. `origin` is what was sought.
    fn find_next(&mut self, mut resolved: bool, origin: Option<&[u8]>) -> Result<bool> {
        let (mut passed, mut unseen, mut has_resolved) = (0, 0, false);
        let mut account = Account::default();
        while self.merge.valid() {
            let key = self.merge.key();
            let trailer = self.merge.trailer();
            let sequence = trailer.sequence();
            let is_seen = self.sees(sequence);
            if is_seen && !(resolved && is_same_key(key, &self.key)) {
                if self.bounds.behind_upper(key) {
                    break;
                }
                if passed >= PASSED_NOTED_MIN {
                    self.open_account(&mut account, passed - unseen);
                } else if self.may_lead() {
                    self.position = Position::Leading;
                    return Ok(true);
                }
                let key = self.merge.key();
                self.key.clear();
                self.key.extend_from_slice(key);
                resolved = true;
                has_resolved = true;
                let shows = shows_row(trailer)?;
                if shows && !self.tombstones.covers(&self.key, sequence, self.snapshot) {
                    let is_operand = trailer.kind() == Some(ValueKind::Merge);
                    let position = match self.expiry.filter(|_| !is_operand) {
                        None => Some(Position::Forward),
                        Some(expiry) => {
                            self.keep_unless_expired(expiry)?.then_some(Position::Saved)
                        }
                    };
                    if let Some(position) = position {
                        if passed >= PASSED_NOTED_MIN {
                            self.settle(&account, passed - unseen);
                            self.note_dead(origin, true, passed);
                        }
                        if is_operand {
                            return self.fold_next();
                        }
                        self.position = position;
                        return Ok(true);
                    }
                }
            }
            unseen += u32::from(!is_seen);
            self.moved.skipped_entries += 1;
            passed += 1;
            if !(passed % PASSED_PER_LOOK == 0 && self.jump_on(passed)?) {
                self.merge.next(context!(self))?;
            }
        }
        if passed >= PASSED_NOTED_MIN && has_resolved {
            self.settle(&account, passed - unseen);
            self.note_dead(origin, false, passed);
        }
        self.position = Position::AtEnd;
        Ok(false)
    }

    /// Whether the merge stands on a row and may lead to the next one: no key has to be remembered.
    #[inline]
    fn may_lead(&mut self) -> bool {
        self.tombstones.is_empty() && self.expiry.is_none() && self.merge.can_lead(self.snapshot)
    }

    /// Copies the user's value of the entry under the merge; false if it has expired.
    #[cold]
    #[inline(never)]
    fn keep_unless_expired(&mut self, expiry: Expiry) -> Result<bool> {
        let Some(value) = expiry.shown(self.merge.value())? else { return Ok(false) };
        self.value.clear();
        self.value.extend_from_slice(value);
        Ok(true)
    }

    /// Notes that there is no row from where the move began up to `self.key`, nor at it if that is no
    /// row either.
    #[cold]
    fn note_dead(&mut self, origin: Option<&[u8]>, is_row: bool, passed: u32) {
        let upper = match is_row {
            true => self.key[..].into(),
            false => key_behind(&self.key),
        };
        // Where it was marked there may be a row: that which the move left.
        self.walk_start.push(0);
        let lower = origin.unwrap_or(&self.walk_start);
        if let Some(family) = &self.family {
            family.longest_pass.note(passed.into(), lower, &upper);
        }
        if let Some((ranges, watch)) = self.known_dead().filter(|(_, watch)| watch.may_note) {
            ranges.note((lower, &upper), (self.snapshot, watch.horizon));
        }
    }

    /// Notes that there is no row from `self.key` on, or behind it if that is one, up to where the
    /// move back began.
    #[cold]
    fn note_dead_back(&mut self, limit: Option<&[u8]>, is_row: bool, passed: u32) {
        if let Some(family) = &self.family {
            let upper = limit.unwrap_or(&self.walk_start);
            family.longest_pass.note(passed.into(), &self.key, upper);
        }
        let known = self.known_dead().filter(|(_, watch)| watch.may_note);
        let Some((ranges, watch)) = known else { return };
        let upper = limit.unwrap_or(&self.walk_start);
        let mut lower = self.key.clone();
        if is_row {
            lower.push(0);
        }
        ranges.note((&lower, upper), (self.snapshot, watch.horizon));
    }

    /// Back from the merge's entry to the row before it. All keys before `limit` were sought, if it
    /// is given.
    fn find_prev(&mut self, limit: Option<&[u8]>) -> Result<bool> {
        if self.tombstones.is_empty()
            && self.expiry.is_none()
            && self.merge.can_lead_back(self.snapshot)?
            && !self.bounds.before_lower(self.merge.key())
        {
            self.position = Position::LeadingBack;
            return Ok(true);
        }
        let mut live = false;
        let mut started = false;
        let mut passed = 0;
        let mut has_resolved = false;
        while self.merge.valid() {
            let key = self.merge.key();
            if started && key != &self.key[..] {
                if live {
                    break;
                }
                started = false;
            }
            if self.bounds.before_lower(key) {
                break;
            }
            let trailer = self.merge.trailer();
            if self.sees(trailer.sequence()) {
                if !started {
                    self.key.clear();
                    self.key.extend_from_slice(key);
                    started = true;
                    has_resolved = true;
                    self.restart_folding(false);
                }
                let (shows, was_live) = (shows_row(trailer)?, live);
                live =
                    shows && !self.tombstones.covers(&self.key, trailer.sequence(), self.snapshot);
                if live && trailer.kind() == Some(ValueKind::Merge) {
                    let folding = self.folding.get_or_insert_with(|| Folding::over(was_live));
                    folding.push(trailer, self.merge.value());
                } else {
                    self.restart_folding(live);
                    if let (true, Some(expiry)) = (live, self.expiry) {
                        live = self.keep_unless_expired(expiry)?;
                    } else if live {
                        self.value.clear();
                        self.value.extend_from_slice(self.merge.value());
                    }
                }
            }
            self.moved.skipped_entries += 1;
            passed += 1;
            if passed % PASSED_PER_LOOK == 0 && self.jump_back_on(passed)? {
                (live, started) = (false, false);
            } else {
                self.merge.prev(context!(self))?;
            }
        }
        if passed >= PASSED_NOTED_MIN && has_resolved {
            self.note_dead_back(limit, live, passed);
        }
        self.position = Position::AtStart;
        if live {
            // Of those passed.
            let folding = self.folding.as_deref();
            self.moved.skipped_entries -= folding.map_or(1, Folding::parts);
            self.fold()?;
            self.position = Position::Backward;
        }
        Ok(live)
    }
}

#[inline]
fn is_same_key(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && compare_keys(a, b).is_eq()
}

/// Whether a key has a value where its newest entry is of that kind.
#[inline]
fn shows_row(trailer: Trailer) -> Result<bool> {
    match trailer.kind() {
        Some(kind) => Ok(matches!(kind, ValueKind::Put | ValueKind::Merge)),
        None => {
            Err(Error::corruption("an entry has an unknown kind")
                .expected("0 to 4", trailer.0 & 0xff))
        }
    }
}
