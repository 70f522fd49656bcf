//! Floor 1: which rows go by themselves: expired ones, and those that a user's filter removes.
//!
//! Owns: the write times of rows in families with a time to live, when these expire ([`Expiry`]), and
//! [`CompactionFilter`]. Pure: it knows no clocks, files or threads. A filter that panics is one that
//! failed, for it is the user's code and runs in background jobs.
//!
//! In a family with a time to live a stored value is the user's, then the second of its commit, 4
//! bytes little-endian, from 1970 on. The log, memtables, tables, copies and backups carry it as a
//! part of the value; `docs/decisions/052-write-times.md` says why it is no column of its own. No row
//! expires early; one is over up to a second late.

mod filter;
#[cfg(test)]
mod tests;

pub use filter::{CompactionFilter, FilterDecision, FilteredRow};

use crate::{Error, Result};

/// The bytes of a write time behind a value.
pub(crate) const STAMP_BYTES: usize = 4;

/// The write time of what is not committed yet: it never expires.
pub(crate) const PENDING: u32 = u32::MAX;

/// A stored value: the user's with its write time.
pub(crate) fn stamped(value: &[u8], written_s: u32) -> Vec<u8> {
    let mut stored = Vec::with_capacity(value.len() + STAMP_BYTES);
    stored.extend_from_slice(value);
    stored.extend_from_slice(&written_s.to_le_bytes());
    stored
}

/// A time of the environment's clock as write times have it.
pub(crate) fn write_time(unix_time_s: u64) -> u32 {
    u32::try_from(unix_time_s).unwrap_or(PENDING).min(PENDING - 1)
}

/// The user's value and the write time of a stored one.
///
/// # Errors
/// [`crate::ErrorKind::Corruption`] if it is too short to have one.
#[inline]
pub(crate) fn split(stored: &[u8]) -> Result<(&[u8], u32)> {
    match stored.split_last_chunk() {
        Some((value, stamp)) => Ok((value, u32::from_le_bytes(*stamp))),
        None => Err(Error::corruption("a value without the time of its writing")
            .expected(format_args!("at least {STAMP_BYTES} bytes"), stored.len())),
    }
}

/// Which rows of a family have expired, as of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// What was written before this second has expired.
    expired_before_s: u64,
}

impl Expiry {
    /// As of `now_s`: a row expires once the seconds between are more than `time_to_live_s`. Both times are
    /// rounded down, so that as many may be up to a second less.
    pub fn at(now_s: u64, time_to_live_s: u64) -> Self {
        Expiry { expired_before_s: now_s.saturating_sub(time_to_live_s) }
    }

    /// Whether what was written then has expired.
    #[inline]
    pub fn is_expired(self, written_s: u32) -> bool {
        if planted!(ExpiredRowsShown) {
            return false;
        }
        written_s != PENDING && u64::from(written_s) < self.expired_before_s
    }

    /// The user's value of a stored one, unless it has expired.
    ///
    /// # Errors
    /// As [`split`].
    #[inline]
    pub(crate) fn shown(self, stored: &[u8]) -> Result<Option<&[u8]>> {
        let (value, written_s) = split(stored)?;
        Ok((!self.is_expired(written_s)).then_some(value))
    }
}

/// When the oldest and the newest put of a table were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteTimes {
    /// Of the oldest, in seconds since 1970.
    pub oldest_s: u32,
    /// Of the newest.
    pub newest_s: u32,
}

impl WriteTimes {
    /// Those of one put.
    pub(crate) fn of(written_s: u32) -> Self {
        WriteTimes { oldest_s: written_s, newest_s: written_s }
    }

    /// Those of all of these puts and one more.
    #[must_use]
    pub(crate) fn and(self, written_s: u32) -> Self {
        let mut newest_s = self.newest_s.max(written_s);
        if planted!(NewestTimeOfLastRow) {
            newest_s = written_s;
        }
        WriteTimes { oldest_s: self.oldest_s.min(written_s), newest_s }
    }

    /// Whether every put has expired.
    pub(crate) fn are_expired(self, expiry: Expiry) -> bool {
        expiry.is_expired(self.newest_s)
    }

    /// Whether half of the puts have expired, if as many were written in each second.
    pub(crate) fn are_half_expired(self, expiry: Expiry) -> bool {
        let middle = self.oldest_s + (self.newest_s - self.oldest_s) / 2;
        expiry.is_expired(middle)
    }
}
