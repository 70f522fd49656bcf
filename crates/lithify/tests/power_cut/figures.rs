//! What the cuts came to: how many there were, by mode and kind, and what was lost.

use crate::life::DIRECTORY;
use lithify::Durability;
use lithify::fs::{CrashKeep, FileSystem, MemoryFileSystem, OpenMode};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::time::Instant;

#[derive(Default)]
struct Row {
    cuts: u64,
    while_opening: u64,
    acknowledged: u64,
    promised: u64,
    lost: u64,
    cuts_with_loss: u64,
    most_lost: u64,
}

/// The sums of a run.
pub struct Figures {
    started: Instant,
    shown_at_s: u64,
    cuts: u64,
    images: BTreeSet<u64>,
    rows: BTreeMap<(&'static str, &'static str), Row>,
}

impl Figures {
    pub fn new() -> Self {
        Figures {
            started: Instant::now(),
            shown_at_s: 0,
            cuts: 0,
            images: BTreeSet::new(),
            rows: BTreeMap::new(),
        }
    }

    pub fn cuts(&self) -> u64 {
        self.cuts
    }

    /// Notes what a cut left, by a checksum of all names and bytes.
    pub fn image(&mut self, files: &MemoryFileSystem) {
        let directory = Path::new(DIRECTORY);
        let mut image = 0_u64;
        for name in files.list(directory).unwrap_or_default() {
            let path = directory.join(name);
            let Ok(file) = files.open(&path, OpenMode::Read) else { continue };
            let mut bytes = vec![0; file.length().unwrap_or(0) as usize];
            let count = file.read_at(&mut bytes, 0).unwrap_or(0);
            let checksum = u64::from(crc32c::crc32c(&bytes[..count]));
            let name = u64::from(crc32c::crc32c(path.as_os_str().as_encoded_bytes()));
            image =
                image.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ checksum ^ name << 32;
        }
        self.images.insert(image);
    }

    pub fn cut(
        &mut self,
        durability: Durability,
        keep: CrashKeep,
        while_opening: bool,
        acknowledged: usize,
        promised: usize,
        lost: usize,
    ) {
        let mode = match durability {
            Durability::Sync => "sync",
            Durability::Buffered => "buffered",
            Durability::Interval { .. } => "interval",
            Durability::None => "none",
        };
        let kind = match keep {
            CrashKeep::Nothing => "power cut, all unsynced lost",
            CrashKeep::Random => "power cut, random",
            CrashKeep::Everything => "process end",
        };
        self.cuts += 1;
        let row = self.rows.entry((mode, kind)).or_default();
        row.cuts += 1;
        row.while_opening += u64::from(while_opening);
        row.acknowledged += acknowledged as u64;
        row.promised += promised as u64;
        row.lost += lost as u64;
        row.cuts_with_loss += u64::from(lost > 0);
        row.most_lost = row.most_lost.max(lost as u64);
    }

    /// One line every few seconds.
    pub fn progress(&mut self, wanted: u64) {
        let elapsed_s = self.started.elapsed().as_secs();
        if elapsed_s >= self.shown_at_s + 5 {
            self.shown_at_s = elapsed_s;
            println!("{} of {wanted} cuts, {elapsed_s} s", self.cuts);
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<9} {:<28} {:>6} {:>8} {:>12} {:>9} {:>7} {:>9} {:>9}",
            "mode",
            "crash",
            "cuts",
            "opening",
            "acknowledged",
            "promised",
            "lost",
            "with loss",
            "most lost"
        )?;
        for ((mode, kind), row) in &self.rows {
            writeln!(
                f,
                "{mode:<9} {kind:<28} {:>6} {:>8} {:>12} {:>9} {:>7} {:>9} {:>9}",
                row.cuts,
                row.while_opening,
                row.acknowledged,
                row.promised,
                row.lost,
                row.cuts_with_loss,
                row.most_lost
            )?;
        }
        let elapsed = self.started.elapsed().as_secs_f64();
        writeln!(f, "cuts {}, distinct images {}, {elapsed:.1} s", self.cuts, self.images.len())
    }
}
