//! What compression the levels of a column family have, why, and what else it would cost.

use crate::base::Level;
use crate::chooser::{Candidate, Choice, Decision, Prices, Terms};
use crate::compaction::{Deliberation, FormatPolicy, TablePlace, Turn};
use crate::db::inner::DbInner;
use crate::db::tree::family::Family;
use crate::manifest::Version;
use crate::options::CfOptions;
use std::collections::BTreeMap;

/// What compression a column family has, why, and what else it would cost. Printed, it answers in its
/// first lines, of at most 80 columns; `{:#}` adds the terms of every candidate.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The name of the column family.
    pub family: String,
    /// The option `compression`.
    pub setting: String,
    /// What it stands for; `None` where nothing is decided by cost.
    pub prices: Option<Prices>,
    /// Levels that have tables, or for which something was decided.
    pub levels: Vec<LevelExplanation>,
    /// CPU time spent on measuring so far, in microseconds.
    pub sampling_cpu_us: u64,
    /// Specimens of blocks that were measured.
    pub specimens: u64,
    /// What the decisions were made from, as text; they can be made again from it. Empty where nothing
    /// is decided by cost.
    pub record: String,
}

/// A level of an [`Explanation`].
#[derive(Clone, Debug)]
pub struct LevelExplanation {
    /// Its number.
    pub level: Level,
    /// Its tables.
    pub files: u64,
    /// Their bytes.
    pub stored_bytes: u64,
    /// Bytes of their data blocks before compression.
    pub raw_bytes: u64,
    /// What tables that are written now have: codec, effort, size of blocks.
    pub chosen: String,
    /// Stored bytes by what they have, most first.
    pub stored_as: Vec<(String, u64)>,
    /// Stored bytes of tables that are to be written anew when there is nothing else to do.
    pub debt_bytes: u64,
    /// What was expected of the level, if something was decided by cost.
    pub expected: Option<Expected>,
    /// Why it was chosen, in a few words.
    pub why: String,
    /// What is chosen and what else could have been, the cheapest first; empty without evidence.
    pub candidates: Vec<CandidateCost>,
    /// Specimens of the level's blocks that were measured.
    pub specimens: u64,
    /// What was chosen before, the newest last.
    pub changes: Vec<Change>,
}

/// What is expected of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Hours from a byte's writing until a compaction consumes it.
    pub lifetime_h: f64,
    /// Loads of blocks by lookups, for each raw MiB and hour of the lifetime: what was seen counts for as
    /// long as it may last. `None`: not known.
    pub point_loads_per_mib_h: Option<f64>,
    /// How often in an hour scans load the level; `None`: not known.
    pub scans_per_h: Option<f64>,
    /// The share of loads that reach a device.
    pub device_share: f64,
    /// What CPU is worth in multiples of its price: over 1 while writers are being slowed.
    pub cpu_factor: f64,
}

/// What a codec at its best size of blocks would cost.
#[derive(Clone, Debug, PartialEq)]
pub struct CandidateCost {
    /// Codec, effort, size of blocks.
    pub name: String,
    /// Whether it is the one that is chosen.
    pub is_chosen: bool,
    /// Millionths for a raw GB from its writing to its consumption.
    pub cost: f64,
    /// The standard error of `cost`.
    pub error: f64,
    /// Names and values of its terms, the largest first.
    pub terms: Vec<(&'static str, f64)>,
    /// Stored bytes per raw byte: the inverse of a ratio.
    pub stored_per_raw: f64,
    /// Raw MB compressed in a second of CPU; `None` where there is nothing to do.
    pub compress_mbps: Option<f64>,
    /// Raw MB decompressed in a second of CPU.
    pub decompress_mbps: Option<f64>,
}

/// A change of what is chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Seconds ago.
    pub ago_s: f64,
    /// What was chosen before; `None`: what is chosen without evidence.
    pub from: Option<String>,
    /// What was chosen then.
    pub to: String,
    /// Raw bytes that the family had written into tables by then.
    pub written_bytes: u64,
}

impl DbInner {
    pub(crate) fn explain(&self, family: &Family) -> Explanation {
        let (formats, options) = (family.formats(), family.options());
        let version = &family.view().version;
        let now_us = self.world.environment.now_us();
        Explanation::of(&family.name, &options, version, &*formats, now_us)
    }
}

impl Explanation {
    /// Of the tables of a version under a policy.
    pub(crate) fn of(
        family: &str,
        options: &CfOptions,
        version: &Version,
        formats: &dyn FormatPolicy,
        now_us: u64,
    ) -> Self {
        let deliberation = formats.deciding().map(|deciding| deciding.deliberation());
        let of_level = |level: Level| {
            let mut explained = tables_of(version, level);
            match deliberation.as_ref().and_then(|all| all.of_level(level)) {
                Some((decision, turns)) => explained.decided(decision, turns, now_us),
                None => {
                    let place =
                        TablePlace { family: None, level, level_count: version.level_count() };
                    let format = formats.peek(&place);
                    let method = format.compression.to_string();
                    explained.chosen = named(&method, format.block_size_bytes);
                    // A policy that decides has decided nothing yet.
                    let why = deliberation.as_ref().map_or("set", |_| "too few samples");
                    explained.why = why.to_owned();
                }
            }
            explained
        };
        let levels = (0..version.level_count()).map(of_level);
        Explanation {
            family: family.to_owned(),
            setting: options.compression.to_string(),
            prices: deliberation.as_ref().map(|all| all.prices),
            levels: levels.filter(|level| level.files > 0).collect(),
            sampling_cpu_us: deliberation.as_ref().map_or(0, |all| all.sampled_ns / 1_000),
            specimens: deliberation.as_ref().map_or(0, |all| all.specimens),
            record: deliberation.map_or_else(String::new, |all| all.record.to_string()),
        }
    }
}

impl Explanation {
    /// What was expected of reads was recorded with tables, and what has become of it is not known.
    pub(crate) fn forget_reads(&mut self) {
        for expected in self.levels.iter_mut().filter_map(|level| level.expected.as_mut()) {
            (expected.point_loads_per_mib_h, expected.scans_per_h) = (None, None);
        }
    }
}

impl Explanation {
    /// Nobody has changed anything: what was recorded was decided anew, by whoever looks.
    pub(crate) fn forget_changes(&mut self) {
        self.levels.iter_mut().for_each(|level| level.changes.clear());
    }
}

impl Deliberation {
    fn of_level(&self, level: Level) -> Option<(&Decision, &[Turn])> {
        let found = self.levels.iter().find(|(at, ..)| *at == level)?;
        Some((&found.1, &found.2))
    }
}

fn named(method: &str, block_size_bytes: usize) -> String {
    match block_size_bytes.is_multiple_of(1024) {
        true => format!("{method} {}k", block_size_bytes >> 10),
        false => format!("{method} {block_size_bytes}"),
    }
}

/// What a level has.
fn tables_of(version: &Version, level: Level) -> LevelExplanation {
    let mut stored_as: BTreeMap<String, u64> = BTreeMap::new();
    let mut explained = LevelExplanation {
        level,
        files: 0,
        stored_bytes: 0,
        raw_bytes: 0,
        chosen: String::new(),
        stored_as: Vec::new(),
        debt_bytes: 0,
        expected: None,
        why: String::new(),
        candidates: Vec::new(),
        specimens: 0,
        changes: Vec::new(),
    };
    for table in version.level(level) {
        let metadata = &table.metadata;
        explained.files += 1;
        explained.stored_bytes += metadata.size_bytes;
        explained.raw_bytes += metadata.raw_bytes;
        explained.debt_bytes += if metadata.codec_debt { metadata.size_bytes } else { 0 };
        let dictionary = if metadata.dictionary.is_some() { "+dictionary" } else { "" };
        let method = format!("{}{dictionary}", metadata.compression);
        let name = match metadata.block_size_bytes {
            0 => method,
            size => named(&method, size as usize),
        };
        *stored_as.entry(name).or_default() += metadata.size_bytes;
    }
    explained.stored_as = stored_as.into_iter().collect();
    explained.stored_as.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    explained
}

impl LevelExplanation {
    fn decided(&mut self, decision: &Decision, turns: &[Turn], now_us: u64) {
        let conditions = &decision.conditions;
        self.chosen = decision.choice.to_string();
        self.why = decision.verdict();
        self.specimens = decision.specimens.0;
        self.expected = Some(Expected {
            lifetime_h: conditions.lifetime_h,
            point_loads_per_mib_h: conditions.reads_known.then_some(conditions.points_per_mib_h),
            scans_per_h: conditions.reads_known.then_some(conditions.scans_per_h),
            device_share: conditions.device_share,
            cpu_factor: conditions.cpu_factor,
        });
        let mut candidates = decision.candidates.clone();
        if let Some(chosen) = decision.chosen {
            candidates.retain(|other| other.choice.method != chosen.choice.method);
            candidates.push(chosen);
            candidates.sort_by(|a, b| a.terms.total().total_cmp(&b.terms.total()));
        }
        self.candidates =
            candidates.iter().map(|one| candidate_cost(one, decision.choice)).collect();
        let change = |turn: &Turn| Change {
            ago_s: now_us.saturating_sub(turn.at_us) as f64 / 1e6,
            from: turn.from.map(|choice| choice.to_string()),
            to: turn.to.to_string(),
            written_bytes: turn.written_bytes,
        };
        self.changes = turns.iter().map(change).collect();
    }

    /// The candidate that is chosen.
    pub fn chosen_cost(&self) -> Option<&CandidateCost> {
        self.candidates.iter().find(|candidate| candidate.is_chosen)
    }

    /// The cheapest other one.
    pub fn runner_up(&self) -> Option<&CandidateCost> {
        self.candidates.iter().find(|candidate| !candidate.is_chosen)
    }
}

fn candidate_cost(one: &Candidate, chosen: Choice) -> CandidateCost {
    let rate = |ns: f64| (ns > 0.0).then(|| 1_000.0 / ns);
    CandidateCost {
        name: one.choice.to_string(),
        is_chosen: one.choice == chosen,
        cost: one.terms.total(),
        error: one.error,
        terms: sorted(&one.terms),
        stored_per_raw: one.behaviour.ratio,
        compress_mbps: rate(one.behaviour.compress_ns),
        decompress_mbps: rate(one.behaviour.decompress_ns),
    }
}

fn sorted(terms: &Terms) -> Vec<(&'static str, f64)> {
    let mut terms = terms.named().to_vec();
    terms.sort_by(|a, b| b.1.total_cmp(&a.1));
    terms
}
