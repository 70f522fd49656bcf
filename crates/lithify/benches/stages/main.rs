//! What a row costs in every stage of its way: CPU of the calling thread, with no other thread
//! at work, beside what the codec alone takes on the same blocks in the same run.
//!
//! `cargo bench --bench stages [-- FILTER]`; see `measure::Settings` for what the environment can
//! change. The budgets are what a row of 200 bytes is allowed. With `--count STAGE` one stage runs
//! once for a tool that counts instructions: see `counts`.

mod codecs;
mod counts;
mod ledger;
mod measure;
mod reads;
mod rows;
mod tables;
mod writes;

use lithify::Result;
use measure::{Line, Settings};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--count") {
        return counts::run(arguments.get(at + 1).map_or("", String::as_str));
    }
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
