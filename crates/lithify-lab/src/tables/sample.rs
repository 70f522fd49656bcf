//! A plan and made-up outcomes for tests.

use std::collections::BTreeMap;

use super::plan::{TableChoice, TablePlan};
use super::spec::{ModeUsage, PageWork, StepUsage, TableCell, TableOutcome};
use crate::adapter::codec::Codec;
use crate::adapter::cross_count::CrossCounts;
use crate::adapter::table::Rest;
use crate::adapter::{Capabilities, EngineName};
use crate::experiment::tables::UpdateMode;
use crate::experiment::{BUILT_IN, TableExperiment};
use crate::linkbench::plan::ChoiceError;
use crate::meter::PhaseUsage;
use crate::meter::machine::Machine;
use crate::meter::process::ProcessIo;
use crate::meter::space::DirectorySize;
use crate::meter::system::DeviceCounters;
use crate::run::cells::{Entries, Entry, Run};

/// The built-in experiment.
pub(crate) fn experiment() -> TableExperiment {
    let found = BUILT_IN.iter().find(|(name, _)| *name == "compression-options");
    let (name, text) = found.expect("is built in");
    TableExperiment::parse(name, text).expect("parses")
}

/// Its plan for Lithify with a choice.
pub(crate) fn expand(choice: TableChoice) -> Result<TablePlan, ChoiceError> {
    let choice = TableChoice { engine: Some(EngineName::lithify()), ..choice };
    TablePlan::expand(&experiment(), &choice, "build")
}

/// The plan of two arms.
pub(crate) fn small_plan() -> TablePlan {
    let arms = Some(["none-16k", "zlib-6-16k"].map(str::to_owned).into());
    expand(TableChoice { arms, ..TableChoice::default() }).expect("expands")
}

/// A step that wrote so many bytes, half of them in its maintenance.
fn step(seconds: f64, written: u64) -> StepUsage {
    let usage = |written: u64| PhaseUsage {
        seconds,
        process_io: ProcessIo {
            written_syscall_bytes: written,
            read_syscall_bytes: 2_000_000,
            read_device_bytes: 1_000_000,
            ..ProcessIo::default()
        },
        device: Some(DeviceCounters { written_bytes: 2 * written, ..DeviceCounters::default() }),
        ..PhaseUsage::default()
    };
    StepUsage {
        seconds,
        usage: usage(written / 2),
        maintenance: usage(written / 2),
        rest: Rest::Idle,
        written_by_cause: BTreeMap::new(),
        pages: None,
        cross_counts: CrossCounts::new(),
    }
}

/// What a cell might have found: every published ratio holds.
pub(crate) fn outcome(cell: &TableCell) -> TableOutcome {
    let is_wide = cell.table.is_wide();
    let compressed = cell.settings.codec_bottom != Codec::NONE;
    let (size, load, update) = match (compressed, is_wide) {
        (false, _) => (100_000_000, 10.0, 1.0),
        (true, false) => (41_700_000, 26.0, 1.57),
        (true, true) => (20_000_000, 13.0, 1.0),
    };
    let mode = |mode: UpdateMode| {
        let bytes = [8_000, 4_000, 2_000][mode as usize] * cell.mode_updates;
        ModeUsage { mode, updates: cell.mode_updates, step: step(0.1, bytes) }
    };
    TableOutcome {
        cell: cell.clone(),
        started_unix_s: 0,
        machine: Machine { cpus: 2, ..Machine::default() },
        engine_name: format!("{} 1.0", cell.engine),
        capabilities: Capabilities::default(),
        codec_library: "a library".to_owned(),
        rows: cell.rows,
        logical_bytes: 80_000_000,
        load: step(load, 4 * size),
        generate_seconds: 1.0,
        size: DirectorySize { allocated_bytes: size, apparent_bytes: size, files: 3 },
        file_system: None,
        file_system_bytes: None,
        table_bytes: Some(size / 2),
        codec_in_force: None,
        scan: step(0.5, 0),
        scan_rows: 10,
        scan_checksum: 7,
        update: Some(step(update, 4_000 * cell.updates)),
        updates_refused: None,
        modes: UpdateMode::ALL.into_iter().filter(|_| !is_wide).map(mode).collect(),
        foreign_percent: 1.0,
        faults: Vec::new(),
    }
}

/// The same of an engine that counts: half of what a step wrote are pages, three tenths second
/// copies, a tenth is the log; every second page did not get small enough.
pub(super) fn with_pages(mut outcome: TableOutcome) -> TableOutcome {
    let account = |step: &mut StepUsage| {
        let written = step.written_process_bytes();
        let tenths = [("pages", 5), ("doublewrite", 3), ("redo log", 1)];
        step.written_by_cause =
            tenths.map(|(cause, parts)| (cause.to_owned(), written / 10 * parts)).into();
        step.pages = Some(PageWork {
            written: 60,
            doublewritten: 60,
            compressed: 4_000,
            failed: 2_000,
            decompressed: 1,
            extended_bytes: 80_000_000,
        });
    };
    account(&mut outcome.load);
    outcome.update.iter_mut().for_each(account);
    outcome.modes.iter_mut().for_each(|mode| account(&mut mode.step));
    outcome.codec_in_force = Some("zlib in key blocks".to_owned());
    outcome
}

/// A run in which every cell was measured.
pub(crate) fn run(plan: &TablePlan) -> Run<TablePlan> {
    let entry = |cell: &TableCell| Entry::new(cell, Ok(outcome(cell)));
    let cells = plan.cells.iter().map(entry).collect();
    Run::new(plan.clone(), Entries { interrupted: false, cells })
}
