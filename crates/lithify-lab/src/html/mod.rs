//! A run as one page: summary in words, plots, tables, machine; a single file that needs nothing
//! else.
//!
//! Owns: the form of a page that kinds of records fill ([`mod@model`]), its parts that they share
//! (`parts`, `clients`), a page for each kind (`linkbench`, `loops`, `db`, `overwrite`, `tables`,
//! `chunks`, `amplification`, `durability`, `pages`, `digest`), and one over all of them
//! ([`mod@index`]). Markup and plots are those of [`lithify_report`].
//!
//! Promises: pure and deterministic: the same record gives the same file. No external resource; all
//! figures are readable without scripts, which add tooltips only; every plot has its figures as a
//! table; light, dark and paper by the reader's own setting; headings, landmarks, captions and
//! names for readers that listen. Every text of a record is escaped. Does not read or write files.

mod amplification;
mod chunks;
mod clients;
mod db;
mod digest;
mod durability;
pub mod index;
mod linkbench;
mod loops;
pub mod model;
mod overwrite;
mod pages;
mod parts;
mod tables;
#[cfg(test)]
mod tests;

use crate::chunks::plan::ChunkPlan;
use crate::records::AnyRecord;
use crate::run::cells::Run;
use crate::tables::plan::TablePlan;
use lithify_report::page;
use model::ReportModel;

/// The page of a run of any kind.
pub fn render(record: &AnyRecord) -> String {
    page::render(&model(record).into())
}

/// The page of an experiment over the social graph.
pub fn of_linkbench(record: &crate::run::RunRecord) -> String {
    page::render(&linkbench::model(record).into())
}

/// The page of an experiment over the loops of the classic key-value benchmark.
pub fn of_loops(record: &crate::loop_experiment::LoopRecord) -> String {
    page::render(&loops::model(record).into())
}

/// The page of such loops, engine against engine.
pub fn of_db(record: &crate::dbbench::runner::DbRecord) -> String {
    page::render(&db::model(record).into())
}

/// The page of overwrites as fast as they go.
pub fn of_overwrite(record: &crate::overwrite::OverwriteRecord) -> String {
    page::render(&overwrite::model(record).into())
}

/// The page of an experiment over tables of rows.
pub fn of_tables(run: &Run<TablePlan>) -> String {
    page::render(&tables::model(run).into())
}

/// The page of an experiment over text in chunks.
pub fn of_chunks(run: &Run<ChunkPlan>) -> String {
    page::render(&chunks::model(run).into())
}

/// The page of read, write and space amplification.
pub fn of_amplification(record: &crate::amplification::AmplificationRecord) -> String {
    page::render(&amplification::model(record).into())
}

/// The page of what crashes take and commits cost.
pub fn of_durability(record: &crate::durability::DurabilityRecord) -> String {
    page::render(&durability::model(record).into())
}

/// The page of pages with holes in files.
pub fn of_pages(record: &crate::page_store::PagesRecord) -> String {
    page::render(&pages::model(record).into())
}

/// What the page of a run says.
pub fn model(record: &AnyRecord) -> ReportModel {
    match record {
        AnyRecord::LinkBench(record) => linkbench::model(record),
        AnyRecord::Loops(record) => loops::model(record),
        AnyRecord::Db(record) => db::model(record),
        AnyRecord::Overwrite(record) => overwrite::model(record),
        AnyRecord::Tables(run) => tables::model(run),
        AnyRecord::Chunks(run) => chunks::model(run),
        AnyRecord::Amplification(record) => amplification::model(record),
        AnyRecord::Durability(record) => durability::model(record),
        AnyRecord::Pages(record) => pages::model(record),
        AnyRecord::Digest(digest) => digest::model(digest),
    }
}
