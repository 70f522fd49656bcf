//! What the commands share that copy databases: opening one, progress, and how times are printed.

use std::ops::ControlFlow;
use std::path::Path;

use lithify::{Db, ErrorKind, Options, TransferOptions, TransferProgress};

use super::database::{locked, no_database, open_to_read};
use super::tool::Watch;
use crate::fault::Fault;

/// Opens a database to be copied: for writing where nobody has it open, else the state that is on disk,
/// as a registered reader beside the process that writes. Nothing is compacted. `flush` says that the
/// copy begins with a flush, which only the one that writes can do.
pub fn open_database(path: &Path, flush: bool) -> Result<Db, Fault> {
    let options = Options { create_if_missing: false, background_threads: 0, ..Options::default() };
    match Db::open(path, options) {
        Ok(db) => Ok(db),
        Err(error) if error.kind() == ErrorKind::Locked && flush => {
            Err(locked(path, "leave --flush out, or call Db::checkpoint there"))
        }
        Err(error) if error.kind() == ErrorKind::Locked => open_to_read(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(no_database(path)),
        Err(error) => Err(Fault::of_engine(error)),
    }
}

/// Tells a watch how far a transfer is.
pub fn heard_by(watch: Watch) -> impl Fn(&TransferProgress) -> ControlFlow<()> {
    move |progress| watch.hear(progress.done_bytes, progress.total_bytes)
}

/// How to copy: at most so many bytes a second, watched by `listener`.
pub fn transfer<'a>(
    rate: Option<u64>,
    listener: &'a dyn Fn(&TransferProgress) -> ControlFlow<()>,
) -> TransferOptions<'a> {
    TransferOptions { bytes_per_second: rate.unwrap_or(0), listener: Some(listener) }
}

/// A time in seconds since 1970 as `2020-01-31 23:59:59`, in UTC.
pub fn utc(unix_time_s: u64) -> String {
    let (days, seconds) = (unix_time_s / 86_400, unix_time_s % 86_400);
    // Years that begin in March, so that the day that is sometimes there is the last one.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        for (seconds, date) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400, "2000-02-29 00:00:00"),
            (951_868_800, "2000-03-01 00:00:00"),
            (1_577_836_799, "2019-12-31 23:59:59"),
            (4_107_542_399, "2100-02-28 23:59:59"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(utc(seconds), date);
        }
    }
}
