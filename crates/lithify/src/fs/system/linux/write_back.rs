//! The write-back hint, which has no safe wrapper.
#![expect(unsafe_code, reason = "a system call without a safe wrapper")]

use std::fs::File;
use std::os::fd::AsRawFd;

/// Starts writing a range back, without waiting. Whether it worked does not matter: it is a
/// hint, and the sync that promises something reports the errors.
pub(in super::super) fn start_write_back(file: &File, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (i64::try_from(offset), i64::try_from(length)) else {
        return;
    };
    // SAFETY: the descriptor is open for the call, and the call takes no pointers.
    let _ = unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE)
    };
}
