//! The page of figures that were kept without their record, and the plots of step by step ratios
//! that it shares with the page of whole records.

use super::digest::{self, Digest};
use crate::comparison::results::ResultSet;
use crate::dbbench::ratios::{ratios_of_steps, tallies};
use crate::experiment::{BUILT_IN, LoopExperiment};
use crate::html::parts;
use crate::html::parts::LatencyRow;
use crate::report::figures::{Spread, figure_or_dash};
use crate::report::tables::{Align, Grid};
use lithify_report::charts::frontier;
use lithify_report::{Answer, Block, Finding, Outcome, Report, Section, Table, filled};

/// What the page says.
pub fn report(digest: &Digest) -> Report {
    let set = super::compared::of_digest(digest);
    let machine = &digest.machine;
    let sections = [
        Section::new("Side by side").with_all(ratios_of_steps(&set)),
        latencies(&set),
        size_and_cpu(&set),
        jobs(digest),
        tables(&set),
        Section::new("Machine").with(Block::Facts(vec![
            (
                "machine".to_owned(),
                format!("{}, {} CPUs, {}", machine.cpu, machine.cpus, machine.kernel),
            ),
            ("memory".to_owned(), format!("{} MiB", machine.memory_bytes >> 20)),
            ("data on".to_owned(), format!("{} on {}", machine.file_system, machine.device)),
            ("built by".to_owned(), format!("{}, {}", machine.compiler, machine.build)),
            ("allocator".to_owned(), machine.allocator.clone()),
        ])),
    ];
    let mut summary = tallies(&set);
    summary.push(Finding::new(
        Outcome::Note,
        "Note",
        format!(
            "Only figures were kept of this run: throughput over time, levels and stalls are in its \
             whole record. Kept are {}.",
            digest.about.trim_end_matches('.')
        ),
    ));
    let (title, question) = asked(&digest.name).unwrap_or_else(|| {
        (digest.name.clone(), "How do the engines compare, step by step?".to_owned())
    });
    Report {
        answer: Answer { found: summary, ..Answer::default() },
        title,
        context: format!("{} · {}, {} CPUs", digest.name, machine.cpu, machine.cpus),
        question,
        source: String::new(),
        sections: filled(sections),
        footer: "Absolute figures belong to this machine.".to_owned(),
        ..Report::default()
    }
}

/// Title and question of the experiment whose name a run's name begins with.
fn asked(name: &str) -> Option<(String, String)> {
    let named = BUILT_IN.iter().filter(|(known, _)| name.starts_with(known));
    let (known, text) = named.max_by_key(|(known, _)| known.len())?;
    let experiment = LoopExperiment::parse(known, text).ok()?;
    Some((experiment.title, experiment.question))
}

fn median(set: &ResultSet, subject: &str, test: &str, figure: &str) -> Option<f64> {
    set.spread(subject, test, figure).map(|spread| spread.median)
}

fn latencies(set: &ResultSet) -> Section {
    let names = set.names();
    let mut rows = Vec::new();
    for test in set.tests() {
        for (series, subject) in names.iter().enumerate() {
            let us = |figure| median(set, subject, test, figure);
            let max = us("max ms").map(|ms| ms * 1e3);
            let us = [us("p50 us"), us("p99 us"), us("p99.9 us"), max];
            rows.push(LatencyRow { operation: test.to_owned(), series, us });
        }
    }
    rows.retain(|row| row.us[1].is_some());
    Section::new("Latency by operation").with_all(parts::latencies(
        "Latencies by step",
        &names,
        &rows,
    ))
}

fn size_and_cpu(set: &ResultSet) -> Section {
    let names = set.names();
    let section = Section::new("Size against CPU");
    let (size, cpu) = ("directory settled MiB", "CPU per op until settled us");
    let tests = set.tests();
    let is_whole = |test: &&str| {
        names.iter().all(|name| set.find(name, test, size).is_some())
            && names.iter().all(|name| set.find(name, test, cpu).is_some())
    };
    let Some(test) = tests.into_iter().rev().find(is_whole) else { return section };
    let point = |(series, name): (usize, &String)| {
        Some((series, set.spread(name, test, size)?, set.spread(name, test, cpu)?))
    };
    let points: Vec<(usize, Spread, Spread)> = names.iter().enumerate().filter_map(point).collect();
    let title = format!("Size against CPU after {test}");
    let axes = ["directory settled, MiB", "CPU per operation until settled, µs"];
    section.with_all(frontier::of_series(&title, axes, &names, &points))
}

/// Times of jobs by test and level, all repeats together.
fn jobs(digest: &Digest) -> Section {
    let mut section = Section::new("Jobs");
    let mut tests: Vec<&str> = digest.jobs.iter().map(|row| digest::text(row, "test")).collect();
    tests.dedup();
    tests.sort_unstable();
    tests.dedup();
    let mut names: Vec<String> = Vec::new();
    for name in digest.jobs.iter().map(digest::subject) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for test in tests {
        let mut sums: Vec<(String, usize, f64, f64)> = Vec::new();
        for row in digest.jobs.iter().filter(|row| digest::text(row, "test") == test) {
            let Some(series) = names.iter().position(|name| *name == digest::subject(row)) else {
                continue;
            };
            let level = format!("L{}", digest::number(row, "level").unwrap_or(0.0));
            let seconds = digest::number(row, "wall_us").unwrap_or(0.0) / 1e6;
            let jobs = digest::number(row, "jobs").unwrap_or(0.0);
            match sums.iter_mut().find(|sum| sum.0 == level && sum.1 == series) {
                Some(sum) => (sum.2, sum.3) = (sum.2 + seconds, sum.3 + jobs),
                None => sums.push((level, series, seconds, jobs)),
            }
        }
        let times: Vec<(String, usize, f64)> = sums
            .into_iter()
            .filter(|sum| sum.3 > 0.0)
            .map(|(level, series, seconds, jobs)| (level, series, seconds / jobs))
            .collect();
        let title = format!("{test}: time of a job by the level that it wrote into");
        section = section.with_all(parts::jobs(&title, &names, &times));
    }
    section
}

fn tables(set: &ResultSet) -> Section {
    let mut section = Section::new("All figures");
    for test in set.tests() {
        let mut columns = vec![("figure".to_owned(), Align::Left)];
        columns.extend(set.names().into_iter().map(|name| (name, Align::Right)));
        let row = |(figure, _): (&str, _)| {
            let cell = |subject: &crate::comparison::results::Subject| {
                let spread = set.spread(&subject.name, test, figure);
                spread.map_or_else(|| figure_or_dash(None), |spread| spread.with_range())
            };
            std::iter::once(figure.to_owned()).chain(set.subjects.iter().map(cell)).collect()
        };
        let rows = set.figures(test).into_iter().map(row).collect();
        let caption = format!("{test}: medians [ranges] over the repeats");
        section = section.with(Table::new(caption, Grid { columns, rows }));
    }
    section
}
