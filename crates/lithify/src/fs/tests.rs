//! What every file system does alike: one suite, run over each implementation.

use super::*;
use crate::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs a check over every implementation, in an empty directory each.
fn everywhere(check: impl Fn(&Arc<dyn FileSystem>, &Path)) {
    let directory = tempfile::tempdir().unwrap();
    let system: Arc<dyn FileSystem> = Arc::new(SystemFileSystem);
    for name in ["plain", "counted"] {
        let root = directory.path().join(name);
        system.create_directory(&root).unwrap();
    }
    let memory: Arc<dyn FileSystem> = Arc::new(MemoryFileSystem::new());
    memory.create_directory(Path::new("/db")).unwrap();
    check(&memory, Path::new("/db"));
    check(&system, &directory.path().join("plain"));
    let counted: Arc<dyn FileSystem> = Arc::new(CountingFileSystem::new(system));
    check(&counted, &directory.path().join("counted"));
}

fn kind<T>(result: Result<T>) -> ErrorKind {
    result.err().expect("the call should fail").kind()
}

fn create(files: &Arc<dyn FileSystem>, path: &Path, content: &[u8]) -> Arc<dyn File> {
    let file = files.open(path, OpenMode::CreateOrTruncate).unwrap();
    file.append(&[IoSlice::new(content)]).unwrap();
    file
}

fn content(file: &dyn File) -> Vec<u8> {
    read_exact_at(file, 0, file.length().unwrap() as usize).unwrap()
}

#[test]
fn open_modes_make_find_and_cut_files() {
    everywhere(|files, root| {
        let path = root.join("a");
        assert_eq!(kind(files.open(&path, OpenMode::Read)), ErrorKind::NotFound);
        assert_eq!(kind(files.open(&path, OpenMode::ReadWrite)), ErrorKind::NotFound);
        let file = files.open(&path, OpenMode::CreateNew).unwrap();
        file.append(&[IoSlice::new(b"hello")]).unwrap();
        assert_eq!(kind(files.open(&path, OpenMode::CreateNew)), ErrorKind::AlreadyExists);

        let again = files.open(&path, OpenMode::ReadWrite).unwrap();
        again.write_at(&[IoSlice::new(b"J")], 0).unwrap();
        let reader = files.open(&path, OpenMode::Read).unwrap();
        assert_eq!(content(&*reader), b"Jello");
        assert!(reader.write_at(&[IoSlice::new(b"x")], 0).is_err());
        assert!(reader.append(&[IoSlice::new(b"x")]).is_err());
        assert!(reader.truncate(0).is_err());
        assert_eq!(reader.path(), path);

        files.open(&path, OpenMode::CreateOrTruncate).unwrap();
        assert_eq!(reader.length().unwrap(), 0);
        assert!(files.open(root, OpenMode::Read).is_err(), "a directory is no file");
        assert_eq!(kind(files.open(&root.join("no/b"), OpenMode::CreateNew)), ErrorKind::NotFound);
    });
}

#[test]
fn errors_name_the_path_and_the_place() {
    everywhere(|files, root| {
        let path = root.join("missing");
        let error = files.open(&path, OpenMode::Read).err().unwrap();
        assert_eq!(error.path(), Some(&*path));
        assert!(error.to_string().contains("cannot open for reading"), "{error}");
        create(files, &path, b"12345678");
        let reader = files.open(&path, OpenMode::Read).unwrap();
        let error = reader.write_at(&[IoSlice::new(b"x")], 7).unwrap_err();
        assert_eq!((error.path(), error.offset()), (Some(&*path), Some(7)));
        let error = read_exact_at(&*reader, 4, 5).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert_eq!((error.path(), error.offset()), (Some(&*path), Some(4)));
    });
}

#[test]
fn reads_end_at_the_end_and_gaps_are_zeros() {
    everywhere(|files, root| {
        let file = create(files, &root.join("a"), b"abc");
        file.write_at(&[IoSlice::new(b"xyz")], 6).unwrap();
        assert_eq!(content(&*file), b"abc\0\0\0xyz");
        let mut buffer = [7; 8];
        assert_eq!(file.read_at(&mut buffer, 4).unwrap(), 5);
        assert_eq!(&buffer, b"\0\0xyz\x07\x07\x07");
        assert_eq!(file.read_at(&mut buffer, 9).unwrap(), 0);
        assert_eq!(file.read_at(&mut buffer, 1 << 40).unwrap(), 0);
        assert_eq!(file.read_at(&mut [], 0).unwrap(), 0);
    });
}

#[test]
fn offsets_beyond_all_files_are_refused_without_a_panic() {
    everywhere(|files, root| {
        let file = create(files, &root.join("a"), b"abc");
        let mut buffer = [0; 4];
        assert_eq!(file.read_at(&mut buffer, u64::MAX).unwrap_or(0), 0);
        assert!(file.write_at(&[IoSlice::new(b"abcdef")], u64::MAX - 2).is_err());
        assert!(file.truncate(u64::MAX).is_err());
        assert!(file.preallocate(u64::MAX - 2, 6).is_err());
        file.sync_range(u64::MAX, u64::MAX).unwrap();
        assert_eq!(content(&*file), b"abc");
    });
}

#[test]
fn many_small_and_empty_buffers_are_written_and_read_in_order() {
    everywhere(|files, root| {
        let expected: Vec<u8> = (0..9000_u32).map(|i| (i * 7 % 251) as u8).collect();
        let mut slices: Vec<IoSlice<'_>> = Vec::new();
        for piece in expected.chunks(3) {
            slices.push(IoSlice::new(&[]));
            slices.push(IoSlice::new(piece));
        }
        let file = create(files, &root.join("a"), b"head");
        assert_eq!(file.append(&slices).unwrap(), 4);
        assert_eq!(&content(&*file)[4..], expected);
        file.write_at(&slices, 1).unwrap();
        file.write_at(&[], 1 << 20).unwrap();
        file.write_at(&[IoSlice::new(&[])], 1 << 20).unwrap();
        assert_eq!(file.length().unwrap(), 9004, "writing nothing does not extend");

        let mut found = vec![0; 9005];
        let mut buffers: Vec<&mut [u8]> = vec![&mut []];
        buffers.extend(found.chunks_mut(2));
        assert_eq!(file.read_vectored_at(&mut buffers, 1).unwrap(), 9003);
        assert_eq!(&found[..9000], expected);
        assert_eq!(&found[9003..], [0, 0]);
    });
}

#[test]
fn appends_follow_the_end() {
    everywhere(|files, root| {
        let file = create(files, &root.join("a"), b"abc");
        assert_eq!(file.append(&[IoSlice::new(b"de"), IoSlice::new(b"f")]).unwrap(), 3);
        file.write_at(&[IoSlice::new(b"xy")], 8).unwrap();
        assert_eq!(file.append(&[IoSlice::new(b"z")]).unwrap(), 10);
        file.write_at(&[IoSlice::new(b"A")], 0).unwrap();
        file.truncate(2).unwrap();
        assert_eq!(file.append(&[IoSlice::new(b"!")]).unwrap(), 2);
        assert_eq!(content(&*file), b"Ab!");
        file.truncate(5).unwrap();
        assert_eq!(content(&*file), b"Ab!\0\0");
        let again = files.open(&root.join("a"), OpenMode::ReadWrite).unwrap();
        assert_eq!(again.append(&[IoSlice::new(b"?")]).unwrap(), 5);
    });
}

#[test]
fn appends_of_several_threads_do_not_overlap() {
    everywhere(|files, root| {
        let file = files.open(&root.join("a"), OpenMode::CreateNew).unwrap();
        std::thread::scope(|scope| {
            for thread in 1..=4_u8 {
                let file = &file;
                scope.spawn(move || {
                    for _ in 0..50 {
                        let offset = file.append(&[IoSlice::new(&[thread; 100])]).unwrap();
                        let found = read_exact_at(&**file, offset, 100).unwrap();
                        assert_eq!(found, [thread; 100]);
                    }
                });
            }
        });
        assert_eq!(file.length().unwrap(), 4 * 50 * 100);
    });
}

#[test]
fn preallocation_and_hints_leave_length_and_content() {
    everywhere(|files, root| {
        let file = create(files, &root.join("a"), b"abc");
        file.preallocate(0, 1 << 16).unwrap();
        file.preallocate(0, 0).unwrap();
        file.sync_range(0, 3).unwrap();
        for advice in [Advice::Sequential, Advice::Random, Advice::WillNeed, Advice::DontNeed] {
            file.advise(0, 0, advice).unwrap();
            file.advise(1, 2, advice).unwrap();
        }
        file.sync_data().unwrap();
        assert_eq!(files.length(&root.join("a")).unwrap(), 3);
        assert_eq!(file.append(&[IoSlice::new(b"d")]).unwrap(), 3);
        assert_eq!(content(&*file), b"abcd");
    });
}

#[test]
fn names_are_listed_renamed_linked_and_removed() {
    everywhere(|files, root| {
        for name in ["b", "a", "c"] {
            create(files, &root.join(name), name.as_bytes());
        }
        files.create_directory(&root.join("d/e")).unwrap();
        files.create_directory(&root.join("d/e")).unwrap();
        assert_eq!(files.list(root).unwrap(), ["a", "b", "c", "d"].map(PathBuf::from));
        assert_eq!(files.list(&root.join("d")).unwrap(), ["e"].map(PathBuf::from));
        assert!(files.is_directory(&root.join("d/e")).unwrap());
        assert!(!files.is_directory(&root.join("a")).unwrap());
        assert_eq!(kind(files.is_directory(&root.join("x"))), ErrorKind::NotFound);

        let old_b = files.open(&root.join("b"), OpenMode::Read).unwrap();
        files.rename(&root.join("a"), &root.join("b")).unwrap();
        assert_eq!(content(&*files.open(&root.join("b"), OpenMode::Read).unwrap()), b"a");
        assert_eq!(content(&*old_b), b"b", "an open file outlives its name");
        files.link(&root.join("b"), &root.join("d/link")).unwrap();
        assert_eq!(kind(files.link(&root.join("b"), &root.join("c"))), ErrorKind::AlreadyExists);
        files.remove(&root.join("b")).unwrap();
        assert!(!files.exists(&root.join("b")).unwrap());
        assert!(!files.exists(&root.join("c/below-a-file")).unwrap());
        assert_eq!(content(&*files.open(&root.join("d/link"), OpenMode::Read).unwrap()), b"a");
        files.rename(&root.join("d/link"), &root.join("f")).unwrap();
        assert_eq!(files.list(root).unwrap(), ["c", "d", "f"].map(PathBuf::from));
        files.sync_directory(root).unwrap();
    });
}

#[test]
fn calls_on_missing_and_wrong_names_fail() {
    everywhere(|files, root| {
        let (file, missing) = (root.join("file"), root.join("missing"));
        create(files, &file, b"x");
        assert_eq!(kind(files.remove(&missing)), ErrorKind::NotFound);
        assert_eq!(kind(files.rename(&missing, &file)), ErrorKind::NotFound);
        assert_eq!(kind(files.link(&missing, &root.join("l"))), ErrorKind::NotFound);
        assert_eq!(kind(files.length(&missing)), ErrorKind::NotFound);
        assert_eq!(kind(files.list(&missing)), ErrorKind::NotFound);
        assert_eq!(kind(files.sync_directory(&missing)), ErrorKind::NotFound);
        assert!(files.list(&file).is_err());
        assert!(files.sync_directory(&file).is_err());
        assert!(files.create_directory(&file).is_err());
        assert!(files.create_directory(&file.join("below")).is_err());
        assert!(files.remove(root).is_err(), "a directory is not removed as a file");
        assert_eq!(kind(files.free_space(&missing)), ErrorKind::NotFound);
        assert!(files.free_space(root).unwrap() > 0);
        assert_eq!(content(&*files.open(&file, OpenMode::Read).unwrap()), b"x");
    });
}

#[test]
fn a_lock_has_one_holder() {
    everywhere(|files, root| {
        let path = root.join("LOCK");
        let lock = files.lock(&path).unwrap();
        let error = files.lock(&path).err().unwrap();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Locked, Some(&*path)));
        let other = files.lock(&root.join("OTHER")).unwrap();
        drop(lock);
        let again = files.lock(&path).unwrap();
        assert_eq!(kind(files.lock(&path)), ErrorKind::Locked);
        assert_eq!(kind(files.lock_directory(&path)), ErrorKind::Locked);
        drop((again, other));
        let whole = files.lock_directory(&path).unwrap();
        assert_eq!(kind(files.lock(&path)), ErrorKind::Locked);
        drop(files.lock(&root.join("OTHER")).unwrap());
        assert!(files.is_directory_locked(&path).unwrap());
        drop(whole);
        assert!(!files.is_directory_locked(&path).unwrap());
        assert!(!files.is_directory_locked(&root.join("no/LOCK")).unwrap());
        assert_eq!(kind(files.lock(&root.join("no/LOCK"))), ErrorKind::NotFound);
    });
}

fn done(submission: Submission) -> IoOutcome {
    match submission {
        Submission::Done(outcome) => outcome,
        Submission::Pending(_) => panic!("these file systems do everything at once"),
    }
}

#[test]
fn submitted_requests_give_their_buffers_back() {
    everywhere(|files, root| {
        let file = create(files, &root.join("a"), b"0123456789");
        let write = IoRequest::Write { offset: 8, data: b"abcd".to_vec() };
        let outcome = done(file.submit(write));
        assert_eq!((outcome.buffer, outcome.result.is_ok()), (b"abcd".to_vec(), true));
        let outcome = done(file.submit(IoRequest::Read { offset: 6, buffer: vec![0; 20] }));
        assert_eq!((outcome.buffer, outcome.result.is_ok()), (b"67abcd".to_vec(), true));
        let outcome = done(file.submit(IoRequest::SyncData));
        assert_eq!((outcome.buffer.len(), outcome.result.is_ok()), (0, true));
        let reader = files.open(&root.join("a"), OpenMode::Read).unwrap();
        let outcome = done(reader.submit(IoRequest::Write { offset: 0, data: vec![1; 3] }));
        assert_eq!((outcome.buffer, outcome.result.is_err()), (vec![1; 3], true));
    });
}

#[test]
fn counts_are_kept_by_class_of_file() {
    let memory = MemoryFileSystem::new();
    let counting = CountingFileSystem::new(Arc::new(memory.clone()));
    let files: Arc<dyn FileSystem> = Arc::new(counting.clone());
    let wal = create(&files, Path::new("000001.wal"), &[1; 100]);
    wal.write_at(&[IoSlice::new(&[2; 20]), IoSlice::new(&[3; 5])], 50).unwrap();
    wal.preallocate(0, 4096).unwrap();
    wal.sync_data().unwrap();
    done(wal.submit(IoRequest::Write { offset: 0, data: vec![0; 7] }));
    done(wal.submit(IoRequest::SyncData));
    done(wal.submit(IoRequest::Read { offset: 98, buffer: vec![0; 10] }));
    let manifest = create(&files, Path::new("MANIFEST-000002"), &[9; 30]);
    manifest.read_at(&mut [0; 8], 26).unwrap();
    manifest.read_vectored_at(&mut [&mut [0; 2], &mut [0; 3]], 0).unwrap();
    files.sync_directory(Path::new("")).unwrap();

    memory.set_fault(Box::new(|_| Some(std::io::Error::other("broken"))));
    assert!(wal.append(&[IoSlice::new(b"lost")]).is_err());
    assert!(wal.sync_data().is_err());
    assert!(wal.read_at(&mut [0; 3], 0).is_err());
    let outcome = done(wal.submit(IoRequest::Write { offset: 0, data: vec![0; 7] }));
    assert!(outcome.result.is_err());

    let of_wal = FileCounts {
        reads: 1,
        read_bytes: 2,
        writes: 3,
        written_bytes: 132,
        syncs: 2,
        preallocated_bytes: 4096,
    };
    let of_manifest =
        FileCounts { reads: 2, read_bytes: 9, writes: 1, written_bytes: 30, ..Default::default() };
    assert_eq!(counting.counts("wal"), of_wal);
    assert_eq!(counting.counts("sst"), FileCounts::default());
    let all = [("manifest", of_manifest), ("wal", of_wal)];
    assert!(counting.all_counts().into_iter().eq(all.map(|(c, n)| (c.to_string(), n))));
    assert_eq!(counting.directory_syncs(), 1);
}

/// A file that answers every submission later.
struct LaterFile {
    file: Arc<dyn File>,
    submitted: AtomicU64,
}

impl File for LaterFile {
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn length(&self) -> Result<u64> {
        self.file.length()
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buffer, offset)
    }
    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.file.write_at(buffers, offset)
    }
    fn append(&self, buffers: &[IoSlice<'_>]) -> Result<u64> {
        self.file.append(buffers)
    }
    fn sync_data(&self) -> Result<()> {
        self.file.sync_data()
    }
    fn sync_range(&self, offset: u64, length: u64) -> Result<()> {
        self.file.sync_range(offset, length)
    }
    fn preallocate(&self, offset: u64, length: u64) -> Result<()> {
        self.file.preallocate(offset, length)
    }
    fn truncate(&self, length: u64) -> Result<()> {
        self.file.truncate(length)
    }
    fn advise(&self, offset: u64, length: u64, advice: Advice) -> Result<()> {
        self.file.advise(offset, length, advice)
    }
    fn direct_io_alignment(&self) -> Option<usize> {
        None
    }
    fn submit(&self, request: IoRequest) -> Submission {
        self.submitted.fetch_add(1, Ordering::Relaxed);
        let ticket = Ticket::new();
        ticket.complete(perform(&*self.file, request));
        Submission::Pending(ticket)
    }
}

#[test]
fn counting_passes_submissions_through() {
    let files: Arc<dyn FileSystem> = Arc::new(MemoryFileSystem::new());
    let file = create(&files, Path::new("1.sst"), b"0123456789");
    let later = Arc::new(LaterFile { file, submitted: AtomicU64::new(0) });
    let counting = CountingFileSystem::new(files);
    let counted = counting.counted(Arc::clone(&later) as Arc<dyn File>);
    let write = IoRequest::Write { offset: 0, data: b"abc".to_vec() };
    let read = IoRequest::Read { offset: 2, buffer: vec![0; 2] };
    for (request, expected) in [(write, &b"abc"[..]), (read, b"c3"), (IoRequest::SyncData, b"")] {
        let Submission::Pending(ticket) = counted.submit(request) else {
            panic!("the inner file's own submission was not used");
        };
        assert!(ticket.is_complete());
        assert_eq!(ticket.take().unwrap().buffer, expected);
        assert!(ticket.take().is_none(), "the outcome is taken once");
    }
    assert_eq!(later.submitted.load(Ordering::Relaxed), 3);
    let counts = counting.counts("sst");
    assert_eq!((counts.written_bytes, counts.read_bytes, counts.syncs), (3, 2, 1));
}

#[test]
fn directories_are_renamed_with_what_is_in_them_and_removed_when_empty() {
    everywhere(|files, root| {
        let (old, new) = (root.join("old"), root.join("new"));
        files.create_directory(&old.join("below")).unwrap();
        create(files, &old.join("a"), b"content");
        files.rename(&old, &new).unwrap();
        assert!(!files.exists(&old).unwrap() && files.exists(&new.join("below")).unwrap());
        assert_eq!(content(&*files.open(&new.join("a"), OpenMode::Read).unwrap()), b"content");
        // Its new name must be free, and it cannot be put into itself.
        files.create_directory(&old.join("other")).unwrap();
        assert!(files.rename(&old, &new).is_err());
        assert!(files.rename(&new, &new.join("below/deeper")).is_err());
        create(files, &root.join("file"), b"");
        assert!(files.rename(&root.join("file"), &new).is_err());
        assert!(files.remove_directory(&new).is_err(), "not empty");
        assert!(files.remove_directory(&root.join("file")).is_err(), "a file");
        assert_eq!(kind(files.remove_directory(&root.join("missing"))), ErrorKind::NotFound);
        files.remove(&new.join("a")).unwrap();
        files.remove_directory(&new.join("below")).unwrap();
        files.remove_directory(&new).unwrap();
        assert_eq!(files.list(root).unwrap(), [PathBuf::from("file"), PathBuf::from("old")]);
        files.create_directory(&new).unwrap();
        assert!(files.list(&new).unwrap().is_empty());
    });
}

#[test]
fn a_staged_directory_appears_whole_and_clears_what_a_crash_left() {
    everywhere(|files, root| {
        let (target, staged) = (root.join("target"), root.join("target.unfinished"));
        let begin = || StagedDirectory::begin(files, &target, &|name| name != Path::new("mine"));
        let first = begin().unwrap();
        assert_eq!(first.path(), staged);
        create(files, &staged.join("half"), b"written");
        assert_eq!(kind(begin()), ErrorKind::Locked);
        drop(first);
        assert!(files.list(root).unwrap().is_empty(), "nothing is left");
        // As a crash leaves it: no lock is held.
        files.create_directory(&staged).unwrap();
        create(files, &staged.join("half"), b"written");
        create(files, &staged.join("mine"), b"a stranger's");
        assert_eq!(kind(begin()), ErrorKind::AlreadyExists);
        assert!(files.exists(&staged.join("half")).unwrap(), "not touched");
        files.remove(&staged.join("mine")).unwrap();
        let second = begin().unwrap();
        assert!(!files.exists(&staged.join("half")).unwrap());
        create(files, &staged.join("all"), b"of it").sync_data().unwrap();
        second.finish().unwrap();
        let names = [PathBuf::from("LOCK"), PathBuf::from("all")];
        assert_eq!(files.list(&target).unwrap(), names);
        assert_eq!(kind(begin()), ErrorKind::AlreadyExists);
        assert_eq!(files.list(root).unwrap(), [PathBuf::from("target")]);
    });
}
