//! From an experiment and the command line to the cells, in the order in which they run.

use serde::{Deserialize, Serialize};

use crate::adapter::EngineName;
use crate::dbbench::plan::DbPlan;
use crate::dbbench::spec::{DEFAULT_BATCH_SIZE, DbCell, DbSpec, Role, SCHEMA};
use crate::dbbench::step::StepSpec;
use crate::engines::registry;
use crate::experiment::loops::{LoopExperiment, LoopScale, LoopWorkload};
use crate::experiment::{Arm, WorkloadKind};
use crate::keyvalue::benchmark::Benchmark;
use crate::linkbench::plan::{ChoiceError, choose_arms, find_scale, override_with, settings};
use crate::run::cells::RunPlan;
use crate::run::rotated;

/// What the command line chose.
#[derive(Clone, Debug, Default)]
pub struct LoopChoice {
    /// Name of the scale; `smoke` when not given.
    pub scale: Option<String>,
    /// Names of arms; all when not given.
    pub arms: Option<Vec<String>>,
    /// The one engine; those of the experiment that are there when not given.
    pub engine: Option<EngineName>,
    /// Instead of the scale's repeats.
    pub repeats: Option<u64>,
    /// Instead of the scale's seconds of a test.
    pub test_seconds: Option<u64>,
    /// Instead of the scale's keys.
    pub keys: Option<u64>,
}

/// What a run measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopPlan {
    /// Tells the JSON from that of other experiments: `dbbench`.
    pub kind: WorkloadKind,
    /// The experiment as it was read.
    pub experiment: LoopExperiment,
    /// Name of the scale.
    pub scale: String,
    /// The scale with the overrides of the command line in it.
    pub sizes: LoopScale,
    /// The engines in the order of the tables.
    pub engines: Vec<EngineName>,
    /// The arms in the order of the tables.
    pub arms: Vec<String>,
    /// The name and the cells of the run.
    pub cells: DbPlan,
}

impl RunPlan for LoopPlan {
    type Cell = DbCell;
    const SMALLER: &'static str = "take fewer --keys";

    fn name(&self) -> String {
        self.cells.name.clone()
    }

    fn scale(&self) -> Option<&str> {
        Some(&self.scale)
    }

    fn cells(&self) -> &[DbCell] {
        &self.cells.cells
    }

    fn needed_bytes(&self, cell: &DbCell) -> u64 {
        self.cells.needed_bytes(cell)
    }
}

/// The driver runs for so long at most: its figures do not change.
const DRIVER_SECONDS_MAX: u64 = 5;

/// Seeds of two repeats lie further apart than the threads of a process.
const SEEDS_PER_REPEAT: u64 = 1000;

impl LoopPlan {
    /// Expands `experiment` for `engines`. `build` identifies the program that will measure.
    ///
    /// The driver alone comes first. Arms are interleaved over repeats, each on all engines in
    /// turn, and each repeat begins with another arm and another engine, so that a machine that
    /// drifts hurts all alike.
    ///
    /// # Errors
    /// An unknown scale or arm, an impossible number.
    pub fn expand(
        experiment: &LoopExperiment,
        engines: &[EngineName],
        choice: &LoopChoice,
        build: &str,
    ) -> Result<LoopPlan, ChoiceError> {
        let (scale, mut sizes) = find_scale(&experiment.scales, choice.scale.as_deref())?;
        override_with("--repeats", choice.repeats, 1..=100, &mut sizes.repeats)?;
        override_with("--seconds", choice.test_seconds, 1..=86_400, &mut sizes.test_seconds)?;
        override_with("--keys", choice.keys, 1_000..=10_000_000_000, &mut sizes.keys)?;
        let arms = choose_arms(&experiment.arms, choice.arms.as_deref())?;
        let mut cells = Vec::new();
        // The engine that stores nothing ignores settings; the first arm of the file lends its
        // own, so that choosing other arms does not ask for another calibration.
        let driver = spec(experiment, &sizes, &experiment.arms[0], &EngineName::null(), 0, build);
        let driver = DbSpec {
            duration_seconds: driver.duration_seconds.min(DRIVER_SECONDS_MAX),
            benchmarks: benchmarks(&experiment.workload, 0),
            ..driver
        };
        cells.push(DbCell { id: "driver".to_owned(), role: Role::Driver, repeat: 0, spec: driver });
        for repeat in 0..sizes.repeats {
            let first = repeat as usize;
            for arm in rotated(&arms, first) {
                for engine in rotated(engines, first) {
                    cells.push(DbCell {
                        id: cell_id(engine, &arm.name, repeat),
                        role: Role::Measure,
                        repeat,
                        spec: spec(experiment, &sizes, arm, engine, repeat, build),
                    });
                }
            }
        }
        let name = match &choice.engine {
            Some(engine) => format!("{}-{scale}-{engine}", experiment.name),
            None => format!("{}-{scale}", experiment.name),
        };
        Ok(LoopPlan {
            kind: WorkloadKind::DbBench,
            experiment: experiment.clone(),
            scale,
            sizes,
            engines: engines.to_vec(),
            arms: arms.iter().map(|arm| arm.name.clone()).collect(),
            cells: DbPlan { name, engines: engines.to_vec(), cells },
        })
    }
}

/// The name of a cell, and of its files.
pub(super) fn cell_id(engine: &EngineName, arm: &str, repeat: u64) -> String {
    format!("{engine}-{arm}-r{repeat}")
}

/// The load, then the tests; the writer beside readers keeps to its rate, bytes per second.
fn benchmarks(workload: &LoopWorkload, writer_rate_bytes_per_s: u64) -> Vec<StepSpec> {
    let step = |benchmark: Benchmark| {
        let is_beside_readers = benchmark == Benchmark::ReadWhileWriting;
        let write_rate_bytes_per_s = is_beside_readers.then_some(writer_rate_bytes_per_s);
        StepSpec { write_rate_bytes_per_s, ..StepSpec::from(benchmark) }
    };
    [workload.load].iter().chain(&workload.tests).map(|benchmark| step(*benchmark)).collect()
}

fn spec(
    experiment: &LoopExperiment,
    scale: &LoopScale,
    arm: &Arm,
    engine: &EngineName,
    repeat: u64,
    build: &str,
) -> DbSpec {
    let workload = &experiment.workload;
    DbSpec {
        schema: SCHEMA,
        engine: engine.clone(),
        settings: settings(&experiment.engine, &scale.sizes(), arm),
        benchmarks: benchmarks(workload, workload.writer_mib_per_s << 20),
        allocator: registry::allocator_for(engine, None).unwrap_or_default(),
        num: scale.keys,
        reads: None,
        writes: None,
        key_bytes: workload.key_bytes,
        value_bytes: workload.value_bytes,
        compression_ratio: workload.compression_ratio,
        fresh_values: false,
        threads: scale.clients,
        duration_seconds: scale.test_seconds,
        seek_nexts: 0,
        reverse_iterator: false,
        batch_size: DEFAULT_BATCH_SIZE,
        write_rate_bytes_per_s: 0,
        seed: workload.seed + SEEDS_PER_REPEAT * repeat,
        use_existing: false,
        settle: true,
        build: build.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::adapter::codec::Codec;
    use crate::adapter::provider::Content;
    use crate::linkbench::plan::engines_here;

    fn expand(engines: &[&str], choice: &LoopChoice) -> Result<LoopPlan, ChoiceError> {
        let engines: Vec<EngineName> = engines.iter().map(|name| EngineName::new(*name)).collect();
        LoopPlan::expand(&sample::experiment(), &engines, choice, "build")
    }

    #[test]
    fn arms_and_engines_rotate_over_repeats() {
        let choice = LoopChoice {
            arms: Some(vec!["lz4".into(), "none".into()]),
            repeats: Some(2),
            ..LoopChoice::default()
        };
        let plan = expand(&["lithify", "rocksdb"], &choice).expect("expands");
        let ids: Vec<&str> = plan.cells.cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "driver",
                "lithify-none-r0",
                "rocksdb-none-r0",
                "lithify-lz4-r0",
                "rocksdb-lz4-r0",
                "rocksdb-lz4-r1",
                "lithify-lz4-r1",
                "rocksdb-none-r1",
                "lithify-none-r1",
            ]
        );
        assert_eq!(
            (plan.arms.join(","), plan.cells.name.as_str()),
            ("none,lz4".into(), "compress-or-not-smoke")
        );
        let seeds: Vec<u64> = plan.cells.cells[1..].iter().map(|cell| cell.spec.seed).collect();
        let first = plan.experiment.workload.seed;
        assert_eq!(seeds[0], first);
        assert!(seeds[4..].iter().all(|seed| *seed == first + 1000));
    }

    #[test]
    fn a_cell_is_the_load_and_the_tests_with_the_codecs_of_its_arm() {
        let plan = expand(&["lithify"], &LoopChoice::default()).expect("expands");
        let cell = |id: &str| {
            let found = plan.cells.cells.iter().find(|cell| cell.id == id);
            found.unwrap_or_else(|| panic!("{id} is there")).spec.clone()
        };
        let spec = cell("lithify-lz4-but-l0-r0");
        let steps = [Benchmark::FillSeq, Benchmark::ReadWhileWriting, Benchmark::Overwrite];
        assert_eq!(spec.benchmarks.iter().map(|step| step.benchmark).collect::<Vec<_>>(), steps);
        assert_eq!(spec.settings.codec_level0, Some(Codec::NONE));
        assert_eq!(spec.settings.codec_small, Codec::LZ4);
        let rates = |spec: &DbSpec| {
            let rate = |step: &StepSpec| step.of(spec).write_rate_bytes_per_s;
            spec.benchmarks.iter().map(rate).collect::<Vec<_>>()
        };
        assert_eq!(rates(&spec), [0, 10 << 20, 0]);
        let upper = cell("lithify-none-upper-r0").settings;
        assert_eq!((upper.codec_level0, upper.codec_small), (None, Codec::NONE));
        assert_eq!((upper.codec_middle, upper.codec_bottom), (Codec::LZ4, Codec::LZ4));
        let driver = cell("driver");
        assert_eq!(driver.engine, EngineName::null());
        assert_eq!(rates(&driver), [0, 0, 0]);
    }

    #[test]
    fn impossible_choices_say_what_is_possible() {
        let refuse = |choice: LoopChoice| expand(&["model"], &choice).expect_err("refused").0;
        let text = refuse(LoopChoice { scale: Some("big".into()), ..LoopChoice::default() });
        assert_eq!(text, "there is no scale \"big\"; there are: cached, full, smoke");
        let text = refuse(LoopChoice { arms: Some(vec!["zip".into()]), ..LoopChoice::default() });
        assert!(text.contains("\"zip\"; there are: none, none-upper, lz4"), "{text}");
        let text = refuse(LoopChoice { keys: Some(3), ..LoopChoice::default() });
        assert_eq!(text, "--keys 3 is out of range; allowed: 1000 to 10000000000");
    }

    #[test]
    fn of_several_scales_the_first_that_there_is_counts() {
        let scale = |names: &str| {
            let choice = LoopChoice { scale: Some(names.into()), ..LoopChoice::default() };
            expand(&["model"], &choice).map(|plan| plan.scale)
        };
        assert_eq!(scale("standard,full,smoke").as_deref(), Ok("full"));
        assert_eq!(scale("cached,full").as_deref(), Ok("cached"));
        let error = scale("standard,big").expect_err("neither is there").0;
        assert!(error.starts_with("there is no scale \"standard,big\""), "{error}");
    }

    #[test]
    fn engines_that_are_missing_are_left_out() {
        // The lab alone knows no other engines; who links their adapters does.
        let experiment = sample::experiment();
        let (here, skipped) =
            engines_here(&experiment.workload.engines, None, Content::Keys).expect("is one");
        assert_eq!(here, [EngineName::lithify()]);
        assert!(skipped[0].contains("there is no engine \"rocksdb\""), "{skipped:?}");
        let model = EngineName::model();
        let here = engines_here(&experiment.workload.engines, Some(&model), Content::Keys);
        assert_eq!(here, Ok((vec![model.clone()], vec![])));
        let choice = LoopChoice { engine: Some(model), ..LoopChoice::default() };
        let plan = expand(&["model"], &choice).expect("expands");
        assert_eq!(plan.cells.name, "compress-or-not-smoke-model");
    }
}
