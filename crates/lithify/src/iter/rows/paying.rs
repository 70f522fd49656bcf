//! Which run the dead entries are booked to that a move passes.
//!
//! A dead entry is booked to the run that has the newest entry of its key: a tombstone with all that it
//! hides. Once that run moves down, what it hides goes with it; to write the run anew that holds the
//! hidden entry would free nothing. Entries that the snapshot does not see are not dead. A move that
//! passes few has no account: its cost is hardly more than that of a row.

use super::{PASSED_NOTED_MIN, PASSED_PER_LOOK, RowCursor};

/// Passes of one source that are booked at once: where all are of one source, its counter is shared
/// with other scans.
const BOOKED_AT_ONCE: u32 = 64;

/// What one move has to book.
#[derive(Clone, Copy, Default)]
pub(super) struct Account {
    /// The source of the newest entry of the key at hand; `None` before the first key.
    source: Option<u32>,
    /// Of the dead entries that the move has passed, those that are booked, or are nobody's.
    booked: u32,
}

impl RowCursor {
    /// Books to memtables and tables what moves pass: where something may come of it.
    pub(crate) fn book_dead_passes(&mut self) {
        self.books_passes = true;
    }

    /// The merge stands on the first entry of a key, behind so many dead ones.
    #[cold]
    #[inline(never)]
    pub(super) fn open_account(&mut self, account: &mut Account, passed: u32) {
        let source = Some(self.merge.source());
        if account.source != source || passed - account.booked >= BOOKED_AT_ONCE {
            self.settle(account, passed);
            *account = Account { source, booked: passed };
        }
    }

    /// Going back, books what was passed since the last look to the source of the entry at hand. Of
    /// keys with two entries that is the newer one, as each look comes behind an even number.
    pub(super) fn book_sample(&mut self, passed: u32) {
        let is_seen = self.sees(self.merge.trailer().sequence());
        if passed > PASSED_NOTED_MIN && is_seen {
            let account = Account { source: Some(self.merge.source()), booked: 0 };
            self.settle(&account, PASSED_PER_LOOK);
        }
    }

    /// Books what is left of so many dead entries.
    #[cold]
    #[inline(never)]
    pub(super) fn settle(&mut self, account: &Account, passed: u32) {
        let passes = passed.saturating_sub(account.booked);
        if let (Some(source), true) = (account.source, self.books_passes && passes > 0) {
            self.moved.owes_rewrite |= self.merge.note_dead_passes(source, passes.into());
        }
    }
}
