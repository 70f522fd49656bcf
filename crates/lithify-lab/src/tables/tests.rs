//! Plans, figures and the report over made-up outcomes; tables over an ordered map.

use std::sync::Arc;
use std::time::Duration;

use super::figures::{column_value, mode_log_bytes, mode_pages, mode_process_kb, results, spread};
use super::measure::in_one_transaction;
use super::plan::{TableChoice, TablePlan};
use super::report::ModeOrder;
use super::sample::{expand, experiment, run, with_pages};
use super::{csv, report};
use crate::adapter::table::ordered::{OrderedTable, SPACES};
use crate::adapter::table::schema::{Answer, Query, Range, Row};
use crate::adapter::table::{Access, Rest, TableEngine, TableSession, Update};
use crate::adapter::{Engine, EngineError, EngineName, EngineResult, SpaceId, WriteBatch};
use crate::datasets::{PageCounts, Table, TableData, Wide, answer};
use crate::engines::model::ModelEngine;
use crate::experiment::tables::TableColumn;
use crate::kind::wide_text;
use crate::run::cells::{Cell, Run};
use crate::tables::kind::Tables;

fn arms(names: &[&str]) -> TableChoice {
    let arms = Some(names.iter().map(|name| (*name).to_owned()).collect());
    TableChoice { arms, ..TableChoice::default() }
}

#[test]
fn every_arm_runs_over_every_table_that_is_here() {
    let choice = TableChoice { repeats: Some(2), ..arms(&["zstd-1-4k", "none-16k"]) };
    let plan = expand(choice).expect("expands");
    let ids: Vec<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "lithify-none-16k-page-counts-r0",
            "lithify-zstd-1-4k-page-counts-r0",
            "lithify-none-16k-wide-r0",
            "lithify-zstd-1-4k-wide-r0",
            "lithify-zstd-1-4k-page-counts-r1",
            "lithify-none-16k-page-counts-r1",
            "lithify-zstd-1-4k-wide-r1",
            "lithify-none-16k-wide-r1",
        ]
    );
    assert_eq!((plan.cells[1].settings.block_bytes, plan.cells[4].seed), (4096, 2019));
    assert!(plan.cells.iter().all(|cell| (cell.mode_updates > 0) != cell.table.is_wide()));
    assert_eq!(plan.name, "compression-options-smoke-lithify");
}

#[test]
fn the_work_of_a_cell_goes_by_its_rows_and_their_width() {
    let plan = expand(arms(&["none-16k"])).expect("expands");
    let per_row = |table| {
        let cell = plan.cells.iter().find(|cell| cell.table == table).expect("is planned");
        cell.effort().work / cell.rows as f64
    };
    assert_eq!([TableData::PageCounts, TableData::Wide].map(per_row), [1.0, 4.0]);
}

#[test]
fn impossible_choices_say_what_is_possible() {
    let text = expand(arms(&["gzip"])).expect_err("is unknown").0;
    assert!(text.starts_with("there is no arm \"gzip\"; there are: none-16k, lz4-16k"), "{text}");
    assert_eq!(expand(arms(&[])).expect_err("is none").0, "no arm was chosen");
    let mut other = experiment();
    other.arms[0].engines = vec![EngineName::new("other")];
    let choice =
        TableChoice { engine: Some(EngineName::lithify()), ..arms(&["none-16k", "lz4-16k"]) };
    let plan = TablePlan::expand(&other, &choice, "b").expect("expands");
    assert!(plan.cells.iter().all(|cell| cell.arm == "lz4-16k"), "an arm may have its own engine");
}

#[test]
fn tables_can_be_chosen_of_those_that_the_scale_has() {
    let tables = |chosen: &[TableData]| {
        expand(TableChoice { tables: Some(chosen.to_vec()), ..arms(&["none-16k"]) })
    };
    let plan = tables(&[TableData::Wide]).expect("expands");
    assert!(plan.cells.iter().all(|cell| cell.table == TableData::Wide), "{:?}", plan.tables);
    assert_eq!(plan.skipped, Vec::<String>::new());
    let text = tables(&[TableData::Wide, TableData::WikiEdits]).expect_err("has none").0;
    assert_eq!(text, "--tables: the scale has no rows of wiki-edits; it has: page-counts, wide");
}

#[test]
fn figures_are_those_of_the_step_and_its_maintenance() {
    let run = run(&expand(arms(&["none-16k"])).expect("expands"));
    let of = results(&run, TableData::PageCounts, &EngineName::lithify(), "none-16k");
    let value = |column| column_value(of[0], column).expect("is there");
    assert_eq!(value(TableColumn::Size), 0.1);
    assert_eq!(value(TableColumn::Tables), 0.05);
    assert_eq!(value(TableColumn::SizePerLogical), 1.25);
    assert_eq!(value(TableColumn::LoadWrittenProcess), 0.4);
    assert_eq!(value(TableColumn::WrittenPerSize), 8.0);
    assert_eq!(value(TableColumn::UpdateWrittenProcess), 4.0);
    assert_eq!(value(TableColumn::UpdateWrittenDevice), 8.0);
    assert_eq!(value(TableColumn::ScanReadDevice), 0.001);
    let mut mode = of[0].modes[0].clone();
    assert_eq!(mode_process_kb(&mode), Some(8.0));
    mode.step.written_by_cause.insert("compaction".to_owned(), 50_000);
    assert_eq!(mode_process_kb(&mode), Some(3.0), "10 updates");
    assert_eq!(spread(&of, TableColumn::ScanSeconds).map(|spread| spread.median), Some(0.5));
}

#[test]
fn what_was_written_for_what_adds_up() {
    let mut run = run(&expand(arms(&["none-16k"])).expect("expands"));
    let plain = wide_text::<Tables>(&run);
    assert!(!plain.contains("by cause as the engine counts"), "{plain}");
    let counted = run.entries.cells[0].result.take().map(with_pages);
    run.entries.cells[0].result = counted;
    let of = results(&run, TableData::PageCounts, &EngineName::lithify(), "none-16k");
    let value = |column| column_value(of[0], column).expect("is there");
    let parts = [
        TableColumn::LoadPages,
        TableColumn::LoadDoublewrite,
        TableColumn::LoadLog,
        TableColumn::LoadOther,
    ];
    let sum: f64 = parts.into_iter().map(value).sum();
    assert!((sum - value(TableColumn::LoadWrittenProcess)).abs() < 1e-9);
    assert_eq!(column_value(of[0], TableColumn::LoadFlush), None);
    assert_eq!(value(TableColumn::LoadExtension), 0.08);
    assert_eq!(
        (value(TableColumn::LoadCompressed), value(TableColumn::LoadFailedPercent)),
        (4.0, 50.0)
    );
    assert_eq!(mode_pages(&of[0].modes[0]), Some(12.0), "120 pages, 10 updates");
    assert_eq!(mode_log_bytes(&of[0].modes[0]), Some(800.0));
    let text = wide_text::<Tables>(&run);
    for part in
        ["zlib in key blocks", "load_dblwr", "upd_cmp_fail%", "pages written per update by mode"]
    {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    assert!(!text.contains("load_flush"), "a column that nobody has:\n{text}");
}

#[test]
fn an_engine_that_refuses_updates_keeps_its_other_figures() {
    let mut run = run(&expand(arms(&["none-16k"])).expect("expands"));
    for outcome in run.entries.cells.iter_mut().filter_map(|entry| entry.result.as_mut()) {
        outcome.update = None;
        outcome.updates_refused = Some("it is packed".to_owned());
        outcome.modes.clear();
    }
    let of = results(&run, TableData::PageCounts, &EngineName::lithify(), "none-16k");
    assert_eq!(column_value(of[0], TableColumn::UpdateSeconds), None);
    assert_eq!(column_value(of[0], TableColumn::Size), Some(0.1));
    let text = wide_text::<Tables>(&run);
    assert!(text.contains("no updates: it is packed"), "{text}");
    assert!(!text.contains("as published, per update"), "no modes were run:\n{text}");

    let mut other = run.entries.cells[0].clone();
    other.result.as_mut().expect("is measured").updates_refused = None;
    run.entries.cells.push(other);
    run.plan.sizes.repeats = 2;
    let both = wide_text::<Tables>(&run);
    assert!(!both.contains("Published against measured"), "{both}");
    assert!(both.contains("no updates in 1 of 2: it is packed"), "{both}");
    let lines: Vec<String> = csv::render(&run).lines().map(str::to_owned).collect();
    assert!(lines.iter().all(|line| line.split(',').count() == lines[0].split(',').count()));
}

#[test]
fn the_report_says_what_held_and_what_is_void() {
    let mut run = run(&expand(TableChoice::default()).expect("expands"));
    let text = wide_text::<Tables>(&run);
    for part in [
        "page-counts: 100000 rows, 80.0 MB of columns",
        "As published: InnoDB size 113, InnoDBCmp4k size 46.9",
        "lithify, page-counts: \"compressed pages of 4 KB take 46.9",
        "lithify, page-counts: \"updates of single rows take longer",
        "separate-commits 8.00 pages and 2577 bytes of log",
        "14 of 14 cells count",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    let as_published = |run: &Run<TablePlan>| {
        let all = report::arm_modes(run, TableData::PageCounts);
        all.iter().filter(|arm| arm.order() == ModeOrder::AsPublished).count()
    };
    assert_eq!(as_published(&run), 7, "the order of modes, arm by arm");
    let void = run.entries.cells[2].result.as_mut().expect("is measured");
    assert_eq!(void.cell.arm, "zlib-6-16k");
    void.faults.push("the aggregate found 1 rows".to_owned());
    let text = wide_text::<Tables>(&run);
    for part in [
        "13 of 14 cells count",
        "lithify-zlib-6-16k-page-counts-r0: WRONG, row void: the aggregate found 1 rows",
        "of 112.6 GB of page counts\": not measured here.",
        "0 of 1 repeat",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    assert!(!run.is_complete());
    let lines: Vec<String> = csv::render(&run).lines().map(str::to_owned).collect();
    assert!(lines[3].contains(",zlib-6,16,0,false,"), "{}", lines[3]);
    assert!(lines.iter().all(|line| line.split(',').count() == lines[0].split(',').count()));
    let modes = run.entries.cells[0].result.as_mut().map(|outcome| &mut outcome.modes);
    modes.expect("has them").swap(0, 2);
    assert_eq!(as_published(&run), 6, "the order is that of the modes, not of the list");
}

/// A table in an ordered map, loaded.
fn loaded(table: &dyn Table) -> OrderedTable {
    let engine = Box::new(ModelEngine::new(&SPACES));
    let ordered = OrderedTable::new(engine, Arc::new(table.schema().clone()));
    let mut session = ordered.session().expect("is there");
    let mut rows = Vec::new();
    for index in 0..table.rows() {
        let mut row = Row::new();
        table.row(index, &mut row);
        rows.push(row);
    }
    rows.chunks(700).for_each(|rows| session.insert(rows).expect("inserts"));
    drop(session);
    ordered
}

#[test]
fn both_ways_to_the_rows_give_the_generators_answer() {
    let tables: [Box<dyn Table>; 2] =
        [Box::new(PageCounts::new(24_000, 3)), Box::new(Wide::new(2_000, 3))];
    for table in tables {
        let ordered = loaded(&*table);
        let mut session = ordered.session().expect("is there");
        let query = table.query();
        let wanted = answer(&*table, &query);
        for access in [Access::Secondary, Access::Primary] {
            assert_eq!(session.aggregate(&query, access).expect("answers"), wanted);
        }
        // A bound that its column cannot hold is no bound.
        let column = table.schema().secondary[0];
        let range = Range { column, from: 1, to: i64::from(u32::MAX) };
        let all = Query { range: Some(range), ..query };
        let wanted = answer(&*table, &all);
        assert_eq!(session.aggregate(&all, Access::Secondary).expect("answers"), wanted);
        assert_eq!(session.index_entries().expect("counts"), table.rows());
    }
}

#[test]
fn updates_add_up_in_a_transaction_and_without() {
    let table = PageCounts::new(2_400, 3);
    let ordered = loaded(&table);
    let mut session = ordered.session().expect("is there");
    let column = table.updated_column();
    let totals = Query { range: None, group: vec![], figures: vec![column], top: None };
    let before = answer(&table, &totals).groups[0].sums[0];
    let update = |id: i64| Update { key: vec![id], column, amount: 5 };
    assert!(session.update(&update(1)).expect("updates"));
    assert!(!session.update(&update(2_401)).expect("is not there"));
    session.begin().expect("begins");
    assert!(session.update(&update(7)).expect("updates"));
    assert!(session.update(&update(2_400)).expect("updates"));
    session.commit().expect("commits");
    let after = session.aggregate(&totals, Access::Primary).expect("answers");
    assert_eq!((after.rows(), after.groups[0].sums[0]), (2_400, before + 15));
    assert_eq!(ordered.rest(Duration::ZERO).expect("rests"), Rest::Idle);
}

#[test]
fn rows_that_are_not_the_tables_are_errors() {
    let table = PageCounts::new(2_400, 3);
    let engine = ModelEngine::new(&SPACES);
    let mut batch = WriteBatch::new();
    batch.put(SpaceId(0), b"abcd", b"x");
    let mut key = Vec::new();
    table.schema().secondary_prefix(20_160_105, &mut key);
    key.extend_from_slice(b"hour and id");
    batch.put(SpaceId(1), &key, b"");
    engine.session().expect("is there").write_batch(&batch).expect("writes");
    let ordered = OrderedTable::new(Box::new(engine), Arc::new(table.schema().clone()));
    let mut session = ordered.session().expect("is there");
    let mut error =
        |access| session.aggregate(&table.query(), access).expect_err("is refused").to_string();
    assert_eq!(error(Access::Primary), "a stored row is not one of the table");
    assert_eq!(error(Access::Secondary), "the index names a row that is not there");
}

#[test]
fn modes_that_write_alike_are_not_told_apart() {
    let order = |kb: &[f64]| report::order(&kb.iter().copied().map(Some).collect::<Vec<_>>());
    assert_eq!(order(&[3.0, 2.0, 1.0]), ModeOrder::AsPublished);
    assert_eq!(order(&[3.0, 2.0]), ModeOrder::NotMeasured);
    assert_eq!(order(&[135.0, 57.3, 57.26]), ModeOrder::Alike);
    assert_eq!(order(&[135.0, 57.3, 58.0]), ModeOrder::Alike);
    assert_eq!(order(&[135.0, 57.3, 60.0]), ModeOrder::Other);
    assert_eq!(order(&[1.0, 1.2, 0.9]), ModeOrder::Other);
}

/// Holds so many updates until they are committed.
struct Cramped {
    room: usize,
    pending: usize,
    applied: usize,
}

impl TableSession for Cramped {
    fn insert(&mut self, _rows: &[Row]) -> EngineResult<()> {
        Err(EngineError::fatal("takes no rows"))
    }

    fn aggregate(&mut self, _query: &Query, _access: Access) -> EngineResult<Answer> {
        Err(EngineError::fatal("answers nothing"))
    }

    fn index_entries(&mut self) -> EngineResult<u64> {
        Ok(0)
    }

    fn begin(&mut self) -> EngineResult<()> {
        Ok(())
    }

    fn update(&mut self, update: &Update) -> EngineResult<bool> {
        self.pending += 1;
        match self.pending > self.room {
            true => Err(EngineError::retryable("the cache is full")),
            false => Ok(update.amount > 0),
        }
    }

    fn commit(&mut self) -> EngineResult<()> {
        self.applied += std::mem::take(&mut self.pending);
        Ok(())
    }

    fn rollback(&mut self) -> EngineResult<()> {
        self.pending = 0;
        Ok(())
    }
}

#[test]
fn a_transaction_that_an_engine_cannot_hold_is_given_up_whole() {
    let change = |amount| Update { key: vec![1], column: 1, amount };
    let changes: Vec<Update> = (0..5).map(|_| change(1)).collect();
    let mut roomy = Cramped { room: 5, pending: 0, applied: 0 };
    assert_eq!(in_one_transaction(&mut roomy, &changes).expect("runs"), Ok(()));
    assert_eq!(roomy.applied, 5);
    let mut cramped = Cramped { room: 3, pending: 0, applied: 0 };
    let why = in_one_transaction(&mut cramped, &changes).expect("is no failure").expect_err("is");
    assert_eq!((cramped.applied, cramped.pending), (0, 0), "nothing is left of it");
    assert!(why.contains("given up after 3 of 5 in one transaction"), "{why}");
    assert!(why.contains("the cache is full"), "{why}");
    let mut broken = Cramped { room: 1, pending: 0, applied: 0 };
    let error = in_one_transaction(&mut broken, &changes).expect_err("half of one is nothing");
    assert!(error.to_string().contains("the cache is full"), "{error}");
    let missing = in_one_transaction(&mut roomy, &[change(0)]).expect_err("has no such row");
    assert!(missing.to_string().contains("there is no row [1]"), "{missing}");
}
