//! From an experiment and the command line to the cells, in the order in which they run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::spec::{ChunkCell, SCHEMA};
use crate::adapter::EngineName;
use crate::adapter::provider::Content;
use crate::datasets::TextData;
use crate::experiment::WorkloadKind;
use crate::experiment::chunks::{ChunkArm, ChunkExperiment, ChunkScale};
use crate::linkbench::plan::{
    ChoiceError, LeftOut, cannot_run, engines_on_disk, find_scale, one_codec, override_with,
};
use crate::run::cells::{Entries, RunPlan, WorkloadPlan};
use crate::run::rotated;

/// What the command line chose.
#[derive(Clone, Debug, Default)]
pub struct ChunkChoice {
    /// Name of the scale; `smoke` when not given.
    pub scale: Option<String>,
    /// Names of arms (`lz4-16k`), or of codecs for all their chunks; all arms when not given.
    pub arms: Option<Vec<String>>,
    /// The one engine; those of the experiment that are there when not given.
    pub engine: Option<EngineName>,
    /// Instead of the scale's repeats.
    pub repeats: Option<u64>,
    /// Instead of the experiment's text.
    pub text: Option<TextData>,
}

/// What a run measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChunkPlan {
    /// The experiment as it was read.
    pub experiment: ChunkExperiment,
    /// The name of the run, and of its files.
    pub name: String,
    /// Name of the scale.
    pub scale: String,
    /// The scale with the overrides of the command line in it.
    pub sizes: ChunkScale,
    /// The text.
    pub text: TextData,
    /// The engines in the order of the tables.
    pub engines: Vec<EngineName>,
    /// What was left out, line by line.
    pub skipped: Vec<String>,
    /// The cells.
    pub cells: Vec<ChunkCell>,
}

impl RunPlan for ChunkPlan {
    type Cell = ChunkCell;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn scale(&self) -> Option<&str> {
        Some(&self.scale)
    }

    fn cells(&self) -> &[ChunkCell] {
        &self.cells
    }

    /// Two databases and their logs at once, and what an engine reserves.
    fn needed_bytes(&self, cell: &ChunkCell) -> u64 {
        8 * cell.text_bytes + (256 << 20)
    }

    /// All engines read the same rows, each in its own way.
    fn disagreements(entries: &Entries<ChunkCell>) -> Vec<String> {
        let mut hashes: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for outcome in entries.results() {
            hashes.entry(outcome.cell.seed).or_default().insert(outcome.rows_hash);
        }
        match hashes.values().all(|of_seed| of_seed.len() == 1) {
            true => Vec::new(),
            false => vec!["WRONG: rows as read differ between cells of one seed".to_owned()],
        }
    }
}

impl WorkloadPlan for ChunkPlan {
    const KIND: WorkloadKind = WorkloadKind::Chunks;
}

/// The chosen arms, in the order of the experiment.
fn choose(
    experiment: &ChunkExperiment,
    chosen: Option<&[String]>,
) -> Result<Vec<ChunkArm>, ChoiceError> {
    let arms = experiment.arms();
    let Some(chosen) = chosen else { return Ok(arms) };
    let is = |arm: &ChunkArm, name: &str| arm.to_string() == name || arm.codec.to_string() == name;
    if let Some(unknown) = chosen.iter().find(|name| !arms.iter().any(|arm| is(arm, name))) {
        let names: Vec<String> = arms.iter().map(ToString::to_string).collect();
        return Err(ChoiceError(format!(
            "there is no arm \"{unknown}\"; there are: {}, and the names of codecs for all their \
             chunks",
            names.join(", ")
        )));
    }
    let arms: Vec<ChunkArm> =
        arms.into_iter().filter(|arm| chosen.iter().any(|name| is(arm, name))).collect();
    if arms.is_empty() {
        return Err(ChoiceError("no arm was chosen".to_owned()));
    }
    Ok(arms)
}

impl ChunkPlan {
    /// Expands `experiment` for the engines that are here. `build` identifies the program that
    /// will measure.
    ///
    /// Each arm runs on all engines in turn, and each repeat begins with another arm and another
    /// engine, so that a machine that drifts hurts all alike.
    ///
    /// # Errors
    /// An unknown scale, arm or engine, no engine left, an impossible number, a text that is not
    /// here.
    pub fn expand(
        experiment: &ChunkExperiment,
        choice: &ChunkChoice,
        build: &str,
    ) -> Result<ChunkPlan, ChoiceError> {
        let (scale, mut sizes) = find_scale(&experiment.scales, choice.scale.as_deref())?;
        override_with("--repeats", choice.repeats, 1..=100, &mut sizes.repeats)?;
        let workload = &experiment.workload;
        let arms = choose(experiment, choice.arms.as_deref())?;
        let (engines, mut skipped) =
            engines_on_disk(&workload.engines, choice.engine.as_ref(), Content::Text)?;
        let text = choice.text.clone().unwrap_or_else(|| workload.text.clone());
        let text_bytes = text
            .available_bytes(sizes.text_kib << 10)
            .map_err(|error| ChoiceError(error.to_string()))?;
        let (mut cells, mut left_out) = (Vec::new(), LeftOut::default());
        for repeat in 0..sizes.repeats {
            for arm in rotated(&arms, repeat as usize) {
                for engine in rotated(&engines, repeat as usize) {
                    let settings =
                        one_codec(arm.codec, arm.chunk_kib, &sizes.sizes(), workload.durability);
                    let is_first = arms.iter().find(|a| a.codec == arm.codec) == Some(arm);
                    if let Some(why) = cannot_run(engine, &settings, Content::Text, is_first) {
                        left_out.note(engine, arm.to_string(), why);
                        continue;
                    }
                    cells.push(ChunkCell {
                        schema: SCHEMA,
                        id: format!("{engine}-{arm}-r{repeat}"),
                        engine: engine.clone(),
                        codec: arm.codec,
                        chunk_kib: arm.chunk_kib,
                        repeat,
                        settings,
                        text: text.clone(),
                        text_bytes,
                        partitions: workload.partitions,
                        seed: workload.seed + repeat,
                        flushes: sizes.flushes,
                        scans: sizes.scans,
                        codec_passes: sizes.codec_passes,
                        build: build.to_owned(),
                    });
                }
            }
        }
        skipped.extend(left_out.lines());
        if cells.is_empty() {
            return Err(ChoiceError(skipped.join("; ")));
        }
        let mut name = format!("{}-{scale}", experiment.name);
        if let Some(engine) = &choice.engine {
            name.push_str(&format!("-{engine}"));
        }
        let experiment = experiment.clone();
        Ok(ChunkPlan { experiment, name, scale, sizes, text, engines, skipped, cells })
    }
}
