//! What to measure next, and what to choose.

use super::candidate::{BOUNDS, Choice, FAST, METHODS, Method, RAW, REFERENCE, Sizes};
use super::cost::{Behaviour, Conditions, MERGE_NS, Rewriting, Terms, price};
use super::knowledge::{EVIDENCE_SPECIMENS, Knowledge, Known, Measured};
use super::prices::Prices;
use super::watch::LevelWatch;
use crate::base::Level;
use crate::codec::Compression;
use std::collections::BTreeMap;

/// What is chosen stays unless something is cheaper by this share. It is what a level may cost too
/// much, and what keeps a decision between equals from going back and forth.
const HYSTERESIS: f64 = 0.02;

/// The size that dictionaries are made at. Every table of theirs has a copy.
pub const DICTIONARY_BYTES: f64 = 16_384.0;

/// Methods that are measured at a time.
const LIVE_MAX: usize = 12;

/// Methods that are not known well are measured so many at a time, the most promising first.
const EXPLORED_MAX: usize = 3;

/// How zstd-1 and lz4 behave in blocks of 16 KiB: the medians of three data sets, ratings of chess players,
/// lots of land as JSON, and loads of an electric grid as numbers.
const USUAL_REFERENCE: Behaviour = Behaviour { ratio: 0.39, compress_ns: 3.7, decompress_ns: 1.3 };
const USUAL_FAST: Behaviour = Behaviour { ratio: 0.50, compress_ns: 1.4, decompress_ns: 0.34 };

/// What one or two specimens may be off by.
const FEW_ALLOWANCE: f64 = 0.05;

/// A method that was measured and lost is measured again on one specimen in so many: data change.
const REVISIT_PERIOD: u64 = 16;

/// A method at a size, to be measured on a specimen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// An index of [`METHODS`].
    pub method: usize,
    /// The size to cut the specimen's rows at.
    pub block_size_bytes: usize,
}

/// What to measure on the next specimen of a level.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The reference first at each size.
    pub trials: Vec<Trial>,
    /// The CPU time that it will take for each byte of the specimen, in nanoseconds.
    pub expected_ns: f64,
}

/// A method at the size that is best for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// What would be chosen.
    pub choice: Choice,
    /// What is expected of it.
    pub behaviour: Behaviour,
    /// Its cost.
    pub terms: Terms,
    /// The standard error of the cost, beside what all methods have together.
    pub error: f64,
    /// What the cost would change by if the reference's ratio were off by its standard error.
    common_error: f64,
}

impl Candidate {
    /// The standard error of the difference of two costs.
    fn error_against(&self, other: &Candidate) -> f64 {
        let common = self.common_error - other.common_error;
        (self.error.powi(2) + other.error.powi(2) + common.powi(2)).sqrt()
    }
}

/// Why a choice was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Too little is known: what is chosen without measuring.
    NoEvidence,
    /// The first choice by cost.
    First,
    /// What the level had is the cheapest.
    Cheapest,
    /// Another one is cheaper by less than hysteresis or error.
    Kept,
    /// Cheaper than what the level had.
    Switched,
}

/// What is chosen for a level, and what else could have been.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Of which level.
    pub level: Level,
    /// What it expects.
    pub conditions: Conditions,
    /// What is chosen.
    pub choice: Choice,
    /// What the level had before, if anything was chosen for it.
    pub before: Option<Choice>,
    /// Why.
    pub reason: Reason,
    /// All methods that are known well enough, each at its best size, the cheapest first.
    pub candidates: Vec<Candidate>,
    /// What was chosen, with its cost; `None` without evidence.
    pub chosen: Option<Candidate>,
    /// Specimens of the level, and of all levels.
    pub specimens: (u64, u64),
}

impl Decision {
    /// The cheapest other method.
    pub fn runner_up(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|other| other.choice.method != self.choice.method)
    }

    /// How much more the runner-up costs, as a share; negative where what is kept is not cheapest.
    pub fn margin(&self) -> Option<f64> {
        let (chosen, other) = (self.chosen?.terms.total(), self.runner_up()?.terms.total());
        Some(other / chosen - 1.0)
    }
}

/// What a level has.
#[derive(Clone, Debug, Default, PartialEq)]
struct Standing {
    choice: Option<Choice>,
    /// Methods, by index, that may be the cheapest.
    contenders: Vec<usize>,
    wants_dictionary: bool,
}

/// The knowledge of a column family with its prices. See the room.
#[derive(Clone, Debug, PartialEq)]
pub struct Chooser {
    pub(super) prices: Prices,
    pub(super) sizes: Sizes,
    pub(super) knowledge: Knowledge,
    levels: BTreeMap<Level, Standing>,
    pub(super) has_dictionary: bool,
    studies: u64,
}

impl Chooser {
    /// One that knows nothing.
    pub fn new(prices: Prices, sizes: Sizes) -> Self {
        Chooser {
            prices,
            sizes,
            knowledge: Knowledge::default(),
            levels: BTreeMap::new(),
            has_dictionary: false,
            studies: 0,
        }
    }

    /// The prices that it goes by.
    pub fn prices(&self) -> &Prices {
        &self.prices
    }

    /// The sizes that it chooses from.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// What it knows.
    pub fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// Goes by other prices or sizes from now on. What was measured stays. A level whose size is no
    /// longer among them has the first one: what is known of others would be guessed at, and it would
    /// never be left.
    pub fn set_goal(&mut self, prices: Prices, sizes: Sizes) {
        if sizes.anchors() != self.sizes.anchors() {
            self.knowledge = Knowledge::default();
        }
        let choices = self.levels.values_mut().filter_map(|standing| standing.choice.as_mut());
        choices
            .filter(|choice| !sizes.all().contains(&choice.block_size_bytes))
            .for_each(|choice| choice.block_size_bytes = sizes.start_bytes());
        (self.prices, self.sizes) = (prices, sizes);
    }

    /// Whether there is a dictionary to choose.
    pub fn has_dictionary(&self) -> bool {
        self.has_dictionary
    }

    /// There is a dictionary, another one than before, or none any more.
    pub fn set_dictionary(&mut self, has_dictionary: bool) {
        self.has_dictionary = has_dictionary;
        self.knowledge.forget_dictionary();
    }

    /// Whether a dictionary might make something cheaper than all that is known, at any level: by the
    /// bounds of what it could do.
    pub fn wants_dictionary(&self) -> bool {
        !self.has_dictionary && self.levels.values().any(|standing| standing.wants_dictionary)
    }

    /// How much of the dictionary's gain is left: the ratio of zstd-1 with it over that without, at the
    /// smallest measured size; `None` while it is not known well.
    pub fn dictionary_quotient(&self) -> Option<f64> {
        let method = Method { has_dictionary: true, ..METHODS.get(REFERENCE).copied()? };
        let method = METHODS.iter().position(|other| *other == method)?;
        let size = *self.sizes.anchors().first()?;
        self.knowledge.quotient(method, size)
    }

    /// What a level has, as it was recorded.
    pub fn set_standing(&mut self, level: Level, choice: Choice) {
        self.levels.entry(level).or_default().choice = Some(choice);
    }

    /// What was chosen for a level, if anything was.
    pub fn standing(&self, level: Level) -> Option<Choice> {
        self.levels.get(&level)?.choice
    }

    /// What a table of a level would be written with, as far as anything was chosen; this changes
    /// nothing.
    pub fn outlook(&self, level: Level) -> Choice {
        self.standing(level).unwrap_or_else(|| Choice {
            method: Method { compression: self.start(), has_dictionary: false },
            block_size_bytes: self.sizes.start_bytes(),
        })
    }

    /// Specimens that were measured.
    pub fn specimens(&self) -> u64 {
        self.knowledge.specimens(REFERENCE, &self.sizes)
    }

    /// The ratio of a compression without a dictionary at a level, at the smallest measured size; `None`
    /// without evidence.
    pub fn ratio(&self, level: Level, compression: Compression) -> Option<f64> {
        let wanted = Method { compression, has_dictionary: false };
        let method = METHODS.iter().position(|method| *method == wanted)?;
        let size = *self.sizes.anchors().first()?;
        let is_known = self.knowledge.specimens(method, &self.sizes) >= EVIDENCE_SPECIMENS;
        let known = self.knowledge.known(level, method, size, &self.sizes)?;
        is_known.then_some(known.behaviour.ratio)
    }

    /// What rewriting a raw byte of a level takes as it was chosen for it; `None` if that is not known.
    pub fn rewriting(&self, level: Level) -> Option<Rewriting> {
        let choice = self.standing(level)?;
        let method = METHODS.iter().position(|method| *method == choice.method)?;
        let behaviour = match method {
            RAW => Behaviour::RAW,
            _ => {
                self.knowledge.known(level, method, choice.block_size_bytes, &self.sizes)?.behaviour
            }
        };
        Some(Rewriting::of(&behaviour))
    }

    /// What was chosen for each level.
    pub fn standings(&self) -> Vec<(Level, Choice)> {
        let of_level = |(level, standing): (&Level, &Standing)| Some((*level, standing.choice?));
        self.levels.iter().filter_map(of_level).collect()
    }

    /// Takes in what was measured on a specimen of a level.
    pub fn learn(&mut self, level: Level, specimen: &[Measured]) {
        self.knowledge.learn(level, specimen);
    }

    /// What to measure on the next specimen.
    pub fn study(&mut self) -> Study {
        self.studies += 1;
        let anchors = self.sizes.anchors();
        let mut methods = vec![REFERENCE];
        let incompressible = self.knowledge.is_incompressible();
        let revisits = self.studies.is_multiple_of(REVISIT_PERIOD);
        if !incompressible || revisits {
            methods.push(FAST);
            let wanted = |index: &usize| {
                let is_measured = self.knowledge.specimens(*index, &self.sizes) > 0;
                self.is_contender(*index) || (revisits && is_measured)
            };
            let others = (FAST + 1..METHODS.len()).filter(|index| self.is_available(*index));
            methods.extend(others.filter(wanted).take(LIVE_MAX - 2));
        }
        let trials = anchors.iter().flat_map(|size| {
            methods.iter().map(|method| Trial { method: *method, block_size_bytes: *size })
        });
        let trials: Vec<Trial> = match incompressible && !revisits {
            true => trials.take(1).collect(),
            false => trials.collect(),
        };
        let expected_ns = trials.iter().map(|trial| self.expected_ns(trial)).sum();
        Study { trials, expected_ns }
    }

    /// The CPU time of a trial per byte, from what is known or expected.
    fn expected_ns(&self, trial: &Trial) -> f64 {
        // Rows of which nothing is known: zstd-1 on the slower of usual machines.
        let unknown = (6.0, 2.0);
        let times = |method: usize| {
            let known =
                self.knowledge.known(0, method, trial.block_size_bytes, &self.sizes)?.behaviour;
            Some((known.compress_ns, known.decompress_ns))
        };
        let bound = BOUNDS[trial.method];
        let (compress_ns, decompress_ns) = times(trial.method).unwrap_or_else(|| {
            let (compress_ns, decompress_ns) = times(REFERENCE).unwrap_or(unknown);
            // A bound is the best case.
            (2.0 * bound.compress * compress_ns, 2.0 * bound.decompress * decompress_ns)
        });
        compress_ns + decompress_ns
    }

    fn is_available(&self, method: usize) -> bool {
        METHODS.get(method).is_some_and(|method| !method.has_dictionary || self.has_dictionary)
    }

    fn is_contender(&self, method: usize) -> bool {
        self.levels.values().any(|standing| standing.contenders.contains(&method))
    }

    /// Chooses for a level.
    pub fn decide(&mut self, level: Level, conditions: &Conditions) -> Decision {
        let before = self.standing(level);
        let mut decision = Decision {
            level,
            conditions: *conditions,
            choice: self.outlook(level),
            before,
            reason: Reason::NoEvidence,
            candidates: Vec::new(),
            chosen: None,
            specimens: (
                self.knowledge.specimens_of_level(level),
                self.knowledge.specimens(REFERENCE, &self.sizes),
            ),
        };
        if decision.specimens.1 < EVIDENCE_SPECIMENS {
            return decision;
        }
        let every = (0..METHODS.len()).filter_map(|method| self.best(level, method, conditions));
        decision.candidates = every.collect();
        decision.candidates.sort_by(|a, b| a.terms.total().total_cmp(&b.terms.total()));
        if let Some(best) = decision.candidates.first().copied() {
            self.settle(&mut decision, &best, conditions);
            let contenders = self.contenders(level, conditions, &best);
            let wants_dictionary = self.may_gain_by_dictionary(level, conditions, &best);
            let choice = Some(decision.choice);
            self.levels.insert(level, Standing { choice, contenders, wants_dictionary });
        }
        decision
    }

    /// What is chosen without evidence: zstd-1 where, with what is usual for rows, a byte is cheaper with
    /// it than with lz4, either one that is rewritten at once or one that stays and is read.
    fn start(&self) -> Compression {
        let size = self.sizes.start_bytes();
        let soon = Conditions { lifetime_h: 0.0, ..Conditions::default() };
        let stays = LevelWatch::default().conditions(self.prices.horizon_h());
        let is_cheaper = |conditions: &Conditions| {
            let cost = |usual: &Behaviour| price(usual, size, conditions, &self.prices).total();
            cost(&USUAL_REFERENCE) < cost(&USUAL_FAST)
        };
        match is_cheaper(&soon) || is_cheaper(&stays) {
            true => METHODS[REFERENCE].compression,
            false => METHODS[FAST].compression,
        }
    }

    /// The best candidate, or what the level has.
    fn settle(&self, decision: &mut Decision, best: &Candidate, conditions: &Conditions) {
        let had = decision.before.and_then(|choice| {
            let method = METHODS.iter().position(|method| *method == choice.method)?;
            self.candidate(decision.level, method, choice.block_size_bytes, conditions)
        });
        let (chosen, reason) = match had {
            None => (*best, Reason::First),
            Some(had) if had.choice == best.choice => (had, Reason::Cheapest),
            Some(had) => {
                let gain = had.terms.total() - best.terms.total();
                let needed = (HYSTERESIS * had.terms.total()).max(had.error_against(best));
                if gain > needed { (*best, Reason::Switched) } else { (had, Reason::Kept) }
            }
        };
        decision.choice = chosen.choice;
        decision.chosen = Some(chosen);
        decision.reason = reason;
    }

    /// The method at its best size; `None` if it is not known well enough, or not to be had.
    fn best(&self, level: Level, method: usize, conditions: &Conditions) -> Option<Candidate> {
        let is_known =
            method == RAW || self.knowledge.specimens(method, &self.sizes) >= EVIDENCE_SPECIMENS;
        if !is_known || !self.is_available(method) {
            return None;
        }
        let sizes = self.sizes_under(conditions);
        let of_sizes =
            sizes.iter().filter_map(|size| self.candidate(level, method, *size, conditions));
        of_sizes.min_by(|a, b| a.terms.total().total_cmp(&b.terms.total()))
    }

    /// Sizes are chosen by reads; without knowledge of them the first one stays. None is so small that
    /// indexes would leave memory, unless the first one is.
    fn sizes_under(&self, conditions: &Conditions) -> Vec<usize> {
        let start_bytes = self.sizes.start_bytes();
        if !conditions.reads_known {
            return vec![start_bytes];
        }
        let fits =
            |size: &usize| *size >= start_bytes || *size as f64 >= conditions.block_bytes_min;
        self.sizes.all().iter().copied().filter(fits).collect()
    }

    /// What encoding a byte may take in blocks of a size: no call is to take longer than
    /// [`Prices::call_us_max`], unless the reference's does. A user who sets blocks of 1 MiB has decided
    /// that, and does not want them stored raw.
    fn compress_ns_max(&self, level: Level, size: usize) -> f64 {
        let by_price = f64::from(self.prices.call_us_max) * 1e3 / size.max(1) as f64;
        let reference = || self.knowledge.known(level, REFERENCE, size, &self.sizes);
        match self.sizes {
            Sizes::Chosen { .. } => by_price,
            Sizes::Fixed(_) => {
                reference().map_or(by_price, |known| by_price.max(known.behaviour.compress_ns))
            }
        }
    }

    fn candidate(
        &self,
        level: Level,
        method: usize,
        size: usize,
        conditions: &Conditions,
    ) -> Option<Candidate> {
        let choice = Choice { method: *METHODS.get(method)?, block_size_bytes: size };
        let cost = |behaviour: &Behaviour| price(behaviour, size, conditions, &self.prices);
        if method == RAW {
            let (behaviour, terms) = (Behaviour::RAW, cost(&Behaviour::RAW));
            return Some(Candidate { choice, behaviour, terms, error: 0.0, common_error: 0.0 });
        }
        let known = self.knowledge.known(level, method, size, &self.sizes)?;
        let mut behaviour = known.behaviour;
        if choice.method.has_dictionary {
            behaviour.ratio += DICTIONARY_BYTES / conditions.table_raw_bytes;
        }
        if behaviour.compress_ns > self.compress_ns_max(level, size) {
            return None;
        }
        let terms = cost(&behaviour);
        let moved_by = |behaviour: Behaviour| cost(&behaviour).total() - terms.total();
        Some(Candidate {
            choice,
            behaviour,
            terms,
            error: own_error(&known, moved_by),
            common_error: moved_by(Behaviour {
                ratio: behaviour.ratio * (1.0 + known.reference_error.min(1.0)),
                ..behaviour
            }),
        })
    }

    /// Methods that may turn out to be the cheapest: those that are known by what they cost less twice
    /// the error, others by what may be expected of them at best, the most promising first and few at
    /// a time.
    fn contenders(&self, level: Level, conditions: &Conditions, best: &Candidate) -> Vec<usize> {
        let limit = best.terms.total();
        let (mut known, mut open) = (Vec::new(), Vec::new());
        for method in (FAST + 1..METHODS.len()).filter(|method| self.is_available(*method)) {
            if let Some(found) = self.best(level, method, conditions) {
                let is_best = found.choice.method == best.choice.method;
                if is_best || found.terms.total() - 2.0 * found.error < limit {
                    known.push(method);
                }
            } else if let Some(cost) = self.best_case(level, method, conditions)
                && cost < limit
            {
                open.push((cost, method));
            }
        }
        open.sort_by(|a, b| a.0.total_cmp(&b.0));
        known.extend(open.iter().take(EXPLORED_MAX).map(|(_, method)| *method));
        known
    }

    fn may_gain_by_dictionary(
        &self,
        level: Level,
        conditions: &Conditions,
        best: &Candidate,
    ) -> bool {
        let with_dictionary =
            METHODS.iter().enumerate().filter(|(_, method)| method.has_dictionary);
        let mut costs =
            with_dictionary.filter_map(|(method, _)| self.best_case(level, method, conditions));
        costs.any(|cost| cost < best.terms.total())
    }

    /// What a method that is not known well would cost if it were as good as could be: by what was
    /// measured once or twice, with an allowance, or by its bounds.
    fn best_case(&self, level: Level, method: usize, conditions: &Conditions) -> Option<f64> {
        if self.knowledge.specimens(method, &self.sizes) > 0 {
            let sizes = self.sizes_under(conditions).into_iter();
            let costs = sizes.filter_map(|size| self.candidate(level, method, size, conditions));
            let costs = costs.map(|candidate| candidate.terms.total() * (1.0 - FEW_ALLOWANCE));
            return costs.min_by(f64::total_cmp);
        }
        let bound = BOUNDS.get(method)?;
        let costs = self.sizes_under(conditions).into_iter().filter_map(|size| {
            let known = self.knowledge.known(level, REFERENCE, size, &self.sizes)?.behaviour;
            let behaviour = Behaviour {
                ratio: known.ratio * bound.ratio,
                compress_ns: known.compress_ns * bound.compress,
                decompress_ns: known.decompress_ns * bound.decompress,
            };
            let is_short = behaviour.compress_ns <= self.compress_ns_max(level, size);
            is_short.then(|| price(&behaviour, size, conditions, &self.prices).total())
        });
        costs.min_by(f64::total_cmp)
    }

    /// Whether writing a table anew as `choice` costs less than having it as it is until a
    /// compaction consumes it. `stored_ratio` is the table's own; `None` without evidence.
    pub fn rewrite_pays(
        &self,
        level: Level,
        conditions: &Conditions,
        (had, stored_ratio): (Choice, f64),
        choice: Choice,
    ) -> Option<bool> {
        let index_of = |wanted: Method| METHODS.iter().position(|method| *method == wanted);
        let wanted =
            self.candidate(level, index_of(choice.method)?, choice.block_size_bytes, conditions)?;
        let size = had.block_size_bytes;
        // What is known of the level compares what it has with what it wants. The table's own ratio has
        // its index and filter, which would have to be made anew.
        let known = |method| self.knowledge.known(level, method, size, &self.sizes);
        let mut behaviour = match (index_of(had.method), index_of(had.method).and_then(known)) {
            (Some(RAW), _) => Behaviour::RAW,
            (_, Some(known)) => known.behaviour,
            // An effort that is not among the methods, or one with a dictionary that is no longer
            // measured, decodes about as fast as the reference.
            (_, None) => {
                let ratio = stored_ratio.clamp(0.0, 1.0);
                Behaviour { ratio, ..known(REFERENCE)?.behaviour }
            }
        };
        if had.method.has_dictionary {
            behaviour.ratio += DICTIONARY_BYTES / conditions.table_raw_bytes;
        }
        let now = price(&behaviour, size, conditions, &self.prices);
        let cpu = self.prices.cpu_second.value() * conditions.cpu_factor;
        let rewriting = wanted.terms.making() + now.merge + cpu * MERGE_NS;
        let saved = now.holding() - wanted.terms.holding();
        Some(saved > rewriting + HYSTERESIS * now.holding())
    }
}

/// What a cost may be off by, from the errors that are the method's own.
fn own_error(known: &Known, moved_by: impl Fn(Behaviour) -> f64) -> f64 {
    let behaviour = known.behaviour;
    let ratio = behaviour.ratio * (1.0 + known.quotient_error.min(1.0));
    let compress_ns = behaviour.compress_ns + known.compress_error_ns.min(behaviour.compress_ns);
    let decompress_ns =
        behaviour.decompress_ns + known.decompress_error_ns.min(behaviour.decompress_ns);
    let squares = moved_by(Behaviour { ratio, ..behaviour }).powi(2)
        + moved_by(Behaviour { compress_ns, ..behaviour }).powi(2)
        + moved_by(Behaviour { decompress_ns, ..behaviour }).powi(2);
    squares.sqrt()
}
