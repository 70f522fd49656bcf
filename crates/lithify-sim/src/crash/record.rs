//! Crash points: the disk as it is before each call that changes it, with the history so far. The
//! prefix of a run is shared: a run is recorded once, and each of its points is a clone that shares
//! the bytes of the files.

use super::actor::Witness;
use super::history::Moment;
use lithify::Options;
use lithify::fs::{CrashKeep, FileCall, FileCallKind, MemoryFileSystem};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A moment between two calls to the file system.
pub struct Point {
    /// The disk, with what is not synced.
    pub files: MemoryFileSystem,
    /// How far the history was.
    pub moment: Moment,
    /// How the database was opened.
    pub options: Option<Options>,
    /// The call that comes next, for messages.
    pub call: String,
}

/// Whether a call makes the disk, or what is durable of it, another one.
pub fn changes_disk(kind: FileCallKind) -> bool {
    use FileCallKind as K;
    matches!(
        kind,
        K::Create
            | K::Rename
            | K::Remove
            | K::Link
            | K::CreateDirectory
            | K::RemoveDirectory
            | K::SyncDirectory
            | K::SyncDirectoryEnd
            | K::Lock
            | K::Write
            | K::Append
            | K::SyncData
            | K::SyncDataEnd
            | K::Truncate
    )
}

/// Which calls are crash points, counted by those that change the disk.
pub enum Which {
    /// All.
    Every,
    /// These, in order; the power goes at the last one, and every call fails from then on.
    Only(Vec<u64>),
}

struct Shared {
    /// With the numbers of the changes that they are before; threads may note them out of order.
    points: Mutex<Vec<(u64, Point)>>,
    changes: AtomicU64,
}

/// Notes the crash points of a disk until it is told to stop.
pub struct Recorder {
    files: MemoryFileSystem,
    witness: Option<Arc<Witness>>,
    shared: Arc<Shared>,
    end: Option<u64>,
}

impl Recorder {
    /// Begins. The witness knows the history; a recovery has none.
    pub fn start(files: &MemoryFileSystem, witness: Option<&Arc<Witness>>, which: Which) -> Self {
        let shared = Arc::new(Shared { points: Mutex::default(), changes: AtomicU64::new(0) });
        let end = match &which {
            Which::Every => None,
            Which::Only(changes) => changes.last().copied(),
        };
        let recorder = Recorder {
            files: files.clone(),
            witness: witness.cloned(),
            shared: Arc::clone(&shared),
            end,
        };
        let (disk, witness) = (files.clone(), witness.cloned());
        files.set_fault(Box::new(move |call: &FileCall<'_>| {
            if witness.as_ref().is_some_and(|witness| witness.is_looking()) {
                return None;
            }
            let power_off = || Some(io::Error::other("the power is off"));
            if !changes_disk(call.kind) {
                let passed = shared.changes.load(Ordering::SeqCst);
                return end.filter(|end| passed > *end).and_then(|_| power_off());
            }
            let index = shared.changes.fetch_add(1, Ordering::SeqCst);
            let is_point = match &which {
                Which::Every => true,
                Which::Only(changes) => changes.binary_search(&index).is_ok(),
            };
            if is_point {
                let point = point(&disk, witness.as_deref(), describe(call));
                shared.points.lock().unwrap_or_else(PoisonError::into_inner).push((index, point));
            }
            end.filter(|end| index >= *end).and_then(|_| power_off())
        }));
        recorder
    }

    /// Whether the power has gone.
    pub fn is_over(&self) -> bool {
        let passed = self.shared.changes.load(Ordering::SeqCst);
        self.end.is_some_and(|end| passed > end)
    }

    /// Ends, and gives the points in order; the last one is now, unless the power has gone.
    pub fn finish(self) -> Vec<Point> {
        // The hook holds the disk that holds the hook.
        self.files.clear_fault();
        let mut points = self.shared.points.lock().unwrap_or_else(PoisonError::into_inner);
        let mut points = std::mem::take(&mut *points);
        points.sort_by_key(|(index, _)| *index);
        let mut points: Vec<Point> = points.into_iter().map(|(_, point)| point).collect();
        if !self.is_over() {
            points.push(point(&self.files, self.witness.as_deref(), "the end".to_string()));
        }
        points
    }
}

fn point(files: &MemoryFileSystem, witness: Option<&Witness>, call: String) -> Point {
    let (files, moment) = match witness {
        Some(witness) => witness.look(files),
        None => (files.crash_clone(0, CrashKeep::Everything), Moment::default()),
    };
    Point { files, moment, options: witness.map(Witness::options), call }
}

fn describe(call: &FileCall<'_>) -> String {
    let FileCall { kind, path, offset, length, index } = call;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    format!("call {index}, {kind:?} of {name} at {offset}, {length} bytes")
}
