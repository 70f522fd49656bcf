//! What shows a finding is kept: the journal, the image as it was before it was opened, and the
//! numbers by which it is judged again.

use super::history::{Crash, History};
use super::image::{Choice, Tree};
use super::journal::Journal;
use super::judge;
use super::plan::{durability, options};
use std::fs;
use std::path::{Path, PathBuf};

const JOURNAL: &str = "journal";
const IMAGE: &str = "image";
const ABOUT: &str = "about";

/// Which image it is.
pub(super) struct Kept {
    pub(super) case: u64,
    pub(super) stamp: u64,
    pub(super) choice: Choice,
}

/// Keeps an image with its journal; gives the finding with the command that judges it again.
pub(super) fn keep(kept: &Kept, journal: &Journal, image: &Tree, what: &str) -> String {
    let Kept { case, stamp, choice, .. } = kept;
    let name = format!("lithify-powerloss-{case}-{stamp}-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    match write(kept, journal, image, what, &path) {
        Ok(()) => format!("{what}\n  kept: lithify-sim journal {}", path.display()),
        Err(error) => format!("{what}\n  not kept: {}: {error}; {choice:?}", path.display()),
    }
}

fn write(
    kept: &Kept,
    journal: &Journal,
    image: &Tree,
    what: &str,
    path: &Path,
) -> std::io::Result<()> {
    let _ = fs::remove_dir_all(path);
    fs::create_dir_all(path)?;
    fs::write(path.join(JOURNAL), journal.to_text())?;
    image.put(&path.join(IMAGE))?;
    let crash = if kept.choice == Choice::Everything { "process" } else { "power" };
    let about = format!("{} {} {crash}\n{what}\n", kept.case, kept.stamp);
    fs::write(path.join(ABOUT), about)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Judges an image again that was kept; what is wrong with it, if anything is.
///
/// The image itself stays as it is: a copy beside it is opened.
///
/// # Errors
/// A directory that was not kept by the check.
pub fn replay(path: &Path) -> Result<Option<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let about = fs::read_to_string(path.join(ABOUT)).map_err(failed)?;
    let words: Vec<&str> = about.lines().next().unwrap_or_default().split(' ').collect();
    let number = |place: usize| {
        let word = words.get(place).and_then(|word| word.parse::<u64>().ok());
        word.ok_or_else(|| format!("{}: what is kept there is not complete", path.display()))
    };
    let (case, stamp) = (number(0)?, number(1)?);
    let crash = if words.get(2) == Some(&"process") { Crash::Process } else { Crash::Power };
    let journal = Journal::parse(&fs::read_to_string(path.join(JOURNAL)).map_err(failed)?)?;
    let mode = durability(case);
    let history = History::read(&journal, case, mode)?;
    let opened: PathBuf = path.join("opened");
    let _ = fs::remove_dir_all(&opened);
    copy(&path.join(IMAGE), &opened).map_err(failed)?;
    let judged = judge::open(&opened, &options(case, mode, 0)).and_then(|(db, shown)| {
        drop(db);
        history.check(&shown, stamp, crash)?;
        judge::work_on(&opened, &options(case, mode, 0), &shown)
    });
    Ok(judged.err())
}
