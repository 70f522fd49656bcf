//! The processor's tick counter, whatever the system.
#![cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    expect(unsafe_code, reason = "instructions without a safe wrapper")
)]

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
    super::platform::monotonic_ns()
}
