//! The tables: writes and sizes, what dropping cost, and the published ratios beside ours.

use lithify_report::csv::Columns;

use super::store::Layout;
use super::{PagesCell, PagesFigures, PagesRecord};
use crate::experiment::file_system::FileSystemSpec;
use crate::report::compare::{CLAIM_COLUMNS, Comparison, claim, claim_cells};
use crate::report::figures::{Spread, figure, figure_or_dash};
use crate::report::paired::{Family, Sides};
use crate::report::tables::{Align, Grid};
use crate::statistics::verdicts::Rounds;

const MIB: f64 = (1 << 20) as f64;

/// Time to drop 16 GB with holes over 26 GB without, by file system, as MariaDB's developers
/// published it. The time of the first was 6.53, 13.82 and 61.73 s.
const PUBLISHED_DROP: [(&str, f64); 3] =
    [("ext4", 6.53 / 6.43), ("btrfs", 13.82 / 1.74), ("xfs", 61.73 / 6.66)];

/// Time to drop about 100 GB with holes over old-style compression, XFS (Small Datum, 2015-10-02).
const PUBLISHED_DROP_OVER_SLOT: f64 = 216.0 / 5.0;

impl PagesFigures {
    /// One line for people.
    pub(super) fn line(&self) -> String {
        format!(
            "{} writes/s, {} MiB, dropped in {} s",
            figure(self.writes as f64 / self.seconds),
            figure(self.used_bytes as f64 / MIB),
            figure(self.drop.call_seconds)
        )
    }
}

/// A figure of a cell with its name, for tables and CSV.
pub(crate) type Column = (&'static str, fn(&PagesFigures) -> Option<f64>);

fn device_kib_per_write(f: &PagesFigures) -> Option<f64> {
    (f.device_written_bytes > 0).then(|| f.device_written_bytes as f64 / 1024.0 / f.writes as f64)
}

const WRITES: [Column; 12] = [
    ("fill s", |f| Some(f.fill_seconds)),
    ("writes/s", |f| Some(f.writes as f64 / f.seconds)),
    ("CPU us/w", |f| Some(f.cpu_us as f64 / f.writes.max(1) as f64)),
    ("p50 us", |f| Some(f.write_us[0] as f64)),
    ("p99 us", |f| Some(f.write_us[1] as f64)),
    ("max ms", |f| Some(f.write_us[2] as f64 / 1e3)),
    ("dev KiB/w", device_kib_per_write),
    ("two slots", |f| Some(f.pages_in_two_slots as f64)),
    ("length MiB", |f| Some(f.apparent_bytes as f64 / MIB)),
    ("du MiB", |f| Some(f.allocated_bytes as f64 / MIB)),
    ("used MiB", |f| Some(f.used_bytes as f64 / MIB)),
    ("extents", |f| f.extents.map(|extents| extents as f64)),
];

const DROP: [Column; 5] = [
    ("call s", |f| Some(f.drop.call_seconds)),
    ("call CPU s", |f| Some(f.drop.cpu_us as f64 / 1e6)),
    ("space back s", |f| Some(f.drop.back_seconds)),
    ("beside, alone ms", |f| Some(f.drop.alone.longest_us as f64 / 1e3)),
    ("beside, meanwhile ms", |f| Some(f.drop.beside.longest_us as f64 / 1e3)),
];

/// A figure of a layout on a file system over the rounds.
pub(crate) fn spread(
    record: &PagesRecord,
    file_system: &FileSystemSpec,
    layout: Layout,
    of: fn(&PagesFigures) -> Option<f64>,
) -> Option<Spread> {
    let rounds = rounds(record, file_system, layout, of);
    Spread::of(rounds.into_iter().map(|(_, value)| value).collect())
}

/// A figure of a layout on a file system, repeat by repeat.
fn rounds(
    record: &PagesRecord,
    file_system: &FileSystemSpec,
    layout: Layout,
    of: fn(&PagesFigures) -> Option<f64>,
) -> Rounds {
    let is_meant = |cell: &&PagesCell| cell.file_system == *file_system && cell.layout == layout;
    let cells = record.cells.iter().filter(is_meant);
    cells.filter_map(|cell| Some((cell.repeat, of(cell.figures.as_ref()?)?))).collect()
}

fn section(record: &PagesRecord, columns: &[Column]) -> Grid {
    let mut header = vec![("file system", Align::Left), ("pages", Align::Left)];
    header.extend(columns.iter().map(|(name, _)| (*name, Align::Right)));
    let mut rows = Vec::new();
    for file_system in &record.spec.file_systems {
        for layout in &record.spec.layouts {
            let mut row = vec![file_system.to_string(), layout.name().to_owned()];
            row.extend(columns.iter().map(|(_, of)| {
                figure_or_dash(spread(record, file_system, *layout, *of).map(|s| s.median))
            }));
            rows.push(row);
        }
    }
    Grid::new(&header, rows)
}

/// All figures of a cell.
pub(crate) fn columns() -> impl Iterator<Item = &'static Column> {
    WRITES.iter().chain(&DROP)
}

/// What writes cost, and sizes.
pub(crate) fn writes(record: &PagesRecord) -> Grid {
    section(record, &WRITES)
}

/// What dropping cost.
pub(crate) fn drops(record: &PagesRecord) -> Grid {
    section(record, &DROP)
}

/// What the words of the tables mean, and what they cannot say.
pub(crate) const NOTES: &str = "\
plain: pages as they are; slot: compressed, in slots of 8 KiB, two where one is too small; hole:
compressed, each in its place, with a hole behind it; tree: rows of a column family of Lithify.
A file system in a loop file is not one on a disk: the kernel's loop thread works beside, and what a
drop does to a device that takes discards is not seen. What is published was measured with 20 to 100
times the data, on devices.
";

/// A published ratio of times to drop: with holes, over another layout.
pub(crate) struct DropRatio {
    /// Below the line.
    pub base: Layout,
    /// On which file system.
    pub file_system: String,
    /// As published.
    pub published: f64,
    /// As measured, until the space is back; `None` without both.
    pub measured: Option<Comparison>,
}

impl DropRatio {
    /// What is compared.
    pub(crate) fn what(&self) -> String {
        format!("time to drop, hole over {}", self.base.name())
    }
}

/// Every published ratio of a file system that was measured, judged together.
pub(crate) fn drop_ratios(record: &PagesRecord) -> Vec<DropRatio> {
    let mut family = Family::default();
    let mut added = Vec::new();
    for file_system in &record.spec.file_systems {
        let name = file_system.to_string();
        let kind = name.split(':').next().unwrap_or_default();
        let mut push = |base: Layout, published: f64| {
            let back = |layout| rounds(record, file_system, layout, |f| Some(f.drop.back_seconds));
            let place = family.add(Sides {
                kind: "time to drop".to_owned(),
                values: [back(Layout::Hole), back(base)],
                ..Sides::default()
            });
            added.push((base, name.clone(), published, place));
        };
        if let Some((_, ratio)) = PUBLISHED_DROP.iter().find(|(known, _)| *known == kind) {
            push(Layout::Plain, *ratio);
        }
        if kind == "xfs" {
            push(Layout::Slot, PUBLISHED_DROP_OVER_SLOT);
        }
    }
    let findings = family.judge();
    let ratio = |(base, file_system, published, place)| {
        let measured = findings.get(place).map(|found| claim(found, published));
        DropRatio { base, file_system, published, measured }
    };
    added.into_iter().map(ratio).collect()
}

/// Times to drop, published and measured.
pub(crate) fn published(record: &PagesRecord) -> Grid {
    let row = |of: DropRatio| {
        let mut row = vec![of.what(), of.file_system];
        row.extend(claim_cells(of.published, of.measured.as_ref(), "not measured"));
        row
    };
    let rows = drop_ratios(record).into_iter().map(row).collect();
    let mut columns = vec![("what", Align::Left), ("file system", Align::Left)];
    columns.extend(CLAIM_COLUMNS);
    Grid::new(&columns, rows)
}

/// One line per cell, nothing rounded.
pub fn csv(record: &PagesRecord) -> String {
    let mut csv = Columns::new()
        .with("file_system", |cell: &PagesCell| cell.file_system.to_string())
        .with("pages", |cell| cell.layout.to_string())
        .with("round", |cell| cell.repeat);
    for (name, of) in columns() {
        let name = name.replace(", ", "_").replace([' ', '/'], "_");
        csv = csv.with(name, move |cell| cell.figures.as_ref().and_then(of));
    }
    csv.with("failure", |cell| cell.failure.clone()).csv(&record.cells)
}
