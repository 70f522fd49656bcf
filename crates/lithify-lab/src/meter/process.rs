//! Counters of this process (getrusage, `/proc/self`) and of others that work for it (`/proc/PID`).

use std::fs;

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

    /// The counters of another process now, in steps of a clock tick; zeros when it is gone. Its
    /// context switches are those of the threads that it has.
    pub fn of(pid: u32) -> ProcessCpu {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            return ProcessCpu::default();
        };
        let mut cpu = parse_cpu(&stat);
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            let switches = |name| keyed_number(&status, name).unwrap_or(0);
            cpu.voluntary_switches += switches("voluntary_ctxt_switches:");
            cpu.involuntary_switches += switches("nonvoluntary_ctxt_switches:");
        }
        cpu
    }

    /// User and system time, microseconds.
    pub fn total_us(&self) -> u64 {
        self.user_us + self.system_us
    }

    /// These and those of `other`.
    #[must_use]
    pub fn plus(&self, other: &ProcessCpu) -> ProcessCpu {
        ProcessCpu {
            user_us: self.user_us + other.user_us,
            system_us: self.system_us + other.system_us,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
            minor_faults: self.minor_faults + other.minor_faults,
            major_faults: self.major_faults + other.major_faults,
        }
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

/// CPU and page faults in the text of `/proc/PID/stat`.
fn parse_cpu(stat: &str) -> ProcessCpu {
    // The name, in parentheses, may hold anything. Behind it the first field is number 3; faults are
    // fields 10 and 12, user and system time 14 and 15.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).and_then(|word| word.parse().ok());
    let number = |number| field(number).unwrap_or(0);
    ProcessCpu {
        user_us: ticks_us(number(14)),
        system_us: ticks_us(number(15)),
        minor_faults: number(10),
        major_faults: number(12),
        ..ProcessCpu::default()
    }
}

/// Clock ticks of the kernel in microseconds.
pub(super) fn ticks_us(ticks: u64) -> u64 {
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .and_then(|ticks| u64::try_from(ticks).ok())
        .filter(|ticks| *ticks > 0)
        .unwrap_or(100);
    ticks * 1_000_000 / per_second
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
        ProcessIo::of(std::process::id())
    }

    /// Those of any process; zeros when the kernel does not tell.
    pub fn of(pid: u32) -> ProcessIo {
        fs::read_to_string(format!("/proc/{pid}/io"))
            .map_or_else(|_| Self::default(), |text| parse_io(&text))
    }

    /// These and those of `other`.
    #[must_use]
    pub fn plus(&self, other: &ProcessIo) -> ProcessIo {
        ProcessIo {
            read_syscall_bytes: self.read_syscall_bytes + other.read_syscall_bytes,
            written_syscall_bytes: self.written_syscall_bytes + other.written_syscall_bytes,
            read_syscalls: self.read_syscalls + other.read_syscalls,
            write_syscalls: self.write_syscalls + other.write_syscalls,
            read_device_bytes: self.read_device_bytes + other.read_device_bytes,
            written_device_bytes: self.written_device_bytes + other.written_device_bytes,
        }
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
        ProcessMemory::of(std::process::id())
    }

    /// Those of any process; zeros when the kernel does not tell.
    pub fn of(pid: u32) -> ProcessMemory {
        fs::read_to_string(format!("/proc/{pid}/status"))
            .map_or_else(|_| Self::default(), |text| parse_memory(&text))
    }

    /// These and those of `other`. Most that was ever resident need not have been so at the same
    /// time: the sum is an upper bound.
    #[must_use]
    pub fn plus(&self, other: &ProcessMemory) -> ProcessMemory {
        ProcessMemory {
            resident_bytes: self.resident_bytes + other.resident_bytes,
            resident_max_bytes: self.resident_max_bytes + other.resident_max_bytes,
            virtual_bytes: self.virtual_bytes + other.virtual_bytes,
        }
    }
}

/// Starts the count of the most that was ever resident anew, from what is resident now. Returns
/// whether the kernel does that for this process.
pub fn reset_resident_max(pid: u32) -> bool {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").is_ok()
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
        if reset_resident_max(std::process::id()) {
            let anew = ProcessMemory::of_self().resident_max_bytes;
            assert!(anew < most, "{anew} is not below {most}");
        }
        assert!(thread_cpu_us() <= ProcessCpu::of_self().total_us());
    }

    #[test]
    fn another_process_is_counted_until_it_is_gone() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; read line"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("starts");
        let pid = child.id();
        while ProcessCpu::of(pid).total_us() < 20_000 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(ProcessMemory::of(pid).resident_bytes > 0);
        drop(child.stdin.take());
        child.wait().expect("ends");
        assert_eq!(ProcessCpu::of(pid), ProcessCpu::default());
        assert_eq!(ProcessIo::of(pid), ProcessIo::default());
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 200 50 9 9 20 0";
        let cpu = parse_cpu(stat);
        assert_eq!((cpu.user_us, cpu.system_us), (ticks_us(200), ticks_us(50)));
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
