//! A limit on the memory of a cell's process, its page cache included: a control group.
//!
//! 1. [`Controller::find`] looks for a memory controller in which this process may make groups:
//!    version 1 (`memory.limit_in_bytes`) or version 2 (`memory.max`).
//! 2. The parent makes a [`MemoryGroup`] for a cell; its name carries the parent's process id and
//!    start time.
//! 3. The cell's process puts itself into it ([`join`]) before it opens the engine, so that every
//!    page that it touches or caches is charged to the group.
//! 4. Dropping the group removes it. A parent that was killed could not; the next run removes the
//!    groups of parents that are gone ([`Controller::remove_stale`]).
//!
//! A group is made at the top of the hierarchy, or below the group of this process when that one
//! has a limit itself: an outer limit is never escaped. Does not: swap (none is allowed where the
//! kernel offers that), drop anybody's caches, change any group but its own.
//!
//! Threads: a [`MemoryGroup`] belongs to the parent's thread; [`GroupUsage::read`] and [`join`] may
//! be called from any.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::RunError;
use super::control_group::{self, Group, mount_point, own_group};
use crate::meter::process::keyed_number;

/// A limit from here on means none: the kernel rounds its largest number to pages.
const UNLIMITED_BYTES: u64 = 1 << 60;

/// Which interface the kernel offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// `memory.limit_in_bytes`.
    V1,
    /// `memory.max`.
    V2,
}

impl Version {
    /// In words, for reports.
    pub fn name(self) -> &'static str {
        match self {
            Version::V1 => "control group, version 1",
            Version::V2 => "control group, version 2",
        }
    }

    fn limit_file(self) -> &'static str {
        match self {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        }
    }
}

/// Where groups can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    version: Version,
    /// The directory that gets a group as a subdirectory.
    place: PathBuf,
}

impl Controller {
    /// The memory controller of this machine.
    ///
    /// # Errors
    /// In words: there is none, or it does not let this process make groups.
    pub fn find() -> Result<Controller, RunError> {
        let read = |path: &str| {
            fs::read_to_string(path).map_err(|error| RunError::io(Path::new(path), error))
        };
        Controller::of(&read("/proc/self/mounts")?, &read("/proc/self/cgroup")?)
    }

    /// The controller by what the kernel says of mounts and of this process's groups.
    fn of(mounts: &str, own_groups: &str) -> Result<Controller, RunError> {
        let (version, root, own) = locate(mounts, own_groups).ok_or_else(|| {
            refusal("no memory controller is mounted, neither of version 1 nor of version 2")
        })?;
        let own_path = root.join(own.trim_start_matches('/'));
        let limited = own_path.is_dir() && own_limit_bytes(version, &root, &own_path).is_some();
        match version {
            Version::V1 if limited => Ok(Controller { version, place: own_path }),
            Version::V1 => Ok(Controller { version, place: root }),
            Version::V2 if limited => Err(refusal(&format!(
                "the group of this process, {}, has a limit itself, and in version 2 a group with \
                 processes cannot hold another one",
                own_path.display()
            ))),
            Version::V2 => {
                let file = root.join("cgroup.subtree_control");
                let given = fs::read_to_string(&file).unwrap_or_default();
                if given.split_whitespace().any(|controller| controller == "memory") {
                    return Ok(Controller { version, place: root });
                }
                Err(refusal(&format!(
                    "{} does not hand the memory controller down (write +memory to it)",
                    file.display()
                )))
            }
        }
    }

    /// Which interface it is.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Makes a group with a limit. Nothing is in it yet.
    ///
    /// # Errors
    /// In words: the group cannot be made or does not take the limit.
    pub fn create(&self, limit_bytes: u64) -> Result<MemoryGroup, RunError> {
        let group = Group::create(&self.place).map_err(|why| refusal(&why))?;
        let group = MemoryGroup { group, version: self.version, limit_bytes };
        group.set_limit()?;
        Ok(group)
    }

    /// Removes the groups of processes that are gone. Returns the names of those that would not
    /// go, because a process is still in them.
    pub fn remove_stale(&self) -> Vec<String> {
        control_group::remove_stale(&self.place)
    }
}

fn refusal(why: &str) -> RunError {
    RunError::new(format!(
        "memory cannot be limited: {why}; run where control groups can be made (as root, or in a \
         delegated group), or choose a scale without memory_limit_mib"
    ))
}

/// Version, mount point of the hierarchy with the memory controller, and this process's group in
/// it. Version 1 wins where both are mounted: a controller is in one hierarchy only.
fn locate(mounts: &str, own_groups: &str) -> Option<(Version, PathBuf, String)> {
    if let Some(root) = mount_point(mounts, "cgroup", "memory") {
        return Some((Version::V1, root, own_group(own_groups, "memory")));
    }
    let root = mount_point(mounts, "cgroup2", "")?;
    let offered = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    let has_memory = offered.split_whitespace().any(|controller| controller == "memory");
    has_memory.then(|| (Version::V2, root, own_group(own_groups, "")))
}

/// The limit under which this process already is, its outer groups included.
fn own_limit_bytes(version: Version, root: &Path, own: &Path) -> Option<u64> {
    let limits = match version {
        Version::V1 => {
            let stat = fs::read_to_string(own.join("memory.stat")).unwrap_or_default();
            vec![keyed_number(&stat, "hierarchical_memory_limit ")]
        }
        Version::V2 => own
            .ancestors()
            .take_while(|group| group.starts_with(root) && *group != root)
            .map(|group| fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok())
            .collect(),
    };
    limits.into_iter().flatten().min().filter(|limit| *limit < UNLIMITED_BYTES)
}

/// A group with a limit, removed when dropped.
#[derive(Debug)]
pub struct MemoryGroup {
    group: Group,
    version: Version,
    limit_bytes: u64,
}

impl MemoryGroup {
    /// Its directory.
    pub fn path(&self) -> &Path {
        self.group.path()
    }

    /// What it may use, bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    fn set_limit(&self) -> Result<(), RunError> {
        let limit = self.limit_bytes.to_string();
        self.group.set(self.version.limit_file(), &limit).map_err(|why| refusal(&why))?;
        // No swap; a kernel without it has no such file, and then there is nothing to forbid.
        let (swap, value) = match self.version {
            Version::V1 => ("memory.swappiness", "0"),
            Version::V2 => ("memory.swap.max", "0"),
        };
        let _ = self.group.set(swap, value);
        Ok(())
    }

    /// How often the kernel killed a process of the group because its memory was full.
    pub fn out_of_memory_kills(&self) -> u64 {
        GroupUsage::read(self.path()).out_of_memory_kills
    }
}

/// What a group used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupUsage {
    /// The limit, bytes; 0 when it cannot be read.
    pub limit_bytes: u64,
    /// Most that was charged at once since the group was made, bytes.
    pub peak_bytes: u64,
    /// Page cache now, bytes.
    pub page_cache_bytes: u64,
    /// Memory of processes now, bytes.
    pub process_bytes: u64,
    /// How often the limit was met and memory had to be reclaimed.
    pub limit_met: u64,
    /// How often a process was killed because nothing could be reclaimed.
    pub out_of_memory_kills: u64,
}

impl GroupUsage {
    /// The figures of the group in `path` now; zeros for what the kernel does not tell.
    pub fn read(path: &Path) -> GroupUsage {
        let text = |file: &str| fs::read_to_string(path.join(file)).unwrap_or_default();
        let number = |file: &str| text(file).trim().parse().unwrap_or(0);
        let stat = text("memory.stat");
        let keyed = |text: &str, key| keyed_number(text, key).unwrap_or(0);
        if path.join(Version::V1.limit_file()).exists() {
            return GroupUsage {
                limit_bytes: number("memory.limit_in_bytes"),
                peak_bytes: number("memory.max_usage_in_bytes"),
                page_cache_bytes: keyed(&stat, "cache "),
                process_bytes: keyed(&stat, "rss "),
                limit_met: number("memory.failcnt"),
                out_of_memory_kills: keyed(&text("memory.oom_control"), "oom_kill "),
            };
        }
        let events = text("memory.events");
        GroupUsage {
            limit_bytes: number("memory.max"),
            peak_bytes: number("memory.peak"),
            page_cache_bytes: keyed(&stat, "file "),
            process_bytes: keyed(&stat, "anon "),
            limit_met: keyed(&events, "max "),
            out_of_memory_kills: keyed(&events, "oom_kill "),
        }
    }
}

/// Puts this process into a group and sees to it that it is there.
///
/// # Errors
/// In words: the group does not take it.
pub fn join(group: &Path) -> Result<(), RunError> {
    control_group::join(group).map_err(|why| refusal(&why))
}

/// How the memory of a cell was limited; part of its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLimit {
    /// By what.
    pub mechanism: Version,
    /// What the engine may use: its memory and the page cache of its files, bytes.
    pub budget_bytes: u64,
    /// What the driver uses by itself, as the calibration found, bytes; on top of the budget.
    pub driver_bytes: u64,
}

/// A limit on the memory of a cell's process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellMemory {
    /// How much, by what.
    pub limit: MemoryLimit,
    /// Directory of the control group.
    pub group: PathBuf,
}

impl MemoryLimit {
    /// The limit of the group, bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.budget_bytes + self.driver_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "proc /proc proc rw 0 0\n\
        cgroup /cg/cpu cgroup rw,relatime,cpu 0 0\n\
        cgroup /cg/memory cgroup rw,relatime,memory 0 0\n";

    #[test]
    fn the_controller_is_found_where_it_is_mounted() {
        let own = "9:name=systemd:/\n4:cpu,memory:/a/b:c\n0::/x\n";
        let found = locate(&format!("{V1}cgroup2 /cg/unified cgroup2 rw 0 0\n"), own);
        assert_eq!(found, Some((Version::V1, "/cg/memory".into(), "/a/b:c".into())));
        let place = Controller::of(V1, own).expect("is found").place;
        assert_eq!(place, Path::new("/cg/memory"), "a group that is not there has no limit");

        let root = tempfile::tempdir().expect("a directory");
        let mounts = format!("none {} cgroup2 rw 0 0\n", root.path().display());
        assert_eq!(locate(&mounts, own), None, "no controller is offered");
        fs::write(root.path().join("cgroup.controllers"), "cpu memory\n").expect("writes");
        let found = locate(&mounts, own);
        assert_eq!(found, Some((Version::V2, root.path().to_owned(), "/x".into())));

        let error = Controller::of(&mounts, own).expect_err("is not handed down").to_string();
        assert!(error.contains("write +memory to it"), "{error}");
        fs::write(root.path().join("cgroup.subtree_control"), "cpu memory\n").expect("writes");
        assert_eq!(Controller::of(&mounts, own).expect("is found").place, root.path());
        fs::create_dir(root.path().join("x")).expect("creates");
        fs::write(root.path().join("x/memory.max"), "max\n").expect("writes");
        assert!(Controller::of(&mounts, own).is_ok());
        fs::write(root.path().join("x/memory.max"), "1000000\n").expect("writes");
        let error = Controller::of(&mounts, own).expect_err("is limited").to_string();
        assert!(error.contains("has a limit itself"), "{error}");

        let error = Controller::of("proc /proc proc rw 0 0\n", own).expect_err("none").to_string();
        assert!(error.contains("no memory controller is mounted"), "{error}");
        assert!(error.contains("without memory_limit_mib"), "{error}");
    }

    #[test]
    fn an_outer_limit_is_not_escaped() {
        let root = tempfile::tempdir().expect("a directory");
        let mounts = format!("cgroup {} cgroup rw,memory 0 0\n", root.path().display());
        let group = root.path().join("outer/own");
        fs::create_dir_all(&group).expect("creates");
        let stat = |limit: u64| format!("cache 1\nhierarchical_memory_limit {limit}\n");
        for (limit, place) in [(9_223_372_036_854_771_712, root.path()), (1 << 30, group.as_path())]
        {
            fs::write(group.join("memory.stat"), stat(limit)).expect("writes");
            let found = Controller::of(&mounts, "4:memory:/outer/own\n").expect("is found");
            assert_eq!(found.place, place);
        }
    }

    #[test]
    fn a_place_that_takes_no_group_says_why() {
        let controller = Controller { version: Version::V1, place: "/no such place".into() };
        let error = controller.create(1 << 20).expect_err("cannot").to_string();
        assert!(error.contains("a group cannot be made: /no such place/lithify-bench-"), "{error}");
        assert!(controller.remove_stale().is_empty());
        assert!(join(Path::new("/no such place")).is_err());
    }

    #[test]
    fn figures_of_both_versions() {
        let v1 = tempfile::tempdir().expect("a directory");
        let v2 = tempfile::tempdir().expect("a directory");
        let write = |directory: &tempfile::TempDir, files: &[(&str, &str)]| {
            for (name, text) in files {
                fs::write(directory.path().join(name), text).expect("writes");
            }
        };
        write(
            &v1,
            &[
                ("memory.limit_in_bytes", "1000\n"),
                ("memory.max_usage_in_bytes", "990\n"),
                ("memory.stat", "cache 600\nrss 300\ntotal_cache 9\n"),
                ("memory.failcnt", "12\n"),
                ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
            ],
        );
        write(
            &v2,
            &[
                ("memory.max", "1000\n"),
                ("memory.peak", "990\n"),
                ("memory.stat", "anon 300\nfile 600\nfile_dirty 9\n"),
                ("memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\n"),
            ],
        );
        let expected = GroupUsage {
            limit_bytes: 1000,
            peak_bytes: 990,
            page_cache_bytes: 600,
            process_bytes: 300,
            limit_met: 12,
            out_of_memory_kills: 2,
        };
        assert_eq!(GroupUsage::read(v1.path()), expected);
        assert_eq!(GroupUsage::read(v2.path()), expected);
    }
}
