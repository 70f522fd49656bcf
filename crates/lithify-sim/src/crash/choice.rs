//! What is tried to survive at a crash point: nothing, everything, files without names and names
//! without files, each change lost or kept alone where they are few, the last writes torn at
//! every sector, and random subsets.

use super::history::CrashKind;
use crate::random::Random;
use lithify::fs::{CrashKeep, MemoryFileSystem, Survives, Unsynced, UnsyncedChange};

/// The unit in which a disk writes, in bytes.
const SECTOR_BYTES: u64 = 512;

/// With more unsynced changes than this, only the first and the last few are tried one by one.
const SINGLES_MAX: usize = 8;

/// A write is torn at so many places at most.
const TEARS_MAX: usize = 6;

/// One way of crashing at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The process ends: everything is there, and no more durable than it was.
    ProcessEnd,
    /// The power goes, and of each unsynced change this survives.
    Chosen(Vec<Survives>),
    /// The power goes, and chance decides by the rules of the medium.
    Random(u64),
}

impl Choice {
    /// What kind of crash it is.
    pub fn kind(&self) -> CrashKind {
        match self {
            Choice::ProcessEnd => CrashKind::ProcessEnd,
            Choice::Chosen(_) | Choice::Random(_) => CrashKind::PowerCut,
        }
    }

    /// The disk that is left.
    pub fn image(&self, files: &MemoryFileSystem) -> MemoryFileSystem {
        match self {
            Choice::ProcessEnd => files.crash_clone(0, CrashKeep::Everything),
            Choice::Chosen(survives) => files.power_cut(survives),
            Choice::Random(seed) => files.crash_clone(*seed, CrashKeep::Random),
        }
    }
}

/// The end of the process, nothing, and everything: what no recovery may get wrong.
pub fn plain(files: &MemoryFileSystem) -> Vec<Choice> {
    let count = files.unsynced().len();
    vec![
        Choice::ProcessEnd,
        Choice::Chosen(Vec::new()),
        Choice::Chosen(vec![Survives::Whole; count]),
    ]
}

/// All that is enumerated.
pub fn enumerated(files: &MemoryFileSystem) -> Vec<Choice> {
    let unsynced = files.unsynced();
    let count = unsynced.len();
    let mut choices = plain(files);
    let is_name = |change: &Unsynced| change.change == UnsyncedChange::Name;
    let keep = |kept: &dyn Fn(&Unsynced) -> bool| {
        let survives = |change| if kept(change) { Survives::Whole } else { Survives::No };
        Choice::Chosen(unsynced.iter().map(survives).collect())
    };
    choices.push(keep(&|change| is_name(change)));
    choices.push(keep(&|change| !is_name(change)));
    for index in singles(count) {
        let mut lost = vec![Survives::Whole; count];
        lost[index] = Survives::No;
        let mut alone = vec![Survives::No; count];
        alone[index] = Survives::Whole;
        choices.extend([Choice::Chosen(lost), Choice::Chosen(alone)]);
    }
    choices.extend(torn(&unsynced));
    choices.dedup();
    choices
}

/// Subsets by chance: by the rules of the medium, and change by change.
pub fn random(files: &MemoryFileSystem, seed: u64) -> Vec<Choice> {
    let mut random = Random::new(seed);
    let unsynced = files.unsynced();
    if unsynced.is_empty() {
        return Vec::new();
    }
    let mut by_change = |change: &Unsynced| match (change.change, random.below(8)) {
        (_, 0..=2) => Survives::Whole,
        (UnsyncedChange::Write { length, .. }, 3) => Survives::Front(random.below(length)),
        (UnsyncedChange::Write { length, .. }, 4) => Survives::Back(random.below(length)),
        _ => Survives::No,
    };
    let chosen = unsynced.iter().map(&mut by_change).collect();
    let seed = random.next();
    vec![Choice::Chosen(chosen), Choice::Random(seed), Choice::Random(!seed)]
}

fn singles(count: usize) -> Vec<usize> {
    match count {
        0..=SINGLES_MAX => (0..count).collect(),
        _ => (0..SINGLES_MAX / 2).chain(count - SINGLES_MAX / 2..count).collect(),
    }
}

/// The last write of each file torn at sectors, and within one.
fn torn(unsynced: &[Unsynced]) -> Vec<Choice> {
    let mut choices = Vec::new();
    for (index, Unsynced { owner, change }) in unsynced.iter().enumerate() {
        let UnsyncedChange::Write { offset, length } = *change else { continue };
        let is_same = |next: &Unsynced| next.owner == *owner && next.change != UnsyncedChange::Name;
        if unsynced.get(index + 1).is_some_and(is_same) {
            continue;
        }
        let mut tear = |survives: Survives| {
            let mut kept = vec![Survives::Whole; unsynced.len()];
            kept[index] = survives;
            choices.push(Choice::Chosen(kept));
        };
        tear(Survives::Front(0));
        tear(Survives::Front(length / 3));
        tear(Survives::Back(length / 3));
        for place in boundaries(offset, length) {
            tear(Survives::Front(place));
            tear(Survives::Back(length - place));
        }
    }
    choices
}

/// Where a write crosses from one sector into the next, counted from its start; spread over it if
/// there are many.
fn boundaries(offset: u64, length: u64) -> Vec<u64> {
    let first = SECTOR_BYTES - offset % SECTOR_BYTES;
    let all: Vec<u64> = (first..length).step_by(SECTOR_BYTES as usize).collect();
    let step = all.len().div_ceil(TEARS_MAX).max(1);
    all.into_iter().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify::fs::{FileSystem, OpenMode};
    use std::collections::BTreeSet;
    use std::io::IoSlice;
    use std::path::Path;

    #[test]
    fn choices_tear_at_every_sector_and_take_each_change_alone() {
        let files = MemoryFileSystem::new();
        let file = files.open(Path::new("a"), OpenMode::CreateNew).unwrap();
        files.sync_directory(Path::new("")).unwrap();
        file.append(&[IoSlice::new(&[1; 100])]).unwrap();
        file.append(&[IoSlice::new(&[2; 1500])]).unwrap();
        assert_eq!(boundaries(100, 1500), [412, 924, 1436]);
        let found: BTreeSet<Vec<u8>> = enumerated(&files)
            .iter()
            .map(|choice| {
                let image = choice.image(&files);
                let file = image.open(Path::new("a"), OpenMode::Read).unwrap();
                let mut bytes = vec![0; file.length().unwrap() as usize];
                file.read_at(&mut bytes, 0).unwrap();
                bytes
            })
            .collect();
        let whole = [vec![1; 100], vec![2; 1500]].concat();
        let torn = |front: usize| [&whole[..100 + front], &vec![0; 1500 - front]].concat();
        let expected = [Vec::new(), vec![1; 100], torn(0), torn(412), torn(924), whole.clone()];
        for bytes in expected {
            assert!(found.contains(&bytes), "{} bytes", bytes.len());
        }
        let images =
            |seed| random(&files, seed).iter().map(|c| c.image(&files)).collect::<Vec<_>>();
        for (once, again) in images(3).iter().zip(images(3)) {
            assert_eq!(once.fingerprint(), again.fingerprint());
        }
    }
}
