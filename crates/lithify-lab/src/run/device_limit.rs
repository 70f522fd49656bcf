//! A slower device than the one that is there, for the process of one cell: emulated by a control
//! group of the block layer (`blkio.throttle`, version 1); for Lithify alone, where no group can be
//! made, by its own files, read past the page cache ([`DeviceLimit::by_files`]).
//!
//! 1. [`DeviceController::find`] looks for the controller and for the disk under the data; a
//!    partition is throttled as the disk that it is part of.
//! 2. The parent makes a group with the rates for a cell, the cell's process enters it ([`join`])
//!    before it opens the engine, and the group goes when it is dropped: as with memory.
//!
//! What is throttled: reads that the page cache cannot answer, direct and synced writes. What is
//! not: the kernel writes buffered pages back on its own account, and in version 1 charges nobody
//! for them. So an engine that writes through the page cache has its writes for free, and one that
//! writes directly or syncs has not; reports say so. Version 2 charges write-back too and is not
//! used: one group cannot be in two places there.
//!
//! Threads: a [`DeviceGroup`] belongs to the parent's thread; [`join`] may be called from any.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::RunError;
use super::control_group::{self, Group, mount_point, own_group};
use crate::adapter::EngineName;
use crate::adapter::settings::EngineSettings;
use crate::engines::registry::SLOW_FILES;
use crate::experiment::{DeviceRates, DeviceSpeed};

/// How the device of a cell was slowed; part of its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLimit {
    /// To what.
    pub speed: DeviceSpeed,
    /// The disk that a group slows, `254:0`; `None` where the engine slows its own files.
    pub disk: Option<String>,
}

/// A limit on the device of a cell's process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellDevice {
    /// How fast, by what.
    pub limit: DeviceLimit,
    /// Directory of the control group, which the process joins before it opens the engine; `None`
    /// where the engine slows its own files.
    pub group: Option<PathBuf>,
}

impl DeviceLimit {
    /// The engine's own files are slowed, when it can do that; why there is no group goes on as
    /// the error otherwise.
    ///
    /// # Errors
    /// `why`, when the engine slows no files.
    pub fn by_files(
        engine: &EngineName,
        speed: DeviceSpeed,
        why: RunError,
    ) -> Result<DeviceLimit, RunError> {
        if *engine == EngineName::lithify() {
            return Ok(DeviceLimit { speed, disk: None });
        }
        Err(why)
    }

    /// The settings with which the engine of a cell is opened under this limit.
    pub fn settings(&self, settings: &EngineSettings) -> EngineSettings {
        let mut settings = settings.clone();
        if self.disk.is_none() {
            // What the page cache answers would wait too.
            settings.direct_reads = true;
            settings.options.insert(SLOW_FILES.to_owned(), self.speed.name().to_owned());
        }
        settings
    }

    /// What was emulated and how, in words.
    pub fn describe(&self) -> String {
        let rates = self.speed.rates().map_or_else(String::new, |rates| {
            let bytes = rates
                .bytes
                .map_or_else(String::new, |bytes| format!(" and {} MB/s", bytes / 1_000_000));
            format!("{} operations/s{bytes}, ", rates.operations)
        });
        let how = match &self.disk {
            Some(disk) => format!(
                "emulated by a block control group on disk {disk}; write-back of buffered pages is \
                 not held back"
            ),
            None => "emulated by the engine's own files: direct reads, and writes when they are \
                     synced"
                .to_owned(),
        };
        format!("{} ({rates}reads and writes each, {how})", self.speed)
    }
}

/// Where groups can be made that slow a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceController {
    /// The directory that gets a group as a subdirectory.
    place: PathBuf,
    /// The disk, `254:0`.
    disk: String,
}

impl DeviceController {
    /// The controller of this machine for the disk under `directory`.
    ///
    /// # Errors
    /// In words: there is none, or no disk.
    pub fn find(directory: &Path) -> Result<DeviceController, RunError> {
        let read = |path: &str| {
            fs::read_to_string(path).map_err(|error| RunError::io(Path::new(path), error))
        };
        let disk = disk_of(directory).map_err(|why| refusal(&why))?;
        DeviceController::of(&read("/proc/self/mounts")?, &read("/proc/self/cgroup")?, disk)
    }

    fn of(mounts: &str, own_groups: &str, disk: String) -> Result<DeviceController, RunError> {
        let root = mount_point(mounts, "cgroup", "blkio").ok_or_else(|| {
            refusal("no block controller of version 1 is mounted (cgroup, blkio)")
        })?;
        // Below the group of this process, so that a limit on that one holds too.
        let own = root.join(own_group(own_groups, "blkio").trim_start_matches('/'));
        let place = if own.is_dir() { own } else { root };
        Ok(DeviceController { place, disk })
    }

    /// Makes a group that slows the disk. Nothing is in it yet.
    ///
    /// # Errors
    /// In words: the group cannot be made or does not take the rates.
    pub fn create(&self, speed: DeviceSpeed) -> Result<DeviceGroup, RunError> {
        let group = Group::create(&self.place).map_err(|why| refusal(&why))?;
        let limit = DeviceLimit { speed, disk: Some(self.disk.clone()) };
        if let Some(DeviceRates { operations, bytes }) = speed.rates() {
            for way in ["read", "write"] {
                let set = |unit: &str, rate: u64| {
                    let file = format!("blkio.throttle.{way}_{unit}_device");
                    let line = format!("{} {rate}", self.disk);
                    group.set(&file, &line).map_err(|why| refusal(&why))
                };
                set("iops", operations)?;
                bytes.map_or(Ok(()), |bytes| set("bps", bytes))?;
            }
        }
        Ok(DeviceGroup { group, limit })
    }

    /// Removes the groups of processes that are gone. Returns the names of those that would not
    /// go, because a process is still in them.
    pub fn remove_stale(&self) -> Vec<String> {
        control_group::remove_stale(&self.place)
    }
}

fn refusal(why: &str) -> RunError {
    RunError::new(format!(
        "the device cannot be slowed: {why}; run where block control groups of version 1 can be \
         made (as root), or choose arms without device"
    ))
}

/// Number of the disk that holds a directory, `254:0`; of the whole disk for a partition.
fn disk_of(directory: &Path) -> Result<String, String> {
    let number =
        fs::metadata(directory).map_err(|error| format!("{}: {error}", directory.display()))?.dev();
    let (major, minor) = (nix::sys::stat::major(number), nix::sys::stat::minor(number));
    let link = format!("/sys/dev/block/{major}:{minor}");
    let target = fs::canonicalize(&link)
        .map_err(|_| format!("the file system of {} is on no block device", directory.display()))?;
    let disk = match (target.join("partition").exists(), target.parent()) {
        (true, Some(disk)) => disk,
        _ => &target,
    };
    let file = disk.join("dev");
    fs::read_to_string(&file)
        .map(|text| text.trim().to_owned())
        .map_err(|error| format!("{}: {error}", file.display()))
}

/// A group that slows a disk, removed when dropped.
#[derive(Debug)]
pub struct DeviceGroup {
    group: Group,
    limit: DeviceLimit,
}

impl DeviceGroup {
    /// Its directory.
    pub fn path(&self) -> &Path {
        self.group.path()
    }

    /// What it does.
    pub fn limit(&self) -> &DeviceLimit {
        &self.limit
    }
}

/// Puts this process into a group and sees to it that it is there.
///
/// # Errors
/// In words: the group does not take it.
pub fn join(group: &Path) -> Result<(), RunError> {
    control_group::join(group).map_err(|why| refusal(&why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_go_to_the_disk_under_the_own_group() {
        let root = tempfile::tempdir().expect("a directory");
        let mounts = format!("cgroup {} cgroup rw,blkio 0 0\n", root.path().display());
        let find = |own: &str| DeviceController::of(&mounts, own, "254:0".to_owned());
        let top = find("7:blkio:/not there\n").expect("is found");
        assert_eq!(top.place, root.path());
        fs::create_dir(root.path().join("own")).expect("is made");
        let below = find("7:blkio:/own\n").expect("is found");
        assert_eq!(below.place, root.path().join("own"));

        let group = below.create(DeviceSpeed::Disk).expect("is made");
        let file = |group: &DeviceGroup, name: &str| {
            let path = group.path().join(format!("blkio.throttle.{name}_device"));
            fs::read_to_string(path).ok()
        };
        for (name, line) in [
            ("read_iops", "254:0 1200"),
            ("write_iops", "254:0 1200"),
            ("read_bps", "254:0 150000000"),
            ("write_bps", "254:0 150000000"),
        ] {
            assert_eq!(file(&group, name).as_deref(), Some(line));
        }
        let text = group.limit().describe();
        assert!(text.starts_with("disk (1200 operations/s and 150 MB/s, "), "{text}");
        assert!(text.contains("emulated"), "{text}");
        let faster = below.create(DeviceSpeed::SlowSsd).expect("is made");
        assert_eq!(file(&faster, "read_iops").as_deref(), Some("254:0 10000"));
        assert_eq!(file(&faster, "read_bps"), None);
        // What stands in for the kernel's directories has files, which the kernel's have not.
        for group in [&group, &faster] {
            fs::remove_dir_all(group.path()).expect("goes");
        }
    }

    #[test]
    fn without_groups_an_engine_may_slow_its_own_files() {
        let by_files =
            |engine| DeviceLimit::by_files(&engine, DeviceSpeed::SlowSsd, refusal("no groups"));
        let own = by_files(EngineName::lithify()).expect("slows them");
        assert!(own.describe().starts_with("slow-ssd (10000 operations/s, reads"), "{own:?}");
        let asked = EngineSettings::small();
        let settings = own.settings(&asked);
        assert!(settings.direct_reads && !asked.direct_reads);
        assert_eq!(settings.options[SLOW_FILES], "slow-ssd");
        let by_group = DeviceLimit { disk: Some("8:0".into()), ..own };
        assert_eq!(by_group.settings(&asked), asked);
        let error = by_files(EngineName::new("rocksdb")).expect_err("cannot");
        assert!(error.to_string().starts_with("the device cannot be slowed: no groups; run where"));
    }

    #[test]
    fn what_cannot_be_slowed_says_why() {
        let error = DeviceController::of("proc /proc proc rw 0 0\n", "", String::new());
        let error = error.expect_err("has no controller").to_string();
        assert!(error.contains("no block controller of version 1 is mounted"), "{error}");
        assert!(error.contains("choose arms without device"), "{error}");
        let error = DeviceController::find(Path::new("/proc")).expect_err("is no disk").to_string();
        assert!(error.contains("/proc is on no block device"), "{error}");
        let nowhere = DeviceController { place: "/no such place".into(), disk: "254:0".to_owned() };
        assert!(nowhere.create(DeviceSpeed::Disk).is_err());
        assert!(join(Path::new("/no such place")).is_err());
    }
}
