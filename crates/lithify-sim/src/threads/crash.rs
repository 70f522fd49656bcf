//! Crashes while threads write: what the disk would be left with at this moment is opened.
//!
//! What is found must be what a number of commits leave, in their order: of each writer its first
//! ones, whole and in both column families; and no commit that began after another one had returned
//! may be there without it. Where the mode promises it, nothing that was acknowledged is missing.

use super::WRITERS;
use super::bench::{Bench, GROUPS, PATH, ROWS, key, number, text};
use crate::random::Random;
use lithify::fs::{CrashKeep, MemoryEnvironment, World};
use lithify::{Db, Durability, Options};
use std::sync::Arc;
use std::time::Duration;

/// Between two crashes.
const REST: Duration = Duration::from_millis(3);

/// A sync that is due every millisecond is looked for so often.
const LOOKS: u32 = 2_000;

/// The numbers of the groups.
type Numbers = [u64; GROUPS as usize];

/// Crashes now and then until the writers are done; gives how often.
pub(super) fn crash(bench: &Bench, mut random: Random) -> Result<u64, String> {
    let mut crashes = 0;
    while !bench.is_over() {
        let keep = *random.pick(&[CrashKeep::Nothing, CrashKeep::Random, CrashKeep::Everything]);
        let is_promised = is_promised(bench.db.options().durability, keep);
        let promised = (0..WRITERS).map(|writer| match is_promised {
            true => bench.acknowledged(writer),
            false => bench.synced(writer),
        });
        let promised: Vec<_> = promised.collect();
        let filtered = bench.filtered.promise(is_promised)?;
        let db = crashed(bench, random.next(), keep)?;
        let numbers = numbers(bench, &db)?;
        let survived = survived(bench, &numbers).and_then(|survived| {
            match survived.iter().zip(&promised).find(|(survived, promised)| survived < promised) {
                None => in_order(bench, &survived),
                Some((survived, promised)) => {
                    Err(format!("{survived} commits of a writer survive, {promised} were promised"))
                }
            }
        });
        let found = survived.and_then(|()| bench.filtered.check_crashed(&db, &filtered));
        found.map_err(|what| format!("a crash that keeps {keep:?}: {what}"))?;
        crashes += 1;
        std::thread::sleep(REST);
    }
    Ok(crashes)
}

/// With a sync at intervals, one more commit is durable after a while, though nobody does anything.
pub(super) fn check_interval(bench: &Bench, random: &mut Random) -> Result<(), String> {
    let Durability::Interval { .. } = bench.db.options().durability else { return Ok(()) };
    bench.count_up(0, false, random)?;
    let expected = bench.numbers();
    for _ in 0..LOOKS {
        if numbers(bench, &crashed(bench, 0, CrashKeep::Nothing)?)? == expected {
            return Ok(());
        }
        std::thread::sleep(REST);
    }
    Err("a commit that is to be synced after an interval never is".to_string())
}

/// Whether every commit that returned survives.
fn is_promised(durability: Durability, keep: CrashKeep) -> bool {
    match durability {
        Durability::Sync => true,
        Durability::Buffered | Durability::Interval { .. } => keep == CrashKeep::Everything,
        Durability::None => false,
    }
}

/// What a crash now would leave, opened.
fn crashed(bench: &Bench, seed: u64, keep: CrashKeep) -> Result<Db, String> {
    let files = Arc::new(bench.files.crash_clone(seed, keep));
    let world = World { files, environment: Arc::new(MemoryEnvironment::new(seed)) };
    let options = Options { background_threads: 0, ..bench.db.options().clone() };
    Db::open_in(PATH, options, world).map_err(text)
}

/// The numbers of the groups; 0 where no row of one is there.
fn numbers(bench: &Bench, db: &Db) -> Result<Numbers, String> {
    let mut numbers = [None; GROUPS as usize];
    for family in &bench.families {
        let family = db.existing_column_family(family.name()).map_err(text)?;
        let family = family.ok_or("a column family is gone")?;
        for (group, known) in numbers.iter_mut().enumerate() {
            for row in 0..ROWS {
                let value = family.get(key(group as u64, row)).map_err(text)?;
                let found = value.map_or(0, |value| number(&value));
                let known = *known.get_or_insert(found);
                if found != known {
                    return Err(format!("row {row} of group {group}: {found} beside {known}"));
                }
            }
        }
    }
    Ok(numbers.map(Option::unwrap_or_default))
}

/// How many commits of each writer survived.
fn survived(bench: &Bench, numbers: &Numbers) -> Result<Vec<usize>, String> {
    let of_writer = |writer: u64| {
        let own = || (0..GROUPS).filter(move |group| group % WRITERS == writer);
        // A group is counted up by one each time.
        let count: u64 = own().map(|group| numbers[group as usize]).sum();
        let commits = bench.commits(writer);
        let first = commits.get(..count as usize).ok_or("more commits than there were")?;
        let times = |group| first.iter().filter(|commit| commit.group == group).count() as u64;
        match own().find(|group| times(*group) != numbers[*group as usize]) {
            None => Ok(first.len()),
            Some(group) => {
                let (found, times) = (numbers[group as usize], times(group));
                Err(format!("group {group} is {found}, after {count} commits it was {times}"))
            }
        }
    };
    (0..WRITERS).map(of_writer).collect()
}

/// No commit is there that began after a lost one had returned.
fn in_order(bench: &Bench, survived: &[usize]) -> Result<(), String> {
    let logs: Vec<_> = (0..WRITERS).map(|writer| bench.commits(writer)).collect();
    for (log, count) in logs.iter().zip(survived) {
        let Some(lost) = log.get(*count).filter(|lost| lost.ended > 0) else { continue };
        for (other, count) in logs.iter().zip(survived) {
            let last = count.checked_sub(1).and_then(|last| other.get(last));
            if let Some(last) = last.filter(|last| last.began > lost.ended) {
                return Err(format!("{lost:?} is lost, {last:?} is there"));
            }
        }
    }
    Ok(())
}
