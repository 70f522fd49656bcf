//! File systems that a cell can be measured on: made in a file, mounted while the cell runs.
//!
//! Owns: what a cell asks for ([`FileSystemRequest`]), making and mounting one ([`Mounted::make`]),
//! what the measuring process is told of it ([`CellFileSystem`]), and taking it away again. Their
//! names are in [`crate::experiment::file_system`]. What a file system compresses is not seen by
//! `du`; [`CellFileSystem::used_bytes`] asks the file system itself.
//!
//! Promises: dropping a [`Mounted`] unmounts it and removes its file; what a killed run left is
//! removed by [`remove_stale`]. Names carry the process that made them, and nothing else is
//! touched. Compression of btrfs is forced, for by itself it gives up on a file after a look at
//! its beginning. The file is written and read past the page cache of the file system that it lies
//! on, where that can be had: what is cached twice would not be under a limit on memory.
//!
//! Mounting needs to be allowed (root). ZFS runs in a process of its own (`zfs-fuse`), which is
//! ended with the mount. Threads: one.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::progress::Announcer;
use super::{RunError, ownership};
use crate::experiment::file_system::FileSystemSpec;
use crate::meter::space::occupied_bytes;
use crate::meter::{Meter, OwnFileSystem};

impl FileSystemSpec {
    /// Programs that it needs, and the package that brings them.
    fn needs(&self) -> (&'static [&'static str], &'static str) {
        match self {
            FileSystemSpec::Ext4 => (&["mkfs.ext4"], "e2fsprogs"),
            FileSystemSpec::Xfs => (&["mkfs.xfs"], "xfsprogs"),
            FileSystemSpec::Btrfs(_) => (&["mkfs.btrfs"], "btrfs-progs"),
            FileSystemSpec::Zfs { .. } => (&["zfs-fuse", "zpool", "zfs"], "zfs-fuse"),
        }
    }

    /// Whether it can be made here; otherwise one line that says what is missing.
    ///
    /// # Errors
    /// A program that is not installed, or this user may not mount.
    pub fn available(&self) -> Result<(), RunError> {
        let (programs, package) = self.needs();
        for program in programs {
            if !is_installed(program) {
                return Err(RunError::new(format!(
                    "{self}: {program} is not installed; get it with: apt-get install {package}"
                )));
            }
        }
        match nix::unistd::geteuid().is_root() {
            true => Ok(()),
            false => Err(RunError::new(format!("{self}: only root may mount file systems"))),
        }
    }
}

/// Programs for the administrator are not on everybody's path.
const PROGRAM_DIRECTORIES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

fn is_installed(program: &str) -> bool {
    PROGRAM_DIRECTORIES.iter().any(|directory| Path::new(directory).join(program).is_file())
}

/// The file system that a cell asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystemRequest {
    /// Which one.
    pub spec: FileSystemSpec,
    /// How large it is when it is full, bytes.
    pub size_bytes: u64,
}

/// The smallest that is made: file systems lay themselves out by their size, and some refuse less.
pub const SIZE_BYTES_MIN: u64 = 1 << 30;

impl FileSystemRequest {
    /// One with room for `room_bytes`.
    pub fn new(spec: &FileSystemSpec, room_bytes: u64) -> FileSystemRequest {
        FileSystemRequest { spec: spec.clone(), size_bytes: room_bytes.max(SIZE_BYTES_MIN) }
    }
}

/// The file system of a cell, as its measuring process sees it; part of its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellFileSystem {
    /// Which one.
    pub spec: FileSystemSpec,
    /// Where it is mounted.
    pub directory: PathBuf,
    /// What it uses when it is empty, bytes.
    pub empty_bytes: u64,
    /// Its file is read and written past the page cache of the file system below.
    pub direct: bool,
    /// The process that serves it, if it is one in user space: its CPU is the engine's cost.
    pub process_id: Option<u32>,
}

impl CellFileSystem {
    /// Bytes that its content takes after compression, by the file system's own account. Everything
    /// is written out first.
    pub fn used_bytes(&self) -> u64 {
        let own = self.own();
        own.sync();
        own.used_bytes()
    }

    /// Tells a meter that the data have it for themselves.
    pub fn tell(&self, meter: &mut Meter) {
        meter.own_file_system(self.own());
    }

    fn own(&self) -> OwnFileSystem {
        // A pool has the name of its directory.
        let name = || self.directory.file_name().map(|name| name.to_string_lossy().into_owned());
        OwnFileSystem {
            directory: self.directory.clone(),
            empty_bytes: self.empty_bytes,
            process_id: self.process_id,
            pool: name().filter(|_| matches!(self.spec, FileSystemSpec::Zfs { .. })),
        }
    }

    /// What it is, in words.
    pub fn describe(&self) -> String {
        let below = if self.direct { "past" } else { "through" };
        format!("{} in a file, {below} the page cache of the file system below", self.spec)
    }
}

/// A file system that was made for a cell.
pub struct Mounted {
    file_system: CellFileSystem,
    image: PathBuf,
    /// The process of a file system in user space.
    daemon: Option<Child>,
}

impl Mounted {
    /// Makes a file system in a file in `place`, and mounts it beside it. The file is sparse: it
    /// takes what is written.
    ///
    /// # Errors
    /// In words: a program is missing or fails, or mounting is not allowed. Nothing is left then.
    pub fn make(request: &FileSystemRequest, place: &Path) -> Result<Self, RunError> {
        request.spec.available()?;
        let name = ownership::new_name();
        // Mounts are known by their whole paths.
        let place = fs::canonicalize(place).map_err(|error| RunError::io(place, error))?;
        let mut mounted = Mounted {
            file_system: CellFileSystem {
                spec: request.spec.clone(),
                directory: place.join(&name),
                empty_bytes: 0,
                direct: false,
                process_id: None,
            },
            image: place.join(format!("{name}.img")),
            daemon: None,
        };
        // What fails half way is taken away by the drop.
        mounted.fill(&name, request.size_bytes)?;
        mounted.file_system.process_id = mounted.daemon.as_ref().map(Child::id);
        mounted.file_system.empty_bytes = occupied_bytes(mounted.directory());
        Ok(mounted)
    }

    /// Where it is mounted.
    pub fn directory(&self) -> &Path {
        &self.file_system.directory
    }

    /// What a measuring process has to know of it.
    pub fn file_system(&self) -> &CellFileSystem {
        &self.file_system
    }

    fn fill(&mut self, name: &str, size_bytes: u64) -> Result<(), RunError> {
        let image = File::create_new(&self.image).map_err(|e| RunError::io(&self.image, e))?;
        image.set_len(size_bytes).map_err(|error| RunError::io(&self.image, error))?;
        fs::create_dir(self.directory()).map_err(|e| RunError::io(self.directory(), e))?;
        match self.file_system.spec.clone() {
            FileSystemSpec::Ext4 => self.mkfs_and_mount("mkfs.ext4", &["-q", "-F"], "defaults"),
            FileSystemSpec::Xfs => self.mkfs_and_mount("mkfs.xfs", &["-q", "-f"], "defaults"),
            FileSystemSpec::Btrfs(codec) => {
                let options = match codec {
                    // An effort stands behind a colon there.
                    Some(codec) => format!("compress-force={}", codec.replace('-', ":")),
                    None => "defaults".to_owned(),
                };
                self.mkfs_and_mount("mkfs.btrfs", &["-q", "-f"], &options)
            }
            FileSystemSpec::Zfs { compression, record_kib } => {
                self.make_pool(name, &compression, record_kib)
            }
        }
    }

    fn mkfs_and_mount(
        &mut self,
        mkfs: &str,
        flags: &[&str],
        options: &str,
    ) -> Result<(), RunError> {
        call(Command::new(mkfs).args(flags).arg(&self.image))?;
        let said = call(Command::new("losetup").args(["--find", "--show"]).arg(&self.image))?;
        let device = said.trim();
        // Refused where the file system below has no direct I/O; the kernel tells what came of it.
        let _ = call(Command::new("losetup").arg("--direct-io=on").arg(device));
        let name = device.trim_start_matches("/dev/");
        let told = fs::read_to_string(format!("/sys/block/{name}/loop/dio"));
        self.file_system.direct = told.is_ok_and(|told| told.trim() == "1");
        let mounted = call(
            Command::new("mount")
                .args(["-o", options])
                .arg(device)
                .arg(&self.file_system.directory),
        );
        // A device in use is let go of by the kernel when it is unmounted, whoever does that.
        let let_go = call(Command::new("losetup").args(["--detach", device]));
        mounted.and(let_go).map(|_| ())
    }

    fn make_pool(
        &mut self,
        name: &str,
        compression: &str,
        record_kib: u32,
    ) -> Result<(), RunError> {
        let started = Command::new("zfs-fuse")
            .arg("--no-daemon")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.daemon = Some(started.map_err(|error| RunError::new(format!("zfs-fuse: {error}")))?);
        wait_for_zfs()?;
        let mut create = Command::new("zpool");
        create.args(["create", "-O", &format!("compression={compression}")]);
        create.args(["-O", &format!("recordsize={record_kib}K"), "-O", "atime=off", "-m"]);
        call(create.arg(&self.file_system.directory).arg(name).arg(&self.image)).map(|_| ())
    }

    fn take_away(&mut self) {
        let unmounted = match &self.file_system.spec {
            FileSystemSpec::Zfs { .. } => destroy_pool(self.directory()),
            _ => unmount(self.directory()),
        };
        if let Some(mut daemon) = self.daemon.take() {
            // It has nothing left to write: its only pool is gone.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        // What is still mounted keeps its files: the next run finds them by their names.
        if unmounted {
            let _ = fs::remove_dir(self.directory());
            let _ = fs::remove_file(&self.image);
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.take_away();
    }
}

/// Takes away what killed runs have left in `place`, and says what would not go.
pub fn clean(place: &Path, announcer: &mut dyn Announcer) {
    for name in remove_stale(place) {
        announcer.say(&format!("{name} of an earlier run is still in use"));
    }
}

/// Takes away what killed runs have left in `place`. Gives the names of what would not go.
pub fn remove_stale(place: &Path) -> Vec<String> {
    let mut left = Vec::new();
    let Ok(place) = fs::canonicalize(place) else { return left };
    for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let bare = name.strip_suffix(".img").unwrap_or(&name);
        if !ownership::is_stale(bare) {
            continue;
        }
        let directory = place.join(bare);
        let gone = !is_mounted(&directory) || unmount(&directory) || destroy_pool(&directory);
        if gone {
            let _ = fs::remove_dir_all(&directory);
            let _ = fs::remove_file(place.join(format!("{bare}.img")));
        } else {
            left.push(name);
        }
    }
    left
}

/// Calls a program and waits for it; gives what it printed.
fn call(command: &mut Command) -> Result<String, RunError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| RunError::new(format!("{program}: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
    Err(RunError::new(format!("{program}: {} ({})", first.trim(), output.status)))
}

/// A file system that was just left by a killed process is busy for another moment.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

fn retried(mut attempt: impl FnMut() -> bool) -> bool {
    (0..TRIES).any(|number| {
        if number > 0 {
            std::thread::sleep(PAUSE);
        }
        attempt()
    })
}

/// Whether something is mounted at a directory: it lies on another device than the one above it.
fn is_mounted(directory: &Path) -> bool {
    let device = |path: &Path| fs::symlink_metadata(path).map(|metadata| metadata.dev());
    match (device(directory), directory.parent().map(device)) {
        (Ok(own), Some(Ok(above))) => own != above,
        // What is mounted and has lost its process does not answer.
        (Err(error), _) => error.kind() != ErrorKind::NotFound,
        _ => false,
    }
}

fn unmount(directory: &Path) -> bool {
    retried(|| !is_mounted(directory) || call(Command::new("umount").arg(directory)).is_ok())
}

/// A pool has the name of its directory.
fn destroy_pool(directory: &Path) -> bool {
    let Some(name) = directory.file_name() else { return false };
    retried(|| {
        !is_mounted(directory)
            || call(Command::new("zpool").args(["destroy", "-f"]).arg(name)).is_ok()
    })
}

fn wait_for_zfs() -> Result<(), RunError> {
    match retried(|| call(Command::new("zpool").arg("list")).is_ok()) {
        true => Ok(()),
        false => Err(RunError::new("zfs-fuse does not answer: is /dev/fuse there?")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// Bytes that do not compress.
    fn noise(bytes: usize) -> Vec<u8> {
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 56) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    /// Files that compress, on every file system that can be made here.
    #[test]
    fn what_is_mounted_compresses_and_goes_away() {
        let place = tempfile::tempdir().expect("a directory");
        // Named another way than the kernel names it in its list of mounts.
        let aliases = tempfile::tempdir().expect("a directory");
        let alias = aliases.path().join("alias");
        std::os::unix::fs::symlink(place.path(), &alias).expect("is linked");
        let bytes = b"quartz feldspar mica ".repeat(400_000);
        let noise = noise(4 << 20);
        for text in ["ext4", "xfs", "btrfs:zstd-3", "btrfs:zlib-9", "btrfs:lzo", "zfs:gzip-6"] {
            let spec: FileSystemSpec = text.parse().expect("is known");
            let request = FileSystemRequest::new(&spec, 0);
            let mounted = match Mounted::make(&request, &alias) {
                Ok(mounted) => mounted,
                Err(error) => {
                    println!("not tried: {error}");
                    continue;
                }
            };
            let path = mounted.directory().join("file");
            let written = File::create(&path).and_then(|mut file| file.write_all(&bytes));
            written.expect("is written");
            let seen = mounted.file_system().clone();
            let used = seen.used_bytes();
            assert!(seen.describe().starts_with(text), "{}", seen.describe());
            assert!(is_mounted(mounted.directory()) && !is_mounted(place.path()));
            let compresses = !matches!(spec, FileSystemSpec::Ext4 | FileSystemSpec::Xfs);
            let most = if compresses { bytes.len() / 4 } else { 2 * bytes.len() };
            assert!(used > 0 && used < most as u64, "{text}: {used} bytes");
            // All of it is in the account at once, that of a pool of ZFS too.
            fs::write(mounted.directory().join("noise"), &noise).expect("is written");
            let more = seen.used_bytes() - used;
            assert!(more >= noise.len() as u64, "{text}: {more} bytes of noise");
            drop(mounted);
            let left = fs::read_dir(place.path()).expect("is there").count();
            assert_eq!(left, 0, "{text} left something behind");
        }
    }

    #[test]
    fn what_cannot_be_mounted_leaves_nothing() {
        let place = tempfile::tempdir().expect("a directory");
        // Too small for any file system.
        let request = FileSystemRequest { spec: FileSystemSpec::Ext4, size_bytes: 512 };
        let error = Mounted::make(&request, place.path()).err().expect("is refused");
        assert!(!error.to_string().contains('\n'), "{error}");
        assert_eq!(fs::read_dir(place.path()).expect("is there").count(), 0);
        assert!(remove_stale(place.path()).is_empty());
    }

    #[test]
    fn a_program_that_fails_says_why() {
        let error = call(Command::new("mount").arg("/no such image")).expect_err("fails");
        assert!(error.to_string().starts_with("mount: "), "{error}");
        let error = call(&mut Command::new("no-such-program")).expect_err("is not there");
        assert!(error.to_string().starts_with("no-such-program: "), "{error}");
    }
}
