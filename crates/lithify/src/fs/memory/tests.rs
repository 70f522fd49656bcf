//! What a power cut may and may not do, and the switches of the memory world.

use super::*;
use crate::base::Clock;
use crate::fs::{Environment, read_exact_at};
use std::collections::BTreeSet;
use std::io::IoSlice;

const SEEDS: std::ops::Range<u64> = 0..400;

fn create(files: &MemoryFileSystem, path: &str, content: &[u8]) -> Arc<dyn File> {
    let file = files.open(Path::new(path), OpenMode::CreateOrTruncate).unwrap();
    file.append(&[IoSlice::new(content)]).unwrap();
    file
}

/// A file whose content and name are durable.
fn create_durable(files: &MemoryFileSystem, path: &str, content: &[u8]) -> Arc<dyn File> {
    let file = create(files, path, content);
    file.sync_data().unwrap();
    files.sync_directory(Path::new(path).parent().unwrap()).unwrap();
    file
}

fn content(files: &MemoryFileSystem, path: &str) -> Option<Vec<u8>> {
    let path = Path::new(path);
    if !files.exists(path).unwrap() {
        return None;
    }
    let file = files.open(path, OpenMode::Read).unwrap();
    Some(read_exact_at(&*file, 0, file.length().unwrap() as usize).unwrap())
}

/// Everything that a power cut can leave of one file.
fn outcomes(files: &MemoryFileSystem, path: &str) -> BTreeSet<Option<Vec<u8>>> {
    let cut = |seed| content(&files.crash_clone(seed, CrashKeep::Random), path);
    SEEDS.map(cut).collect()
}

#[test]
fn synced_bytes_survive_and_unsynced_ones_only_as_they_were_written() {
    for seed in 0..300 {
        let mut random = Random::new(seed, 7);
        let files = MemoryFileSystem::new();
        let file = create_durable(&files, "a", &[1; 3000]);
        let mut durable = vec![1; 3000];
        let mut live = durable.clone();
        // What each byte can be (0 where it was never written), and each length the file had.
        let mut possible: Vec<BTreeSet<u8>> =
            durable.iter().map(|b| BTreeSet::from([*b])).collect();
        let mut lengths = BTreeSet::from([durable.len()]);
        for step in 0..random.below(12) {
            match random.below(8) {
                0 => {
                    file.sync_data().unwrap();
                    durable = live.clone();
                    possible = durable.iter().map(|b| BTreeSet::from([*b])).collect();
                    lengths = BTreeSet::from([durable.len()]);
                }
                1 => {
                    let length = random.below(5000);
                    file.truncate(length as u64).unwrap();
                    for bytes in possible.iter_mut().skip(length) {
                        bytes.insert(0);
                    }
                    live.resize(length, 0);
                }
                _ => {
                    let (offset, byte) = (random.below(4000), 10 + step as u8);
                    let data = vec![byte; 1 + random.below(1500)];
                    file.write_at(&[IoSlice::new(&data)], offset as u64).unwrap();
                    let end = offset + data.len();
                    live.resize(live.len().max(end), 0);
                    live[offset..end].fill(byte);
                    possible.resize(possible.len().max(end), BTreeSet::from([0]));
                    for bytes in &mut possible[offset..end] {
                        bytes.insert(byte);
                    }
                }
            }
            lengths.insert(live.len());
            possible.resize(possible.len().max(live.len()), BTreeSet::from([0]));
        }
        let after = |keep| content(&files.crash_clone(seed, keep), "a").unwrap();
        assert_eq!(after(CrashKeep::Nothing), durable, "seed {seed}");
        assert_eq!(after(CrashKeep::Everything), live, "seed {seed}");
        let found = after(CrashKeep::Random);
        assert!(lengths.contains(&found.len()), "seed {seed}: length {}", found.len());
        for (offset, byte) in found.iter().enumerate() {
            assert!(possible[offset].contains(byte), "seed {seed}: {byte} at {offset}");
        }
        assert_eq!(content(&files, "a").unwrap(), live, "a crash clone changes nothing");
    }
}

#[test]
fn every_subset_of_two_unsynced_sectors_occurs_and_a_seed_repeats_itself() {
    let files = MemoryFileSystem::new();
    let file = create_durable(&files, "a", &[0; 1024]);
    file.write_at(&[IoSlice::new(&[1; 1024])], 0).unwrap();
    let whole = |found: &Option<Vec<u8>>| {
        let found = found.as_ref().unwrap();
        [0, 512].map(|start| match &found[start..start + 512] {
            sector if sector == [0; 512] => 'o',
            sector if sector == [1; 512] => 'n',
            _ => 't',
        })
    };
    let found: BTreeSet<[char; 2]> = outcomes(&files, "a").iter().map(whole).collect();
    assert_eq!(found.len(), 9, "each sector old, new or torn: {found:?}");
    for seed in SEEDS.take(50) {
        let twice = [0, 1].map(|_| content(&files.crash_clone(seed, CrashKeep::Random), "a"));
        assert_eq!(twice[0], twice[1]);
    }
}

#[test]
fn a_later_write_may_survive_an_earlier_one() {
    let files = MemoryFileSystem::new();
    let file = create_durable(&files, "a", &[0; 200]);
    file.write_at(&[IoSlice::new(&[1; 100])], 0).unwrap();
    file.write_at(&[IoSlice::new(&[2; 100])], 100).unwrap();
    let found = outcomes(&files, "a");
    let expected = |first: u8, second: u8| Some([[first; 100], [second; 100]].concat());
    for (first, second) in [(0, 0), (1, 0), (0, 2), (1, 2)] {
        assert!(found.contains(&expected(first, second)), "{first} {second}");
    }
}

#[test]
fn an_append_may_leave_its_length_without_its_bytes() {
    let files = MemoryFileSystem::new();
    let file = create_durable(&files, "a", b"synced");
    file.append(&[IoSlice::new(b"NEW")]).unwrap();
    let found = outcomes(&files, "a");
    for possible in [&b"synced"[..], b"syncedNEW", b"synced\0\0\0", b"syncedN\0\0"] {
        assert!(found.contains(&Some(possible.to_vec())), "{possible:?}");
    }
    assert!(found.iter().flatten().all(|bytes| bytes.starts_with(b"synced")));
}

#[test]
fn a_truncation_may_be_undone_until_it_is_synced() {
    let files = MemoryFileSystem::new();
    let file = create_durable(&files, "a", b"0123456789");
    file.truncate(4).unwrap();
    file.append(&[IoSlice::new(b"ab")]).unwrap();
    let found = outcomes(&files, "a");
    for possible in [&b"0123456789"[..], b"0123", b"0123ab"] {
        assert!(found.contains(&Some(possible.to_vec())), "{possible:?}");
    }
    file.sync_data().unwrap();
    assert_eq!(outcomes(&files, "a"), BTreeSet::from([Some(b"0123ab".to_vec())]));
}

#[test]
fn a_name_is_durable_only_with_its_directory() {
    let files = MemoryFileSystem::new();
    create(&files, "a", b"synced").sync_data().unwrap();
    let both = BTreeSet::from([None, Some(b"synced".to_vec())]);
    assert_eq!(outcomes(&files, "a"), both);
    files.sync_directory(Path::new("")).unwrap();
    assert_eq!(outcomes(&files, "a"), BTreeSet::from([Some(b"synced".to_vec())]));
    files.remove(Path::new("a")).unwrap();
    assert_eq!(outcomes(&files, "a"), both);
    files.sync_directory(Path::new("/")).unwrap();
    assert_eq!(outcomes(&files, "a"), BTreeSet::from([None]));
}

#[test]
fn names_of_a_directory_survive_in_order() {
    let files = MemoryFileSystem::new();
    files.create_directory(Path::new("db")).unwrap();
    files.sync_directory(Path::new("")).unwrap();
    for name in ["db/c", "db/a", "db/b"] {
        create(&files, name, b"x");
    }
    files.remove(Path::new("db/c")).unwrap();
    let list = |seed| files.crash_clone(seed, CrashKeep::Random).list(Path::new("db")).unwrap();
    let found: BTreeSet<Vec<PathBuf>> = SEEDS.map(list).collect();
    let prefixes = [&[][..], &["c"], &["a", "c"], &["a", "b", "c"], &["a", "b"]];
    let expected = prefixes.map(|names| names.iter().map(PathBuf::from).collect::<Vec<_>>());
    assert_eq!(found, BTreeSet::from(expected));
}

#[test]
fn a_new_directory_may_vanish_with_all_that_is_in_it() {
    let files = MemoryFileSystem::new();
    files.create_directory(Path::new("x/db")).unwrap();
    create_durable(&files, "x/db/a", b"synced");
    assert!(outcomes(&files, "x/db/a").contains(&None));
    files.sync_directory(Path::new("x")).unwrap();
    assert!(outcomes(&files, "x/db/a").contains(&None));
    files.sync_directory(Path::new("")).unwrap();
    assert_eq!(outcomes(&files, "x/db/a"), BTreeSet::from([Some(b"synced".to_vec())]));
}

#[test]
fn a_rename_over_a_file_is_old_or_new_whole() {
    let files = MemoryFileSystem::new();
    create_durable(&files, "CURRENT", b"old");
    create_durable(&files, "CURRENT.new", b"new");
    files.rename(Path::new("CURRENT.new"), Path::new("CURRENT")).unwrap();
    for seed in SEEDS {
        let after = files.crash_clone(seed, CrashKeep::Random);
        let moved = !after.exists(Path::new("CURRENT.new")).unwrap();
        assert_eq!(content(&after, "CURRENT").unwrap(), if moved { b"new" } else { b"old" });
    }
    assert_eq!(outcomes(&files, "CURRENT").len(), 2);

    let unsynced = create(&files, "CURRENT.new", b"newer");
    files.rename(Path::new("CURRENT.new"), Path::new("CURRENT")).unwrap();
    files.sync_directory(Path::new("")).unwrap();
    assert!(outcomes(&files, "CURRENT").contains(&Some(Vec::new())), "renamed before its data");
    unsynced.sync_data().unwrap();
    assert_eq!(outcomes(&files, "CURRENT"), BTreeSet::from([Some(b"newer".to_vec())]));
}

#[test]
fn a_rename_between_directories_happens_in_both_or_in_none() {
    let files = MemoryFileSystem::new();
    for directory in ["from", "to"] {
        files.create_directory(Path::new(directory)).unwrap();
    }
    create_durable(&files, "from/a", b"a");
    files.sync_directory(Path::new("")).unwrap();
    create(&files, "to/earlier", b"");
    files.rename(Path::new("from/a"), Path::new("to/a")).unwrap();
    create(&files, "from/later", b"");
    let names = |files: &MemoryFileSystem| {
        ["from/a", "to/a"].map(|path| files.exists(Path::new(path)).unwrap())
    };
    let found: BTreeSet<_> =
        SEEDS.map(|seed| names(&files.crash_clone(seed, CrashKeep::Random))).collect();
    assert_eq!(found, BTreeSet::from([[true, false], [false, true]]));
    files.sync_directory(Path::new("from")).unwrap();
    assert_eq!(names(&files.crash_clone(0, CrashKeep::Nothing)), [false, true]);
}

#[test]
fn linked_names_stay_one_file() {
    let files = MemoryFileSystem::new();
    create_durable(&files, "a", b"12345");
    files.link(Path::new("a"), Path::new("b")).unwrap();
    files.rename(Path::new("a"), Path::new("b")).unwrap();
    assert!(files.exists(Path::new("a")).unwrap(), "renaming onto the same file does nothing");
    let after = files.crash_clone(0, CrashKeep::Everything);
    let file = after.open(Path::new("a"), OpenMode::ReadWrite).unwrap();
    file.write_at(&[IoSlice::new(b"X")], 0).unwrap();
    assert_eq!(content(&after, "b").unwrap(), b"X2345");
    assert_eq!(content(&files, "a").unwrap(), b"12345", "the old world is another one");
}

#[test]
fn a_process_crash_keeps_everything_but_makes_nothing_durable() {
    let files = MemoryFileSystem::new();
    let file = create_durable(&files, "a", b"old");
    file.append(&[IoSlice::new(b"+unsynced")]).unwrap();
    create(&files, "b", b"unsynced");
    let process = files.crash_clone(0, CrashKeep::Everything);
    assert_eq!(content(&process, "a").unwrap(), b"old+unsynced");
    assert_eq!(content(&process, "b").unwrap(), b"unsynced");
    let power = process.crash_clone(0, CrashKeep::Nothing);
    assert_eq!(content(&power, "a").unwrap(), b"old");
    assert_eq!(content(&power, "b"), None);
    for seed in SEEDS {
        let once = files.crash_clone(seed, CrashKeep::Random);
        let again = once.crash_clone(seed + 1, CrashKeep::Nothing);
        for path in ["a", "b"] {
            assert_eq!(content(&once, path), content(&again, path), "what survived is durable");
        }
    }
}

#[test]
fn what_a_failed_sync_was_for_is_not_saved_by_the_next() {
    let files = MemoryFileSystem::new();
    let file = create_durable(&files, "a", &[0; 8]);
    file.write_at(&[IoSlice::new(b"BB")], 2).unwrap();
    files.set_fault(Box::new(|call| {
        (call.kind == FileCallKind::SyncData).then(|| io::Error::other("medium error"))
    }));
    assert_eq!(file.sync_data().unwrap_err().kind(), ErrorKind::Io);
    files.clear_fault();
    file.write_at(&[IoSlice::new(b"CC")], 6).unwrap();
    file.append(&[IoSlice::new(b"DD")]).unwrap();
    file.sync_data().unwrap();
    assert_eq!(content(&files, "a").unwrap(), b"\0\0BB\0\0CCDD", "still readable");
    let lost = files.crash_clone(0, CrashKeep::Nothing);
    assert_eq!(content(&lost, "a").unwrap(), b"\0\0\0\0\0\0CCDD");
    let found = outcomes(&files, "a");
    assert!(found.len() > 1);
    assert!(found.iter().flatten().all(|bytes| bytes.ends_with(b"\0\0CCDD")));
}

#[test]
fn a_full_disk_refuses_whole_writes_until_there_is_space() {
    let files = MemoryFileSystem::new();
    files.set_capacity_bytes(1000);
    let file = create(&files, "a", &[1; 600]);
    let full = |result: Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::NoSpace);
    full(file.append(&[IoSlice::new(&[2; 401])]).map(drop));
    full(file.preallocate(0, 1001));
    full(file.truncate(1001));
    assert_eq!(file.length().unwrap(), 600);
    file.write_at(&[IoSlice::new(&[3; 600])], 0).unwrap();
    file.preallocate(600, 400).unwrap();
    assert_eq!(files.free_space(Path::new("")).unwrap(), 0);
    full(create_result(&files, "b"));
    file.append(&[IoSlice::new(&[2; 400])]).unwrap();
    full(create_result(&files, "b"));

    let clone = files.crash_clone(1, CrashKeep::Everything);
    assert_eq!(clone.free_space(Path::new("")).unwrap(), 0, "the clone is as full");
    files.remove(Path::new("a")).unwrap();
    full(create_result(&files, "b"));
    drop(file);
    assert_eq!(files.free_space(Path::new("")).unwrap(), 1000);
    create_result(&files, "b").unwrap();
    let file = files.open(Path::new("b"), OpenMode::ReadWrite).unwrap();
    file.truncate(0).unwrap();
    assert_eq!(files.free_space(Path::new("")).unwrap(), 1000);
    files.set_capacity_bytes(0);
    full(file.append(&[IoSlice::new(b"x")]).map(drop));
    file.append(&[]).unwrap();
}

fn create_result(files: &MemoryFileSystem, path: &str) -> Result<()> {
    let file = files.open(Path::new(path), OpenMode::CreateOrTruncate)?;
    file.append(&[IoSlice::new(b"x")]).map(drop)
}

#[test]
fn a_read_only_disk_refuses_every_change_and_no_reading() {
    let files = MemoryFileSystem::new();
    let file = create_durable(&files, "a", b"abc");
    files.set_read_only(true);
    let (a, b) = (Path::new("a"), Path::new("b"));
    let refused = |result: Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::ReadOnly);
    refused(create_result(&files, "b"));
    refused(files.open(a, OpenMode::ReadWrite).map(drop));
    refused(files.rename(a, b));
    refused(files.link(a, b));
    refused(files.remove(a));
    refused(files.create_directory(b));
    refused(files.lock(b).map(drop));
    refused(file.append(&[IoSlice::new(b"x")]).map(drop));
    refused(file.write_at(&[IoSlice::new(b"x")], 0));
    refused(file.truncate(0));
    refused(file.preallocate(0, 10));
    assert_eq!(content(&files, "a").unwrap(), b"abc");
    files.set_read_only(false);
    create_result(&files, "b").unwrap();
}

#[test]
fn any_call_can_be_failed_and_all_are_counted() {
    let run = |files: &MemoryFileSystem| -> Result<()> {
        let file = files.open(Path::new("a"), OpenMode::CreateNew)?;
        file.append(&[IoSlice::new(b"12345")])?;
        file.sync_data()?;
        files.rename(Path::new("a"), Path::new("b"))?;
        files.sync_directory(Path::new(""))?;
        file.read_at(&mut [0; 3], 2).map(drop)
    };
    let calls = {
        let files = MemoryFileSystem::new();
        run(&files).unwrap();
        files.call_count()
    };
    assert_eq!(calls, 8, "the ends of both syncs count");
    for failing in 0..calls {
        let files = MemoryFileSystem::new();
        files.set_fault(Box::new(move |call| {
            (call.index == failing).then(|| io::Error::from(io::ErrorKind::StorageFull))
        }));
        assert_eq!(run(&files).unwrap_err().kind(), ErrorKind::NoSpace, "call {failing}");
        assert_eq!(files.call_count(), failing + 1);
        assert_eq!(files.calls(FileCallKind::Create), 1);
        assert_eq!(files.calls(FileCallKind::Rename), u64::from(failing >= 4));
        assert_eq!(files.exists(Path::new("b")).unwrap(), failing >= 5);
    }
}

/// What each power cut leaves of a file at the end of a sync in which something is written to it.
fn within_a_sync(syncs: impl Fn(&MemoryFileSystem, &Arc<dyn File>)) -> [BTreeSet<Vec<u8>>; 2] {
    let found = [(); 2].map(|()| Arc::new(Mutex::new(BTreeSet::new())));
    for seed in SEEDS {
        let files = MemoryFileSystem::new();
        let file = create_durable(&files, "a", &[0; 2]);
        // So that another number of the sync decides about what it has done by then.
        for _ in 0..seed % 8 {
            file.write_at(&[IoSlice::new(&[0])], 0).unwrap();
            file.sync_data().unwrap();
        }
        file.write_at(&[IoSlice::new(&[1])], 0).unwrap();
        file.append(&[IoSlice::new(&[2])]).unwrap();
        let (disk, other) = (files.clone(), Arc::clone(&file));
        files.set_sync_pause(Box::new(move |_| {
            other.write_at(&[IoSlice::new(&[3])], 1).unwrap();
            disk.link(Path::new("a"), Path::new("b")).unwrap();
        }));
        let (disk, within) = (files.clone(), Arc::clone(&found[0]));
        files.set_fault(Box::new(move |call| {
            if call.kind == FileCallKind::SyncDataEnd {
                let left = disk.crash_clone(seed, CrashKeep::Random);
                within.lock().unwrap().insert(content(&left, "a").unwrap());
            }
            None
        }));
        syncs(&files, &file);
        files.clear_fault();
        let left = files.crash_clone(seed, CrashKeep::Random);
        found[1].lock().unwrap().insert(content(&left, "a").unwrap());
    }
    found.map(|found| found.lock().unwrap().clone())
}

#[test]
fn a_sync_covers_what_was_written_before_it_began() {
    let [within, after] = within_a_sync(|_, file| file.sync_data().unwrap());
    for bytes in [&[0, 0][..], &[1, 0], &[1, 0, 2], &[1, 3, 2], &[0, 0, 2], &[0, 3], &[1, 3]] {
        assert!(within.contains(bytes), "{bytes:?} in the middle of a sync");
    }
    assert_eq!(after, BTreeSet::from([vec![1, 0, 2], vec![1, 3, 2]]), "what came meanwhile");
}

#[test]
fn a_sync_that_fails_at_its_end_gives_up_what_it_covers() {
    let [_, after] = within_a_sync(|files, file| {
        files.set_fault(Box::new(|call| {
            let is_end = call.kind == FileCallKind::SyncDataEnd;
            is_end.then(|| io::Error::other("medium error"))
        }));
        assert_eq!(file.sync_data().unwrap_err().kind(), ErrorKind::Io);
        files.clear_fault();
        files.set_sync_pause(Box::new(|_| {}));
        // Covers what came during the first one, and saves nothing of what that gave up.
        file.sync_data().unwrap();
    });
    assert!(after.iter().all(|bytes| bytes[1] == 3), "{after:?}");
    for bytes in [&[0, 3, 0][..], &[1, 3, 0], &[0, 3, 2], &[1, 3, 2]] {
        assert!(after.contains(bytes), "{bytes:?} in {after:?}");
    }
}

#[test]
fn a_sync_of_a_directory_covers_the_names_that_were_there_when_it_began() {
    let files = MemoryFileSystem::new();
    let names = |files: &MemoryFileSystem| {
        let names = files.list(Path::new("")).unwrap();
        names.iter().map(|name| name.to_str().unwrap().to_owned()).collect::<String>()
    };
    create(&files, "a", b"");
    create(&files, "b", b"");
    let disk = files.clone();
    files.set_sync_pause(Box::new(move |_| drop(create(&disk, "c", b""))));
    let found = Arc::new(Mutex::new(BTreeSet::new()));
    let (disk, within) = (files.clone(), Arc::clone(&found));
    files.set_fault(Box::new(move |call| {
        if call.kind == FileCallKind::SyncDirectoryEnd {
            let cuts = SEEDS.map(|seed| names(&disk.crash_clone(seed, CrashKeep::Random)));
            within.lock().unwrap().extend(cuts);
        }
        None
    }));
    files.sync_directory(Path::new("")).unwrap();
    files.clear_fault();
    let found = found.lock().unwrap();
    assert!(found.contains("ab") && found.contains("abc"), "{found:?}");
    let after: BTreeSet<_> =
        SEEDS.map(|seed| names(&files.crash_clone(seed, CrashKeep::Random))).collect();
    assert_eq!(after, BTreeSet::from(["ab".to_owned(), "abc".to_owned()]));
}

#[test]
fn names_that_directories_exchange_become_durable_together() {
    let files = MemoryFileSystem::new();
    files.create_directory(Path::new("d")).unwrap();
    create_durable(&files, "a", b"x");
    files.rename(Path::new("a"), Path::new("d/a")).unwrap();
    let disk = files.clone();
    files.set_fault(Box::new(move |_| {
        for seed in SEEDS {
            let cut = disk.crash_clone(seed, CrashKeep::Random);
            let places = ["a", "d/a"].map(|path| content(&cut, path).is_some());
            assert_ne!(places[0], places[1], "in one place");
        }
        None
    }));
    files.sync_directory(Path::new("d")).unwrap();
    files.clear_fault();
    assert!(content(&files.crash_clone(0, CrashKeep::Nothing), "d/a").is_some());
}

#[test]
fn the_fault_hook_sees_the_call_and_may_cut_the_power_there() {
    let files = MemoryFileSystem::new();
    let file = create_durable(&files, "a", b"0123456789");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (world, log) = (files.clone(), Arc::clone(&seen));
    files.set_fault(Box::new(move |call| {
        let before = content_length(&world.crash_clone(0, CrashKeep::Everything));
        log.lock().unwrap().push((call.kind, call.path.to_path_buf(), call.offset, call.length));
        assert_eq!(before, 10 + if call.kind == FileCallKind::Read { 4 } else { 0 });
        None
    }));
    file.append(&[IoSlice::new(b"ab"), IoSlice::new(b"cd")]).unwrap();
    file.read_at(&mut [0; 7], 3).unwrap();
    let a = || PathBuf::from("a");
    let expected = [(FileCallKind::Append, a(), 10, 4), (FileCallKind::Read, a(), 3, 7)];
    assert_eq!(*seen.lock().unwrap(), expected);
}

fn content_length(files: &MemoryFileSystem) -> u64 {
    files.length(Path::new("a")).unwrap()
}

#[test]
fn what_survives_can_be_chosen_change_by_change() {
    let files = MemoryFileSystem::new();
    let file = create_durable(&files, "a", &[0; 4]);
    file.write_at(&[IoSlice::new(&[1; 2])], 0).unwrap();
    file.append(&[IoSlice::new(&[2; 4])]).unwrap();
    file.truncate(6).unwrap();
    create(&files, "b", b"new");
    files.rename(Path::new("b"), Path::new("c")).unwrap();
    let write = |offset, length| UnsyncedChange::Write { offset, length };
    let change = |owner, change| Unsynced { owner, change };
    let expected = [
        change(0, write(0, 2)),
        change(0, write(4, 4)),
        change(0, UnsyncedChange::Length { from: 8, to: 6 }),
        change(1, write(0, 3)),
        change(0, UnsyncedChange::Name),
        change(0, UnsyncedChange::Name),
    ];
    assert_eq!(files.unsynced(), expected);
    use Survives::{Back, Front, No, Whole};
    let after = |chosen: &[Survives]| {
        let clone = files.power_cut(chosen);
        ["a", "b", "c"].map(|path| content(&clone, path))
    };
    let bytes = |bytes: &[u8]| Some(bytes.to_vec());
    assert_eq!(after(&[]), [bytes(&[0; 4]), None, None]);
    assert_eq!(after(&[Whole]), [bytes(&[1, 1, 0, 0]), None, None]);
    assert_eq!(after(&[Back(1)]), [bytes(&[0, 1, 0, 0]), None, None]);
    assert_eq!(after(&[No, Front(1)]), [bytes(&[0, 0, 0, 0, 2, 0, 0, 0]), None, None]);
    assert_eq!(after(&[No, Front(0), Whole]), [bytes(&[0; 6]), None, None]);
    let renamed = [bytes(&[1, 1, 0, 0, 2, 2]), None, bytes(b"new")];
    assert_eq!(after(&[Whole; 6]), renamed);
    let named = [bytes(&[0; 4]), bytes(b""), None];
    assert_eq!(after(&[No, No, No, No, Whole, No]), named);
    assert_eq!(after(&[No, No, No, No, No, Whole])[1..], [None, None], "names come in order");
    assert_eq!(files.power_cut(&[Whole; 6]).unsynced(), []);
}

#[test]
fn a_fingerprint_tells_names_and_bytes_apart() {
    let files = MemoryFileSystem::new();
    let mut seen = BTreeSet::from([files.fingerprint()]);
    let file = create(&files, "a", b"x");
    assert!(seen.insert(files.fingerprint()));
    file.append(&[IoSlice::new(b"y")]).unwrap();
    assert!(seen.insert(files.fingerprint()));
    files.rename(Path::new("a"), Path::new("b")).unwrap();
    assert!(seen.insert(files.fingerprint()));
    files.create_directory(Path::new("a")).unwrap();
    assert!(seen.insert(files.fingerprint()));
    assert!(seen.contains(&files.crash_clone(0, CrashKeep::Everything).fingerprint()));
}

#[test]
fn a_short_write_leaves_its_front() {
    let files = MemoryFileSystem::new();
    let file = create_durable(&files, "a", b"....");
    files.set_fault(Box::new(|_| Some(short_write(3, io::ErrorKind::StorageFull))));
    let buffers = [IoSlice::new(b"ab"), IoSlice::new(b"cd")];
    let full = |result: Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::NoSpace);
    full(file.write_at(&buffers, 1));
    full(file.append(&buffers).map(drop));
    full(file.truncate(0));
    files.clear_fault();
    assert_eq!(content(&files, "a").unwrap(), b".abcabc");
}

#[test]
fn locks_do_not_survive_a_crash() {
    let files = MemoryFileSystem::new();
    let _lock = files.lock(Path::new("LOCK")).unwrap();
    files.sync_directory(Path::new("")).unwrap();
    for keep in [CrashKeep::Nothing, CrashKeep::Everything, CrashKeep::Random] {
        let after = files.crash_clone(3, keep);
        assert!(after.exists(Path::new("LOCK")).unwrap());
        let _again = after.lock(Path::new("LOCK")).unwrap();
    }
    assert_eq!(files.lock(Path::new("LOCK")).err().unwrap().kind(), ErrorKind::Locked);
}

#[test]
fn virtual_time_moves_by_waiting_only() {
    let environment = MemoryEnvironment::new(1);
    assert_eq!((environment.now_us(), environment.ticks()), (0, 0));
    environment.advance_us(5);
    let event = environment.new_event();
    assert!(!event.wait(0, Some(1_000_000)));
    assert_eq!((environment.now_us(), environment.thread_cpu_ns()), (1_000_005, 1_000_005_000));
    assert_eq!(environment.unix_time_s(), MemoryEnvironment::new(2).unix_time_s() + 1);
    event.notify_all();
    assert!(event.wait(0, Some(1_000_000)) && event.wait(0, None));
    assert_eq!((environment.now_us(), environment.endless_waits()), (1_000_005, 0));
    assert!(!event.wait(event.generation(), None));
    assert_eq!(environment.endless_waits(), 1);
    let waits = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&waits);
    environment.set_watch(Box::new(move |before| seen.store(before, Ordering::SeqCst)));
    assert!(!event.wait(event.generation(), Some(1)));
    assert_eq!(waits.load(Ordering::SeqCst), 2);
    let refused = environment.spawn("worker", Box::new(|| {})).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
}

#[test]
fn the_same_seed_gives_the_same_randomness() {
    let draw = |seed| {
        let environment = World::memory(seed).environment;
        [environment.random_u128(), environment.random_u128()]
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert_ne!(draw(1)[0], draw(1)[1]);
}

#[test]
fn a_power_cut_takes_renames_and_removals_of_directories_back_whole() {
    let mut outcomes = BTreeSet::new();
    for seed in SEEDS {
        let files = MemoryFileSystem::new();
        for name in ["a", "gone"] {
            files.create_directory(Path::new(name)).unwrap();
            create_durable(&files, &format!("{name}/file"), b"content");
            files.sync_directory(Path::new(name)).unwrap();
        }
        files.sync_directory(Path::new("")).unwrap();
        let free_bytes = files.free_space(Path::new("")).unwrap();
        files.rename(Path::new("a"), Path::new("b")).unwrap();
        files.remove(Path::new("gone/file")).unwrap();
        files.remove_directory(Path::new("gone")).unwrap();
        let image = files.crash_clone(seed, CrashKeep::Random);
        let names = image.list(Path::new("")).unwrap();
        let names: Vec<_> = names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        let renamed = if names.contains(&"b".to_string()) { "b" } else { "a" };
        assert_eq!(content(&image, &format!("{renamed}/file")).unwrap(), b"content");
        if !names.contains(&"gone".to_string()) {
            // What was in it is gone with it, though its own removal did not survive.
            assert!(image.free_space(Path::new("")).unwrap() > free_bytes, "seed {seed}");
        }
        outcomes.insert(names.join(" "));
    }
    assert_eq!(outcomes, BTreeSet::from(["a gone", "b gone", "b"].map(String::from)));
}
