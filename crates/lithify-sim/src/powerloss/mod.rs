//! Power cuts over real files: real threads in a real process, real kills, and images made from the
//! journal of every call.
//!
//! It shares nothing with the world in memory nor with its judges, so that a mistake there is not
//! made here again. How a case goes:
//!
//! 1. A file system of this process is mounted through FUSE (`mount`, `disk`). Every call that
//!    changes something, and every sync, is written into a `journal` with its beginning and end.
//! 2. A process of its own works on a database there (`worker`, `plan`), in several threads, and
//!    reports into the same journal. It is killed at a random moment or closes the database; the
//!    next one goes on.
//! 3. At chosen places of the journal images are made of what a power cut may leave (`image`). Each
//!    is put into a directory and opened (`judge`); what it shows must be the state after a prefix
//!    of the commits, at least as long as promised (`history`).
//! 4. Some are opened on the journaling file system, and the recovery is crashed in the same way.
//! 5. `device` does the same below real file systems, on a block device.
//!
//! Needs Linux, `/dev/fuse`, and the right to mount. Where that is missing the checks say so in one
//! line and count nothing.

mod device;
mod disk;
mod history;
mod image;
mod journal;
mod judge;
mod keep;
mod mount;
mod plan;
mod run;
mod scratch;
mod second;
mod worker;

use crate::check::{Check, Finding, Goal, Length, Tally};
pub use device::Devices;
pub use keep::replay;
use std::path::PathBuf;
use std::sync::OnceLock;
pub use worker::{Arguments as WorkerArguments, run as run_worker};

/// Threads that write, each with rows of its own.
const WRITERS: usize = 4;

/// The name of the database's directory.
const DATABASE: &str = "db";

/// The hidden command of the program that is a worker.
pub const WORKER_COMMAND: &str = "powerloss-worker";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Says which program has the command [`WORKER_COMMAND`]: without one there are no cases.
pub fn set_program(path: PathBuf) {
    // Said once for a process; a second time it is the same program.
    let _ = PROGRAM.set(path);
}

fn program() -> Result<&'static PathBuf, String> {
    PROGRAM.get().ok_or_else(|| "this program cannot be its own worker".to_string())
}

/// Why there can be no cases here, if so. Says it once, in one line.
pub fn missing() -> Option<&'static str> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let missing = program().and_then(|_| scratch::try_mount()).err();
        missing.iter().for_each(|why| say_skipped("powerloss and powerloss-devices", why));
        missing
    });
    missing.as_deref()
}

fn say_skipped(what: &str, why: &str) {
    use std::io::Write as _;
    // Where nobody reads it, there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "skipped: {what}: {why}");
}

/// The check; see the module.
pub struct PowerLoss;

/// What is counted; so many are enough.
const IMAGES: &str = "images";

impl Check for PowerLoss {
    fn name(&self) -> &'static str {
        "powerloss"
    }

    fn about(&self) -> &'static str {
        "real files and threads, kills and power cuts: a prefix of the commits, as promised"
    }

    fn cases(&self) -> Option<u64> {
        None
    }

    fn goal(&self, length: Length) -> Goal {
        match (missing(), length) {
            (Some(_), _) => Goal::Cases(1),
            (None, Length::Short) => Goal::Count(IMAGES, 1500),
            (None, Length::Long) => Goal::Count(IMAGES, 100_000),
        }
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        if missing().is_some() {
            tally.count("cases skipped", 1);
            return Ok(());
        }
        run::run(case, tally).map_err(|what| Finding::new(self, case, what))
    }
}
