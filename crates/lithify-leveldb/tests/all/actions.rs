//! Random calls, the same for the same seed.
//!
//! Owns: which calls come, and how often. It hears whether a database is open, and with which comparator, so
//! that most calls reach one.

use crate::leveldb::{Move, Setting};

/// Slots for objects of each kind.
pub const SLOTS: usize = 3;

/// Names of comparators; all order bytewise. The first one is no comparator at all.
pub const COMPARATORS: [&str; 3] = ["", "example.Bytewise", "example.AlsoBytewise"];

/// Where a database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where it is most of the time.
    Usual,
    /// In a directory that is not there.
    WithoutParent,
    /// At a file.
    File,
}

/// What a database is opened with.
#[derive(Clone, Debug)]
pub struct Opening {
    pub settings: Vec<(Setting, usize)>,
    pub comparator: usize,
    /// Bits of a filter; 0 for a policy of the caller.
    pub filter_bits: Option<i32>,
    pub place: Place,
}

/// A call, or a few that belong together.
#[derive(Clone, Debug)]
pub enum Action {
    Open(Opening),
    Close,
    Destroy(Opening),
    Repair(Opening),
    Put { key: Vec<u8>, value: Vec<u8>, is_synced: bool },
    Delete { key: Vec<u8>, is_synced: bool },
    Get { key: Vec<u8>, snapshot: Option<usize> },
    TakeSnapshot(usize),
    ReleaseSnapshot(usize),
    OpenIterator { slot: usize, snapshot: Option<usize> },
    EndIterator(usize),
    Go(usize, Move),
    BatchPut { slot: usize, key: Vec<u8>, value: Vec<u8> },
    BatchDelete { slot: usize, key: Vec<u8> },
    BatchClear(usize),
    BatchAppend { to: usize, from: usize },
    BatchTell(usize),
    Write { slot: usize, is_synced: bool },
    Property(String),
    Sizes(Vec<(Vec<u8>, Vec<u8>)>),
    Compact(Option<Vec<u8>>, Option<Vec<u8>>),
    AllRows { is_backward: bool },
    Environment,
}

/// An action, and whether a text of an earlier failure stands where the next one goes.
#[derive(Clone, Debug)]
pub struct Call {
    pub action: Action,
    pub has_earlier: bool,
}

/// Where the calls come from.
pub struct Calls {
    random: u64,
    is_open: bool,
    comparator: usize,
}

impl Calls {
    /// Those of a seed.
    pub fn new(seed: u64) -> Calls {
        Calls { random: seed.wrapping_mul(2).wrapping_add(1), is_open: false, comparator: 0 }
    }

    /// A number below `limit` (splitmix64).
    fn below(&mut self, limit: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn key(&mut self) -> Vec<u8> {
        let alphabet = [0, 1, b'a', b'b', 0xfe, 0xff];
        let length = match self.below(100) {
            0..2 => 0,
            2..70 => return format!("row-{:03}", self.below(400)).into_bytes(),
            70..98 => 1 + self.below(12),
            _ => 1000 + self.below(3000),
        };
        (0..length).map(|_| alphabet[self.below(alphabet.len())]).collect()
    }

    fn value(&mut self) -> Vec<u8> {
        let length = match self.below(1000) {
            0..600 => self.below(20),
            600..900 => 20 + self.below(280),
            900..998 => 1000 + self.below(4000),
            _ => 100_000 + self.below(50_000),
        };
        let (start, step) = (self.below(256), self.below(7));
        (0..length).map(|at| (start + at * step) as u8).collect()
    }

    fn end(&mut self) -> Option<Vec<u8>> {
        if self.once_in(3) { None } else { Some(self.key()) }
    }

    fn slot(&mut self) -> usize {
        self.below(SLOTS)
    }

    fn snapshot(&mut self) -> Option<usize> {
        if self.once_in(2) { Some(self.slot()) } else { None }
    }

    fn opening(&mut self) -> Opening {
        let mut settings = vec![(Setting::CreateIfMissing, usize::from(!self.once_in(6)))];
        let sizes = [1, 4096, 64 << 10, 256 << 10, 4 << 20];
        let any = [
            (Setting::ErrorIfExists, usize::from(self.once_in(3))),
            (Setting::ParanoidChecks, self.below(2)),
            (Setting::WriteBufferSize, sizes[self.below(3)]),
            (Setting::MaxOpenFiles, self.below(2000)),
            (Setting::BlockSize, sizes[self.below(4)]),
            (Setting::RestartInterval, 1 + self.below(32)),
            (Setting::MaxFileSize, sizes[self.below(5)]),
            (Setting::Compression, self.below(2)),
            (Setting::Cache, sizes[self.below(5)]),
        ];
        for setting in any {
            if self.once_in(3) {
                settings.push(setting);
            }
        }
        let comparator = match self.once_in(5) {
            true => self.below(COMPARATORS.len()),
            false => self.comparator,
        };
        let filter_bits = if self.once_in(2) { Some(10 * self.below(3) as i32) } else { None };
        let place = match self.below(20) {
            0 => Place::WithoutParent,
            1 => Place::File,
            _ => Place::Usual,
        };
        Opening { settings, comparator, filter_bits, place }
    }

    /// Hears what came of the last call.
    pub fn hear(&mut self, last: &Call, is_open: bool) {
        match &last.action {
            Action::Open(opening) if is_open && !self.is_open => {
                self.comparator = opening.comparator
            }
            Action::Destroy(opening) if !is_open => self.comparator = opening.comparator,
            _ => {}
        }
        self.is_open = is_open;
    }

    /// The next call.
    pub fn next(&mut self) -> Call {
        let action = if self.is_open || self.once_in(30) { self.any() } else { self.first() };
        Call { action, has_earlier: self.once_in(4) }
    }

    /// With nothing open.
    fn first(&mut self) -> Action {
        match self.below(12) {
            0 => {
                let mut opening = self.opening();
                opening.comparator = self.below(COMPARATORS.len());
                Action::Destroy(opening)
            }
            1 => {
                let mut opening = self.opening();
                opening.comparator = self.comparator;
                Action::Repair(opening)
            }
            _ => Action::Open(self.opening()),
        }
    }

    /// Most likely with an open database.
    fn any(&mut self) -> Action {
        match self.below(10_000) {
            0..2 => Action::Environment,
            2..5 => Action::Destroy(self.opening()),
            5..15 => Action::Open(self.opening()),
            15..60 => Action::Close,
            60..70 => Action::Compact(None, None),
            70..90 => Action::Compact(self.end(), self.end()),
            90..110 => Action::AllRows { is_backward: self.once_in(2) },
            110..200 => self.property(),
            200..300 => {
                Action::Sizes((0..self.below(4)).map(|_| (self.key(), self.key())).collect())
            }
            300..500 => Action::TakeSnapshot(self.slot()),
            500..600 => Action::ReleaseSnapshot(self.slot()),
            600..800 => Action::OpenIterator { slot: self.slot(), snapshot: self.snapshot() },
            800..850 => Action::EndIterator(self.slot()),
            850..3500 => {
                let to = self.step();
                Action::Go(self.slot(), to)
            }
            3500..4700 => self.batch(),
            4700..5000 => Action::Write { slot: self.slot(), is_synced: self.once_in(100) },
            5000..7000 => Action::Get { key: self.key(), snapshot: self.snapshot() },
            7000..9000 => {
                Action::Put { key: self.key(), value: self.value(), is_synced: self.once_in(500) }
            }
            _ => Action::Delete { key: self.key(), is_synced: self.once_in(500) },
        }
    }

    fn step(&mut self) -> Move {
        match self.below(20) {
            0 => Move::First,
            1 => Move::Last,
            2..7 => Move::Seek(self.key()),
            7..14 => Move::Next,
            _ => Move::Previous,
        }
    }

    fn batch(&mut self) -> Action {
        let slot = self.slot();
        match self.below(20) {
            0..2 => Action::BatchTell(slot),
            2..3 => Action::BatchClear(slot),
            3..4 => Action::BatchAppend { to: slot, from: (slot + 1) % SLOTS },
            4..8 => Action::BatchDelete { slot, key: self.key() },
            _ => Action::BatchPut { slot, key: self.key(), value: self.value() },
        }
    }

    fn property(&mut self) -> Action {
        let names = [
            "leveldb.num-files-at-level0",
            "leveldb.num-files-at-level06",
            "leveldb.num-files-at-level7",
            "leveldb.num-files-at-level",
            "leveldb.num-files-at-level1x",
            "leveldb.num-files-at-level-1",
            "leveldb.num-files-at-level99999999999999999999999",
            "leveldb.stats",
            "leveldb.sstables",
            "leveldb.approximate-memory-usage",
            "leveldb.stat",
            "leveldb.",
            "stats",
            "",
        ];
        Action::Property(names[self.below(names.len())].to_owned())
    }
}
