//! The cost equation: what a raw byte costs from the moment it is written into a level to the moment
//! a compaction consumes it. `docs/compression.md` derives it.

use super::prices::Prices;

/// Hours of a month, as storage is sold.
pub const HOURS_PER_MONTH: f64 = 730.0;

/// What a stored byte costs beside its codec when it is written and read once by compactions, and its
/// file deleted: pages of the page cache, copies into and out of them, checksums. In nanoseconds:
/// 16 MB of rows stored without a codec took 0.118 s more for 116 MB that were written or read more
/// than with lz4, codecs left out.
const STORED_BYTE_NS: f64 = 1.6;

/// CPU of a merge beside codecs and stored bytes, in nanoseconds per raw byte.
pub(super) const MERGE_NS: f64 = 2.0;

/// What loading a block costs beside its codec: the call, the cache's work, the index's entry.
const LOAD_NS: f64 = 2_500.0;
/// The same per stored byte: page cache and checksum.
const LOAD_BYTE_NS: f64 = 0.2;
/// The same for a block that a scan reads ahead.
const SCAN_LOAD_NS: f64 = 600.0;

/// What a device reads at once. A longer read counts as more.
const DEVICE_READ_BYTES: f64 = 16_384.0;
/// CPU of a read that reaches the device: the call, the request, its end. Of 25 µs that a lookup of
/// blocks without a codec took past the page cache, 19 were the system's.
const DEVICE_READ_NS: f64 = 20_000.0;

/// Bytes that each stored block has beside its payload, without its entry in the index.
const TRAILER_BYTES: f64 = 14.0;

/// How a method behaves at a size of blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Behaviour {
    /// Stored bytes per raw byte, blocks that stay raw among them.
    pub ratio: f64,
    /// CPU time of encoding per raw byte, in nanoseconds.
    pub compress_ns: f64,
    /// CPU time of decoding per raw byte, in nanoseconds.
    pub decompress_ns: f64,
}

impl Behaviour {
    /// Blocks stored as they are.
    pub const RAW: Behaviour = Behaviour { ratio: 1.0, compress_ns: 0.0, decompress_ns: 0.0 };
}

/// What is expected of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// Hours from a byte's writing until a compaction consumes it.
    pub lifetime_h: f64,
    /// Loads of blocks by lookups that missed the cache, per hour and MiB of raw bytes; those that are
    /// expected without an observation among them.
    pub points_per_mib_h: f64,
    /// How often in an hour scans load the whole level, by the bytes that they loaded.
    pub scans_per_h: f64,
    /// Whether reads were observed at all.
    pub reads_known: bool,
    /// The share of loads that reach the device.
    pub device_share: f64,
    /// What CPU is worth now beside its price: more while writers are being slowed.
    pub cpu_factor: f64,
    /// Bytes of a block's entry in the index.
    pub index_entry_bytes: f64,
    /// Raw bytes of a table: each has a copy of its dictionary.
    pub table_raw_bytes: f64,
    /// Smaller blocks than this and than the first size are not chosen: indexes would leave memory, or
    /// too few reads were seen.
    pub block_bytes_min: f64,
    /// What its size changes of rewrites.
    pub shape: Shape,
}

/// How a level lies among the others: what its size changes of rewrites. Targets of levels count stored
/// bytes.
///
/// A level between the first and the last one is as large as its target. If it shrinks better it holds
/// more rows: more of its own are rewritten for what comes from above, and fewer below for what goes down.
/// The last level is as large as its rows, and targets follow from it: if all levels shrink better there
/// are fewer levels. Zeros where nothing is known of that, and for level 0, which counts runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shape {
    /// Stored bytes per raw byte that the level has now.
    pub ratio_now: f64,
    /// Raw bytes of its own that are rewritten for each that comes from above.
    pub merged: f64,
    /// Raw bytes of the next level that are rewritten for each that goes down; 0 for the last level.
    pub pushed_onto: f64,
    /// What rewriting a raw byte of the next level takes; for the last level: of the one above it.
    pub next: Rewriting,
    /// Levels that there are more if the last level becomes e times as large, times raw bytes that are
    /// written at each of them for a byte that goes through; 0 for other levels.
    pub through: f64,
}

/// What rewriting a raw byte takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rewriting {
    /// CPU of decoding, merging and encoding it, in nanoseconds.
    pub cpu_ns: f64,
    /// Bytes written.
    pub stored_bytes: f64,
}

impl Rewriting {
    /// Of bytes that are and stay encoded so.
    pub fn of(behaviour: &Behaviour) -> Self {
        let Behaviour { ratio, compress_ns, decompress_ns } = behaviour;
        Rewriting {
            cpu_ns: compress_ns + decompress_ns + MERGE_NS + ratio * STORED_BYTE_NS,
            stored_bytes: *ratio,
        }
    }

    fn cost(&self, cpu: f64, prices: &Prices) -> f64 {
        cpu * self.cpu_ns + prices.gb_written.value() * self.stored_bytes
    }
}

impl Shape {
    /// What a raw byte of a level costs by rewrites that its ratio changes, beside its own first writing
    /// and last reading. `own` is the cost of rewriting it, `next` that of a byte of the next level.
    ///
    /// For each byte that comes from above `1 + merged` are written. `merged x ratio_now / ratio` would
    /// be rewritten with it, and `pushed_onto x ratio / ratio_now` below.
    fn rewrites(&self, ratio: f64, own: f64, next: f64) -> f64 {
        if self.ratio_now <= 0.0 || ratio <= 0.0 {
            return 0.0;
        }
        let change = ratio / self.ratio_now;
        let of_all = match self.pushed_onto > 0.0 {
            true => self.merged * (1.0 / change - 1.0) * own + self.pushed_onto * change * next,
            false => self.through * change.ln() * next,
        };
        of_all / (1.0 + self.merged)
    }
}

impl Default for Conditions {
    /// A byte that lives a month, without reads.
    fn default() -> Self {
        Conditions {
            lifetime_h: HOURS_PER_MONTH,
            points_per_mib_h: 0.0,
            scans_per_h: 0.0,
            reads_known: false,
            device_share: 0.0,
            cpu_factor: 1.0,
            index_entry_bytes: 40.0,
            table_raw_bytes: 16_777_216.0,
            block_bytes_min: 0.0,
            shape: Shape::default(),
        }
    }
}

/// The cost of a raw GB over its life in a level, in the unit of prices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// CPU of encoding.
    pub compress: f64,
    /// CPU of the compaction that consumes it.
    pub merge: f64,
    /// CPU of lookups.
    pub points: f64,
    /// CPU of scans.
    pub scans: f64,
    /// Bytes written.
    pub write: f64,
    /// Rewrites that the level's ratio changes, of its own bytes and of those below: CPU and bytes.
    /// Against now: negative where there are fewer.
    pub rewrites: f64,
    /// Bytes stored.
    pub store: f64,
    /// Reads of the device.
    pub device: f64,
    /// Memory of the index.
    pub memory: f64,
}

impl Terms {
    /// The terms with their names.
    pub fn named(&self) -> [(&'static str, f64); 9] {
        [
            ("store", self.store),
            ("write", self.write),
            ("compress", self.compress),
            ("merge", self.merge),
            ("rewrites", self.rewrites),
            ("points", self.points),
            ("scans", self.scans),
            ("device", self.device),
            ("memory", self.memory),
        ]
    }

    /// Their sum.
    pub fn total(&self) -> f64 {
        self.named().iter().map(|(_, term)| term).sum()
    }

    /// What remains to be paid for bytes that are there already.
    pub fn holding(&self) -> f64 {
        self.total() - self.making()
    }

    /// What it takes to write them once.
    pub fn making(&self) -> f64 {
        self.compress + self.write
    }
}

/// Lookups that are expected of a raw MiB over its life where nothing was observed: four loads of
/// each MiB. Without it a level that nobody has read yet would get the largest blocks.
const POINTS_PER_MIB_MIN: f64 = 4.0;

/// Stored bytes that a raw byte has beside the payload of its block: a part of the block's trailer and of
/// its entry in the index.
pub fn overhead_ratio(block_size_bytes: usize, conditions: &Conditions) -> f64 {
    (TRAILER_BYTES + conditions.index_entry_bytes) / block_size_bytes.max(1) as f64
}

/// The cost of a behaviour at a size of blocks, under conditions and prices.
pub fn price(
    behaviour: &Behaviour,
    block_size_bytes: usize,
    conditions: &Conditions,
    prices: &Prices,
) -> Terms {
    let size = block_size_bytes.max(1) as f64;
    let ratio = behaviour.ratio + overhead_ratio(block_size_bytes, conditions);
    // A nanosecond per byte is a second per GB.
    let cpu = prices.cpu_second.value() * conditions.cpu_factor;
    let life_h = conditions.lifetime_h;
    let life_months = life_h / HOURS_PER_MONTH;
    let points_per_mib = (conditions.points_per_mib_h * life_h).max(POINTS_PER_MIB_MIN);
    // The entry of a block takes memory that others would have in the cache. Their loads come on top. That
    // is a lower bound: with much in the cache, an entry displaces more hits than this share of misses.
    let displaced = conditions.index_entry_bytes / size;
    let points_per_byte = points_per_mib / f64::from(1 << 20) * (1.0 + displaced);
    let scans = conditions.scans_per_h * life_h;
    let device_ns = DEVICE_READ_NS * conditions.device_share;
    let load_ns = LOAD_NS + device_ns + size * (behaviour.decompress_ns + ratio * LOAD_BYTE_NS);
    // What a lookup and a raw byte of a scan read of the device, in reads.
    let reads_per_load = 1.0 + ratio * size / DEVICE_READ_BYTES;
    let reads_per_scanned = ratio / DEVICE_READ_BYTES;
    let scan_load_ns = SCAN_LOAD_NS / size + device_ns * reads_per_scanned;
    let scan_ns = behaviour.decompress_ns + ratio * LOAD_BYTE_NS + scan_load_ns;
    let reads_per_byte = points_per_byte * reads_per_load + scans * reads_per_scanned;
    // A GB has 1e9 bytes, a million reads 1e6.
    let write = prices.gb_written.value() * ratio;
    let own = Rewriting::of(&Behaviour { ratio, ..*behaviour }).cost(cpu, prices);
    let next = conditions.shape.next.cost(cpu, prices);
    let price_of_reads = prices.million_reads.value() * conditions.device_share * 1e3;
    Terms {
        compress: cpu * (behaviour.compress_ns + ratio * STORED_BYTE_NS / 2.0),
        merge: cpu * (behaviour.decompress_ns + ratio * STORED_BYTE_NS / 2.0),
        points: cpu * points_per_byte * load_ns,
        scans: cpu * scans * scan_ns,
        write,
        rewrites: conditions.shape.rewrites(ratio, own, next),
        store: prices.gb_month.value() * ratio * life_months,
        device: price_of_reads * reads_per_byte,
        memory: prices.memory_gb_month.value() * conditions.index_entry_bytes / size * life_months,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrites(ratio: f64, shape: Shape) -> f64 {
        let behaviour = Behaviour { ratio, compress_ns: 0.0, decompress_ns: 0.0 };
        let conditions = Conditions { shape, index_entry_bytes: 0.0, ..Conditions::default() };
        // Blocks so large that their trailers do not count.
        price(&behaviour, 1 << 40, &conditions, &Prices::BALANCED).rewrites
    }

    #[test]
    fn a_level_that_holds_more_rows_rewrites_more_of_its_own_and_fewer_below() {
        let below = Rewriting { cpu_ns: 10.0, stored_bytes: 0.5 };
        let of_below = 11.0 * 10.0 + 150.0 * 0.5;
        let shape = Shape { ratio_now: 0.5, pushed_onto: 6.0, next: below, ..Shape::default() };
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-6 * expected.abs();
        assert!(near(rewrites(0.5, shape), 6.0 * of_below));
        assert!(near(rewrites(1.0, shape), 12.0 * of_below));
        // Four of its own bytes are rewritten with each new one: five are written for it. With half the
        // ratio it holds twice the rows.
        let shape = Shape { merged: 4.0, ..shape };
        let own = 11.0 * (MERGE_NS + 0.25 * STORED_BYTE_NS) + 150.0 * 0.25;
        let expected = (4.0 * own + 3.0 * of_below) / 5.0;
        assert!(near(rewrites(0.25, shape), expected), "{} {expected}", rewrites(0.25, shape));
        // Nothing is known of how it lies between others.
        assert_eq!(rewrites(0.25, Shape { ratio_now: 0.0, ..shape }), 0.0);
        // The last level: twice as large, and there is half a level more of a fanout of four.
        let through = 2.0 / 4_f64.ln();
        let last = Shape { pushed_onto: 0.0, through, ..shape };
        assert!(near(rewrites(1.0, last), 0.5 * 2.0 * of_below / 5.0), "{}", rewrites(1.0, last));
        assert!(rewrites(0.5, last).abs() < 1e-6);
    }

    #[test]
    fn reads_that_reach_the_device_take_cpu() {
        let of = |points_per_mib_h: f64, scans_per_h: f64, device_share: f64| {
            let conditions = Conditions {
                lifetime_h: 1.0,
                points_per_mib_h,
                scans_per_h,
                device_share,
                index_entry_bytes: 0.0,
                ..Conditions::default()
            };
            price(&Behaviour::RAW, 1 << 20, &conditions, &Prices::BALANCED)
        };
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-3;
        // A million loads of each MiB take 20 s of CPU; a GB has 954 MiB.
        let points = of(1e6, 0.0, 1.0).points - of(1e6, 0.0, 0.0).points;
        assert!(near(points, 11.0 * 20.0 * 1e9 / 1_048_576.0), "{points}");
        // A scan of a GB is read in 61,035 pieces of 16 KiB, each of 20 us.
        let scans = of(0.0, 1.0, 1.0).scans - of(0.0, 1.0, 0.0).scans;
        assert!(near(scans, 11.0 * 20e-6 * 1e9 / 16_384.0), "{scans}");
    }
}
