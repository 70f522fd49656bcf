//! Control groups of the kernel, as places that one process makes and another one enters.
//!
//! Owns: finding a hierarchy by its controller, a group that is removed when it is dropped
//! ([`Group`]), entering one ([`join`]), and removing those of processes that were killed before
//! they could ([`remove_stale`]): a group's name says who made it ([`super::ownership`]). Does not:
//! know limits; [`super::memory_limit`] and [`super::device_limit`] do.
//!
//! Threads: a [`Group`] belongs to its maker's thread; [`join`] may be called from any.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ownership;

/// A group, removed when dropped.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
}

impl Group {
    /// Makes a group below `place`. Nothing is in it yet.
    ///
    /// # Errors
    /// In words: it cannot be made.
    pub fn create(place: &Path) -> Result<Group, String> {
        let path = place.join(ownership::new_name());
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(format!("a group cannot be made: {}: {error}", path.display()))
            }
            _ => Ok(Group { path }),
        }
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one of its files.
    ///
    /// # Errors
    /// In words, with the file's name.
    pub fn set(&self, file: &str, value: &str) -> Result<(), String> {
        let file = self.path.join(file);
        fs::write(&file, value).map_err(|error| format!("{}: {error}", file.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What stays is removed by the next run: its name says that its maker is gone.
        let _ = remove(&self.path);
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

/// Removes the groups below `place` whose makers are gone. Returns the names of those that would
/// not go, because a process is still in them.
pub fn remove_stale(place: &Path) -> Vec<String> {
    let mut left = Vec::new();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if ownership::is_stale(&name) && remove(&entry.path()).is_err() {
            left.push(name);
        }
    }
    left
}

/// Puts this process into a group and sees to it that it is there.
///
/// # Errors
/// In words: the group does not take it.
pub fn join(group: &Path) -> Result<(), String> {
    let file = group.join("cgroup.procs");
    let failed = |error: io::Error| format!("{}: {error}", file.display());
    let own = std::process::id().to_string();
    fs::write(&file, &own).map_err(failed)?;
    let members = fs::read_to_string(&file).map_err(failed)?;
    if members.lines().any(|member| member == own) {
        return Ok(());
    }
    Err(format!("{} did not take this process", file.display()))
}

/// Where a hierarchy is mounted: of `kind` and, unless it is empty, with `option` among its
/// options.
pub(super) fn mount_point(mounts: &str, kind: &str, option: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (point, found, options) = (words.next()?, words.next()?, words.next()?);
        let has = option.is_empty() || options.split(',').any(|word| word == option);
        (found == kind && has).then(|| PathBuf::from(point))
    })
}

/// This process's group in the hierarchy of a controller; the empty name is version 2's.
pub(super) fn own_group(own_groups: &str, controller: &str) -> String {
    // Lines are hierarchy:controllers:path; version 2 has no controllers.
    let group = own_groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        controllers.split(',').any(|name| name == controller).then(|| path.to_owned())
    });
    group.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_goes_with_its_maker_and_stale_ones_with_the_next() {
        let place = tempfile::tempdir().expect("a directory");
        let group = Group::create(place.path()).expect("is made");
        let other = Group::create(place.path()).expect("is made");
        assert_ne!(group.path(), other.path());
        let stale = place.path().join("lithify-bench-4000000000-1-0");
        fs::create_dir(&stale).expect("is made");
        assert!(remove_stale(place.path()).is_empty());
        assert!(!stale.exists() && group.path().exists(), "only the stale one went");
        let path = group.path().to_owned();
        drop(group);
        assert!(!path.exists() && other.path().exists());
        assert!(join(Path::new("/no such place")).is_err());
        assert!(Group::create(Path::new("/no such place")).is_err());
    }
}
