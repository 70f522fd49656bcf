//! Power cuts below real file systems: ext4, xfs and btrfs on a block device whose writes and
//! flushes are the journal's.
//!
//! 1. The journaling file system serves one large file; a loop device over it carries the file
//!    system under test, and the worker works there. The kernel's page cache is between the two: what
//!    the engine does not sync arrives late or never, in the order that the kernel chooses, and what
//!    it writes during a sync is not waited for.
//! 2. A crash leaves of the device what was flushed, and of the writes since then nothing, all,
//!    those before a moment, or any, each torn at a sector. Such an image is mounted and opened.
//! 3. Where the tools can, the file system is also shut down for good while the worker works: what
//!    is unsynced then is gone, by the kernel's own doing.
//!
//! An image of a device is not kept with a finding: the case has to be run again, and its threads
//! take their steps in another order.

use super::disk::{Disk, Sparse};
use super::history::{Crash, History};
use super::journal::{Change, Event, Inode, Journal, UNDER_WAY};
use super::judge;
use super::mount::Mounted;
use super::plan::{durability, options};
use super::run::{live, positions};
use super::scratch::Scratch;
use super::worker::Arguments;
use super::{DATABASE, WRITERS, missing, say_skipped};
use crate::check::{Check, Finding, Goal, Length, Tally};
use crate::digest::mix;
use crate::random::Random;
use lithify::Durability;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A file system that is tried where it can be made.
struct Kind {
    name: &'static str,
    make: &'static [&'static str],
    mount_options: &'static str,
    counter: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "ext4",
        make: &["mkfs.ext4", "-q", "-F", "-E", "nodiscard"],
        mount_options: "nodiscard",
        counter: "device images, ext4",
    },
    Kind {
        name: "xfs",
        make: &["mkfs.xfs", "-q", "-f", "-K"],
        mount_options: "nodiscard",
        counter: "device images, xfs",
    },
    Kind {
        name: "btrfs",
        make: &["mkfs.btrfs", "-q", "-f", "-K"],
        mount_options: "nodiscard",
        counter: "device images, btrfs",
    },
];

/// The smallest that all three accept.
const DEVICE_BYTES: u64 = 320 << 20;

/// Places of the journal at which the power is cut.
const POSITIONS: u64 = 8;

/// Steps of each writer in a life.
const STEPS: (u64, u64) = (15, 45);

const SECTOR_BYTES: usize = 512;

/// The name of the device's file.
const FILE: &str = "device";

/// The check; see the module.
pub struct Devices;

impl Check for Devices {
    fn name(&self) -> &'static str {
        "powerloss-devices"
    }

    fn about(&self) -> &'static str {
        "the same below ext4, xfs and btrfs, with a block device that loses what was not flushed"
    }

    fn cases(&self) -> Option<u64> {
        None
    }

    fn goal(&self, length: Length) -> Goal {
        let kinds = available().len() as u64;
        match (kinds, length) {
            (0, _) => Goal::Cases(1),
            (_, Length::Short) => Goal::Cases(kinds),
            (_, Length::Long) => Goal::Cases(4 * kinds * 8),
        }
    }

    fn run_case(&self, case: u64, tally: &mut Tally) -> Result<(), Finding> {
        let kinds = available();
        let Some(kind) = kinds.get((case % kinds.len().max(1) as u64) as usize) else {
            tally.count("cases skipped", 1);
            return Ok(());
        };
        run(case, kind, tally).map_err(|what| Finding::new(self, case, what))
    }
}

/// The file systems that can be tried here; says once, in a line for each, what cannot.
fn available() -> &'static [&'static Kind] {
    static AVAILABLE: OnceLock<Vec<&'static Kind>> = OnceLock::new();
    AVAILABLE.get_or_init(|| {
        if missing().is_some() {
            return Vec::new();
        }
        let is_tried = |kind: &&Kind| match try_kind(kind) {
            Ok(()) => true,
            Err(why) => {
                say_skipped(&format!("powerloss-devices on {}", kind.name), &why);
                false
            }
        };
        KINDS.iter().filter(is_tried).collect()
    })
}

/// Makes a file system, mounts it, and takes it away again.
fn try_kind(kind: &Kind) -> Result<(), String> {
    let scratch = Scratch::new()?;
    let image = scratch.path(FILE);
    make_file_system(kind, &image)?;
    Attached::new(kind, &image, &scratch.directory("files")?).map(drop)
}

/// Runs a program to its end; its complaint is the error.
fn call(words: &[&str]) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("no program")?;
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => {
            let said = text(&output.stderr);
            Err(format!("{program} fails: {}", said.lines().last().unwrap_or_default()))
        }
    }
}

fn make_file_system(kind: &Kind, image: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", image.display());
    File::create(image).and_then(|file| file.set_len(DEVICE_BYTES)).map_err(failed)?;
    let path = image.display().to_string();
    call(&[kind.make, &[&path]].concat()).map(drop)
}

/// A loop device over a file, with its file system mounted; dropping it ends both.
struct Attached {
    device: String,
    mount: Option<PathBuf>,
}

impl Attached {
    fn new(kind: &Kind, file: &Path, mount: &Path) -> Result<Attached, String> {
        let file = file.display().to_string();
        let device = call(&["losetup", "-f", "--show", &file])?;
        let mut attached = Attached { device, mount: None };
        let path = mount.display().to_string();
        let options = kind.mount_options;
        call(&["mount", "-t", kind.name, "-o", options, &attached.device, &path])?;
        attached.mount = Some(mount.to_path_buf());
        Ok(attached)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(mount) = &self.mount {
            let path = mount.display().to_string();
            if call(&["umount", &path]).is_err() {
                let _ = call(&["umount", "-l", &path]);
            }
        }
        let _ = call(&["losetup", "-d", &self.device]);
    }
}

fn run(case: u64, kind: &Kind, tally: &mut Tally) -> Result<(), String> {
    let (scratch, mode) = (Scratch::new()?, durability(case));
    let mut random = Random::new(mix(case, 4));
    let base = scratch.path("base");
    make_file_system(kind, &base)?;
    let disk = Disk::new(case);
    let inode = disk.plant_device(FILE, read_sparse(&base)?);
    let failed = |error: std::io::Error| format!("nothing can be mounted: {error}");
    let mounted = Mounted::new(&disk, &scratch.directory("mount")?).map_err(failed)?;
    let files = scratch.directory("files")?;
    let attached = Attached::new(kind, &mounted.path().join(FILE), &files)?;
    for life in 1..=2 {
        let steps = random.between(STEPS.0, STEPS.1);
        let closes = random.one_in(4);
        let arguments = Arguments::new(mounted.path(), case, life, steps, closes).at(&files);
        let reports = random.below(steps * WRITERS as u64 * 2 + 20);
        let was_killed = live(&disk, &arguments, (!closes).then_some(reports))?;
        tally.count(if was_killed { "kills" } else { "clean closes" }, 1);
    }
    // What is written from here on no crash of the cases has seen.
    let last = disk.state().journal.now();
    let was_shut_down = random.one_in(2) && shut_down(&files, &mut random);
    drop(attached);
    let entries = disk.state().journal.entries.clone();
    let entries = entries.into_iter().filter(|entry| entry.began <= last).collect();
    let journal = Journal::of(entries, last);
    let history = History::read(&journal, case, mode)?;
    history.check_openings()?;
    tally.count("acknowledged steps", history.acknowledged());
    tally.count("writes and flushes of devices", journal.entries.len() as u64);
    let bench =
        Bench { case, kind, mode, inode, base, journal: &journal, history: &history, scratch };
    if was_shut_down {
        tally.count("file systems shut down", 1);
        let attached = Attached::new(kind, &mounted.path().join(FILE), &files)?;
        bench.judge(&files, last + 1, "a shutdown")?;
        drop(attached);
    }
    bench.cut_everywhere(&mut random, tally)
}

/// Ends the file system at once, with or without what its log holds. Whether it could.
fn shut_down(files: &Path, random: &mut Random) -> bool {
    let path = files.display().to_string();
    let command = if random.one_in(2) { "shutdown -f" } else { "shutdown" };
    call(&["xfs_io", "-x", "-c", command, &path]).is_ok()
}

fn read_sparse(path: &Path) -> Result<Sparse, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(failed)?;
    let mut device = Sparse::new(DEVICE_BYTES);
    let mut bytes = vec![0; 64 << 10];
    for offset in (0..DEVICE_BYTES).step_by(bytes.len()) {
        file.read_exact_at(&mut bytes, offset).map_err(failed)?;
        if bytes.iter().any(|byte| *byte != 0) {
            device.write(offset, &bytes);
        }
    }
    Ok(device)
}

/// What a disk loses of what was not flushed.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Everything,
    Nothing,
    /// What was written from this stamp on.
    From(u64),
    /// Any of it, by this seed.
    Any(u64),
}

struct Bench<'b> {
    case: u64,
    kind: &'b Kind,
    mode: Durability,
    inode: Inode,
    base: PathBuf,
    journal: &'b Journal,
    history: &'b History,
    scratch: Scratch,
}

impl Bench<'_> {
    fn cut_everywhere(&self, random: &mut Random, tally: &mut Tally) -> Result<(), String> {
        let mount = self.scratch.directory("image-files")?;
        let image = self.scratch.path("image");
        for stamp in positions(self.journal, POSITIONS, random) {
            let seed = random.next();
            let losses = [Loss::Everything, Loss::Any(seed), self.part(stamp, random)];
            for loss in losses {
                self.make_image(&image, stamp, loss)?;
                let what = format!("{loss:?} at {stamp}");
                let attached = Attached::new(self.kind, &image, &mount)
                    .map_err(|error| format!("{}, {what}: {error}", self.kind.name))?;
                tally.count(self.kind.counter, 1);
                tally.count("device images", 1);
                let judged = self.judge(&mount, stamp, &what);
                drop(attached);
                judged?;
            }
        }
        Ok(())
    }

    /// Nothing is lost, or what came last.
    fn part(&self, stamp: u64, random: &mut Random) -> Loss {
        let flushed = self.flushed(stamp);
        match random.one_in(3) {
            true => Loss::Nothing,
            false => Loss::From(random.between(flushed.min(stamp), stamp)),
        }
    }

    /// What had ended before this is on the medium.
    fn flushed(&self, stamp: u64) -> u64 {
        let syncs = self
            .journal
            .entries
            .iter()
            .filter(|entry| entry.event == Event::Sync(self.inode) && entry.ended != UNDER_WAY);
        syncs.filter(|entry| entry.ended < stamp).map(|entry| entry.began).max().unwrap_or(0)
    }

    fn make_image(&self, path: &Path, stamp: u64, loss: Loss) -> Result<(), String> {
        let (base, to) = (self.base.display().to_string(), path.display().to_string());
        call(&["cp", "--sparse=always", &base, &to])?;
        let failed = |error: std::io::Error| format!("{to}: {error}");
        let image = File::options().write(true).open(path).map_err(failed)?;
        let flushed = self.flushed(stamp);
        let mut random = Random::new(match loss {
            Loss::Any(seed) => seed,
            _ => 0,
        });
        for entry in self.journal.entries.iter().filter(|entry| entry.began < stamp) {
            let Event::Change(Change::Write { inode, offset, bytes }) = &entry.event else {
                continue;
            };
            if *inode != self.inode {
                continue;
            }
            let kept = match loss {
                _ if entry.ended < flushed => &bytes[..],
                Loss::Everything => &[],
                Loss::Nothing => &bytes[..],
                Loss::From(lost) if entry.began >= lost => &[],
                Loss::From(_) => &bytes[..],
                Loss::Any(_) => match random.below(8) {
                    0 => {
                        &bytes[..random.below(bytes.len() as u64) as usize / SECTOR_BYTES
                            * SECTOR_BYTES]
                    }
                    1..=3 => &[],
                    _ => &bytes[..],
                },
            };
            image.write_all_at(kept, *offset).map_err(failed)?;
        }
        Ok(())
    }

    fn judge(&self, mount: &Path, stamp: u64, what: &str) -> Result<(), String> {
        let failed = |error: String| {
            format!("{}, {:?}, {what}: {error} (case {})", self.kind.name, self.mode, self.case)
        };
        let path = mount.join(DATABASE);
        let options = options(self.case, self.mode, 0);
        let (db, shown) = judge::open(&path, &options).map_err(failed)?;
        drop(db);
        self.history.check(&shown, stamp, Crash::Power).map_err(failed)?;
        judge::work_on(&path, &options, &shown).map_err(failed)
    }
}
