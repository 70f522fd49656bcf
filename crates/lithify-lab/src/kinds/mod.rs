//! Every kind of run there is: whatever its record, its page.

#[cfg(test)]
mod tests;

use crate::html::model::ReportModel;
use crate::records::AnyRecord;
use crate::{
    amplification, chunks, dbbench, durability, html, linkbench, loop_experiment, overwrite,
    page_store, tables,
};

/// The page of a run of any kind.
pub fn page(record: &AnyRecord) -> String {
    lithify_report::page::render(&model(record).into())
}

/// What the page of a run says.
pub fn model(record: &AnyRecord) -> ReportModel {
    match record {
        AnyRecord::LinkBench(record) => linkbench::report::page::model(record),
        AnyRecord::Loops(record) => loop_experiment::page::model(record),
        AnyRecord::Db(record) => dbbench::page::model(record),
        AnyRecord::Overwrite(record) => overwrite::page::model(record),
        AnyRecord::Tables(run) => tables::page::model(run),
        AnyRecord::Chunks(run) => chunks::page::model(run),
        AnyRecord::Amplification(record) => amplification::page::model(record),
        AnyRecord::Durability(record) => durability::page::model(record),
        AnyRecord::Pages(record) => page_store::page::model(record),
        AnyRecord::Digest(digest) => dbbench::digest_page::model(digest),
    }
}
