//! The calls that have no safe wrapper: the tick counter and the write-back hint. The only unsafe
//! code of this room.
#![expect(unsafe_code, reason = "instructions and a system call without a safe wrapper")]

use std::os::fd::{AsRawFd, BorrowedFd};

/// The processor's tick counter; rises at a constant rate that nobody needs to know.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn ticks() -> u64 {
    // SAFETY: every x86_64 processor has the instruction, and it touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The processor's tick counter; rises at a constant rate that nobody needs to know.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(super) fn ticks() -> u64 {
    let count: u64;
    // SAFETY: reading the virtual counter is allowed at user level and touches no memory.
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack));
    }
    count
}

/// Nanoseconds of the monotonic clock, where there is no counter to be read cheaply.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn ticks() -> u64 {
    super::environment::monotonic_ns()
}

/// Starts writing a range back, without waiting. Whether it worked does not matter: it is a
/// hint, and the sync that promises something reports the errors.
pub(super) fn start_write_back(file: BorrowedFd<'_>, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (i64::try_from(offset), i64::try_from(length)) else {
        return;
    };
    // SAFETY: the descriptor is open for the call, and the call takes no pointers.
    let _ = unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE)
    };
}
