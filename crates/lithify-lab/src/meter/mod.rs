//! Meters: what a phase cost the processes, the machine and the device.
//!
//! Owns: reading `/proc`, `/sys/block` and getrusage before and after a phase and the difference
//! ([`Meter`], [`PhaseUsage`]); the size of a directory on disk ([`space`]); whether throughput was
//! steady ([`steady`]); the description of the machine ([`machine`]).
//!
//! An engine may do its work in processes of its own: a meter that watches them ([`Meter::watch`])
//! adds them to this process, and says beside the sums what is theirs.
//!
//! Promises: readings are plain data that serialises; a counter that the machine does not offer
//! is `None` or zero and leaves a note, never an error. Reading costs a few hundred microseconds,
//! so it happens at the ends of a phase only.
//!
//! Threads: a [`Meter`] may be used from any one thread. Linux only: elsewhere every counter is
//! missing. Does not know engines, workloads or arms.

pub mod machine;
pub mod page_cache;
pub mod process;
pub mod space;
pub mod steady;
pub mod system;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use process::{ProcessCpu, ProcessIo, ProcessMemory};
use space::DirectorySize;
use system::{CpuTicks, DeviceCounters};

/// A directory that has not changed for so long is taken to stay as it is: logs of Lithify rest within two
/// seconds of their last write.
const QUIET: Duration = Duration::from_millis(2_500);

/// Seconds since 1970.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Reads the counters of this process and of those it watches, of the machine, and of the device
/// under one directory.
#[derive(Clone, Debug)]
pub struct Meter {
    directory: PathBuf,
    processes: Vec<u32>,
    device: Option<system::Device>,
    file_system: Option<OwnFileSystem>,
    notes: Vec<String>,
}

/// A file system that holds the data of a meter and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFileSystem {
    /// Where it is mounted.
    pub directory: PathBuf,
    /// What it uses without the data, bytes.
    pub empty_bytes: u64,
    /// The process that serves it, if it is one in user space: it is watched, too.
    pub process_id: Option<u32>,
    /// The pool of ZFS that it is, if it is one.
    pub pool: Option<String>,
}

impl OwnFileSystem {
    /// Writes out what is dirty, so that the file system's own account has it. Returns whether it
    /// worked.
    pub fn sync(&self) -> bool {
        let synced = space::sync_file_system(&self.directory);
        self.pool.as_deref().is_none_or(space::commit_pool) && synced
    }

    /// Bytes that the data take, by the file system's own account.
    pub fn used_bytes(&self) -> u64 {
        space::occupied_bytes(&self.directory).saturating_sub(self.empty_bytes)
    }
}

/// All counters at one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    at: Instant,
    cpu: ProcessCpu,
    io: ProcessIo,
    /// Of the watched processes; zeros when there are none.
    servers: (ProcessCpu, ProcessIo),
    machine: CpuTicks,
    device: Option<DeviceCounters>,
}

/// What a phase used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseUsage {
    /// Wall time between the two readings, seconds.
    pub seconds: f64,
    /// CPU of this process and of the engine's own ones, microseconds in user and system mode, and
    /// their context switches.
    pub process_cpu: ProcessCpu,
    /// What they read and wrote.
    pub process_io: ProcessIo,
    /// The part of the engine's own processes; `None` when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<ServerUsage>,
    /// CPU of the whole machine and its context switches.
    pub machine: CpuTicks,
    /// CPU that other processes used, microseconds.
    pub foreign_cpu_us: u64,
    /// What the device under the data did, other processes included; `None` when it has no
    /// counters.
    pub device: Option<DeviceCounters>,
    /// Resident and virtual memory of these processes at the end.
    pub memory: ProcessMemory,
    /// The data directory at the end.
    pub directory: DirectorySize,
    /// What the data take at the end by the account of their file system, which sees what it
    /// compresses itself; `None` when it has other data, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system_bytes: Option<u64>,
    /// Counters that are missing, and why.
    pub notes: Vec<String>,
}

/// What the processes used in which an engine does its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerUsage {
    /// CPU in steps of a clock tick, and context switches of threads that have not ended.
    pub cpu: ProcessCpu,
    /// What they read and wrote.
    pub io: ProcessIo,
    /// Their memory at the end.
    pub memory: ProcessMemory,
}

/// What was read and written between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoUsage {
    /// By this process and those of the engine.
    pub process: ProcessIo,
    /// By the device, for everybody; `None` when it has no counters.
    pub device: Option<DeviceCounters>,
}

impl IoUsage {
    /// Device reads for this process. A device tells the bytes by process and the reads for
    /// everybody: its reads are divided by the bytes. `None` without counters of the device.
    pub fn device_reads(&self) -> Option<f64> {
        let device = self.device?;
        if device.reads == 0 || device.read_bytes == 0 {
            return Some(0.0);
        }
        let share = self.process.read_device_bytes as f64 / device.read_bytes as f64;
        Some(device.reads as f64 * share.min(1.0))
    }

    /// Share of the bytes that this process asked for which came from the device, and not from
    /// the page cache. `None` when it read nothing.
    pub fn device_share(&self) -> Option<f64> {
        let asked = self.process.read_syscall_bytes;
        (asked > 0).then(|| self.process.read_device_bytes as f64 / asked as f64)
    }
}

impl Reading {
    /// What was read and written since `before`.
    pub fn io_since(&self, before: &Reading) -> IoUsage {
        IoUsage {
            process: self.io.since(&before.io).plus(&self.servers.1.since(&before.servers.1)),
            device: match (&self.device, &before.device) {
                (Some(now), Some(before)) => Some(now.since(before)),
                _ => None,
            },
        }
    }
}

impl PhaseUsage {
    /// What was read and written.
    pub fn io(&self) -> IoUsage {
        IoUsage { process: self.process_io, device: self.device }
    }

    /// Busy percent of the whole machine over the phase.
    pub fn busy_percent(&self) -> f64 {
        let total = self.machine.busy + self.machine.idle;
        if total == 0 { 0.0 } else { 100.0 * self.machine.busy as f64 / total as f64 }
    }

    /// Other processes' CPU as percent of the whole machine.
    pub fn foreign_percent(&self, cpus: usize) -> f64 {
        let capacity_us = self.seconds * 1e6 * cpus.max(1) as f64;
        if capacity_us <= 0.0 { 0.0 } else { 100.0 * self.foreign_cpu_us as f64 / capacity_us }
    }
}

impl Meter {
    /// A meter of this process and of the device that holds `directory`, which must exist.
    pub fn new(directory: &Path) -> Meter {
        let mut notes = Vec::new();
        let device = match system::Device::of(directory) {
            Ok(device) => Some(device),
            Err(why) => {
                notes.push(format!("no device counters: {why}"));
                None
            }
        };
        Meter {
            directory: directory.to_owned(),
            processes: Vec::new(),
            device,
            file_system: None,
            notes,
        }
    }

    /// Says that the data have a file system for themselves.
    pub fn own_file_system(&mut self, file_system: OwnFileSystem) {
        self.file_system = Some(file_system);
    }

    /// The processes that count beside this one.
    fn others(&self) -> impl Iterator<Item = u32> {
        let of_files = self.file_system.iter().filter_map(|own| own.process_id);
        self.processes.iter().copied().chain(of_files)
    }

    /// The directory now, and what it takes by the account of a file system of its own.
    pub fn sizes(&self) -> (DirectorySize, Option<u64>) {
        let used = self.file_system.as_ref().map(OwnFileSystem::used_bytes);
        (space::directory_size(&self.directory), used)
    }

    /// From now on counts these processes too, and no others: those in which the engine works.
    pub fn watch(&mut self, processes: Vec<u32>) {
        self.processes = processes;
    }

    /// Starts the count of the most memory that was ever resident anew. Where the kernel does not
    /// do that, it is the most of all phases so far.
    pub fn reset_resident_max(&self) {
        for pid in self.others().chain([std::process::id()]) {
            process::reset_resident_max(pid);
        }
    }

    /// The device under the directory, when it was found.
    pub fn device_name(&self) -> Option<&str> {
        self.device.as_ref().map(|device| device.name.as_str())
    }

    /// Hands the directory's file system to the device, so that what comes later is not charged
    /// for what came before. Failure shows in the device counters only, so it is not an error.
    pub fn sync(&self) -> bool {
        match &self.file_system {
            Some(own) => own.sync(),
            None => space::sync_file_system(&self.directory),
        }
    }

    /// Waits until the directory's size has not changed for a while: engines give back what their logs
    /// reserved, and remove files that nobody reads any more, some time after their last write. After a phase
    /// of a few seconds it waits for less, because nobody compares sizes of that.
    pub fn wait_for_quiet_directory(&self, phase: Duration) {
        space::wait_until_quiet(&self.directory, (phase / 2).min(QUIET));
    }

    /// Reads all counters.
    pub fn read(&self) -> Reading {
        Reading {
            at: Instant::now(),
            cpu: ProcessCpu::of_self(),
            io: ProcessIo::of_self(),
            servers: self.others().fold(Default::default(), |(cpu, io), pid| {
                (ProcessCpu::of(pid).plus(&cpu), ProcessIo::of(pid).plus(&io))
            }),
            machine: CpuTicks::now(),
            device: self.device.as_ref().and_then(system::Device::counters),
        }
    }

    /// What was used between `before` and `after`. Memory and directory are read now; device
    /// counters are read now too, so that a sync after the phase is charged to it.
    pub fn usage(&self, before: &Reading, after: &Reading) -> PhaseUsage {
        let servers = self.others().next().is_some().then(|| ServerUsage {
            cpu: after.servers.0.since(&before.servers.0),
            io: after.servers.1.since(&before.servers.1),
            memory: self
                .others()
                .fold(ProcessMemory::default(), |sum, pid| sum.plus(&ProcessMemory::of(pid))),
        });
        let theirs = servers.unwrap_or_default();
        let process_cpu = after.cpu.since(&before.cpu).plus(&theirs.cpu);
        let machine = after.machine.since(&before.machine);
        let device_now = self.device.as_ref().and_then(system::Device::counters);
        let busy_us = machine.busy_us();
        let (directory, file_system_bytes) = self.sizes();
        PhaseUsage {
            seconds: after.at.duration_since(before.at).as_secs_f64(),
            foreign_cpu_us: busy_us.saturating_sub(process_cpu.total_us()),
            process_cpu,
            process_io: after.io.since(&before.io).plus(&theirs.io),
            servers,
            machine,
            device: match (&device_now, &before.device) {
                (Some(now), Some(before)) => Some(now.since(before)),
                _ => None,
            },
            memory: ProcessMemory::of_self().plus(&theirs.memory),
            directory,
            file_system_bytes,
            notes: self.notes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_charged_for_what_it_does() {
        let directory = tempfile::tempdir().expect("a directory");
        let meter = Meter::new(directory.path());
        let before = meter.read();
        let mut sum = 0u64;
        while ProcessCpu::of_self().since(&before.cpu).total_us() < 30_000 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        std::fs::write(directory.path().join("file"), vec![7u8; 1 << 20]).expect("writes");
        let after = meter.read();
        meter.sync();
        let usage = meter.usage(&before, &after);
        assert!(usage.process_cpu.total_us() >= 30_000, "{usage:?}");
        assert!(usage.process_io.written_syscall_bytes >= 1 << 20, "{usage:?}");
        assert_eq!(usage.directory.apparent_bytes, 1 << 20);
        assert!(usage.memory.resident_bytes > 0 && usage.seconds > 0.0);
        let again: PhaseUsage =
            serde_json::from_str(&serde_json::to_string(&usage).expect("to JSON")).expect("back");
        assert_eq!(again.process_cpu, usage.process_cpu);
    }

    #[test]
    fn a_watched_process_counts_and_is_told_apart() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut meter = Meter::new(directory.path());
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read line; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; read line"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("starts");
        meter.watch(vec![child.id()]);
        let before = meter.read();
        let mut input = child.stdin.take().expect("is piped");
        std::io::Write::write_all(&mut input, b"go\n").expect("reads");
        while ProcessCpu::of(child.id()).total_us() < 30_000 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let usage = meter.usage(&before, &meter.read());
        let theirs = usage.servers.expect("is watched");
        assert!(theirs.cpu.total_us() >= 20_000 && theirs.memory.resident_bytes > 0, "{theirs:?}");
        assert!(usage.process_cpu.total_us() >= theirs.cpu.total_us());
        assert!(usage.memory.resident_bytes > theirs.memory.resident_bytes);
        drop(input);
        child.wait().expect("ends");
        meter.watch(Vec::new());
        assert_eq!(meter.usage(&before, &meter.read()).servers, None);
    }

    #[test]
    fn a_file_system_of_its_own_tells_what_the_data_take() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut meter = Meter::new(directory.path());
        assert_eq!(meter.sizes().1, None);
        let occupied = space::occupied_bytes(directory.path());
        let mut own = OwnFileSystem {
            directory: directory.path().to_owned(),
            empty_bytes: occupied / 2,
            process_id: Some(std::process::id()),
            pool: None,
        };
        meter.own_file_system(own.clone());
        assert!(meter.sizes().1.is_some_and(|bytes| bytes > 0));
        let before = meter.read();
        let usage = meter.usage(&before, &meter.read());
        assert!(usage.file_system_bytes.is_some());
        assert!(usage.servers.is_some_and(|theirs| theirs.memory.resident_bytes > 0));
        own.empty_bytes = u64::MAX;
        meter.own_file_system(own);
        assert_eq!(meter.sizes().1, Some(0), "never less than nothing");
    }

    #[test]
    fn reads_of_a_shared_device_go_by_bytes() {
        let process = ProcessIo {
            read_syscall_bytes: 8_000,
            read_device_bytes: 2_000,
            ..ProcessIo::default()
        };
        let device = DeviceCounters { reads: 30, read_bytes: 6_000, ..DeviceCounters::default() };
        let usage = IoUsage { process, device: Some(device) };
        assert_eq!(usage.device_reads(), Some(10.0));
        assert_eq!(usage.device_share(), Some(0.25));
        // Counters are not read at the same moment: never more than all of them.
        let device = DeviceCounters { read_bytes: 1_000, ..device };
        assert_eq!(IoUsage { process, device: Some(device) }.device_reads(), Some(30.0));
        assert_eq!(IoUsage { process, device: None }.device_reads(), None);
        let quiet = IoUsage { device: Some(DeviceCounters::default()), ..IoUsage::default() };
        assert_eq!((quiet.device_reads(), quiet.device_share()), (Some(0.0), None));
    }

    #[test]
    fn percentages() {
        let usage = PhaseUsage {
            seconds: 10.0,
            machine: CpuTicks { busy: 300, idle: 700, ..CpuTicks::default() },
            foreign_cpu_us: 2_000_000,
            ..PhaseUsage::default()
        };
        assert_eq!(usage.busy_percent(), 30.0);
        assert_eq!(usage.foreign_percent(2), 10.0);
        assert_eq!(PhaseUsage::default().busy_percent(), 0.0);
        assert_eq!(PhaseUsage::default().foreign_percent(2), 0.0);
    }
}
