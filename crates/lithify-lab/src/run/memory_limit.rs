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
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::RunError;
use crate::meter::process::keyed_number;

/// What the names of our groups begin with.
const NAME: &str = "lithify-bench-";

/// A limit from here on means none: the kernel rounds its largest number to pages.
const UNLIMITED_BYTES: u64 = 1 << 60;

/// Groups that this process has made: each gets a name of its own.
static GROUPS_MADE: AtomicU64 = AtomicU64::new(0);

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
        let own = std::process::id();
        let born = start_ticks(own).unwrap_or(0);
        let number = GROUPS_MADE.fetch_add(1, Ordering::Relaxed);
        let path = self.place.join(format!("{NAME}{own}-{born}-{number}"));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(refusal(&format!(
                    "a group cannot be made: {}: {error}",
                    path.display()
                )));
            }
            Ok(()) => {}
        }
        let group = MemoryGroup { path, version: self.version, limit_bytes };
        group.set_limit()?;
        Ok(group)
    }

    /// Removes the groups of processes that are gone. Returns the names of those that would not
    /// go, because a process is still in them.
    pub fn remove_stale(&self) -> Vec<String> {
        let mut left = Vec::new();
        for entry in fs::read_dir(&self.place).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_stale(&name, start_ticks) && remove(&entry.path()).is_err() {
                left.push(name);
            }
        }
        left
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
    let mounted = |kind: &str, option: &str| {
        mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (point, found, options) = (words.next()?, words.next()?, words.next()?);
            let has = option.is_empty() || options.split(',').any(|word| word == option);
            (found == kind && has).then(|| PathBuf::from(point))
        })
    };
    // Lines are hierarchy:controllers:path; version 2 has no controllers.
    let own = |wanted: &str| {
        let group = own_groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            controllers.split(',').any(|name| name == wanted).then(|| path.to_owned())
        });
        group.unwrap_or_default()
    };
    if let Some(root) = mounted("cgroup", "memory") {
        return Some((Version::V1, root, own("memory")));
    }
    let root = mounted("cgroup2", "")?;
    let offered = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    let has_memory = offered.split_whitespace().any(|controller| controller == "memory");
    has_memory.then(|| (Version::V2, root, own("")))
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

/// When a process began, in the kernel's ticks: with the id it names a process for good.
fn start_ticks(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; the start is field 22, the 20th behind it.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// True for a group of ours whose process is gone, by `born`, which tells when a process began.
fn is_stale(name: &str, born: impl Fn(u32) -> Option<u64>) -> bool {
    let Some(rest) = name.strip_prefix(NAME) else { return false };
    let numbers: Vec<Option<u64>> = rest.split('-').map(|part| part.parse().ok()).collect();
    match numbers[..] {
        [Some(pid), Some(ticks), Some(_)] => {
            u32::try_from(pid).is_ok_and(|pid| born(pid) != Some(ticks))
        }
        _ => false,
    }
}

/// A process that was just killed is in its group for another moment.
const REMOVE_TRIES: u32 = 50;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

fn remove(path: &Path) -> io::Result<()> {
    for _ in 1..REMOVE_TRIES {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(REMOVE_PAUSE);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            end => return end,
        }
    }
    fs::remove_dir(path)
}

/// A group with a limit, removed when dropped.
#[derive(Debug)]
pub struct MemoryGroup {
    path: PathBuf,
    version: Version,
    limit_bytes: u64,
}

impl MemoryGroup {
    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it may use, bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    fn set_limit(&self) -> Result<(), RunError> {
        let file = self.path.join(self.version.limit_file());
        fs::write(&file, self.limit_bytes.to_string())
            .map_err(|error| refusal(&format!("{}: {error}", file.display())))?;
        // No swap; a kernel without it has no such file, and then there is nothing to forbid.
        let (swap, value) = match self.version {
            Version::V1 => ("memory.swappiness", "0"),
            Version::V2 => ("memory.swap.max", "0"),
        };
        let _ = fs::write(self.path.join(swap), value);
        Ok(())
    }

    /// How often the kernel killed a process of the group because its memory was full.
    pub fn out_of_memory_kills(&self) -> u64 {
        GroupUsage::read(&self.path).out_of_memory_kills
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // What stays is removed by the next run: its name says that its maker is gone.
        let _ = remove(&self.path);
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
    let file = group.join("cgroup.procs");
    let own = std::process::id().to_string();
    fs::write(&file, &own).map_err(|error| refusal(&format!("{}: {error}", file.display())))?;
    let members = fs::read_to_string(&file).map_err(|error| RunError::io(&file, error))?;
    if members.lines().any(|member| member == own) {
        return Ok(());
    }
    Err(refusal(&format!("{} did not take this process", file.display())))
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
    fn groups_of_processes_that_are_gone_are_stale() {
        let born = |pid: u32| (pid == 7).then_some(123);
        for (name, stale) in [
            ("lithify-bench-7-123-0", false),
            ("lithify-bench-7-124-0", true),
            ("lithify-bench-8-123-5", true),
            ("lithify-bench-8-123", false),
            ("lithify-bench-x-1-1", false),
            ("somebody-8-123-0", false),
        ] {
            assert_eq!(is_stale(name, born), stale, "{name}");
        }
        assert!(start_ticks(std::process::id()).is_some_and(|ticks| ticks > 0));
        assert_eq!(start_ticks(u32::MAX), None);
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
