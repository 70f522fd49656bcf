//! What the original printed for the same flags, beside what was measured here.
//!
//! Owns: reading the result lines in the output of db_bench, and the comparison. Pure. Only the
//! numbers of found keys can be wrong; times are shown and judged by nobody.

use super::figures::{Series, metric};
use super::plan::DbRecord;
use super::spec::StepResult;
use crate::report::figures::figure;
use crate::report::tables::{Align, table};

/// A result line of the original.
#[derive(Clone, Debug, PartialEq)]
pub struct OriginalLine {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Operations per second.
    pub rate: f64,
    /// Operations.
    pub operations: u64,
    /// How many of them found their key; `None` where none is looked for.
    pub found: Option<u64>,
}

/// The result lines in what the original printed; all other lines are left out.
pub fn lines(output: &str) -> Vec<OriginalLine> {
    output.lines().filter_map(line).collect()
}

fn line(text: &str) -> Option<OriginalLine> {
    let (benchmark, rest) = text.split_once(" : ")?;
    let before = |unit: &str| {
        let (number, _) = rest.split_once(unit)?;
        number.split_whitespace().next_back()
    };
    let found = || rest.split_once('(')?.1.split_whitespace().next()?.parse().ok();
    Some(OriginalLine {
        benchmark: benchmark.trim().to_owned(),
        rate: before(" ops/sec")?.parse().ok()?,
        operations: before(" operations")?.parse().ok()?,
        found: rest.contains(" found)").then(found).flatten(),
    })
}

/// A run beside the original.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// The table.
    pub text: String,
    /// What must be equal and is not.
    pub differences: Vec<String>,
}

/// Sets the first engine's first ladder beside what the original printed, step by step.
///
/// # Errors
/// The original did other steps, or no run counts: in words.
pub fn beside(record: &DbRecord, output: &str) -> Result<Beside, String> {
    let lines = lines(output);
    let reference = record.reference().ok_or("no run counts, so there is nothing to compare")?;
    let steps: Vec<&StepResult> = reference.loops().collect();
    let names: Vec<&str> = steps.iter().map(|step| step.spec.benchmark.name()).collect();
    let theirs: Vec<&str> = lines.iter().map(|line| line.benchmark.as_str()).collect();
    if names != theirs {
        return Err(format!(
            "the original's result lines are of other steps: {} instead of {}",
            theirs.join(","),
            names.join(",")
        ));
    }
    let series = Series::of(record, reference.cell.spec.settings.ladder());
    let mut differences = Vec::new();
    let mut rows = Vec::new();
    for (index, (step, line)) in steps.iter().zip(&lines).enumerate() {
        let count = |found: Option<u64>| found.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let found = line.found.map(|_| step.found);
        if (step.operations, found) != (line.operations, line.found) {
            differences.push(format!(
                "{}: {} found in {} operations, by the original {} in {}",
                step.spec,
                count(found),
                step.operations,
                count(line.found),
                line.operations
            ));
        }
        let rate = metric("throughput").and_then(|rate| series.spread(0, index, rate));
        let rate = rate.map_or(0.0, |rate| rate.median);
        rows.push(vec![
            step.spec.to_string(),
            figure(rate),
            figure(line.rate),
            figure(rate / line.rate),
            count(found),
            count(line.found),
        ]);
    }
    let columns = [
        ("step", Align::Left),
        ("ops/s", Align::Right),
        ("original", Align::Right),
        ("ratio", Align::Right),
        ("found", Align::Right),
        ("original", Align::Right),
    ];
    let text = format!("Beside the original\n{}\n", table(&columns, &rows));
    Ok(Beside { text, differences })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_found_in_the_output() {
        let output = "\
Set seed to 42 because --seed was 0
Keys:       16 bytes each (+ 0 bytes user-defined timestamp)
DB path: [/tmp/db_bench]
fillrandom   :       3.096 micros/op 322935 ops/sec 3.097 seconds 1000000 operations;   35.7 MB/s
Microseconds per write:
Count: 1000000 Average: 3.0810  StdDev: 11.2
readrandom   :       2.412 micros/op 414541 ops/sec 2.412 seconds 1000000 operations;   28.9 MB/s \
(631962 of 1000000 found)
";
        let line = |benchmark: &str, rate, found| OriginalLine {
            benchmark: benchmark.to_owned(),
            rate,
            operations: 1_000_000,
            found,
        };
        let expected =
            [line("fillrandom", 322_935.0, None), line("readrandom", 414_541.0, Some(631_962))];
        assert_eq!(lines(output), expected);
        assert_eq!(lines("what : is 5 this"), []);
    }
}
