//! What a run would do, before it does: its arms, how long they take, how much disk they need.

use std::fmt::Write as _;
use std::path::Path;

use lithify_lab::meter::space::free_bytes;
use lithify_lab::report::tables::{Align, table};
use lithify_lab::run::estimate::Estimate;

use super::ready::{Ready, outlook};

/// The arms of a run, a line each, and what all of them need.
pub fn arms(ready: &dyn Ready, results: &Path, data: Option<&Path>, fresh: bool) -> String {
    let columns = [
        ("arm", Align::Left),
        ("cells", Align::Right),
        ("done", Align::Right),
        ("disk MiB", Align::Right),
        ("estimate of the rest", Align::Left),
    ];
    let (cells, outlook) = (ready.cells(results), outlook(ready, results, fresh));
    let row = |(name, [all, done], rest): (&str, [usize; 2], Estimate)| {
        let own = cells.iter().filter(|state| state.cell.row == name);
        let disk_mib = own.map(|state| state.disk_bytes).max().unwrap_or(0) >> 20;
        let counts = [all as u64, done as u64, disk_mib].map(|count| count.to_string());
        std::iter::once(name.to_owned()).chain(counts).chain([rest.time()]).collect()
    };
    let rows: Vec<Vec<String>> = outlook.rows().into_iter().map(row).collect();
    let [all, done] = outlook.counts();
    let mut text = format!("{}\n\n", table(&columns, &rows));
    // Writing to a String cannot fail.
    let _ = writeln!(text, "in all: {all} cells, {done} of them done; {}", outlook.rest());
    text.push_str(&disk(data.unwrap_or(results), ready.disk_bytes() >> 20));
    for line in ready.skipped() {
        let _ = writeln!(text, "left out: {line}");
    }
    text
}

/// The disk that is needed at a place beside what is free there, as a line.
pub fn disk(place: &Path, needed_mib: u64) -> String {
    let free_mib = free_mib(place);
    let free = free_mib.map_or_else(|| "?".to_owned(), |mib| mib.to_string());
    let advice = match free_mib {
        Some(free_mib) if free_mib < needed_mib => {
            "; too little: free some, or name another place with --data"
        }
        _ => "",
    };
    format!(
        "disk: at most {needed_mib} MiB at once, {free} MiB free; a cell's data are removed after \
         it{advice}\n"
    )
}

/// Free space at a place that may not be there yet, MiB.
fn free_mib(place: &Path) -> Option<u64> {
    let absolute = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
    let free = absolute.ancestors().find_map(|directory| free_bytes(directory).ok());
    free.map(|bytes| bytes >> 20)
}
