//! In which order the settings of a target are measured, and how targets take turns.
//!
//! Owns: which settings are promising ([`Turn::of`]), and what a target has had of the time. Whoever has
//! had the least is next, so that all of them get an answer however short the time is.

use std::time::Duration;

use lithify::Compression;
use lithify::codec::CodecId;

use crate::answer::{CellKey, cell_key};
use crate::measure::Cell;
use crate::sample::Order;
use crate::targets::Setting;
use crate::units::Shape;

/// Settings of a target that are measured whatever the time: the default, and what it competes with.
const NEEDED_SETTINGS: usize = 3;

/// A target's cells that are not measured yet.
pub(crate) struct Turn {
    /// The order that its rows are sampled in.
    pub(crate) order: Order,
    /// Cells that have to be known for any answer.
    pub(crate) needed: Vec<Cell>,
    /// What the target has had of the time.
    pub(crate) spent: Duration,
    /// What it may take of it now.
    pub(crate) share: Duration,
    /// The most promising ones first.
    waiting: Vec<Cell>,
}

impl Turn {
    /// All cells of a target's settings, the default first, and where they are set to the cells of `set`.
    pub(crate) fn of(mut settings: Vec<Setting>, set: &[Cell], order: Order) -> Turn {
        let size_bytes = settings.first().map_or(0, |default| default.size_bytes);
        let is_set = |setting: &Setting| setting.cells.iter().any(|cell| set.contains(cell));
        // What it comes with stays first, then what the data have.
        if let Some((_, others)) = settings.split_first_mut() {
            others.sort_by_key(|setting| (!is_set(setting), promise(setting, size_bytes)));
        }
        let set_count = settings.iter().filter(|setting| is_set(setting)).count();
        let first = settings.iter().take(NEEDED_SETTINGS + set_count);
        let needed = first.filter_map(|setting| setting.cells.first().copied()).collect();
        let mut waiting: Vec<Cell> = Vec::new();
        for cell in settings.into_iter().flat_map(|setting| setting.cells) {
            if !waiting.contains(&cell) {
                waiting.push(cell);
            }
        }
        Turn { needed, ..Turn::of_cells(waiting, order) }
    }

    /// Cells that no answer needs.
    pub(crate) fn of_cells(waiting: Vec<Cell>, order: Order) -> Turn {
        let (needed, none) = (Vec::new(), Duration::ZERO);
        Turn { order, needed, spent: none, share: none, waiting }
    }

    /// Whether everything is measured.
    pub(crate) fn is_done(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether something is not measured that any answer needs.
    pub(crate) fn is_needy(&self) -> bool {
        !self.needed.is_empty()
    }

    /// How dear the next cells are; see [`rank`].
    pub(crate) fn rank(&self) -> Option<u32> {
        self.waiting.first().map(rank)
    }

    /// All cells that are not measured, each as a key in its order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (Order, CellKey)> {
        self.waiting.iter().map(|cell| (self.order, cell_key(cell)))
    }

    /// The next cells: those that the same units are cut for, as dear as the first one.
    pub(crate) fn next(&self) -> Vec<Cell> {
        let Some(first) = self.waiting.first() else { return Vec::new() };
        let is_like = |cell: &&Cell| group_of(cell) == group_of(first);
        self.waiting.iter().filter(is_like).copied().collect()
    }

    /// Takes out what is measured.
    pub(crate) fn forget(&mut self, is_measured: impl Fn(&Cell) -> bool) {
        self.waiting.retain(|cell| !is_measured(cell));
        self.needed.retain(|cell| !is_measured(cell));
    }
}

/// What is measured together.
pub(crate) fn group_of(cell: &Cell) -> (u32, Shape, usize) {
    (rank(cell), cell.shape, cell.size_bytes)
}

/// Which settings are measured first: cheap codecs at sizes near the default's, and of those what most
/// often is the answer.
fn promise(setting: &Setting, default_bytes: usize) -> (u32, u32, usize) {
    const USUAL: [(CodecId, i32); 5] = [
        (CodecId::None, 0),
        (CodecId::Zstd, 1),
        (CodecId::Lz4, 1),
        (CodecId::Zstd, 3),
        (CodecId::Zlib, 6),
    ];
    let Compression { codec, effort, .. } = setting.compression;
    let is_usual = |usual: &(CodecId, i32)| {
        usual.0 == codec && (usual.1 == effort || !matches!(codec, CodecId::Zstd | CodecId::Zlib))
    };
    let place = USUAL.iter().position(is_usual).unwrap_or(USUAL.len());
    let steps = setting.size_bytes.max(1).ilog2().abs_diff(default_bytes.max(1).ilog2());
    (setting.cells.first().map_or(0, rank), steps, place)
}

/// How dear a cell is to measure.
pub(crate) fn rank(cell: &Cell) -> u32 {
    let Compression { codec, effort, .. } = cell.compression;
    let dear = match (codec, effort) {
        (CodecId::None | CodecId::Snappy | CodecId::Lz4, ..=1) => 0,
        (CodecId::Zstd, ..=3) => 0,
        (CodecId::Zlib, ..=6) | (CodecId::Zstd, ..=6) | (CodecId::Lz4, _) => 1,
        (CodecId::Zstd, ..=12) => 2,
        _ => 3,
    };
    dear + u32::from(cell.dictionary_bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::TARGETS;

    #[test]
    fn the_default_and_what_competes_with_it_come_first() {
        for target in TARGETS {
            let settings = (target.settings)();
            let mut turn = Turn::of(settings.clone(), &[], target.order);
            assert_eq!(turn.needed.first(), settings[0].cells.first(), "{target:?}");
            let is_raw = |cell: &Cell| cell.compression == Compression::NONE;
            assert!(turn.needed.iter().any(is_raw), "{target:?}: {:?}", turn.needed);
            assert!(turn.needed.iter().any(|cell| !is_raw(cell)), "{target:?}");
            let mut cells: Vec<Cell> = Vec::new();
            while !turn.is_done() {
                let next = turn.next();
                assert!(next.iter().all(|cell| group_of(cell) == group_of(&next[0])));
                turn.forget(|cell| next.contains(cell));
                cells.extend(next);
            }
            let all = settings.iter().flat_map(|setting| &setting.cells);
            assert!(all.clone().all(|cell| cells.contains(cell)), "{target:?}");
            assert!(cells[..2].contains(&settings[0].cells[0]), "{target:?}");
        }
    }

    #[test]
    fn what_the_data_are_set_to_follows_the_default() {
        let target = &TARGETS[0];
        let settings = (target.settings)();
        let last = settings.last().and_then(|setting| setting.cells.first()).copied();
        let set = Vec::from_iter(last);
        let turn = Turn::of(settings, &set, target.order);
        assert_eq!(turn.needed[1], set[0]);
    }
}
