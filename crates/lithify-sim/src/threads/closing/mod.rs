//! A close beside threads that go on, and the opening after it.
//!
//! 1. Workers put, delete, delete by range, commit transactions, ingest rows and tables, flush,
//!    compact, make checkpoints and hold cursors through their handles. One of them drops a column
//!    family and makes it again. Each worker has keys of its own and knows what they must hold.
//! 2. Another thread closes the database meanwhile. A call is done or refused: refused with
//!    [`lithify::ErrorKind::Closed`], it has left nothing. After the first refusal nothing is done.
//! 3. A clean close makes everything durable in every mode. So all that was acknowledged must be
//!    there after a power cut at the moment at which the close returned, and in the database that is
//!    opened again at once, while workers still try their old handles.
//! 4. Nothing hangs: not a call, not the close. No file is left that nothing refers to.
//!
//! The order of the threads' steps is the machine's, as in the check `threads`.

mod life;
mod rows;
mod worker;

use super::pause::let_syncs_last;
use crate::check::{Check, Finding, Goal, Length, Tally};
use crate::random::Random;
use life::Lives;
use lithify::fs::MemoryFileSystem;

/// Threads that work while the database is closed.
const WORKERS: u64 = 4;

/// Openings of one database.
const LIVES: u64 = 6;

/// The check; see the module.
pub struct Closes;

impl Check for Closes {
    fn name(&self) -> &'static str {
        "closes"
    }

    fn about(&self) -> &'static str {
        "a close beside working threads: nothing acknowledged is lost, nothing refused is done"
    }

    fn cases(&self) -> Option<u64> {
        None
    }

    fn goal(&self, length: Length) -> Goal {
        Goal::Cases(if length == Length::Short { 40 } else { 5_000 })
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        let mut random = Random::new(case);
        let files = MemoryFileSystem::new();
        let_syncs_last(&files, random.next());
        let mut lives = Lives::new(files, random);
        for life in 0..LIVES {
            let lived = lives.live(tally);
            lived.map_err(|what| {
                Finding::new(self, case, format!("life {life}, {}: {what}", lives.settings()))
            })?;
        }
        lives.end().map_err(|what| Finding::new(self, case, format!("the last close: {what}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::run_case;

    #[test]
    fn a_close_loses_nothing() {
        let mut tally = Tally::default();
        for case in 0..10 {
            if let Err(finding) = run_case(&Closes, case, &mut tally) {
                panic!("{finding}");
            }
        }
        assert_eq!(tally.get("closes"), 10 * LIVES);
        for name in ["done", "refused", "rows compared", "ingests done"] {
            assert!(tally.get(name) > 0, "{name}");
        }
    }
}
