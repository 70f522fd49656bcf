//! Counters of this process: getrusage, `/proc/self/io`, `/proc/self/status`.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

/// CPU and context switches of this process, all threads, ended ones too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCpu {
    /// In user mode, microseconds.
    pub user_us: u64,
    /// In the kernel, microseconds.
    pub system_us: u64,
    /// Context switches because a thread waited.
    pub voluntary_switches: u64,
    /// Context switches because another thread was due.
    pub involuntary_switches: u64,
    /// Page faults that no device had to be asked for.
    #[serde(default)]
    pub minor_faults: u64,
    /// Page faults that read from a device.
    #[serde(default)]
    pub major_faults: u64,
}

impl ProcessCpu {
    /// The counters now.
    pub fn of_self() -> ProcessCpu {
        let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return ProcessCpu::default() };
        ProcessCpu {
            user_us: unsigned(usage.user_time().num_microseconds()),
            system_us: unsigned(usage.system_time().num_microseconds()),
            voluntary_switches: unsigned(usage.voluntary_context_switches()),
            involuntary_switches: unsigned(usage.involuntary_context_switches()),
            minor_faults: unsigned(usage.minor_page_faults()),
            major_faults: unsigned(usage.major_page_faults()),
        }
    }

    /// User and system time, microseconds.
    pub fn total_us(&self) -> u64 {
        self.user_us + self.system_us
    }

    /// The counters less those of `before`.
    pub fn since(&self, before: &ProcessCpu) -> ProcessCpu {
        ProcessCpu {
            user_us: self.user_us.saturating_sub(before.user_us),
            system_us: self.system_us.saturating_sub(before.system_us),
            voluntary_switches: self.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(before.involuntary_switches),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
        }
    }
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// What this process read and wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIo {
    /// Bytes asked for by read calls, page cache hits included.
    pub read_syscall_bytes: u64,
    /// Bytes handed over by write calls.
    pub written_syscall_bytes: u64,
    /// Read calls.
    pub read_syscalls: u64,
    /// Write calls.
    pub write_syscalls: u64,
    /// Bytes that came from the device for this process.
    pub read_device_bytes: u64,
    /// Bytes that this process made dirty, less those that were truncated before they were
    /// written.
    pub written_device_bytes: u64,
}

impl ProcessIo {
    /// The counters now; zeros when the kernel does not tell.
    pub fn of_self() -> ProcessIo {
        std::fs::read_to_string("/proc/self/io").map_or_else(|_| Self::default(), |t| parse_io(&t))
    }

    /// The counters less those of `before`.
    pub fn since(&self, before: &ProcessIo) -> ProcessIo {
        ProcessIo {
            read_syscall_bytes: self.read_syscall_bytes.saturating_sub(before.read_syscall_bytes),
            written_syscall_bytes: self
                .written_syscall_bytes
                .saturating_sub(before.written_syscall_bytes),
            read_syscalls: self.read_syscalls.saturating_sub(before.read_syscalls),
            write_syscalls: self.write_syscalls.saturating_sub(before.write_syscalls),
            read_device_bytes: self.read_device_bytes.saturating_sub(before.read_device_bytes),
            written_device_bytes: self
                .written_device_bytes
                .saturating_sub(before.written_device_bytes),
        }
    }
}

fn parse_io(text: &str) -> ProcessIo {
    let field = |name| keyed_number(text, name).unwrap_or(0);
    ProcessIo {
        read_syscall_bytes: field("rchar:"),
        written_syscall_bytes: field("wchar:"),
        read_syscalls: field("syscr:"),
        write_syscalls: field("syscw:"),
        read_device_bytes: field("read_bytes:"),
        written_device_bytes: field("write_bytes:").saturating_sub(field("cancelled_write_bytes:")),
    }
}

/// Memory of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMemory {
    /// Resident now, bytes.
    pub resident_bytes: u64,
    /// Most that was ever resident, bytes.
    pub resident_max_bytes: u64,
    /// Virtual size now, bytes.
    pub virtual_bytes: u64,
}

impl ProcessMemory {
    /// The sizes now; zeros when the kernel does not tell.
    pub fn of_self() -> ProcessMemory {
        std::fs::read_to_string("/proc/self/status")
            .map_or_else(|_| Self::default(), |text| parse_memory(&text))
    }
}

/// Starts the count of the most that was ever resident anew, from what is resident now. Returns
/// whether the kernel does that.
pub fn reset_resident_max() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Gives memory that was freed back to the system, so that what the driver itself used between two
/// phases is not counted as the engine's. Nothing happens where the allocator is not glibc's.
#[cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "a call of the C library"))]
pub fn release_free_memory() {
    // SAFETY: malloc_trim may be called at any time by any thread; it touches free memory only.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// CPU of the calling thread since it began, microseconds; 0 when the kernel does not tell.
pub fn thread_cpu_us() -> u64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| {
        unsigned(usage.user_time().num_microseconds())
            + unsigned(usage.system_time().num_microseconds())
    })
}

fn parse_memory(text: &str) -> ProcessMemory {
    let bytes = |name| keyed_number(text, name).unwrap_or(0) * 1024;
    ProcessMemory {
        resident_bytes: bytes("VmRSS:"),
        resident_max_bytes: bytes("VmHWM:"),
        virtual_bytes: bytes("VmSize:"),
    }
}

/// The number behind `name` at the start of a line.
pub(crate) fn keyed_number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_resident_can_be_counted_anew() {
        let big = std::hint::black_box(vec![1u8; 64 << 20]);
        let most = ProcessMemory::of_self().resident_max_bytes;
        drop(big);
        if reset_resident_max() {
            let anew = ProcessMemory::of_self().resident_max_bytes;
            assert!(anew < most, "{anew} is not below {most}");
        }
        assert!(thread_cpu_us() <= ProcessCpu::of_self().total_us());
    }

    #[test]
    fn fields_of_the_kernel_files() {
        let io = parse_io(
            "rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 50\nwrite_bytes: 60\n\
             cancelled_write_bytes: 15\n",
        );
        assert_eq!((io.read_syscall_bytes, io.written_syscall_bytes), (10, 20));
        assert_eq!((io.read_syscalls, io.write_syscalls), (3, 4));
        assert_eq!((io.read_device_bytes, io.written_device_bytes), (50, 45));
        let memory = parse_memory("VmSize:\t 300 kB\nVmHWM:\t 200 kB\nVmRSS:\t 100 kB\n");
        assert_eq!(memory.resident_bytes, 100 * 1024);
        assert_eq!(memory.resident_max_bytes, 200 * 1024);
        assert_eq!(memory.virtual_bytes, 300 * 1024);
        assert_eq!(parse_io("what is this"), ProcessIo::default());
    }
}
