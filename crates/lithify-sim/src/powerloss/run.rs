//! One case: lives of a worker on the journaling file system, then images of what crashes leave.

use super::disk::Disk;
use super::history::{Crash, History, Shown};
use super::image::{Choice, Medium, Tree};
use super::journal::{Event, Journal};
use super::judge::{self, Table, database_of};
use super::keep::{Kept, keep};
use super::mount::Mounted;
use super::plan::{durability, options};
use super::scratch::Scratch;
use super::worker::{Arguments, kind};
use super::{IMAGES, WORKER_COMMAND, WRITERS, program, second, worker};
use crate::check::Tally;
use crate::digest::mix;
use crate::random::Random;
use lithify::{Durability, Options};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Steps of each writer in a life.
const STEPS: (u64, u64) = (20, 70);

/// Places of the journal at which the power is cut.
const POSITIONS: u64 = 40;

/// One in so many images is verified and worked with.
const WORK_ONE_IN: u64 = 24;

/// One in so many images is opened on the journaling file system, and crashed again.
const AGAIN_ONE_IN: u64 = 80;

/// A worker that says nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A child that is killed when nobody waits for it any more.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a case.
///
/// # Errors
/// What was found.
pub(super) fn run(case: u64, tally: &mut Tally) -> Result<(), String> {
    let scratch = Scratch::new()?;
    let mode = durability(case);
    let seed = case;
    let mut random = Random::new(mix(seed, 3));
    let disk = Disk::new(seed);
    let failed = |error: std::io::Error| format!("nothing can be mounted: {error}");
    let mounted = Mounted::new(&disk, &scratch.directory("mount")?).map_err(failed)?;
    for life in 1..=random.between(2, 3) {
        let steps = random.between(STEPS.0, STEPS.1);
        let closes = random.one_in(3);
        let arguments = Arguments::new(mounted.path(), seed, life, steps, closes);
        let reports = random.below(steps * WRITERS as u64 * 2 + 20);
        let was_killed = live(&disk, &arguments, (!closes).then_some(reports))?;
        tally.count(if was_killed { "kills" } else { "clean closes" }, 1);
    }
    let journal = std::mem::take(&mut disk.state().journal.entries);
    let stamp = disk.state().journal.now();
    let journal = Journal::of(journal, stamp);
    let history = History::read(&journal, seed, mode)?;
    tally.count("calls in journals", journal.entries.len() as u64);
    tally.count("acknowledged steps", history.acknowledged());
    history.check_openings()?;
    let bench = Bench {
        case,
        mode,
        journal: &journal,
        history: &history,
        options: options(seed, mode, 0),
        table: Table::new(scratch.path("image")),
        disk: &disk,
        mount: mounted.path(),
    };
    bench.cut_everywhere(&mut random, tally)
}

/// One life: until its end, or for so many reports and then a kill. Whether it was killed.
pub(super) fn live(
    disk: &Disk,
    arguments: &Arguments,
    kill_after: Option<u64>,
) -> Result<bool, String> {
    let failed = |error: std::io::Error| format!("the worker: {error}");
    let mut command = Command::new(program()?);
    command.arg(WORKER_COMMAND).args(arguments.words());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let before = disk.state().reports;
    let mut worker = Worker(command.spawn().map_err(failed)?);
    let wanted = kill_after.map(|reports| before + reports);
    let started = Instant::now();
    let mut reports = before;
    let (mut is_killed, mut heard) = (false, started);
    let status = loop {
        if let Some(status) = worker.0.try_wait().map_err(failed)? {
            break status;
        }
        let now = disk.wait_for_reports(wanted.unwrap_or(u64::MAX), Duration::from_millis(20));
        if now > reports {
            (reports, heard) = (now, Instant::now());
        }
        // One that has done all its steps waits to be killed and says nothing any more.
        let is_idle = wanted.is_some() && heard.elapsed() > Duration::from_millis(300);
        if wanted.is_some_and(|wanted| now >= wanted) || is_idle {
            worker.0.kill().map_err(failed)?;
            is_killed = true;
            break worker.0.wait().map_err(failed)?;
        }
        if heard.elapsed() > PATIENCE {
            return Err(format!("the worker says nothing for {} s: a hang", PATIENCE.as_secs()));
        }
    };
    disk.note_end();
    if is_killed || status.success() {
        return Ok(is_killed);
    }
    let mut error = String::new();
    if let Some(stderr) = &mut worker.0.stderr {
        let _ = std::io::Read::read_to_string(stderr, &mut error);
    }
    Err(format!("the worker ends with {status}: {}", error.trim()))
}

struct Bench<'b> {
    case: u64,
    mode: Durability,
    journal: &'b Journal,
    history: &'b History,
    options: Options,
    table: Table,
    disk: &'b Disk,
    mount: &'b Path,
}

/// The name of a mode's counter.
pub(super) fn images_of(mode: Durability) -> &'static str {
    match mode {
        Durability::Sync => "images, sync",
        Durability::Buffered => "images, buffered",
        Durability::Interval { .. } => "images, interval",
        Durability::None => "images, none",
    }
}

/// Where the power is cut: behind promises, behind syncs, anywhere, and at every end of a process.
pub(super) fn positions(journal: &Journal, count: u64, random: &mut Random) -> Vec<u64> {
    let is_promise = |words: &[u64]| {
        matches!(words.first(), Some(&(kind::DONE | kind::FLUSHED | kind::OPENED | kind::SEEN)))
    };
    let (mut promises, mut syncs, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
    for entry in &journal.entries {
        match &entry.event {
            Event::Report(words) if is_promise(words) => promises.push(entry.ended + 1),
            Event::Report(words) if words[..] == [kind::CLOSED] => chosen.push(entry.ended + 1),
            Event::Sync(_) => syncs.push(entry.ended.saturating_add(random.below(2))),
            Event::End => chosen.push(entry.began + 1),
            _ => {}
        }
    }
    chosen.push(journal.now() + 1);
    while (chosen.len() as u64) < count {
        let among: &[u64] = match random.below(4) {
            0 | 1 => &promises,
            2 => &syncs,
            _ => &[],
        };
        let anywhere = 1 + random.below(journal.now() + 1);
        chosen.push(if among.is_empty() { anywhere } else { *random.pick(among) });
    }
    chosen.retain(|stamp| *stamp <= journal.now() + 1);
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// What is tried at one place.
pub(super) fn choices(medium: &Medium<'_>, random: &mut Random) -> Vec<Choice> {
    use Choice::{AllBut, BytesOnly, Everything, NamesOnly, Nothing, Only, Torn, Until};
    let unsynced = medium.unsynced();
    let mut choices = vec![Nothing, Everything];
    if unsynced.is_empty() {
        return choices;
    }
    choices.extend([NamesOnly, BytesOnly, Torn(random.next())]);
    choices.extend([AllBut(*random.pick(&unsynced)), Only(*random.pick(&unsynced))]);
    choices.push(Until(*random.pick(&unsynced)));
    choices.extend((0..3).map(|_| Choice::Random(random.next())));
    choices
}

impl Bench<'_> {
    fn cut_everywhere(&self, random: &mut Random, tally: &mut Tally) -> Result<(), String> {
        let mut medium = Medium::new(self.journal);
        let mut known: HashMap<u64, Shown> = HashMap::new();
        for stamp in positions(self.journal, POSITIONS, random) {
            medium.advance(stamp);
            for choice in choices(&medium, random) {
                let disk = medium.cut(choice);
                self.judge(stamp, choice, &disk, &mut known, random, tally)?;
                if choice == Choice::Nothing {
                    self.judge_checkpoint(stamp, &disk, random, tally)?;
                }
            }
        }
        Ok(())
    }

    fn judge(
        &self,
        stamp: u64,
        choice: Choice,
        disk: &Tree,
        known: &mut HashMap<u64, Shown>,
        random: &mut Random,
        tally: &mut Tally,
    ) -> Result<(), String> {
        // Everything is what the end of the process leaves, of which more is promised.
        let crash = if choice == Choice::Everything { Crash::Process } else { Crash::Power };
        let image = database_of(disk);
        let digest = image.digest();
        tally.distinct("distinct images", mix(digest, self.case));
        let found = match known.get(&digest) {
            Some(shown) => {
                tally.count("images seen before", 1);
                self.history.check(shown, stamp, crash)
            }
            None => {
                tally.count(IMAGES, 1);
                tally.count(images_of(self.mode), 1);
                let shown = self.open_and_work(&image, random, tally);
                shown.and_then(|shown| {
                    let fits = self.history.check(&shown, stamp, crash);
                    known.insert(digest, shown);
                    fits
                })
            }
        };
        found.map_err(|what| self.kept(what, stamp, choice, &image))?;
        if random.one_in(AGAIN_ONE_IN)
            && let Some(shown) = known.get(&digest)
        {
            return self.crash_again(stamp, choice, &image, shown, random, tally);
        }
        Ok(())
    }

    fn open_and_work(
        &self,
        image: &Tree,
        random: &mut Random,
        tally: &mut Tally,
    ) -> Result<Shown, String> {
        let path = self.table.put(image)?;
        let (db, shown) = judge::open(&path, &self.options)?;
        drop(db);
        if random.one_in(WORK_ONE_IN) {
            tally.count("images verified and worked with", 1);
            judge::work_on(&path, &self.options, &shown)?;
        }
        Ok(shown)
    }

    /// A checkpoint that was made is durable, whatever becomes of its source.
    fn judge_checkpoint(
        &self,
        stamp: u64,
        disk: &Tree,
        random: &mut Random,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let names = self.history.checkpoints(stamp);
        if names.is_empty() || !random.one_in(3) {
            return Ok(());
        }
        let name = random.pick(&names);
        tally.count("checkpoints opened", 1);
        let empty = Tree::Directory(Default::default());
        let image = disk.get(name).unwrap_or(&empty);
        let path = self.table.put(image)?;
        let options = Options { create_if_missing: false, ..self.options.clone() };
        judge::open(&path, &options)
            .and_then(|(_, shown)| self.history.check_checkpoint(name, &shown))
            .map_err(|what| {
                let what = format!("{name}: {what}");
                self.kept(what, stamp, Choice::Nothing, image)
            })
    }

    fn crash_again(
        &self,
        stamp: u64,
        choice: Choice,
        image: &Tree,
        shown: &Shown,
        random: &mut Random,
        tally: &mut Tally,
    ) -> Result<(), String> {
        tally.count("recoveries crashed again", 1);
        let crash = if choice == Choice::Everything { Crash::Process } else { Crash::Power };
        let recovery = second::record(self.disk, self.mount, image, &self.options)?;
        let mut known = HashSet::new();
        for cut in recovery.cuts(random) {
            let digest = cut.image.digest();
            tally.distinct("distinct images", mix(digest, self.case));
            if !known.insert((digest, cut.was_opened)) {
                tally.count("images seen before", 1);
                continue;
            }
            tally.count("images of a recovery", 1);
            tally.count(IMAGES, 1);
            tally.count(images_of(self.mode), 1);
            let path = self.table.put(&cut.image)?;
            let judged = judge::open(&path, &self.options).and_then(|(_, again)| {
                self.history.check(&again, stamp, crash)?;
                second::check(&again, shown, cut.was_opened)
            });
            judged.map_err(|what| {
                let what = format!("after a second crash, in the recovery: {what}");
                self.kept(what, stamp, choice, &cut.image)
            })?;
        }
        Ok(())
    }

    /// Keeps what shows a finding; gives the finding with the command that shows it again.
    fn kept(&self, what: String, stamp: u64, choice: Choice, image: &Tree) -> String {
        let kept = Kept { case: self.case, stamp, choice };
        let place = self.history.describe(stamp);
        let what = format!("{what} ({place}, {choice:?} at {stamp})");
        match worker::defect() {
            // A defect on purpose is expected to be found, over and over.
            Some(_) => what,
            None => keep(&kept, self.journal, image, &what),
        }
    }
}
