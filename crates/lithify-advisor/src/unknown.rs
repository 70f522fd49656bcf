//! What would change the answer, each with how to say it.

use lithify::Objective;
use lithify_report::figure::bytes;

use crate::Request;
use crate::answer::{Course, DataFacts, TargetAdvice};
use crate::sample::{Collected, Order};
use crate::screen::counted;

/// All that is not known, the most important first.
pub(crate) fn unknown(
    request: &Request,
    data: &DataFacts,
    targets: &[TargetAdvice],
    course: &Course,
) -> Vec<String> {
    let mut unknown: Vec<String> = too_little(data).into_iter().collect();
    let is_little = !unknown.is_empty();
    if course.is_stopped {
        let what = if course.is_past { "the run of this profile" } else { "this" };
        unknown.push(format!("What would have been measured yet: {what} was stopped."));
    }
    unknown.extend(data.notes.iter().cloned());
    of_use(&mut unknown, request, data, targets);
    of_order(&mut unknown, data, targets, course);
    if data.input.data_bytes < 1 << 20 && !is_little {
        unknown.push("What more data would be like: these are less than 1 MiB.".to_owned());
    }
    // A profile has no data to measure again.
    let more = if course.is_past { "The data can tell." } else { "--time SECONDS" };
    let unmeasured: usize = targets.iter().map(|advice| advice.unmeasured).sum();
    if unmeasured > 0 {
        let settings = counted(unmeasured as u64, "setting");
        unknown.push(format!("{settings}: no time was left for that. {more}"));
    }
    if !course.missing.is_empty() {
        let names = course.missing.join(", ");
        unknown.push(format!("Anything for {names}: no time was left. {more}"));
    }
    unknown
}

/// Data that are fewer than this are one or two units.
const LITTLE_BYTES: u64 = 64 << 10;
/// Rows that tell nothing of others.
const FEW_ROWS: u64 = 2;

/// Whether data of so many bytes and rows, if they have rows, are too few for any advice.
pub(crate) fn is_little(data_bytes: u64, rows: Option<u64>) -> bool {
    data_bytes < LITTLE_BYTES || rows.is_some_and(|rows| rows <= FEW_ROWS)
}

/// What is said in place of advice where the data are too few for any.
pub(crate) fn too_little(data: &DataFacts) -> Option<String> {
    let (size, has_rows) = (data.input.data_bytes, data.input.has_rows);
    let is_little = is_little(size, has_rows.then_some(data.rows));
    let rows = if has_rows { format!("{}, ", counted(data.rows, "row")) } else { String::new() };
    is_little.then(|| {
        let size = bytes(size);
        format!(
            "Too little data to advise: {rows}{size}. More may be unlike them; 1 MiB tells more."
        )
    })
}

/// Prices, reads, the size of the database, and how long rows live.
fn of_use(
    unknown: &mut Vec<String>,
    request: &Request,
    data: &DataFacts,
    targets: &[TargetAdvice],
) {
    let expectations = &request.expectations;
    if request.prices == Objective::Balanced.prices() {
        unknown.push("Your prices: those above are assumptions. --price, --goal".to_owned());
    }
    if expectations.reads_per_row.is_none() {
        let loads = expectations.loads_per_mib(&data.basis);
        let bound = match expectations.is_bound_by_rows(&data.basis) {
            true => format!(", {:.0} of each row", loads * data.basis.row_bytes / 1_048_576.0),
            false => String::new(),
        };
        unknown.push(format!(
            "How often rows are read: {loads:.0} block loads a MiB{bound} are assumed. \
             --reads-per-row N"
        ));
    } else if expectations.hot.is_none() {
        unknown.push("How many reads a cache answers: half is assumed. --hot SHARE".to_owned());
    }
    let has_levels = targets.iter().any(|advice| advice.target.has_levels);
    if expectations.database_bytes.is_none() && has_levels {
        let size = bytes(data.input.data_bytes);
        unknown.push(format!(
            "How large the database is: these {size}, as levels are counted. --database-size SIZE"
        ));
    }
    if expectations.months.is_none() {
        unknown.push("How long rows live: a month is assumed. --months N".to_owned());
    }
}

/// The key, and neighbours in the order of a database.
fn of_order(
    unknown: &mut Vec<String>,
    data: &DataFacts,
    targets: &[TargetAdvice],
    course: &Course,
) {
    let wants_key = targets.iter().any(|advice| advice.target.order != Order::Input);
    if data.input.has_rows && data.input.key.is_empty() && wants_key {
        let how = if course.is_past { "" } else { " --key COLUMN,…" };
        unknown.push(format!("The key: rows are taken in the order of the input, numbered.{how}"));
    }
    let of_sample = targets.iter().filter(|advice| advice.collected == Collected::OfSampledRows);
    if of_sample.clone().next().is_none() {
        return;
    }
    let range = of_sample.filter_map(|advice| {
        let (name, sorted) = (advice.target.name, advice.best().bottom.value);
        Some(format!("{name} {sorted:.3} sorted, {:.3} as they come", advice.unsorted?.value))
    });
    let range = range.take(2).collect::<Vec<_>>().join("; ");
    let longer = if course.is_past { "took too long" } else { "takes longer than --time allows" };
    unknown.push(format!(
        "True neighbours in the database's order: a pass over all data {longer}. Sizes are upper \
         bounds, of the sampled rows. {range}"
    ));
}
