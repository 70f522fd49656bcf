//! Tables on real engines, in this process: what is measured is checked, and an engine that loses
//! rows is found out.

use std::path::Path;

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::layer::{EngineLayer, SessionLayer};
use lithify_lab::adapter::provider::{Provider, Transactions};
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{Engine, EngineName, EngineResult, Session, SpaceSpec, WriteBatch};
use lithify_lab::datasets::{TableData, answer};
use lithify_lab::engines::registry::{find, register};
use lithify_lab::experiment::{BUILT_IN, TableExperiment};
use lithify_lab::tables::measure;
use lithify_lab::tables::plan::{TableChoice, TablePlan};
use lithify_lab::tables::spec::{TableCell, TableOutcome};

/// One cell of the smoke plan, made small.
fn cell(table: TableData) -> TableCell {
    let found = BUILT_IN.iter().find(|(name, _)| *name == "compression-options");
    let (name, text) = found.expect("is built in");
    let experiment = TableExperiment::parse(name, text).expect("parses");
    let choice = TableChoice { engine: Some(EngineName::lithify()), ..TableChoice::default() };
    let plan = TablePlan::expand(&experiment, &choice, "test").expect("expands");
    let mut cells = plan.cells.into_iter().filter(|cell| cell.arm == "zstd-1-4k");
    let mut cell = cells.find(|cell| cell.table == table).expect("is planned");
    (cell.rows, cell.updates, cell.mode_gap_ms) = (4_000, 200, 0);
    cell
}

fn measured(cell: &TableCell) -> TableOutcome {
    let place = tempfile::tempdir().expect("a directory");
    measure::measure(cell, place.path(), None, &|_| {}).expect("measures")
}

#[test]
fn a_cell_is_measured_and_checked() {
    for table in [TableData::PageCounts, TableData::Wide] {
        let outcome = measured(&cell(table));
        assert_eq!(outcome.faults, [""; 0], "{table}");
        let modes = if table.is_wide() { 0 } else { 3 };
        assert_eq!((outcome.rows, outcome.modes.len()), (4_000, modes));
        assert!(outcome.size.allocated_bytes > 0 && outcome.logical_bytes > 0);
        assert!(outcome.load.written_process_bytes() > 0, "the log at least");
        let own = table.open(4_000, outcome.cell.seed).expect("is generated");
        assert_eq!(outcome.scan_checksum, answer(&*own, &own.query()).checksum());
    }
}

/// Lithify, with every hundredth row of a load left out.
struct Leaky;

impl Provider for Leaky {
    fn name(&self) -> &'static str {
        "leaky"
    }

    fn about(&self) -> &'static str {
        "loses rows"
    }

    fn open(
        &self,
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
        transactions: Transactions,
    ) -> EngineResult<Box<dyn Engine>> {
        let lithify = find(&EngineName::lithify())?;
        Ok(Box::new(LeakyEngine(lithify.open(directory, settings, spaces, transactions)?)))
    }

    fn codec_library(&self, _codec: Codec) -> EngineResult<String> {
        Ok(String::new())
    }
}

struct LeakyEngine(Box<dyn Engine>);

impl EngineLayer for LeakyEngine {
    fn below(&self) -> &dyn Engine {
        &*self.0
    }

    fn into_below(self: Box<Self>) -> Box<dyn Engine> {
        self.0
    }

    fn session_above(&self) -> EngineResult<Box<dyn Session + '_>> {
        Ok(Box::new(LeakySession(self.0.session()?)))
    }
}

struct LeakySession<'a>(Box<dyn Session + 'a>);

impl SessionLayer for LeakySession<'_> {
    fn below(&mut self) -> &mut dyn Session {
        &mut *self.0
    }

    fn write_batch_above(&mut self, batch: &WriteBatch) -> EngineResult<()> {
        let mut kept = WriteBatch::new();
        // A row and its entry of the index lie side by side.
        for (_, op) in batch.ops().enumerate().filter(|(number, _)| number % 200 > 1) {
            kept.change(op);
        }
        self.0.write_batch(&kept)
    }
}

#[test]
fn a_wrong_answer_voids_the_row() {
    register(&Leaky);
    // Updates of rows that are lost would fail.
    let cell = TableCell {
        engine: EngineName::new("leaky"),
        updates: 0,
        mode_updates: 0,
        ..cell(TableData::PageCounts)
    };
    let faults = measured(&cell).faults;
    assert_eq!(faults.len(), 4, "{faults:#?}");
    assert!(faults[0].starts_with("the aggregate found 396 rows in 24 groups"), "{faults:#?}");
    assert_eq!(faults[1], "3960 rows are there, 4000 were loaded");
    assert_eq!(faults[2], "the index has 3960 entries, 4000 rows were loaded");
    assert!(faults[3].starts_with("after 0 updates their column adds up to"), "{faults:#?}");
}

#[test]
fn an_update_of_a_row_that_is_lost_is_an_error() {
    register(&Leaky);
    let cell = TableCell { engine: EngineName::new("leaky"), ..cell(TableData::Wide) };
    let place = tempfile::tempdir().expect("a directory");
    let error =
        measure::measure(&cell, place.path(), None, &|_| {}).expect_err("must fail").to_string();
    assert!(error.starts_with("update: there is no row ["), "{error}");
}
