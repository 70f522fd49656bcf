//! A cut at a chosen file-system call: the disk is cloned as the crash leaves it, and from then
//! on every call fails, so that the life that was cut ends soon.

use lithify::fs::{CrashKeep, FileCall, MemoryFileSystem};
use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

struct Armed {
    /// Calls until the cut; negative when it is over.
    remaining: AtomicI64,
    image: Mutex<Option<MemoryFileSystem>>,
    description: Mutex<String>,
}

/// A cut that is about to happen on one disk. Ends with [`Cut::take`].
pub struct Cut {
    files: MemoryFileSystem,
    armed: Arc<Armed>,
    keep: CrashKeep,
    seed: u64,
}

impl Cut {
    /// Cuts before the call that comes after so many others.
    pub fn after_calls(files: &MemoryFileSystem, calls: u64, keep: CrashKeep, seed: u64) -> Cut {
        let armed = Arc::new(Armed {
            remaining: AtomicI64::new(calls as i64),
            image: Mutex::default(),
            description: Mutex::default(),
        });
        let (disk, shared) = (files.clone(), Arc::clone(&armed));
        files.set_fault(Box::new(move |call: &FileCall<'_>| {
            let remaining = shared.remaining.fetch_sub(1, Ordering::SeqCst);
            if remaining > 0 {
                return None;
            }
            if remaining == 0 {
                *shared.image.lock().unwrap() = Some(disk.crash_clone(seed, keep));
                *shared.description.lock().unwrap() =
                    format!("{:?} of {} at {}", call.kind, call.path.display(), call.offset);
            }
            Some(io::Error::other("the power is off"))
        }));
        Cut { files: files.clone(), armed, keep, seed }
    }

    /// Cuts now if it has not happened yet; gives the image and the call that was cut.
    pub fn take(self) -> (MemoryFileSystem, String) {
        // The hook holds the disk that holds the hook.
        self.files.clear_fault();
        match self.armed.image.lock().unwrap().take() {
            Some(image) => (image, self.armed.description.lock().unwrap().clone()),
            None => (self.files.crash_clone(self.seed, self.keep), "no call".to_string()),
        }
    }
}
