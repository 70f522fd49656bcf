//! Directories of cases, which go with them, and what killed runs have left of theirs.

use super::disk::Disk;
use super::mount::{Mounted, SOURCE};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// In memory where that can be had: images are written and read, and gone.
fn base() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let root = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    root.join("lithify-powerloss")
}

/// A directory of a case; it and everything in it goes when this is dropped.
pub(super) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(super) fn new() -> Result<Scratch, String> {
        static CLEAN: Once = Once::new();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        CLEAN.call_once(remove_stale);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = base().join(format!("{}-{number}", std::process::id()));
        make_directory(&path)?;
        Ok(Scratch { path })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A new directory in it.
    pub(super) fn directory(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.path(name);
        make_directory(&path)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn make_directory(path: &Path) -> Result<(), String> {
    std::fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Whether a disk can be mounted here.
pub(super) fn try_mount() -> Result<(), String> {
    if !Path::new("/dev/fuse").exists() {
        return Err("there is no /dev/fuse".to_string());
    }
    let scratch = Scratch::new()?;
    let failed = |error: std::io::Error| format!("nothing can be mounted by FUSE: {error}");
    let mounted = Mounted::new(&Disk::new(0), &scratch.directory("mount")?).map_err(failed)?;
    std::fs::write(mounted.path().join("try"), "x").map_err(failed)
}

/// Removes what runs have left that were killed: their mounts, loop devices and directories.
fn remove_stale() {
    let Ok(entries) = std::fs::read_dir(base()) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let process = name.split('-').next().unwrap_or_default();
        let is_number = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && !Path::new("/proc").join(process).exists() {
            remove(&path);
        }
    }
}

/// Unmounts what is mounted under a path, frees its loop devices, and removes it.
fn remove(path: &Path) {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let place = |line: &str| line.split(' ').nth(1).map(PathBuf::from);
    let ours: Vec<PathBuf> =
        mounts.lines().filter_map(place).filter(|mount| mount.starts_with(path)).collect();
    // What is mounted last lies over what is mounted first.
    for mount in ours.iter().rev() {
        let _ = Command::new("umount").arg("-l").arg(mount).output();
    }
    detach_loops(path);
    let _ = std::fs::remove_dir_all(path);
}

/// Frees the loop devices over files below a path.
fn detach_loops(path: &Path) {
    let listed = Command::new("losetup").args(["-n", "-O", "NAME,BACK-FILE", "-l"]).output();
    let Ok(listed) = listed else { return };
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        let mut words = line.split_whitespace();
        if let (Some(device), Some(file)) = (words.next(), words.next())
            && (Path::new(file).starts_with(path) || file.contains(SOURCE) && is_under(file, path))
        {
            let _ = Command::new("losetup").args(["-d", device]).output();
        }
    }
}

fn is_under(file: &str, path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| file.contains(name))
}
