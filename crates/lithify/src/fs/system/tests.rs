//! What only the operating system does: locks among processes, direct reads, waiting threads.

use super::*;
use crate::ErrorKind;
use crate::base::Clock;
use crate::fs::{Environment, read_exact_at};
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn a_lock_held_through_another_open_file_names_the_holder() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("LOCK");
    std::fs::write(&path, "4242\n").unwrap();
    let other = std::fs::File::open(&path).unwrap();
    other.lock().unwrap();
    let error = SystemFileSystem.lock(&path).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("process 4242"), "{error}");
    drop(other);
    let lock = SystemFileSystem.lock(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));

    let other = std::fs::File::open(&path).unwrap();
    assert!(other.try_lock().is_err(), "the lock is seen outside");
    drop(lock);
    other.try_lock().unwrap();
}

#[test]
fn a_lock_whose_holder_left_no_number_is_still_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("LOCK");
    std::fs::write(&path, [0xff; 40]).unwrap();
    let other = std::fs::File::open(&path).unwrap();
    other.lock().unwrap();
    let error = SystemFileSystem.lock(&path).err().unwrap();
    assert!(error.to_string().contains("another process"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), [0xff; 40], "the holder's file is untouched");
}

#[test]
fn a_lock_through_another_name_is_the_same_lock() {
    let directory = tempfile::tempdir().unwrap();
    let (path, link) = (directory.path().join("LOCK"), directory.path().join("LINK"));
    let _lock = SystemFileSystem.lock(&path).unwrap();
    SystemFileSystem.link(&path, &link).unwrap();
    assert_eq!(SystemFileSystem.lock(&link).err().unwrap().kind(), ErrorKind::Locked);
}

/// Whoever cleans up may remove the file while the lock is held, or the directory with it.
#[test]
fn a_lock_whose_file_was_removed_is_still_held() {
    let directory = tempfile::tempdir().unwrap();
    let (home, moved) = (directory.path().join("home"), directory.path().join("moved"));
    std::fs::create_dir(&home).unwrap();
    let path = home.join("LOCK");
    let lock = SystemFileSystem.lock(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let error = SystemFileSystem.lock(&path).err().unwrap();
    assert!(error.to_string().contains("this process has it open already"), "{error}");
    assert!(SystemFileSystem.is_locked(&path).unwrap());
    assert!(!path.exists(), "a refused attempt makes no file");
    drop(SystemFileSystem.lock(&home.join("OTHER")).unwrap());
    if cfg!(unix) {
        std::fs::rename(&home, &moved).unwrap();
        assert!(SystemFileSystem.lock(&moved.join("LOCK")).is_err(), "under another name");
        std::fs::create_dir(&home).unwrap();
        drop(SystemFileSystem.lock(&path).unwrap());
    }
    drop(lock);
    let there = if moved.exists() { moved } else { home };
    drop(SystemFileSystem.lock(&there.join("LOCK")).unwrap());
}

/// To another process the lock of a removed file means nothing: that of the directory stays.
#[cfg(unix)]
#[test]
fn a_locked_directory_is_seen_outside_without_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("LOCK");
    let other = std::fs::File::open(directory.path()).unwrap();
    let lock = SystemFileSystem.lock_directory(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(other.try_lock().is_err());
    drop(lock);
    other.try_lock().unwrap();
    assert!(SystemFileSystem.is_directory_locked(&path).unwrap());
    assert!(!SystemFileSystem.is_locked(&path).unwrap() && !path.exists());
    let error = SystemFileSystem.lock_directory(&path).err().unwrap();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Locked, Some(&*path)));
    assert!(error.to_string().contains("has locked the directory"), "{error}");
    drop(SystemFileSystem.lock(&path).unwrap());
    drop(other);
    assert!(!SystemFileSystem.is_directory_locked(&path).unwrap());
    drop(SystemFileSystem.lock_directory(&path).unwrap());
}

/// The number of a directory that was removed must not come back while its lock is held.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_made_anew_is_another_place() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("home");
    let mut held = Vec::new();
    for _ in 0..20 {
        std::fs::create_dir(&home).unwrap();
        held.push(SystemFileSystem.lock(&home.join("LOCK")).unwrap());
        std::fs::remove_dir_all(&home).unwrap();
    }
}

#[test]
fn writes_that_stop_short_are_continued() {
    let pieces = [&b""[..], b"0123", b"", b"456789", b"ab", b"", b"c", b""];
    let buffers = pieces.map(IoSlice::new);
    for stop in 1..=14 {
        let mut written = Vec::new();
        file::write_all_by(&buffers, 100, |batch, offset| {
            assert_eq!(offset, 100 + written.len() as u64);
            let offered: Vec<u8> = batch.iter().flat_map(|buffer| buffer.iter().copied()).collect();
            let taken = offered.len().min(stop);
            written.extend_from_slice(&offered[..taken]);
            Ok(taken)
        })
        .unwrap();
        assert_eq!(written, b"0123456789abc", "{stop} bytes a call");
    }
    let stuck = file::write_all_by(&buffers, 0, |_, _| Ok(0));
    assert_eq!(stuck.unwrap_err().kind(), io::ErrorKind::WriteZero);
    file::write_all_by(&[], 0, |_, _| Ok(0)).unwrap();
}

/// Whether this process has the file open for direct I/O.
fn is_open_direct(path: &Path) -> bool {
    let descriptors = SystemFileSystem.list(Path::new("/proc/self/fd")).unwrap();
    descriptors.iter().any(|number| {
        let status = std::fs::read_to_string(Path::new("/proc/self/fdinfo").join(number));
        let status = status.unwrap_or_default();
        let flags = status.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0);
        let link = std::fs::read_link(Path::new("/proc/self/fd").join(number));
        link.is_ok_and(|target| target == path) && flags & platform::DIRECT_FLAG != 0
    })
}

#[test]
fn direct_reads_give_the_same_bytes_at_any_alignment() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    let expected: Vec<u8> =
        (0..2_500_123_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let file = SystemFileSystem.open(&path, OpenMode::CreateNew).unwrap();
    file.append(&[IoSlice::new(&expected)]).unwrap();
    file.sync_data().unwrap();
    let direct = SystemFileSystem.open_direct(&path).unwrap();
    let opened_direct = is_open_direct(&path);
    assert!(opened_direct || file.direct_io_alignment().is_none());
    let ranges = [
        (0, 1),
        (0, 4096),
        (1, 4095),
        (511, 2),
        (4095, 8194),
        (100_000, 1_500_000),
        (2_498_560, 1563),
        (2_500_122, 1),
        (0, expected.len()),
    ];
    for (offset, length) in ranges {
        let found = read_exact_at(&*direct, offset as u64, length).unwrap();
        assert!(found == expected[offset..offset + length], "{length} bytes at {offset}");
    }
    let mut rest = [0; 100];
    assert_eq!(direct.read_at(&mut rest, 2_500_100).unwrap(), 23);
    assert_eq!(direct.read_at(&mut rest, 2_500_123).unwrap(), 0);
    assert_eq!(direct.read_at(&mut rest, 9_000_000).unwrap(), 0);
    let (mut first, mut second) = ([0; 700], [0; 60]);
    assert_eq!(direct.read_vectored_at(&mut [&mut first, &mut second], 2_499_500).unwrap(), 623);
    assert_eq!(first[..623], expected[2_499_500..]);
    assert_eq!(is_open_direct(&path), opened_direct, "a direct read was refused");
    assert!(direct.direct_io_alignment().is_none_or(usize::is_power_of_two));
    let missing = SystemFileSystem.open_direct(&directory.path().join("missing"));
    assert_eq!(missing.err().unwrap().kind(), ErrorKind::NotFound);
}

/// Two threads hand a turn back and forth; a lost wake-up would leave both waiting for ever.
#[test]
fn no_notification_is_lost() {
    const ROUNDS: u64 = 20_000;
    let event = SystemEnvironment.new_event();
    let turn = Arc::new(AtomicU64::new(0));
    let play = |me: u64| {
        let (event, turn) = (Arc::clone(&event), Arc::clone(&turn));
        let body = move || {
            for round in 0..ROUNDS {
                loop {
                    let seen = event.generation();
                    if turn.load(Ordering::SeqCst) == 2 * round + me {
                        break;
                    }
                    assert!(event.wait(seen, None));
                }
                turn.fetch_add(1, Ordering::SeqCst);
                event.notify_all();
            }
        };
        SystemEnvironment.spawn("player\0", Box::new(body)).unwrap()
    };
    let players = [play(0), play(1)];
    players.into_iter().for_each(|player| player.join());
    assert_eq!(turn.load(Ordering::SeqCst), 2 * ROUNDS);
    assert_eq!(event.generation(), 2 * ROUNDS);
}

#[test]
fn one_notification_wakes_all_waiters() {
    let event = SystemEnvironment.new_event();
    let woken = Arc::new(AtomicU64::new(0));
    let waiter = || {
        let (event, woken) = (Arc::clone(&event), Arc::clone(&woken));
        let body = move || {
            if event.wait(0, None) {
                woken.fetch_add(1, Ordering::SeqCst);
            }
        };
        SystemEnvironment.spawn("waiter", Box::new(body)).unwrap()
    };
    let waiters: Vec<_> = (0..4).map(|_| waiter()).collect();
    event.notify_all();
    waiters.into_iter().for_each(|thread| thread.join());
    assert_eq!(woken.load(Ordering::SeqCst), 4);
}

#[test]
fn a_wait_ends_at_its_deadline() {
    let event = SystemEnvironment.new_event();
    let before = SystemEnvironment.now_us();
    assert!(!event.wait(0, Some(2000)));
    assert!(SystemEnvironment.now_us() >= before + 2000);
    assert!(!event.wait(0, Some(0)));
    event.notify_all();
    assert!(event.wait(0, Some(u64::MAX)), "a generation that moved on is not waited for");
    assert!(!event.wait(1, Some(1)));
}

#[test]
fn a_thread_that_panics_can_be_joined() {
    let thread = SystemEnvironment.spawn("doomed", Box::new(|| std::panic::panic_any(1)));
    thread.unwrap().join();
}

#[test]
fn clocks_move_and_randomness_differs() {
    let world = World::system();
    let environment = world.environment;
    let (now, cpu, ticks) =
        (environment.now_us(), environment.thread_cpu_ns(), environment.ticks());
    let mut sum = 0_u64;
    while environment.thread_cpu_ns() == cpu || environment.ticks() == ticks {
        sum = std::hint::black_box(sum.wrapping_add(1));
    }
    assert!(environment.thread_cpu_ns() > cpu && environment.now_us() >= now);
    assert!(environment.unix_time_s() > 1_700_000_000);
    assert_ne!(environment.random_u128(), environment.random_u128());
}

#[test]
fn the_empty_path_is_the_working_directory() {
    SystemFileSystem.sync_directory(Path::new("")).unwrap();
    assert!(SystemFileSystem.is_directory(Path::new("")).unwrap());
    assert!(SystemFileSystem.list(Path::new("")).unwrap().contains(&PathBuf::from("Cargo.toml")));
}
