//! The course of a study: samples in the orders of all targets, calls of codecs within the time, more
//! places where an interval is too wide.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use lithify::Compression;
use lithify::codec::CodecId;

use crate::Request;
use crate::answer::{
    Advice, Calls, CellKey, Course, DataFacts, Outcome, TESTED_PLACES, TargetAdvice, cell_key,
    is_unfit, outcome, reprice,
};
use crate::error::Result;
use crate::estimate::Estimate;
use crate::input::Source;
use crate::measure::{Bench, Call, Cell};
use crate::rows::Rows;
use crate::sample::{
    Collected, InputSample, Order, PLACES_MAX, PLACES_MIN, Sample, by_pass, double, of_input,
    resorted,
};
use crate::targets::{Basis, Setting, Target};
use crate::tree::{self, Use};
use crate::turns::{Turn, group_of};
use crate::units::{Shape, Unit, cut};
use crate::unknown::{is_little, unknown};
use crate::watch::{Early, Watch};

/// More places are looked at until the size of what matters is known to this part.
const WANTED_WIDTH: f64 = 0.01;
/// Settings that are dearer than the best by more than this are not measured again.
const CONTENDER: f64 = 1.10;
/// The part of the time after which no place is looked at but those that are needed.
const PLACES_PART: u32 = 4;
/// The part of the time that a pass over the data may take.
const PASS_PART: u32 = 2;
/// The part of the time after which no new round begins.
const ROUND_PART: f64 = 0.5;

/// What is left for measuring at least, however long reading took.
const GRACE: Duration = Duration::from_secs(2);

/// Rows that are quoted where that is asked for.
const SAMPLES: usize = 3;
/// So much of each.
const SAMPLE_BYTES: usize = 160;

/// Data of which every unit is measured.
const SMALL_BYTES: f64 = 4_194_304.0;

/// The measured calls of one order.
type Measured = BTreeMap<CellKey, Vec<Call>>;

pub(crate) struct Study<'a> {
    source: &'a mut dyn Source,
    request: &'a Request,
    targets: &'a [Target],
    began: Instant,
    input: InputSample,
    /// Those that differ from the input's.
    sorted: BTreeMap<Order, Sample>,
    bench: Bench,
    measured: BTreeMap<Order, Measured>,
    /// How many places of each order the calls are from.
    places: BTreeMap<Order, usize>,
    basis: Basis,
    /// What the data are set to.
    set: Vec<Cell>,
    /// Whether every unit of every place is measured.
    is_thorough: bool,
    /// What may be taken beyond the time, so that something is known.
    grace: Duration,
    /// Cells that are measured of those that are to be.
    progress: [u64; 2],
}

/// When measuring ends, from the start of the study.
#[derive(Clone, Copy)]
struct Limits {
    /// No cell begins later.
    share: Duration,
    /// No call of a codec does.
    end: Duration,
}

impl<'a> Study<'a> {
    /// Reads the places, in all orders that the targets have.
    pub(crate) fn begin(
        source: &'a mut dyn Source,
        request: &'a Request,
        targets: &'a [Target],
        began: Instant,
        watch: &dyn Watch,
    ) -> Result<Study<'a>> {
        let end = began + request.time / PLACES_PART;
        let input = of_input(source, end, watch)?;
        let rows = input.sample.places.iter().flat_map(Rows::iter);
        let (count, keys) =
            rows.fold((0, 0), |(count, keys), row| (count + 1, keys + row.key.len()));
        let count = f64::from(count.max(1));
        let data_bytes = source.facts().data_bytes as f64;
        let basis = Basis {
            key_bytes: keys as f64 / count,
            row_bytes: input.row_bytes,
            data_bytes,
            has_rows: source.facts().has_rows,
            database_bytes: request.expectations.database_bytes.unwrap_or(data_bytes),
        };
        let present = source.present();
        let set = targets.iter().flat_map(|target| target.settings_of(present.as_ref()));
        let set = set.flat_map(|setting| setting.cells).collect();
        let mut study = Study {
            set,
            source,
            request,
            targets,
            began,
            input,
            sorted: BTreeMap::new(),
            bench: Bench::new(),
            measured: BTreeMap::new(),
            places: BTreeMap::new(),
            basis,
            is_thorough: basis.data_bytes <= SMALL_BYTES,
            grace: Duration::ZERO,
            progress: [0; 2],
        };
        study.sort(watch)?;
        Ok(study)
    }

    /// Puts rows in the orders that are not the input's.
    fn sort(&mut self, watch: &dyn Watch) -> Result<()> {
        let has_key = !self.source.facts().key.is_empty();
        let is_there = |order: Order| match order {
            Order::Input => true,
            // Without a name for the key, rows are numbered as they come.
            Order::Key => !has_key || self.input.is_sorted,
            Order::Hash => false,
        };
        let orders: BTreeSet<Order> = self.targets.iter().map(|target| target.order).collect();
        let missing: Vec<Order> = orders.into_iter().filter(|order| !is_there(*order)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let passed = match self.input.is_whole {
            true => None,
            false => {
                let allowed = self.request.time / PASS_PART;
                by_pass(self.source, &self.input, &missing, allowed, watch)?
            }
        };
        let samples = passed
            .unwrap_or_else(|| missing.iter().map(|order| resorted(&self.input, *order)).collect());
        self.sorted.extend(samples.into_iter().map(|sample| (sample.order, sample)));
        Ok(())
    }

    fn sample(&self, order: Order) -> &Sample {
        self.sorted.get(&order).unwrap_or(&self.input.sample)
    }

    /// The order that a target's rows are sampled in: the input's where it is the same.
    fn sampled_order(&self, target: &Target) -> Order {
        self.sample(target.order).order
    }

    /// The settings of a target that are compared.
    fn settings(&self, target: &Target) -> Vec<Setting> {
        target.settings_beside(self.source.present().as_ref())
    }

    /// What is left of the time.
    fn left(&self) -> Duration {
        self.limits().end.saturating_sub(self.began.elapsed())
    }

    /// The end of the time.
    fn limits(&self) -> Limits {
        Limits { share: Duration::MAX, end: self.request.time.saturating_add(self.grace) }
    }

    /// Makes what is left [`GRACE`] at least.
    fn allow_grace(&mut self) {
        self.grace = (self.began.elapsed() + GRACE).saturating_sub(self.request.time);
    }

    fn is_over(&self, watch: &dyn Watch) -> bool {
        self.left().is_zero() || watch.is_hurried()
    }

    /// Measures settings of all targets on the first places, each target in its turn.
    pub(crate) fn measure(&mut self, watch: &dyn Watch) -> Result<()> {
        let mut turns: Vec<Turn> = (self.targets.iter())
            .map(|target| Turn::of(self.settings(target), &self.set, self.sampled_order(target)))
            .collect();
        if let Some(order) = turns.iter().map(|turn| turn.order).min() {
            // What is said of the data themselves.
            turns.push(Turn::of_cells([4, 64].map(|kib| facts_cell(kib << 10)).to_vec(), order));
        }
        // Reading took what there was: without more, the cheapest would be what is measured first.
        if self.input.is_short {
            self.allow_grace();
        }
        let all = turns.iter().flat_map(|turn| turn.keys());
        self.progress = [0, all.collect::<BTreeSet<_>>().len() as u64];
        let mut before = None;
        while let Some(turn) = self.next_turn(&mut turns, watch) {
            if before.replace(turn.rank()) != Some(turn.rank()) {
                self.tell_early(watch);
            }
            let began = Instant::now();
            self.take(turn, watch)?;
            turn.spent += began.elapsed();
        }
        self.tell_early(watch);
        self.grace = Duration::ZERO;
        self.measure_unsorted(watch)
    }

    /// The turn of whoever has had the least of the time. Once that is over, of who has no answer yet.
    fn next_turn<'t>(&self, turns: &'t mut [Turn], watch: &dyn Watch) -> Option<&'t mut Turn> {
        for turn in turns.iter_mut() {
            let by_cell = self.measured.get(&turn.order);
            turn.forget(|cell| by_cell.is_some_and(|all| all.contains_key(&cell_key(cell))));
        }
        if watch.is_hurried() && !self.measured.is_empty() {
            return None;
        }
        let is_over = self.is_over(watch);
        let has_next = |turn: &&mut Turn| if is_over { turn.is_needy() } else { !turn.is_done() };
        let open: Vec<&mut Turn> = turns.iter_mut().filter(has_next).collect();
        let share = self.left() / open.len().max(1) as u32;
        let next = open.into_iter().min_by_key(|turn| turn.spent)?;
        next.share = share;
        Some(next)
    }

    /// Measures the next cells of a turn as long as its share of the time lasts. Once that is over, those that
    /// are needed, on a few places.
    fn take(&mut self, turn: &Turn, watch: &dyn Watch) -> Result<()> {
        if !self.is_over(watch) {
            let share = self.began.elapsed() + turn.share;
            let limits = Limits { share, ..self.limits() };
            return self.measure_group(turn.order, &turn.next(), PLACES_MIN, limits, watch);
        }
        let limits = Limits { share: Duration::MAX, end: Duration::MAX };
        for cell in &turn.needed {
            self.measure_group(turn.order, &[*cell], TESTED_PLACES, limits, watch)?;
        }
        Ok(())
    }

    /// Measures in the order of the input what is advised for an order that only sampled rows are in.
    fn measure_unsorted(&mut self, watch: &dyn Watch) -> Result<()> {
        let mut cells: Vec<Cell> = Vec::new();
        let is_unknown =
            |target: &&Target| self.sample(target.order).collected == Collected::OfSampledRows;
        for target in self.targets.iter().filter(is_unknown) {
            let best = self.advice(target).map(|advice| advice.best().setting.cells.clone());
            for cell in best.into_iter().flatten().filter(|cell| cell.dictionary_bytes == 0) {
                if !cells.contains(&cell) {
                    cells.push(cell);
                }
            }
        }
        if cells.is_empty() {
            return Ok(());
        }
        self.allow_grace();
        self.measure_cells(&BTreeMap::from([(Order::Input, cells)]), PLACES_MIN, watch)?;
        self.grace = Duration::ZERO;
        Ok(())
    }

    /// Looks at more places for what matters, as long as there is time.
    pub(crate) fn improve(&mut self, watch: &dyn Watch) -> Result<()> {
        if self.input.is_whole {
            let contenders = if self.is_thorough { BTreeMap::new() } else { self.contenders() };
            self.is_thorough = true;
            return self.measure_cells(&contenders, PLACES_MIN, watch);
        }
        let mut places = PLACES_MIN;
        while places < PLACES_MAX {
            let spent = self.began.elapsed().as_secs_f64();
            if spent > self.request.time.as_secs_f64() * ROUND_PART || self.is_over(watch) {
                return Ok(());
            }
            let contenders = self.contenders();
            if contenders.is_empty() {
                return Ok(());
            }
            places *= 2;
            let is_spent = places > self.source.places_max() || self.input.is_short;
            if contenders.contains_key(&Order::Input) && is_spent {
                return Ok(());
            }
            if contenders.contains_key(&Order::Input) {
                double(self.source, &mut self.input.sample, watch)?;
            }
            self.measure_cells(&contenders, places, watch)?;
        }
        Ok(())
    }

    /// Cells whose sizes are not known well enough for how near they are to the best.
    fn contenders(&self) -> BTreeMap<Order, Vec<Cell>> {
        let mut contenders: BTreeMap<Order, Vec<Cell>> = BTreeMap::new();
        for target in self.targets {
            let Some(advice) = self.advice(target) else { continue };
            let least = advice.best().cost();
            let matters = |at: usize, one: &&Outcome| {
                one.cost() <= least * CONTENDER
                    || [advice.default, advice.present].contains(&Some(at))
            };
            let near: Vec<&Outcome> = (advice.outcomes.iter().enumerate())
                .filter(|(at, one)| matters(*at, one))
                .map(|(_, one)| one)
                .collect();
            if near.iter().all(|one| one.ratio.relative() <= WANTED_WIDTH) {
                continue;
            }
            let cells = contenders.entry(self.sampled_order(target)).or_default();
            for cell in near.iter().flat_map(|one| &one.setting.cells) {
                if !cells.contains(cell) {
                    cells.push(*cell);
                }
            }
        }
        contenders
    }

    /// Measures cells on so many places of each order; cheap codecs first, and as many as time allows.
    fn measure_cells(
        &mut self,
        cells: &BTreeMap<Order, Vec<Cell>>,
        places: usize,
        watch: &dyn Watch,
    ) -> Result<()> {
        self.progress = [0, cells.values().map(Vec::len).sum::<usize>() as u64];
        let mut groups: BTreeMap<(u32, Order, Shape, usize), Vec<Cell>> = BTreeMap::new();
        for (order, cells) in cells {
            for cell in cells {
                let (rank, shape, size_bytes) = group_of(cell);
                groups.entry((rank, *order, shape, size_bytes)).or_default().push(*cell);
            }
        }
        let mut before = groups.keys().next().map(|first| first.0);
        for ((rank, order, ..), group) in groups {
            if before.replace(rank) != Some(rank) {
                self.tell_early(watch);
            }
            // What has been measured is an answer; the rest is told.
            if self.is_over(watch) && !self.measured.is_empty() {
                break;
            }
            self.measure_group(order, &group, places, self.limits(), watch)?;
        }
        self.tell_early(watch);
        Ok(())
    }

    /// Measures cells that the same units are cut for, until a limit.
    fn measure_group(
        &mut self,
        order: Order,
        group: &[Cell],
        places: usize,
        limits: Limits,
        watch: &dyn Watch,
    ) -> Result<()> {
        let Some(first) = group.first() else { return Ok(()) };
        let units = self.units(order, first.shape, first.size_bytes, places)?;
        let numbered: Vec<(usize, &Unit)> =
            units.iter().map(|(place, unit)| (*place, unit)).collect();
        for cell in group {
            let (is_first, began) = (self.measured.is_empty(), self.began);
            let is_over = began.elapsed() >= limits.share.min(limits.end) || watch.is_hurried();
            if is_over && !is_first {
                break;
            }
            // Something has to be known: the first cell is measured as a whole.
            let goes_on = || is_first || (began.elapsed() < limits.end && !watch.is_hurried());
            let measured = self.bench.measure(cell, &numbered, &goes_on)?;
            let Some(measured) = measured else { break };
            self.measured.entry(order).or_default().insert(cell_key(cell), measured.calls);
            let [done, total] = &mut self.progress;
            *done += 1;
            watch.hear("measuring codecs", *done, *total)?;
        }
        let looked_at = places.min(self.sample(order).places.len());
        let known = self.places.entry(order).or_default();
        *known = looked_at.max(*known);
        Ok(())
    }

    /// What would be answered now.
    fn tell_early(&self, watch: &dyn Watch) {
        let rows = self.source.facts().has_rows.then_some(self.input.rows);
        if is_little(self.source.facts().data_bytes, rows) {
            return;
        }
        let early = |advice: TargetAdvice| {
            let (target, best) = (advice.target.name, advice.best());
            Early { target, setting: best.name(), ratio: best.ratio }
        };
        let targets = self.targets.iter().filter_map(|target| self.advice(target));
        watch.hear_early(&targets.map(early).collect::<Vec<_>>());
    }

    /// Some rows, as they are where that can be printed.
    fn samples(&self) -> Vec<String> {
        let places = &self.input.sample.places;
        let count: usize = places.iter().map(Rows::len).sum();
        let all = || places.iter().flat_map(Rows::iter);
        let row = |number: usize| {
            let row = all().nth((2 * number + 1) * count / (2 * SAMPLES))?;
            let shown = &row.value[..row.value.len().min(SAMPLE_BYTES)];
            let rest = if shown.len() < row.value.len() { "…" } else { "" };
            Some(format!("{}{rest}", String::from_utf8_lossy(shown).escape_debug()))
        };
        (0..SAMPLES.min(count)).filter_map(row).collect()
    }

    /// The units of evenly spaced places of an order, each with the number of its place.
    fn units(
        &self,
        order: Order,
        shape: Shape,
        size_bytes: usize,
        places: usize,
    ) -> Result<Vec<(usize, Unit)>> {
        let all = &self.sample(order).places;
        let count = places.min(all.len());
        let per_place = match size_bytes {
            _ if self.is_thorough => usize::MAX,
            0..=16_384 => 4,
            16_385..=65_536 => 2,
            _ => 1,
        };
        let mut units = Vec::new();
        for number in 0..count {
            let rows = &all[number * all.len() / count];
            let cut = cut(rows, shape, size_bytes, per_place)?;
            units.extend(cut.into_iter().map(|unit| (number, unit)));
        }
        Ok(units)
    }

    /// What is advised for a target; `None` if nothing was measured for it.
    fn advice(&self, target: &Target) -> Option<TargetAdvice> {
        let request = self.request;
        let order = self.sampled_order(target);
        let by_cell = self.measured.get(&order)?;
        let calls = Calls { by_cell, data_bytes: self.basis.data_bytes };
        let settings = self.settings(target);
        let of = |setting| outcome(target, setting, &calls, &self.basis);
        let outcomes: Vec<Outcome> = settings.iter().filter_map(of).collect();
        // Cells without calls were tried: a dictionary cannot be made of too little.
        let was_tried = |cell: &Cell| calls.by_cell.contains_key(&cell_key(cell));
        let unmeasured = settings.iter().filter(|one| !one.cells.iter().any(was_tried)).count();
        let collected = self.sample(target.order).collected;
        let (prices, expectations) = (&request.prices, &request.expectations);
        let basis = &self.basis;
        let advice = reprice(target, outcomes, unmeasured, collected, basis, prices, expectations)?;
        let use_of = Use { target, basis, prices, expectations };
        let advice = advice.beside(self.source.present().as_ref(), &use_of);
        let unsorted = match collected {
            Collected::OfSampledRows => self.unsorted(target, &advice),
            _ => None,
        };
        let unfit = settings.iter().filter(|one| is_unfit(target, one, &calls));
        Some(TargetAdvice { unsorted, unfit: unfit.map(Setting::name).collect(), ..advice })
    }

    /// What the cheapest stores of rows as they come.
    fn unsorted(&self, target: &Target, advice: &TargetAdvice) -> Option<Estimate> {
        let by_cell = self.measured.get(&Order::Input)?;
        let calls = Calls { by_cell, data_bytes: self.basis.data_bytes };
        outcome(target, &advice.best().setting, &calls, &self.basis).map(|one| one.bottom)
    }

    /// Whether the data are still what they were.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.source.check_unchanged()
    }

    /// Everything that is known.
    pub(crate) fn into_advice(self, request: &Request, took: Duration, is_stopped: bool) -> Advice {
        let targets: Vec<TargetAdvice> =
            self.targets.iter().filter_map(|target| self.advice(target)).collect();
        let data = self.data_facts();
        let is_missing =
            |target: &&Target| targets.iter().all(|one| one.target.name != target.name);
        let missing = self.targets.iter().filter(is_missing).map(|target| target.name).collect();
        let course = Course { is_stopped, missing, is_past: false };
        let unknown = unknown(request, &data, &targets, &course);
        let samples = if request.shows_samples { self.samples() } else { Vec::new() };
        Advice {
            samples,
            data,
            targets,
            goal: request.goal.clone(),
            prices: request.prices,
            expectations: request.expectations,
            took,
            course,
            unknown,
        }
    }

    fn data_facts(&self) -> DataFacts {
        let places = &self.input.sample.places;
        let samples = self.places.keys().map(|order| self.sample(*order));
        let sampled_bytes = samples.map(Sample::data_bytes).max().unwrap_or(0);
        let [near, far] = [4, 64].map(|kib| self.facts_ratio(kib << 10));
        let far_repeats = near.0.filter(|near| *near > 0.0).zip(far.0).map(|(n, f)| 1.0 - f / n);
        DataFacts {
            path: crate::input::shown(&self.request.path),
            input: self.source.facts().clone(),
            rows: self.input.rows,
            basis: self.basis,
            places: self.places.values().copied().max().unwrap_or(0),
            sampled_bytes,
            is_sorted: self.input.is_sorted,
            present: self.source.present(),
            notes: self.source.notes(),
            entropy_bits: entropy_bits(places),
            incompressible: near.0.map(|_| near.1),
            far_repeats,
        }
    }

    /// How pieces of the input's bytes shrink, and the share of them that hardly do.
    fn facts_ratio(&self, size_bytes: usize) -> (Option<f64>, f64) {
        let key = cell_key(&facts_cell(size_bytes));
        let Some(calls) = self.measured.values().find_map(|cells| cells.get(&key)) else {
            return (None, 0.0);
        };
        let sum = |figure: fn(&Call) -> u32| {
            calls.iter().map(|call| f64::from(figure(call))).sum::<f64>()
        };
        let (raw, encoded) = (sum(|call| call.unit_bytes), sum(|call| call.encoded_bytes));
        let is_hard = |call: &&Call| call.encoded_bytes > call.unit_bytes / 8 * 7;
        let hard = calls.iter().filter(is_hard).count() as f64 / calls.len().max(1) as f64;
        ((raw > 0.0).then(|| encoded / raw), hard)
    }
}

/// What tells how far apart repeats are.
fn facts_cell(size_bytes: usize) -> Cell {
    let compression =
        Compression { codec: CodecId::Zstd, effort: 3, encoder: lithify::Encoder::Reference };
    Cell { shape: Shape::Bytes, size_bytes, compression, dictionary_bytes: 0 }
}

/// Bits a byte by the frequency of each byte alone.
fn entropy_bits(places: &[Rows]) -> f64 {
    let mut counts = [0_u64; 256];
    for byte in places.iter().flat_map(Rows::iter).flat_map(|row| row.value) {
        counts[usize::from(*byte)] += 1;
    }
    let all = counts.iter().sum::<u64>() as f64;
    let part = |count: &u64| *count as f64 / all;
    let bits: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| -part(count) * part(count).log2())
        .sum();
    bits.max(0.0)
}

/// The write amplification of a target with its formula, where it is known.
pub(crate) fn write_amplification(advice: &TargetAdvice, basis: &Basis) -> Option<(f64, String)> {
    if !advice.target.has_levels {
        return None;
    }
    let rewrites = tree::rewrites(true, basis);
    let ratio = advice.best().ratio.value;
    let formula = format!("1 (log) + {ratio:.2} x {rewrites:.1} rewrites");
    Some((1.0 + ratio * rewrites, formula))
}
