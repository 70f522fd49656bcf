//! From an experiment and the command line to the cells, in the order in which they run.

mod left_out;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::adapter::EngineName;
use crate::adapter::allocator::Allocator;
use crate::adapter::codec::Codec;
use crate::adapter::provider::Content;
use crate::adapter::settings::{DurabilityMode, EngineSettings};
use crate::engines::registry;
use crate::experiment::{Arm, Claim, DeviceSpeed, EngineSizes, Experiment, Scale, SharedSettings};
pub use crate::kind::choice::ChoiceError;
use crate::linkbench::cell::{CellSpec, Purpose, SCHEMA};
use crate::run::file_system::FileSystemRequest;
pub(crate) use left_out::LeftOut;

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
    /// Numbers of clients of one query phase after another, instead of the scale's; of the loads
    /// too, where the scale loads with several numbers.
    pub clients: Option<Vec<u64>>,
}

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
        let arms = arms_of_scale(arms, scale.claims)?;
        let repeats = scale.repeats;
        let maker = Maker { experiment, engine, scale: &scale, build };
        let mut cells = Vec::new();
        if *engine != EngineName::null() {
            cells.push(maker.calibration());
        }
        let slots = slots(experiment, &scale, &arms);
        for repeat in 0..repeats {
            for position in 0..slots.len() {
                cells.push(maker.cell(&slots[(position + repeat as usize) % slots.len()], repeat));
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

    /// What the scale claims of its queries.
    pub fn claims(&self) -> Option<Claim> {
        self.declared_scale()?.claims
    }

    /// The scale as the experiment declares it.
    pub fn declared_scale(&self) -> Option<&Scale> {
        self.experiment.scales.get(&self.scale)
    }
}

/// Names with commas between them.
pub(crate) fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
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
    if let Some(clients) = &choice.clients {
        choose_clients(clients, &mut scale)?;
    }
    Ok((name, scale))
}

/// Puts the chosen numbers of clients into a scale.
fn choose_clients(clients: &[u64], scale: &mut Scale) -> Result<(), ChoiceError> {
    for count in clients {
        override_with("--clients", Some(*count), 1..=256, &mut scale.requesters)?;
    }
    if !clients.is_sorted_by(|a, b| a < b) {
        return Err(ChoiceError("--clients: numbers of clients must ascend".to_owned()));
    }
    if clients.len() > 1 && !scale.turnovers.is_empty() {
        return Err(ChoiceError("--clients: queries by turnover have one number".to_owned()));
    }
    scale.clients = clients.to_vec();
    if !scale.load_clients.is_empty() {
        scale.load_clients = clients.to_vec();
    }
    Ok(())
}

/// A scale by its name, of several with commas between them the first that there is; `smoke` when
/// none is given.
pub(crate) fn find_scale<S: Clone>(
    scales: &BTreeMap<String, S>,
    name: Option<&str>,
) -> Result<(String, S), ChoiceError> {
    let name = name.unwrap_or("smoke");
    let Some((name, scale)) = name.split(',').find_map(|name| scales.get_key_value(name)) else {
        let known = names(scales.keys().map(String::as_str));
        return Err(ChoiceError(format!("there is no scale \"{name}\"; there are: {known}")));
    };
    Ok((name.clone(), scale.clone()))
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

/// The engines that are there and can hold `content`, of `chosen` when it names one and else of
/// `declared`, and a line for each that is left out.
///
/// # Errors
/// None is left.
pub fn engines_here(
    declared: &[EngineName],
    chosen: Option<&EngineName>,
    content: Content,
) -> Result<(Vec<EngineName>, Vec<String>), ChoiceError> {
    let (mut present, mut skipped) = (Vec::new(), Vec::new());
    for name in chosen.map_or(declared, std::slice::from_ref) {
        match registry::available_for(name, content) {
            Ok(_) => present.push(name.clone()),
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
    content: Content,
) -> Result<(Vec<EngineName>, Vec<String>), ChoiceError> {
    let (present, skipped) = engines_here(declared, chosen, content)?;
    match present.iter().find(|name| !registry::uses_disk(name)) {
        None => Ok((present, skipped)),
        Some(name) => Err(ChoiceError(format!(
            "{name} keeps nothing on disk: it cannot be closed and read again"
        ))),
    }
}

/// Why an engine cannot run an arm, in words: it is not there, does not have the codec or the
/// durability, or would do the same as in another arm, because it does not follow sizes of blocks
/// and this one's is not the `first` of its codec.
pub(crate) fn cannot_run(
    engine: &EngineName,
    settings: &EngineSettings,
    content: Content,
    first: bool,
) -> Option<String> {
    match registry::require(engine, settings, content) {
        Err(lacking) => Some(lacking.to_string()),
        Ok(provider) if !first && !provider.capabilities().block_size => {
            Some(format!("{engine} does not follow sizes of blocks; one of them was enough"))
        }
        Ok(_) => None,
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

/// The arms that belong to a scale that claims `claims`.
fn arms_of_scale(mut arms: Vec<&Arm>, claims: Option<Claim>) -> Result<Vec<&Arm>, ChoiceError> {
    arms.retain(|arm| arm.belongs_to(claims));
    if arms.is_empty() {
        let claimed = claims.map_or("nothing", Claim::name);
        return Err(ChoiceError(format!(
            "none of the chosen arms belongs to a scale that claims to be {claimed}"
        )));
    }
    Ok(arms)
}

/// One place in the order of a repeat.
struct Slot<'a> {
    arm: &'a Arm,
    purpose: Purpose,
    loaders: u64,
}

/// What is measured in a repeat: the arms, and behind the base of a pair that has an A/A control the
/// pair's arm and the base once more, so that each lies between two runs of the other; then the
/// loads with other numbers of threads, one number after the other. Each arm has one control,
/// however many pairs it is in.
fn slots<'a>(experiment: &Experiment, scale: &Scale, arms: &[&'a Arm]) -> Vec<Slot<'a>> {
    let slot = |arm, purpose| Slot { arm, purpose, loaders: scale.loaders };
    let mut slots = Vec::new();
    for base in arms {
        slots.push(slot(*base, Purpose::Measure));
        let of_base = experiment.pairs.iter().filter(|pair| pair.control && pair.base == base.name);
        for arm in of_base.filter_map(|pair| arms.iter().find(|arm| arm.name == pair.arm)) {
            for arm in [arm, base] {
                let is_again =
                    |s: &Slot<'_>| s.purpose == Purpose::Control && s.arm.name == arm.name;
                if !slots.iter().any(is_again) {
                    slots.push(slot(*arm, Purpose::Control));
                }
            }
        }
    }
    // The arms themselves were loaded by one of the numbers already.
    for loaders in scale.load_clients.iter().copied().filter(|count| *count != scale.loaders) {
        slots.extend(arms.iter().map(|arm| Slot { arm, purpose: Purpose::Load, loaders }));
    }
    slots
}

/// Makes the cells of a run.
struct Maker<'a> {
    experiment: &'a Experiment,
    engine: &'a EngineName,
    scale: &'a Scale,
    build: &'a str,
}

impl Maker<'_> {
    fn cell(&self, slot: &Slot<'_>, repeat: u64) -> CellSpec {
        let (Maker { experiment, scale, .. }, arm) = (self, slot.arm);
        let engine = engine_of(self.engine, arm);
        // An engine that keeps its data in memory cannot do with less of it, and has no device.
        let uses_disk = registry::uses_disk(engine);
        let role = match slot.purpose {
            Purpose::Control => "-control".to_owned(),
            Purpose::Load => format!("-load{}", slot.loaders),
            Purpose::Measure | Purpose::Calibrate => String::new(),
        };
        let device = arm.device.unwrap_or(scale.device);
        CellSpec {
            schema: SCHEMA,
            id: format!("{}{role}-r{repeat}", arm.name),
            purpose: slot.purpose,
            arm: arm.name.clone(),
            repeat,
            engine: engine.clone(),
            settings: settings(&experiment.engine, &scale.sizes(), arm),
            profile: experiment.workload.profile,
            seed: experiment.workload.seed + repeat,
            nodes: scale.nodes,
            loaders: slot.loaders,
            requesters: scale.requesters,
            clients: scale.clients.clone(),
            warmup_seconds: scale.warmup_seconds,
            query_seconds: scale.query_seconds,
            turnovers: scale.turnovers.clone(),
            memory_limit_bytes: scale.memory_limit_mib.filter(|_| uses_disk).map(|mib| mib << 20),
            open_loop_percent: experiment.workload.open_loop_percent.clone(),
            device: if uses_disk { device } else { DeviceSpeed::Fast },
            second_log: arm.second_log,
            plain_deletes: arm.plain_deletes,
            file_system: arm
                .file_system
                .as_ref()
                .filter(|_| uses_disk)
                .map(|spec| FileSystemRequest::new(spec, scale.disk_mib << 20)),
            drop_database: experiment.workload.drop_database && uses_disk,
            // An engine that needs another one than its arm names is refused when it is opened.
            allocator: registry::allocator_for(engine, arm.allocator)
                .unwrap_or_else(|_| arm.allocator.unwrap_or_default()),
            build: self.build.to_owned(),
        }
    }

    /// The driver over the engine that does nothing. That one ignores settings; the first arm of
    /// the file lends its own, so that choosing other arms does not ask for another calibration.
    fn calibration(&self) -> CellSpec {
        let arm = &self.experiment.arms[0];
        let slot = Slot { arm, purpose: Purpose::Calibrate, loaders: self.scale.loaders };
        CellSpec {
            id: "driver".to_owned(),
            arm: "driver".to_owned(),
            engine: EngineName::null(),
            clients: Vec::new(),
            warmup_seconds: 1,
            query_seconds: self.scale.calibration_seconds,
            memory_limit_bytes: None,
            open_loop_percent: Vec::new(),
            device: DeviceSpeed::Fast,
            second_log: false,
            plain_deletes: false,
            file_system: None,
            drop_database: false,
            turnovers: Vec::new(),
            allocator: Allocator::default(),
            ..self.cell(&slot, 0)
        }
    }
}

/// The engine of an arm: one that the command line names is for all arms.
fn engine_of<'a>(chosen: &'a EngineName, arm: &'a Arm) -> &'a EngineName {
    match &arm.engine {
        Some(own) if *chosen == EngineName::lithify() => own,
        _ => chosen,
    }
}

/// Leaves out the arms whose engine is not there or that nobody here knows; gives a line for each
/// of them.
///
/// # Errors
/// An unknown arm, no arm left.
pub fn leave_out_missing(
    experiment: &Experiment,
    engine: &EngineName,
    choice: &mut Choice,
) -> Result<Vec<String>, ChoiceError> {
    let (_, scale) = find_scale(&experiment.scales, choice.scale.as_deref())?;
    let mut present = Vec::new();
    let mut skipped = Vec::new();
    for arm in choose_arms(&experiment.arms, choice.arms.as_deref())? {
        let settings = settings(&experiment.engine, &scale.sizes(), arm);
        match registry::require(engine_of(engine, arm), &settings, Content::Graph) {
            Ok(_) => present.push(arm.name.clone()),
            Err(lacking) => skipped.push(format!("arm {} is skipped: {lacking}", arm.name)),
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
    EngineSettings {
        codec_level0: arm.level0,
        codec_small: arm.small.unwrap_or(shared.codec_small),
        codec_middle: arm.middle.unwrap_or(shared.codec_middle),
        options: arm.options.clone(),
        ..one_codec(arm.bottom, shared.block_kib, sizes, shared.durability)
    }
}

/// The settings of an engine whose data all have one codec.
pub(crate) fn one_codec(
    codec: Codec,
    block_kib: u64,
    sizes: &EngineSizes,
    durability: DurabilityMode,
) -> EngineSettings {
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
        block_bytes: block_kib * KIB,
        durability,
        codec_level0: None,
        codec_small: codec,
        codec_middle: codec,
        codec_bottom: codec,
        direct_reads: false,
        options: BTreeMap::new(),
    }
}
