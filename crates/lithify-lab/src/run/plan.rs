//! From an experiment and the command line to the cells, in the order in which they run.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::cell::{CellSpec, EngineSettings, Purpose, SCHEMA};
use super::engine;
use crate::adapter::EngineName;
use crate::experiment::{Arm, EngineSizes, Experiment, Scale, SharedSettings};

/// What the command line chose.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Name of the scale; the first of `smoke`, or of the names, when not given.
    pub scale: Option<String>,
    /// Names of arms; all when not given.
    pub arms: Option<Vec<String>>,
    /// Instead of the scale's repeats.
    pub repeats: Option<u64>,
    /// Instead of the scale's query seconds.
    pub query_seconds: Option<u64>,
    /// Instead of the scale's nodes.
    pub nodes: Option<u64>,
}

/// A choice that the experiment does not offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceError(pub String);

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ChoiceError {}

/// The cells of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The experiment as it was read.
    pub experiment: Experiment,
    /// Name of the scale.
    pub scale: String,
    /// On which engine: Lithify stands for "each arm on its own".
    pub engine: EngineName,
    /// Repeats of each arm.
    pub repeats: u64,
    /// The arms in the order of the tables.
    pub arms: Vec<String>,
    /// The cells in the order in which they run.
    pub cells: Vec<CellSpec>,
}

impl Plan {
    /// Expands `experiment`. `build` identifies the program that will measure.
    ///
    /// Arms are interleaved over repeats and each repeat begins with another arm, so that a
    /// machine that drifts hurts all alike; a pair's control comes behind the pair. Where an engine
    /// is measured, the driver is calibrated first.
    ///
    /// # Errors
    /// An unknown scale or arm, an impossible number, a scale that this version cannot run.
    pub fn expand(
        experiment: &Experiment,
        engine: &EngineName,
        choice: &Choice,
        build: &str,
    ) -> Result<Plan, ChoiceError> {
        let (scale_name, scale) = choose_scale(experiment, choice)?;
        let arms = choose_arms(&experiment.arms, choice.arms.as_deref())?;
        let repeats = scale.repeats;
        let cell = |id: String, purpose, arm: &Arm, repeat| CellSpec {
            schema: SCHEMA,
            id,
            purpose,
            arm: arm.name.clone(),
            repeat,
            engine: engine_of(engine, arm).clone(),
            settings: settings(&experiment.engine, &scale.sizes(), arm),
            profile: experiment.workload.profile,
            seed: experiment.workload.seed + repeat,
            nodes: scale.nodes,
            loaders: scale.loaders,
            requesters: scale.requesters,
            warmup_seconds: scale.warmup_seconds,
            query_seconds: scale.query_seconds,
            // An engine that keeps its data in memory cannot do with less of it.
            memory_limit_bytes: scale
                .memory_limit_mib
                .filter(|_| engine::uses_disk(engine_of(engine, arm)))
                .map(|limit| limit << 20),
            open_loop_percent: experiment.workload.open_loop_percent.clone(),
            build: build.to_owned(),
        };
        let mut cells = Vec::new();
        if *engine != EngineName::null() {
            // The null engine ignores settings; the first arm of the file lends its own, so that
            // choosing other arms does not ask for another calibration.
            cells.push(CellSpec {
                arm: "driver".to_owned(),
                engine: EngineName::null(),
                warmup_seconds: 1,
                query_seconds: scale.calibration_seconds,
                memory_limit_bytes: None,
                open_loop_percent: Vec::new(),
                ..cell("driver".to_owned(), Purpose::Calibrate, &experiment.arms[0], 0)
            });
        }
        let slots = slots(experiment, &arms);
        for repeat in 0..repeats {
            for position in 0..slots.len() {
                let (arm, purpose) = slots[(position + repeat as usize) % slots.len()];
                let role = if purpose == Purpose::Control { "-control" } else { "" };
                cells.push(cell(format!("{}{role}-r{repeat}", arm.name), purpose, arm, repeat));
            }
        }
        Ok(Plan {
            experiment: experiment.clone(),
            scale: scale_name,
            engine: engine.clone(),
            repeats,
            arms: arms.iter().map(|arm| arm.name.clone()).collect(),
            cells,
        })
    }

    /// The name of the run's files: experiment, scale, and the engine when it is not Lithify.
    pub fn name(&self) -> String {
        let name = format!("{}-{}", self.experiment.name, self.scale);
        if self.engine == EngineName::lithify() {
            return name;
        }
        format!("{name}-{}", self.engine)
    }

    /// The scale as the experiment declares it.
    pub fn declared_scale(&self) -> Option<&Scale> {
        self.experiment.scales.get(&self.scale)
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The chosen scale with the overrides of the command line in it.
fn choose_scale(experiment: &Experiment, choice: &Choice) -> Result<(String, Scale), ChoiceError> {
    let (name, mut scale) = find_scale(&experiment.scales, choice.scale.as_deref())?;
    let overrides = [
        ("--repeats", choice.repeats, 1..=100, &mut scale.repeats),
        ("--seconds", choice.query_seconds, 1..=864_000, &mut scale.query_seconds),
        ("--nodes", choice.nodes, 1_000..=10_000_000_000, &mut scale.nodes),
    ];
    for (flag, value, allowed, target) in overrides {
        override_with(flag, value, allowed, target)?;
    }
    Ok((name, scale))
}

/// A scale by its name; `smoke` when none is given.
pub(crate) fn find_scale<S: Clone>(
    scales: &BTreeMap<String, S>,
    name: Option<&str>,
) -> Result<(String, S), ChoiceError> {
    let name = name.unwrap_or("smoke");
    let Some(scale) = scales.get(name) else {
        let known = names(scales.keys().map(String::as_str));
        return Err(ChoiceError(format!("there is no scale \"{name}\"; there are: {known}")));
    };
    Ok((name.to_owned(), scale.clone()))
}

/// Takes the value of a flag, if it was given, in place of the scale's.
pub(crate) fn override_with(
    flag: &str,
    value: Option<u64>,
    allowed: RangeInclusive<u64>,
    target: &mut u64,
) -> Result<(), ChoiceError> {
    let Some(value) = value else { return Ok(()) };
    if !allowed.contains(&value) {
        let (min, max) = allowed.into_inner();
        return Err(ChoiceError(format!(
            "{flag} {value} is out of range; allowed: {min} to {max}"
        )));
    }
    *target = value;
    Ok(())
}

/// The items, beginning with the one at `first`.
pub(crate) fn rotated<T>(items: &[T], first: usize) -> impl Iterator<Item = &T> {
    items.iter().cycle().skip(first % items.len().max(1)).take(items.len())
}

/// The engines that are there, of `chosen` when it names one and else of `declared`, and a line for
/// each that is left out.
///
/// # Errors
/// An engine that nobody knows, or none left.
pub fn engines_here(
    declared: &[EngineName],
    chosen: Option<&EngineName>,
) -> Result<(Vec<EngineName>, Vec<String>), ChoiceError> {
    let (mut present, mut skipped) = (Vec::new(), Vec::new());
    for name in chosen.map_or(declared, std::slice::from_ref) {
        let provider = engine::find(name).map_err(|error| ChoiceError(error.to_string()))?;
        match provider.available() {
            Ok(()) => present.push(name.clone()),
            Err(missing) => skipped.push(format!("the arms on {name} are skipped: {missing}")),
        }
    }
    if present.is_empty() {
        return Err(ChoiceError(skipped.join("; ")));
    }
    Ok((present, skipped))
}

/// As [`engines_here`], for workloads that close a database and open it again.
///
/// # Errors
/// As there, or an engine that keeps nothing on disk.
pub(crate) fn engines_on_disk(
    declared: &[EngineName],
    chosen: Option<&EngineName>,
) -> Result<(Vec<EngineName>, Vec<String>), ChoiceError> {
    let (present, skipped) = engines_here(declared, chosen)?;
    match present.iter().find(|name| !engine::uses_disk(name)) {
        None => Ok((present, skipped)),
        Some(name) => Err(ChoiceError(format!(
            "{name} keeps nothing on disk: it cannot be closed and read again"
        ))),
    }
}

/// The chosen arms, in the order of the experiment.
pub(crate) fn choose_arms<'a>(
    arms: &'a [Arm],
    chosen: Option<&[String]>,
) -> Result<Vec<&'a Arm>, ChoiceError> {
    let Some(chosen) = chosen else { return Ok(arms.iter().collect()) };
    if let Some(unknown) = chosen.iter().find(|name| arms.iter().all(|arm| arm.name != **name)) {
        let known = names(arms.iter().map(|arm| arm.name.as_str()));
        return Err(ChoiceError(format!("there is no arm \"{unknown}\"; there are: {known}")));
    }
    if chosen.is_empty() {
        return Err(ChoiceError("no arm is chosen".to_owned()));
    }
    Ok(arms.iter().filter(|arm| chosen.contains(&arm.name)).collect())
}

/// What is measured in a repeat: the arms, and behind the base of a pair that has a control the
/// pair's arm once more, so that the base lies between the two.
fn slots<'a>(experiment: &Experiment, arms: &[&'a Arm]) -> Vec<(&'a Arm, Purpose)> {
    let mut slots = Vec::new();
    for base in arms {
        slots.push((*base, Purpose::Measure));
        let of_base = experiment.pairs.iter().filter(|pair| pair.control && pair.base == base.name);
        let again = of_base.filter_map(|pair| arms.iter().find(|arm| arm.name == pair.arm));
        slots.extend(again.map(|arm| (*arm, Purpose::Control)));
    }
    slots
}

/// The engine of an arm: one that the command line names is for all arms.
fn engine_of<'a>(chosen: &'a EngineName, arm: &'a Arm) -> &'a EngineName {
    match &arm.engine {
        Some(own) if *chosen == EngineName::lithify() => own,
        _ => chosen,
    }
}

/// Leaves out the arms whose engine is not there; gives a line for each of them.
///
/// # Errors
/// An engine that nobody knows, an unknown arm, no arm left.
pub fn leave_out_missing(
    experiment: &Experiment,
    engine: &EngineName,
    choice: &mut Choice,
) -> Result<Vec<String>, ChoiceError> {
    let mut present = Vec::new();
    let mut skipped = Vec::new();
    for arm in choose_arms(&experiment.arms, choice.arms.as_deref())? {
        let provider = engine::find(engine_of(engine, arm))
            .map_err(|error| ChoiceError(format!("arm \"{}\": {error}", arm.name)))?;
        match provider.available() {
            Ok(()) => present.push(arm.name.clone()),
            Err(missing) => skipped.push(format!("arm {} is skipped: {missing}", arm.name)),
        }
    }
    if present.is_empty() {
        return Err(ChoiceError(skipped.join("; ")));
    }
    if !skipped.is_empty() {
        choice.arms = Some(present);
    }
    Ok(skipped)
}

/// The settings of an arm's engine.
pub(crate) fn settings(shared: &SharedSettings, sizes: &EngineSizes, arm: &Arm) -> EngineSettings {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    EngineSettings {
        memory_budget_bytes: sizes.memory_budget_mib * MIB,
        block_cache_bytes: sizes.block_cache_mib * MIB,
        memtable_bytes: sizes.memtable_kib * KIB,
        table_bytes: sizes.table_kib * KIB,
        base_level_bytes: sizes.base_level_mib * MIB,
        fanout: sizes.fanout,
        background_threads: sizes.background_threads,
        block_bytes: shared.block_kib * 1024,
        durability: shared.durability,
        codec_level0: arm.level0,
        codec_small: arm.small.unwrap_or(shared.codec_small),
        codec_middle: arm.middle.unwrap_or(shared.codec_middle),
        codec_bottom: arm.bottom,
        direct_reads: false,
        options: arm.options.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::BUILT_IN;

    fn experiment() -> Experiment {
        Experiment::parse("e.toml", BUILT_IN[0].1).expect("parses")
    }

    fn ids(plan: &Plan) -> Vec<&str> {
        plan.cells.iter().map(|cell| cell.id.as_str()).collect()
    }

    fn expand(choice: &Choice) -> Result<Plan, ChoiceError> {
        Plan::expand(&experiment(), &EngineName::model(), choice, "b")
    }

    #[test]
    fn arms_rotate_over_repeats() {
        let choice = Choice {
            arms: Some(vec!["zstd-1".into(), "none".into(), "lz4".into()]),
            repeats: Some(4),
            ..Choice::default()
        };
        let plan = expand(&choice).expect("expands");
        assert_eq!(
            ids(&plan),
            [
                "driver",
                "none-r0",
                "lz4-r0",
                "zstd-1-r0",
                "lz4-r1",
                "zstd-1-r1",
                "none-r1",
                "zstd-1-r2",
                "none-r2",
                "lz4-r2",
                "none-r3",
                "lz4-r3",
                "zstd-1-r3",
            ]
        );
        assert_eq!(plan.arms, ["none", "lz4", "zstd-1"]);
        assert_eq!(plan.name(), "zlib-vs-zstd-smoke-model");
        let seeds: Vec<u64> = plan.cells[1..].iter().map(|cell| cell.seed).collect();
        let first = experiment().workload.seed;
        assert!(plan.cells[1..].iter().zip(seeds).all(|(cell, s)| s == first + cell.repeat));
    }

    #[test]
    fn everything_by_default_and_no_calibration_of_the_null_engine() {
        let plan = Plan::expand(&experiment(), &EngineName::null(), &Choice::default(), "b")
            .expect("expands");
        assert_eq!(plan.cells.len(), 18);
        assert_eq!(plan.scale, "smoke");
        assert_eq!(plan.name(), "zlib-vs-zstd-smoke-null");
        assert_eq!(plan.cells[0].settings.codec_bottom.to_string(), "none");
        assert_eq!(plan.cells[2].settings.base_level_bytes, 1 << 20);
    }

    fn versus() -> Experiment {
        Experiment::parse("e.toml", BUILT_IN[1].1).expect("parses")
    }

    #[test]
    fn an_arm_may_have_an_engine_and_codecs_of_its_own() {
        let plan = |engine| Plan::expand(&versus(), &engine, &Choice::default(), "b");
        let own = plan(EngineName::lithify()).expect("expands");
        assert_eq!(own.name(), "lithify-vs-rocksdb-smoke");
        let cell = |arm: &str| own.cells.iter().find(|cell| cell.arm == arm).expect("is there");
        assert_eq!(cell("rocksdb-lz4").engine.name(), "rocksdb");
        assert_eq!(cell("lithify-lz4").engine.name(), "lithify");
        let (a, b) = (&cell("rocksdb-lz4").settings, &cell("lithify-lz4").settings);
        assert_eq!((a, a.codec_small.to_string()), (b, "lz4".to_owned()));
        assert_eq!(cell("rocksdb-none").settings.codec_small.to_string(), "none");
        let all = plan(EngineName::null()).expect("expands");
        assert!(all.cells.iter().all(|cell| cell.engine == EngineName::null()));
    }

    #[test]
    fn a_pair_with_a_control_measures_its_arm_twice() {
        let ids_of = |arms: Option<&[&str]>| {
            let arms = arms.map(|arms| arms.iter().map(|arm| (*arm).to_owned()).collect());
            let choice = Choice { arms, repeats: Some(2), ..Choice::default() };
            let plan = Plan::expand(&versus(), &EngineName::lithify(), &choice, "b");
            let plan = plan.expect("expands");
            let ids: Vec<String> = plan.cells.iter().map(|cell| cell.id.clone()).collect();
            (plan, ids)
        };
        let (plan, ids) = ids_of(Some(&["lithify-lz4", "rocksdb-lz4"]));
        assert_eq!(
            ids,
            [
                "driver",
                "lithify-lz4-r0",
                "rocksdb-lz4-r0",
                "lithify-lz4-control-r0",
                "rocksdb-lz4-r1",
                "lithify-lz4-control-r1",
                "lithify-lz4-r1",
            ]
        );
        let (measured, control) = (&plan.cells[1], &plan.cells[3]);
        assert_eq!(control.purpose, Purpose::Control);
        assert_eq!((&control.arm, control.seed), (&measured.arm, measured.seed));
        assert_eq!(control.settings, measured.settings);
        assert_ne!(control.hash(), measured.hash());
        // Without the base there is nothing to compare, and nothing to control.
        let (_, ids) = ids_of(Some(&["lithify-lz4"]));
        assert_eq!(ids, ["driver", "lithify-lz4-r0", "lithify-lz4-r1"]);
    }

    #[test]
    fn arms_without_their_engine_are_left_out() {
        // The lab alone knows no other engines; who links their adapters does.
        let mut choice = Choice::default();
        let error = leave_out_missing(&versus(), &EngineName::lithify(), &mut choice);
        let error = error.expect_err("is unknown").0;
        assert!(error.contains("there is no engine \"rocksdb\""), "{error}");
        let skipped = leave_out_missing(&versus(), &EngineName::model(), &mut choice);
        assert_eq!(skipped, Ok(Vec::new()));
        assert!(choice.arms.is_none());
    }

    #[test]
    fn only_engines_on_disk_are_held_to_a_limit() {
        let choice = Choice { scale: Some("io-s".into()), ..Choice::default() };
        for (engine, limit) in
            [(EngineName::lithify(), Some(128 << 20)), (EngineName::model(), None)]
        {
            let plan = Plan::expand(&experiment(), &engine, &choice, "b").expect("expands");
            assert_eq!(plan.cells[0].memory_limit_bytes, None, "the calibration");
            assert!(plan.cells[1..].iter().all(|cell| cell.memory_limit_bytes == limit));
        }
    }

    #[test]
    fn impossible_choices_say_what_is_possible() {
        let refuse = |choice: Choice| expand(&choice).expect_err("must be refused").0;
        let text = refuse(Choice { scale: Some("big".into()), ..Choice::default() });
        assert!(text.contains("\"big\"; there are: cached, io-l, io-s, smoke"), "{text}");
        let text = refuse(Choice { arms: Some(vec!["gzip".into()]), ..Choice::default() });
        assert!(text.contains("\"gzip\"; there are: none, lz4"), "{text}");
        assert!(refuse(Choice { arms: Some(vec![]), ..Choice::default() }).contains("no arm"));
        let text = refuse(Choice { repeats: Some(0), ..Choice::default() });
        assert_eq!(text, "--repeats 0 is out of range; allowed: 1 to 100");
        let text = refuse(Choice { query_seconds: Some(0), ..Choice::default() });
        assert!(text.contains("--seconds"), "{text}");
    }

    #[test]
    fn the_hash_is_that_of_the_whole_description() {
        let plan = expand(&Choice::default()).expect("expands");
        let spec = &plan.cells[1];
        assert_eq!(spec.hash(), expand(&Choice::default()).expect("expands").cells[1].hash());
        let mut others = vec![spec.hash()];
        for change in [
            |spec: &mut CellSpec| spec.seed += 1,
            |spec: &mut CellSpec| spec.query_seconds += 1,
            |spec: &mut CellSpec| spec.settings.block_bytes += 1,
            |spec: &mut CellSpec| spec.build.push('x'),
        ] {
            let mut changed = spec.clone();
            change(&mut changed);
            others.push(changed.hash());
        }
        others.sort();
        others.dedup();
        assert_eq!(others.len(), 5);
    }
}
