//! The policy that decides by measured costs: a [`Chooser`] with what the engine observes.
//!
//! 1. Tables that are written ask for a format ([`FormatPolicy::decide`]): what the chooser says
//!    under the level's conditions as they were observed last.
//! 2. While they are written, specimens of their blocks are measured ([`Deciding::study`],
//!    [`Deciding::learn`]), as far as the budget goes: a loan, and then a share of the CPU time of
//!    background work ([`Deciding::note_work`]).
//! 3. Loads of blocks and consumption by compactions are taken in when versions change, and at least
//!    every second in which somebody looks ([`Deciding::observe`]).
//! 4. What is decided changes with all of that. Tables of another format owe a rewrite where it costs
//!    less than having them ([`FormatPolicy::debt`]).
//!
//! Any thread may call; a lock is held for some ten microseconds at most.

use super::format_policy::{DICTIONARY_RAW_BYTES_MIN, Evidence, FormatPolicy, TablePlace};
use super::read_heat::FamilyHeat;
use super::study::SPECIMEN_BYTES;
use crate::base::{LEVEL_COUNT_MAX, Level, lock};
use crate::chooser::{
    Choice, Chooser, Conditions, Decision, LevelWatch, Measured, Method, Objective, Observed,
    Prices, Record, Shape, Sizes, Study,
};
use crate::codec::{
    BlockFormat, Compression, Dictionary, DictionaryHash, FormatMismatch, StoredFormat,
};
use crate::fs::BytesRead;
use crate::manifest::{FileMetadata, Version};
use crate::table::Specimen;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// The share of the CPU time of background work that goes into measuring.
const SAMPLING_SHARE: f64 = 0.008;

/// CPU time that may be spent before any was earned: a dozen specimens of what is measured first.
const LOAN_NS: f64 = 10e6;

/// What is earned and not spent is kept up to here.
const CREDIT_NS_MAX: f64 = 20e6;

/// So often conditions are looked at, in microseconds.
const OBSERVATION_US: u64 = 1_000_000;

/// Specimens are cut into samples of this size for training: about what small blocks are.
const SAMPLE_BYTES: usize = 4 << 10;

/// A dictionary is made of so many bytes of samples: four milliseconds of work that cannot be cut.
const SAMPLES_BYTES_MAX: usize = 256 << 10;

/// With fewer nothing is made.
const SAMPLES_BYTES_MIN: usize = 128 << 10;

/// A dictionary is made anew when blocks with it have become larger by this factor, against those
/// without it.
const DRIFT: f64 = 1.1;

/// Changes of mind that are remembered for each level.
const TURNS_MAX: usize = 16;

/// How a level lies among others is known once so many tables went down onto it, and as much as the level
/// above holds. Of the first few MB, 55 bytes were found to be rewritten for each that came.
const PUSHED_TABLES_MIN: f64 = 8.0;

/// More raw bytes are not expected to be rewritten for one that comes from above.
const REWRITTEN_MAX: f64 = 20.0;

/// What a block's entry takes of an index in memory beside its key: with keys of 16 bytes 81 bytes were
/// found in all, with keys of 120 bytes 185.
const INDEX_ENTRY_BYTES: f64 = 64.0;

/// From this pressure on writers are being slowed.
const SLOWING_PRESSURE: f64 = 0.25;

/// A second's pressure counts an eighth of the one before. Without that, what is chosen while writers
/// are slowed now and then went back and forth eight times in half a minute.
const PRESSURE_PART: f64 = 0.125;

/// What CPU is worth at full pressure, in multiples of its price. With eight and with three, levels were
/// stored without a codec in bursts of writes where CPU is dear. That takes a quarter less of background
/// CPU than lz4, and the rows stayed so.
const CPU_FACTOR_MAX: f64 = 2.0;

/// A change of what is chosen for a level.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// When, by the clock of the database, in microseconds; `u64::MAX` until that is first looked at.
    pub at_us: u64,
    /// What was chosen before; `None` for the first choice by cost.
    pub from: Option<Choice>,
    /// What is chosen now.
    pub to: Choice,
    /// How many specimens had been measured.
    pub specimens: u64,
    /// Raw bytes that the family had written by then.
    pub written_bytes: u64,
    /// What was expected of the level.
    pub conditions: Conditions,
}

/// See the module.
pub struct Deciding {
    /// The pressure on writers, as the bits of a number.
    pressure: AtomicU64,
    state: Mutex<State>,
}

#[derive(Clone)]
struct State {
    chooser: Chooser,
    levels: Vec<LevelState>,
    now_us: u64,
    observed_us: Option<u64>,
    reviewed_us: Option<u64>,
    bytes_read: Option<BytesRead>,
    bytes_read_us: Option<u64>,
    device_share: f64,
    block_bytes_min: f64,
    /// Of the ends of tables, in the mean.
    key_bytes: f64,
    /// The pressure on writers of the last ten seconds.
    lasting_pressure: f64,
    credit_ns: f64,
    sampled_ns: u64,
    written_bytes: u64,
    has_turned: bool,
    dictionary: DictionaryState,
}

/// The family's dictionary, and what the next one is made of.
#[derive(Clone, Default)]
struct DictionaryState {
    at_hand: Option<Arc<Dictionary>>,
    /// Pieces of the newest specimens, none of which the dictionary at hand was made of.
    samples: VecDeque<Vec<u8>>,
    samples_bytes: usize,
    /// Its ratio over that without it when it was new.
    quotient_when_new: Option<f64>,
    /// A trainer is at work.
    is_in_training: bool,
}

impl DictionaryState {
    fn gather(&mut self, specimen: Specimen) {
        for block in specimen.into_blocks() {
            for piece in block.chunks(SAMPLE_BYTES) {
                self.samples_bytes += piece.len();
                self.samples.push_back(piece.to_vec());
            }
        }
        while self.samples_bytes > SAMPLES_BYTES_MAX
            && let Some(oldest) = self.samples.pop_front()
        {
            self.samples_bytes -= oldest.len();
        }
    }

    /// Whether the gain of the one at hand has shrunk since it was new.
    fn has_drifted(&mut self, quotient: Option<f64>) -> bool {
        let Some(quotient) = quotient else { return false };
        quotient > *self.quotient_when_new.get_or_insert(quotient) * DRIFT
    }
}

#[derive(Clone, Default)]
struct LevelState {
    watch: LevelWatch,
    consumed_bytes: f64,
    merged_bytes: f64,
    /// Of its tables as they are now.
    raw_bytes: f64,
    stored_bytes: f64,
    /// How it lay among the others when enough was seen of that.
    shape: Option<Shape>,
    decision: Option<Decision>,
    turns: Vec<Turn>,
}

impl LevelState {
    fn stored_ratio(&self) -> Option<f64> {
        (self.raw_bytes > 0.0).then(|| self.stored_bytes / self.raw_bytes)
    }
}

/// Raw bytes that went through a level of late, and what it has.
struct Traffic {
    level: Level,
    stored_bytes: f64,
    /// So many have to go down before they tell something.
    telling_bytes: f64,
    /// Rewritten in it because others came from above.
    merged_bytes: f64,
    /// Gone down.
    pushed_bytes: f64,
}

impl Traffic {
    /// What was rewritten for each byte that went down, if enough went.
    fn per_pushed(&self, rewritten_bytes: f64) -> Option<f64> {
        let is_telling = self.pushed_bytes > 0.0 && self.pushed_bytes >= self.telling_bytes;
        is_telling.then(|| (rewritten_bytes / self.pushed_bytes).min(REWRITTEN_MAX))
    }
}

/// What is known of a family that decides, for people.
#[derive(Clone, Debug)]
pub struct Deliberation {
    /// The prices that it goes by.
    pub prices: Prices,
    /// The decision of each level that one was made for, with the changes before it.
    pub levels: Vec<(Level, Decision, Vec<Turn>)>,
    /// What decisions are made from.
    pub record: Record,
    /// CPU time of measuring so far, in nanoseconds.
    pub sampled_ns: u64,
    /// Specimens that were measured.
    pub specimens: u64,
}

impl Deciding {
    pub(crate) fn new(objective: Objective, block_size_bytes: Option<usize>, start: usize) -> Self {
        let sizes = match block_size_bytes {
            Some(size) => Sizes::Fixed(size),
            None => Sizes::Chosen { start_bytes: start },
        };
        Deciding {
            pressure: AtomicU64::new(0),
            state: Mutex::new(State {
                chooser: Chooser::new(objective.prices(), sizes),
                levels: Vec::new(),
                now_us: 0,
                observed_us: None,
                reviewed_us: None,
                bytes_read: None,
                bytes_read_us: None,
                device_share: 0.0,
                block_bytes_min: 0.0,
                key_bytes: 0.0,
                lasting_pressure: 0.0,
                credit_ns: LOAN_NS,
                sampled_ns: 0,
                written_bytes: 0,
                has_turned: false,
                dictionary: DictionaryState::default(),
            }),
        }
    }

    /// Takes over what another one knows: the user changed prices or sizes.
    pub(crate) fn adopt(&self, older: &Deciding) {
        let mut known = lock(&older.state).clone();
        let mut own = lock(&self.state);
        known.chooser.set_goal(*own.chooser.prices(), *own.chooser.sizes());
        // Who makes one tells the older policy.
        known.dictionary.is_in_training = false;
        *own = known;
    }

    /// Writers are under this pressure, from 0 to 1; to be told once a second.
    pub(crate) fn note_pressure(&self, pressure: f64) {
        self.pressure.store(pressure.to_bits(), Relaxed);
        let mut state = lock(&self.state);
        state.lasting_pressure += (pressure - state.lasting_pressure) * PRESSURE_PART;
    }

    /// The pressure on writers as it was told last.
    pub(crate) fn pressure(&self) -> f64 {
        f64::from_bits(self.pressure.load(Relaxed))
    }

    /// The ratio of a compression at a level, at the smallest size that is measured, if it is known.
    pub(crate) fn ratio(&self, level: Level, compression: Compression) -> Option<f64> {
        lock(&self.state).chooser.ratio(level, compression)
    }

    /// Whether hardly a block shrinks enough to be stored compressed.
    pub(crate) fn is_incompressible(&self) -> bool {
        lock(&self.state).chooser.knowledge().is_incompressible()
    }

    /// Background work has taken so much CPU time, and written so many raw bytes.
    pub(crate) fn note_work(&self, cpu_ns: u64, written_bytes: u64) {
        let mut state = lock(&self.state);
        let earned_ns = cpu_ns as f64 * SAMPLING_SHARE;
        state.credit_ns = (state.credit_ns + earned_ns).min(CREDIT_NS_MAX);
        state.written_bytes += written_bytes;
    }

    /// A compaction has read so many raw bytes of a level to write them elsewhere or anew.
    pub(crate) fn note_consumed(&self, level: Level, raw_bytes: u64) {
        lock(&self.state).level(level).consumed_bytes += raw_bytes as f64;
    }

    /// A compaction from above has rewritten so many raw bytes of a level in it.
    pub(crate) fn note_merged(&self, level: Level, raw_bytes: u64) {
        let mut state = lock(&self.state);
        let of_level = state.level(level);
        of_level.consumed_bytes += raw_bytes as f64;
        of_level.merged_bytes += raw_bytes as f64;
    }

    /// Whether a specimen is wanted of the next table of a level.
    pub(crate) fn wants_specimen(&self) -> bool {
        let state = lock(&self.state);
        state.credit_ns > 0.0
    }

    /// What to measure on a specimen that is there.
    pub(crate) fn study(&self) -> Study {
        let mut state = lock(&self.state);
        let study = state.chooser.study();
        // Paid at once, so that jobs side by side do not spend the same credit.
        state.credit_ns -= study.expected_ns * SPECIMEN_BYTES as f64;
        study
    }

    /// The dictionary to measure with.
    pub(crate) fn dictionary_at_hand(&self) -> Option<Arc<Dictionary>> {
        lock(&self.state).dictionary.at_hand.clone()
    }

    /// Samples to make a dictionary of, if one is wanted and nobody else is making it. What comes of it
    /// is to be told by [`Deciding::trained`].
    pub(crate) fn samples_to_train(&self) -> Option<Vec<Vec<u8>>> {
        let mut state = lock(&self.state);
        let quotient = state.chooser.dictionary_quotient();
        let drifted = state.dictionary.has_drifted(quotient);
        let wanted = state.chooser.wants_dictionary() || drifted;
        let can_be_paid = state.credit_ns > 0.0;
        let dictionary = &mut state.dictionary;
        let can_be_made =
            !dictionary.is_in_training && dictionary.samples_bytes >= SAMPLES_BYTES_MIN;
        if !wanted || !can_be_paid || !can_be_made {
            return None;
        }
        dictionary.is_in_training = true;
        dictionary.samples_bytes = 0;
        Some(std::mem::take(&mut dictionary.samples).into())
    }

    /// A dictionary was made of samples, or they have nothing in common. It is used once it is cheaper
    /// on specimens that come from now on: none of them was among the samples.
    pub(crate) fn trained(&self, made: Option<Arc<Dictionary>>, spent_ns: u64) {
        let mut state = lock(&self.state);
        state.credit_ns -= spent_ns as f64;
        state.sampled_ns += spent_ns;
        state.dictionary.is_in_training = false;
        if made.is_some() {
            state.chooser.set_dictionary(true);
            state.dictionary.quotient_when_new = None;
            state.dictionary.at_hand = made;
        }
    }

    #[cfg(test)]
    pub(crate) fn gather_for_test(&self, block: &[u8]) {
        lock(&self.state).dictionary.gather(Specimen::of_block(block.to_vec()));
    }

    /// Takes in what was measured on a specimen, which had been expected to take `expected_ns` for each
    /// byte.
    pub(crate) fn learn(
        &self,
        level: Level,
        (specimen, measured): (Specimen, &[Measured]),
        expected_ns: f64,
        spent_ns: u64,
    ) {
        let mut state = lock(&self.state);
        state.dictionary.gather(specimen);
        state.credit_ns += expected_ns * SPECIMEN_BYTES as f64 - spent_ns as f64;
        state.sampled_ns += spent_ns;
        state.chooser.learn(level, measured);
    }

    /// Whether [`Deciding::observe`] is to be told what the process has read.
    pub(crate) fn wants_bytes_read(&self, now_us: u64) -> bool {
        is_due(lock(&self.state).bytes_read_us, now_us)
    }

    /// Whether [`Deciding::review`] is due; whoever is told so is to do it. Observations do not put it
    /// off: under load they come faster than reviews are due.
    pub(crate) fn begin_review(&self, now_us: u64) -> bool {
        let mut state = lock(&self.state);
        let due = is_due(state.reviewed_us, now_us);
        if due {
            state.reviewed_us = Some(now_us);
        }
        due
    }

    /// All indexes are to fit into so many bytes, beside which a database has so many raw bytes.
    pub(crate) fn note_memory(&self, index_bytes_max: f64, raw_bytes: f64) {
        let mut state = lock(&self.state);
        let entry_bytes = INDEX_ENTRY_BYTES + state.key_bytes;
        state.block_bytes_min = raw_bytes * entry_bytes / index_bytes_max;
    }

    /// The database reads past the page cache: every load reaches the device.
    pub(crate) fn reads_reach_devices(&self) {
        lock(&self.state).device_share = 1.0;
    }

    /// Takes in what has become of the levels: their bytes, and what users' reads loaded of them.
    pub(crate) fn observe(&self, version: &Version, now_us: u64, bytes_read: Option<BytesRead>) {
        let mut observed = vec![Observed::default(); version.level_count()];
        let mut stored_bytes = vec![0.0; version.level_count()];
        let (mut ends, mut ends_bytes) = (0.0, 0.0);
        for (level, table) in version.tables() {
            let Some(observed) = observed.get_mut(level) else { continue };
            let range = &table.metadata.range;
            ends += 2.0;
            ends_bytes += (range.smallest.len() + range.largest.len()) as f64;
            observed.raw_bytes += table.metadata.raw_bytes as f64;
            observed.tables += 1.0;
            stored_bytes[level] += table.metadata.size_bytes as f64;
            if let Ok(reader) = table.reader() {
                let loads = reader.take_loads();
                observed.point_loads += loads.point_loads as f64;
                observed.scanned_bytes += loads.scanned_bytes as f64;
            }
        }
        let mut state = lock(&self.state);
        if state.observed_us.is_none() {
            state.date_turns(now_us);
        }
        (state.now_us, state.observed_us) = (now_us, Some(now_us));
        if ends > 0.0 {
            state.key_bytes = ends_bytes / ends;
        }
        state.observe_device(bytes_read);
        for (level, mut of_level) in observed.into_iter().enumerate() {
            let state = state.level(level);
            of_level.consumed_bytes = std::mem::take(&mut state.consumed_bytes);
            of_level.merged_bytes = std::mem::take(&mut state.merged_bytes);
            (state.raw_bytes, state.stored_bytes) = (of_level.raw_bytes, stored_bytes[level]);
            state.watch.observe(now_us, &of_level);
        }
    }

    /// What was observed so far, to be kept for the next opening.
    pub(crate) fn heat(&self) -> FamilyHeat {
        let state = lock(&self.state);
        let levels = state.levels.iter().enumerate();
        let known = levels.filter_map(|(level, of_level)| Some((level, of_level.watch.numbers()?)));
        FamilyHeat { device_share: state.device_share, levels: known.collect() }
    }

    /// Goes on from what was observed before the database was closed, and decides anew. Numbers that
    /// cannot be are left out.
    pub(crate) fn warm(&self, heat: &FamilyHeat, places: &[TablePlace], now_us: u64) {
        {
            let mut state = lock(&self.state);
            if (0.0..=1.0).contains(&heat.device_share) {
                state.device_share = heat.device_share;
            }
            for (level, numbers) in heat.levels.iter().filter(|(level, _)| *level < LEVEL_COUNT_MAX)
            {
                if let Some(watch) = LevelWatch::from_numbers(*numbers, now_us) {
                    state.level(*level).watch = watch;
                }
            }
        }
        self.review(places);
    }

    /// Decides for all levels that were decided for before. Whether anything has changed since this
    /// was last asked.
    pub(crate) fn review(&self, places: &[TablePlace]) -> bool {
        for place in places {
            self.choose(place);
        }
        std::mem::take(&mut lock(&self.state).has_turned)
    }

    fn choose(&self, place: &TablePlace) -> Choice {
        let mut state = lock(&self.state);
        let cpu_factor = cpu_factor(state.lasting_pressure);
        state.choose(place.level, cpu_factor)
    }

    /// What the decision for a level was made from; `None` without evidence.
    pub(crate) fn record_of(&self, level: Level) -> Option<String> {
        let state = lock(&self.state);
        let decision = state.levels.get(level)?.decision.as_ref()?;
        decision.chosen?;
        Some(Record::of(&state.chooser, &[(level, decision.conditions)]).to_string())
    }

    /// Takes up what a table of a level records. The newest is to come last. What cannot be read, as of
    /// a newer version, is left out: it is knowledge, no data.
    pub(crate) fn recall(&self, recorded: &[u8], dictionary: Option<Arc<Dictionary>>) {
        let text = std::str::from_utf8(recorded).ok();
        let Some(mut record) = text.and_then(|text| text.parse::<Record>().ok()) else { return };
        let mut state = lock(&self.state);
        let (prices, sizes) = (*state.chooser.prices(), *state.chooser.sizes());
        record.chooser.set_goal(prices, sizes);
        // A table of few rows has none, while others of the family do.
        let dictionary = dictionary.or_else(|| state.dictionary.at_hand.take());
        if dictionary.is_some() != record.chooser.has_dictionary() {
            record.chooser.set_dictionary(dictionary.is_some());
        }
        state.dictionary.at_hand = dictionary;
        for (level, choice) in state.chooser.standings() {
            record.chooser.set_standing(level, choice);
        }
        for (level, conditions) in record.asked {
            state.take_up(level, &conditions);
            let decision = record.chooser.decide(level, &conditions);
            state.level(level).decision = Some(decision);
        }
        state.chooser = record.chooser;
    }

    /// What is decided, and from what.
    pub(crate) fn deliberation(&self) -> Deliberation {
        let state = lock(&self.state);
        let decided = state.levels.iter().enumerate().filter_map(|(level, of_level)| {
            Some((level, of_level.decision.clone()?, of_level.turns.clone()))
        });
        let levels: Vec<_> = decided.collect();
        let asked: Vec<_> =
            levels.iter().map(|(level, decision, _)| (*level, decision.conditions)).collect();
        Deliberation {
            prices: *state.chooser.prices(),
            record: Record::of(&state.chooser, &asked),
            levels,
            sampled_ns: state.sampled_ns,
            specimens: state.chooser.specimens(),
        }
    }
}

/// A choice as tables are written, with the dictionary if it has one.
fn format_of(choice: &Choice, dictionary: Option<&Arc<Dictionary>>) -> BlockFormat {
    let dictionary = dictionary.filter(|_| choice.method.has_dictionary);
    let format = BlockFormat::new(choice.method.compression, choice.block_size_bytes);
    BlockFormat { dictionary: dictionary.map(|dictionary| dictionary.hash()), ..format }
}

fn is_due(last_us: Option<u64>, now_us: u64) -> bool {
    last_us.is_none_or(|at_us| now_us >= at_us.saturating_add(OBSERVATION_US))
}

/// What CPU is worth beside its price: more while writers wait for it.
fn cpu_factor(pressure: f64) -> f64 {
    let slowing = (pressure - SLOWING_PRESSURE).max(0.0) / (1.0 - SLOWING_PRESSURE);
    1.0 + (CPU_FACTOR_MAX - 1.0) * slowing
}

impl State {
    fn level(&mut self, level: Level) -> &mut LevelState {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, LevelState::default);
        }
        &mut self.levels[level]
    }

    /// Goes on from what a decision was recorded with: too little will be seen at first to know it.
    fn take_up(&mut self, level: Level, conditions: &Conditions) {
        if conditions.shape != Shape::default() {
            self.level(level).shape = Some(conditions.shape);
        }
        let recorded = conditions.block_bytes_min;
        // Of levels that are hardly read a larger one is recorded.
        if self.block_bytes_min == 0.0 || recorded < self.block_bytes_min {
            self.block_bytes_min = recorded;
        }
    }

    /// The share of reads that reach a device, from what the process has read since last time.
    fn observe_device(&mut self, bytes_read: Option<BytesRead>) {
        let Some(now) = bytes_read else { return };
        self.bytes_read_us = self.observed_us;
        if let Some(before) = self.bytes_read {
            let by_calls = now.by_calls.saturating_sub(before.by_calls) as f64;
            let from_devices = now.from_devices.saturating_sub(before.from_devices) as f64;
            if by_calls > 0.0 {
                let share = (from_devices / by_calls).min(1.0);
                self.device_share += (share - self.device_share) / 4.0;
            }
        }
        self.bytes_read = Some(now);
    }

    fn conditions(&mut self, level: Level, cpu_factor: f64) -> Conditions {
        let horizon_h = self.chooser.prices().horizon_h();
        let device_share = self.device_share;
        let watch = &self.level(level).watch;
        let (observed, is_guess) =
            (watch.conditions(horizon_h), watch.reads_are_a_guess(horizon_h));
        // Reads that nobody has seen keep blocks from becoming large, and do not make them small.
        let block_bytes_min = match is_guess {
            true => self.block_bytes_min.max(self.chooser.sizes().start_bytes() as f64),
            false => self.block_bytes_min,
        };
        let shape = self.shape(level).unwrap_or_default();
        Conditions { device_share, cpu_factor, block_bytes_min, shape, ..observed }
    }

    /// How a level lies among the others, as it was seen last; `None` for level 0, which is compacted by
    /// its runs, and where too little was seen of it so far.
    fn shape(&mut self, level: Level) -> Option<Shape> {
        let seen = self.shape_seen(level);
        let of_level = self.level(level);
        of_level.shape = seen.or(of_level.shape);
        let ratio_now = of_level.stored_ratio();
        of_level
            .shape
            .map(|shape| Shape { ratio_now: ratio_now.unwrap_or(shape.ratio_now), ..shape })
    }

    fn shape_seen(&self, level: Level) -> Option<Shape> {
        let own = self.traffic(level).filter(|_| level > 0)?;
        let above = self.traffic_above(level)?;
        let merged = above.per_pushed(own.merged_bytes)?;
        let ratio_now = self.levels.get(level)?.stored_ratio()?;
        let shape = Shape { ratio_now, merged, ..Shape::default() };
        let below = (level + 1..self.levels.len()).find_map(|below| self.traffic(below));
        if let Some(below) = below {
            let pushed_onto = own.per_pushed(below.merged_bytes)?;
            return Some(Shape {
                pushed_onto,
                next: self.chooser.rewriting(below.level)?,
                ..shape
            });
        }
        // Levels that would be added are as the one above the last.
        let merged_above = self.traffic_above(above.level)?.per_pushed(above.merged_bytes)?;
        let fanout = own.stored_bytes / above.stored_bytes.max(1.0);
        let fanout = fanout.clamp(2.0, REWRITTEN_MAX);
        let through = (1.0 + merged_above) / fanout.ln();
        Some(Shape { through, next: self.chooser.rewriting(above.level)?, ..shape })
    }

    /// Dates what was chosen before the first look at the clock: now, and not when the clock began.
    fn date_turns(&mut self, now_us: u64) {
        self.levels
            .iter_mut()
            .flat_map(|level| &mut level.turns)
            .for_each(|turn| turn.at_us = now_us);
    }

    /// What went through a level that has tables. Level 0 may have none just now.
    fn traffic(&self, level: Level) -> Option<Traffic> {
        let of_level = self.levels.get(level)?;
        let stored_bytes = of_level.stored_bytes;
        let (merged_bytes, pushed_bytes) = of_level.watch.merged_and_pushed_bytes();
        let tables_bytes = PUSHED_TABLES_MIN * of_level.watch.table_raw_bytes();
        let telling_bytes = of_level.raw_bytes.max(tables_bytes);
        let traffic = Traffic { level, stored_bytes, telling_bytes, merged_bytes, pushed_bytes };
        (level == 0 || stored_bytes > 0.0).then_some(traffic)
    }

    fn traffic_above(&self, level: Level) -> Option<Traffic> {
        (0..level).rev().find_map(|above| self.traffic(above))
    }

    fn choose(&mut self, level: Level, cpu_factor: f64) -> Choice {
        let conditions = self.conditions(level, cpu_factor);
        let decision = self.chooser.decide(level, &conditions);
        let (choice, specimens) = (decision.choice, decision.specimens.1);
        if decision.chosen.is_some() && decision.before != Some(choice) {
            let turn = Turn {
                at_us: self.observed_us.unwrap_or(u64::MAX),
                from: decision.before,
                to: choice,
                specimens,
                written_bytes: self.written_bytes,
                conditions,
            };
            let turns = &mut self.level(level).turns;
            if turns.len() == TURNS_MAX {
                turns.remove(0);
            }
            turns.push(turn);
            self.has_turned = true;
        }
        self.level(level).decision = Some(decision);
        choice
    }

    /// The cheapest choice for a level among those without a dictionary.
    fn without_dictionary(&self, level: Level) -> Option<Choice> {
        let decision = self.levels.get(level)?.decision.as_ref()?;
        let mut candidates = decision.candidates.iter().map(|candidate| candidate.choice);
        candidates.find(|choice| !choice.method.has_dictionary)
    }

    /// Whether a table of a level owes a rewrite.
    fn owes(&mut self, place: &TablePlace, table: &FileMetadata, cpu_factor: f64) -> bool {
        let Some(wanted) = self.chooser.standing(place.level) else { return false };
        let stored = table.stored_format();
        let had = Choice {
            method: Method {
                compression: table.compression,
                has_dictionary: stored.dictionary.flatten().is_some(),
            },
            block_size_bytes: stored
                .block_size_bytes
                .unwrap_or_else(|| self.chooser.sizes().start_bytes()),
        };
        // A small table would get no dictionary.
        let small = table.raw_bytes < DICTIONARY_RAW_BYTES_MIN;
        if had == wanted || table.raw_bytes == 0 || (wanted.method.has_dictionary && small) {
            return false;
        }
        let ratio = table.size_bytes as f64 / table.raw_bytes as f64;
        let conditions = self.conditions(place.level, cpu_factor);
        self.chooser.rewrite_pays(place.level, &conditions, (had, ratio), wanted) == Some(true)
    }
}

impl FormatPolicy for Deciding {
    fn decide(&self, place: &TablePlace, evidence: &Evidence) -> BlockFormat {
        let choice = self.choose(place);
        let state = lock(&self.state);
        let small = evidence.raw_bytes < self.dictionary_raw_bytes_min();
        let dictionary = state.dictionary.at_hand.as_ref().filter(|_| !small);
        let choice = match choice.method.has_dictionary && dictionary.is_none() {
            true => state.without_dictionary(place.level).unwrap_or(choice),
            false => choice,
        };
        format_of(&choice, dictionary)
    }

    fn peek(&self, place: &TablePlace) -> BlockFormat {
        let state = lock(&self.state);
        format_of(&state.chooser.outlook(place.level), state.dictionary.at_hand.as_ref())
    }

    fn dictionary(&self, name: DictionaryHash) -> Option<Arc<Dictionary>> {
        self.dictionary_at_hand().filter(|at_hand| at_hand.hash() == name)
    }

    fn debt(&self, place: &TablePlace, table: &FileMetadata) -> Option<FormatMismatch> {
        let mut state = lock(&self.state);
        let cpu_factor = cpu_factor(state.lasting_pressure);
        let owes = state.owes(place, table, cpu_factor);
        let wanted = state.chooser.standing(place.level).filter(|_| owes)?;
        let stored = table.stored_format();
        let format = BlockFormat::new(wanted.method.compression, wanted.block_size_bytes);
        // Which dictionary it is does not matter.
        let dictionary = stored.dictionary.flatten();
        BlockFormat { dictionary: dictionary.filter(|_| wanted.method.has_dictionary), ..format }
            .mismatch(&stored)
            .or(Some(FormatMismatch::Dictionary))
    }

    fn takes_blocks(&self, wanted: &BlockFormat, stored: &StoredFormat) -> bool {
        matches!(wanted.mismatch(stored), None | Some(FormatMismatch::Dictionary))
    }

    fn deciding(&self) -> Option<&Deciding> {
        Some(self)
    }
}
