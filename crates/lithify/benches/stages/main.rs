//! What a row costs in every stage of its way: CPU of the calling thread, with no other thread
//! at work, beside what the codec alone takes on the same blocks in the same run.
//!
//! `cargo bench --bench stages [-- FILTER]`; see `measure::Settings` for what the environment can
//! change. The budgets are what a row of 200 bytes is allowed.

mod codecs;
mod ledger;
mod measure;
mod reads;
mod rows;
mod tables;
mod writes;

use lithify::Result;
use measure::{Line, Settings};

fn main() -> Result<()> {
    let settings = Settings::from_environment()?;
    println!(
        "rows of {} + {} bytes, blocks of 16 KiB, {} repeats in {}; nanoseconds of thread CPU per row",
        rows::KEY_SIZE,
        rows::VALUE_SIZE,
        settings.repeats,
        settings.directory.display()
    );
    Line::print_head();
    writes::print(&settings)?;
    tables::print(&settings)?;
    reads::print(&settings)?;
    ledger::print(&settings)
}
