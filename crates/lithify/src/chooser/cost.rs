//! The cost equation: what a raw byte costs from the moment it is written into a level to the moment
//! a compaction consumes it. `docs/compression.md` derives it.

use super::prices::Prices;

/// Hours of a month, as storage is sold.
pub const HOURS_PER_MONTH: f64 = 730.0;

/// What a stored byte costs beside its codec when it is written and read once by compactions: copies
/// into and out of the page cache, checksums. In nanoseconds; 1.7 µs per 4 KiB read, half as much
/// again per byte for larger ones, and one copy on the way out.
const STORED_BYTE_NS: f64 = 0.6;

/// What loading a block costs beside its codec: the call, the cache's work, the index's entry.
const LOAD_NS: f64 = 2_500.0;
/// The same per stored byte: page cache and checksum.
const LOAD_BYTE_NS: f64 = 0.2;
/// The same for a block that a scan reads ahead.
const SCAN_LOAD_NS: f64 = 600.0;

/// What a device reads at once. A longer read counts as more.
const DEVICE_READ_BYTES: f64 = 16_384.0;

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
    /// Loads of blocks by lookups that missed the cache, per hour and MiB of raw bytes.
    pub points_per_mib_h: f64,
    /// How often in an hour scans load the whole level, by the bytes that they loaded.
    pub scans_per_h: f64,
    /// Whether reads are known at all, or the above are zeros for want of an observation.
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
    /// Bytes stored.
    pub store: f64,
    /// Reads of the device.
    pub device: f64,
    /// Memory of the index.
    pub memory: f64,
}

impl Terms {
    /// The terms with their names.
    pub fn named(&self) -> [(&'static str, f64); 8] {
        [
            ("store", self.store),
            ("write", self.write),
            ("compress", self.compress),
            ("merge", self.merge),
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

    /// What it takes to write them.
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
    let points_per_byte = points_per_mib / f64::from(1 << 20);
    let scans = conditions.scans_per_h * life_h;
    let load_ns = LOAD_NS + size * (behaviour.decompress_ns + ratio * LOAD_BYTE_NS);
    let scan_ns = behaviour.decompress_ns + ratio * LOAD_BYTE_NS + SCAN_LOAD_NS / size;
    // What a lookup and a raw byte of a scan read of the device, in reads.
    let reads_per_load = 1.0 + ratio * size / DEVICE_READ_BYTES;
    let reads_per_scanned = ratio / DEVICE_READ_BYTES;
    let reads_per_byte = points_per_byte * reads_per_load + scans * reads_per_scanned;
    // A GB has 1e9 bytes, a million reads 1e6.
    let price_of_reads = prices.million_reads.value() * conditions.device_share * 1e3;
    Terms {
        compress: cpu * (behaviour.compress_ns + ratio * STORED_BYTE_NS / 2.0),
        merge: cpu * (behaviour.decompress_ns + ratio * STORED_BYTE_NS / 2.0),
        points: cpu * points_per_byte * load_ns,
        scans: cpu * scans * scan_ns,
        write: prices.gb_written.value() * ratio,
        store: prices.gb_month.value() * ratio * life_months,
        device: price_of_reads * reads_per_byte,
        memory: prices.memory_gb_month.value() * conditions.index_entry_bytes / size * life_months,
    }
}
