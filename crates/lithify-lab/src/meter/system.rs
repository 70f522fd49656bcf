//! Counters of the machine and of its block devices: `/proc/stat`, `/sys/block`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::process::keyed_number;

/// CPU time of the machine in clock ticks, all CPUs together, and its context switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTicks {
    /// User, nice, system and interrupt time: the "us+sy" of vmstat.
    pub busy: u64,
    /// Idle, waiting for devices, and stolen by the host.
    pub idle: u64,
    /// The part of `idle` that the host stole.
    pub stolen: u64,
    /// Context switches of the machine.
    pub switches: u64,
}

impl CpuTicks {
    /// The counters now; zeros when the kernel does not tell.
    pub fn now() -> CpuTicks {
        fs::read_to_string("/proc/stat").map_or_else(|_| Self::default(), |text| parse_stat(&text))
    }

    /// The counters less those of `before`.
    pub fn since(&self, before: &CpuTicks) -> CpuTicks {
        CpuTicks {
            busy: self.busy.saturating_sub(before.busy),
            idle: self.idle.saturating_sub(before.idle),
            stolen: self.stolen.saturating_sub(before.stolen),
            switches: self.switches.saturating_sub(before.switches),
        }
    }

    /// Busy time in microseconds.
    pub fn busy_us(&self) -> u64 {
        super::process::ticks_us(self.busy)
    }
}

fn parse_stat(text: &str) -> CpuTicks {
    // cpu user nice system idle iowait irq softirq steal guest guest_nice; guests are in user.
    let ticks: Vec<u64> = text
        .lines()
        .find_map(|line| line.strip_prefix("cpu "))
        .unwrap_or_default()
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let tick = |index: usize| ticks.get(index).copied().unwrap_or(0);
    CpuTicks {
        busy: tick(0) + tick(1) + tick(2) + tick(5) + tick(6),
        idle: tick(3) + tick(4) + tick(7),
        stolen: tick(7),
        switches: keyed_number(text, "ctxt ").unwrap_or(0),
    }
}

/// Counters of a block device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCounters {
    /// Reads that completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes that completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl DeviceCounters {
    /// The counters less those of `before`.
    pub fn since(&self, before: &DeviceCounters) -> DeviceCounters {
        DeviceCounters {
            reads: self.reads.saturating_sub(before.reads),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            writes: self.writes.saturating_sub(before.writes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
        }
    }
}

/// The sector of the kernel's counters, whatever the device's own is.
const SECTOR_BYTES: u64 = 512;

fn parse_device(text: &str) -> Option<DeviceCounters> {
    let fields: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    Some(DeviceCounters {
        reads: *fields.first()?,
        read_bytes: *fields.get(2)? * SECTOR_BYTES,
        writes: *fields.get(4)?,
        written_bytes: *fields.get(6)? * SECTOR_BYTES,
    })
}

/// What the innermost mount above `directory` was mounted from.
fn mount_source(mounts: &str, directory: &Path) -> Option<String> {
    let mounted = mounts.lines().filter_map(|line| {
        let (source, rest) = line.split_once(' ')?;
        let (point, _) = rest.split_once(' ')?;
        directory.starts_with(point).then_some((point.len(), source))
    });
    // Of two mounts at one point the later one is seen.
    mounted.max_by_key(|(length, _)| *length).map(|(_, source)| source.to_owned())
}

/// A block device with counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name in `/sys/block` (a partition's own name).
    pub name: String,
    statistics: PathBuf,
}

impl Device {
    /// The device that holds `directory`.
    ///
    /// # Errors
    /// In words: why there are no counters (a file system without a block device of its own).
    pub fn of(directory: &Path) -> Result<Device, String> {
        let number = fs::metadata(directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?
            .dev();
        let (major, minor) = (nix::sys::stat::major(number), nix::sys::stat::minor(number));
        let link = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        // Some file systems (btrfs) have numbers of their own instead of their device's.
        let of_mount = || {
            let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
            let source = mount_source(&mounts, &fs::canonicalize(directory).ok()?)?;
            let name = source.strip_prefix("/dev/")?;
            fs::canonicalize(Path::new("/sys/class/block").join(name)).ok()
        };
        let target = fs::canonicalize(&link).ok().or_else(of_mount).ok_or_else(|| {
            format!("the file system of {} is on no block device", directory.display())
        })?;
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let device = Device { name, statistics: target.join("stat") };
        match device.counters() {
            Some(_) => Ok(device),
            None => Err(format!("{} cannot be read", device.statistics.display())),
        }
    }

    /// Its counters now.
    pub fn counters(&self) -> Option<DeviceCounters> {
        parse_device(&fs::read_to_string(&self.statistics).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "/dev/a / ext4 rw 0 0\n/dev/loop3 /data/x btrfs rw 0 0\n/dev/b /data ext4 rw";
        let source = |path: &str| mount_source(mounts, Path::new(path));
        assert_eq!(source("/data/x/y").as_deref(), Some("/dev/loop3"));
        assert_eq!(source("/data/xy").as_deref(), Some("/dev/b"));
        assert_eq!(source("/other").as_deref(), Some("/dev/a"));
        assert_eq!(mount_source("", Path::new("/")), None);
    }

    #[test]
    fn fields_of_the_kernel_files() {
        let ticks = parse_stat(
            "cpu  100 20 30 4000 50 6 7 8 9 10\ncpu0 1 2 3 4\nintr 5\nctxt 308440\nbtime 1\n",
        );
        assert_eq!(ticks, CpuTicks { busy: 163, idle: 4058, stolen: 8, switches: 308_440 });
        assert_eq!(parse_stat(""), CpuTicks::default());
        let device = parse_device("  11 22 33 44 55 66 77 88 0 1 2 3 4 5 6 7 8");
        let expected =
            DeviceCounters { reads: 11, read_bytes: 33 * 512, writes: 55, written_bytes: 77 * 512 };
        assert_eq!(device, Some(expected));
        assert_eq!(parse_device("1 2 3"), None);
    }

    #[test]
    fn a_file_system_without_a_device_says_so() {
        let error = Device::of(Path::new("/proc")).expect_err("has no device");
        assert!(error.contains("/proc"), "{error}");
        assert!(Device::of(Path::new("/no such directory")).is_err());
    }
}
