//! The page of compressed pages with holes in files.

use crate::html::parts;
use crate::html::parts::{Published, claims, outcome};
use crate::kind::incomplete;
use crate::page_store::report::{
    DropRatio, NOTES, columns, drop_ratios, drops, published, spread, writes,
};
use crate::page_store::{PAGE_BYTES, PagesCell, PagesRecord};
use crate::report::card::machine_lines;
use crate::report::figures::figure;
use crate::report::paired::ratio_text;
use crate::report::repeats;
use lithify_report::charts::{Bar, bars};
use lithify_report::{Answer, Block, Finding, Report, Section, Table, filled};

/// The figures that have bars: title, what is said of them, name of the column.
const BARS: [(&str, &str, &str); 6] = [
    ("Random writes", "More is better.", "writes/s"),
    ("CPU of a write", "The kernel's threads are not in it.", "CPU us/w"),
    ("99th percentile of a write", "Less is better.", "p99 us"),
    ("Space by the file system's own account", "Less is better.", "used MiB"),
    ("Time to drop until the space is back", "Less is better.", "space back s"),
    (
        "The longest write of somebody else meanwhile",
        "Another file, 4 KiB at a time, synced; less is better.",
        "beside, meanwhile ms",
    ),
];

/// What the page says.
pub fn report(record: &PagesRecord) -> Report {
    let sections = [published_ratios(record), plots(record), figures(record), checks(record)];
    let machine = Section::new("Machine and fairness").with(Block::Facts(facts(record)));
    let sections = sections.into_iter().chain([machine]);
    Report {
        answer: Answer { found: summary(record), unknown: unknown(record), ..Answer::default() },
        title: "Holes in files: compressed pages that keep their places".to_owned(),
        context: kicker(record),
        question: "What does it cost to compress pages in place and to punch holes behind them, \
                   when they are written, stored and dropped?"
            .to_owned(),
        source:
            "Published: times to drop of MariaDB's developers, and Mark Callaghan, Small Datum, \
                 2015-10-02."
                .to_owned(),
        sections: filled(sections),
        ..Report::default()
    }
}

fn kicker(record: &PagesRecord) -> String {
    let machine = &record.machine;
    let mut parts = vec![repeats(record.spec.repeats)];
    parts.extend(record.started_unix_s.map(parts::day));
    parts.push(format!("{}, {} CPUs", machine.cpu, machine.cpus));
    parts.join(" · ")
}

fn summary(record: &PagesRecord) -> Vec<Finding> {
    let judge = |ratio: &DropRatio| {
        let measured = match &ratio.measured {
            Some(of) => format!("{} here", ratio_text(&of.judged)),
            None => "not measured here".to_owned(),
        };
        let text = format!(
            "{} on {}: {} published, {measured}.",
            ratio.what(),
            ratio.file_system,
            figure(ratio.published)
        );
        (outcome(ratio.measured.as_ref()), text)
    };
    let mut findings = incomplete::findings(&record.ends());
    findings.extend(claims(record.spec.repeats, drop_ratios(record).iter().map(judge).collect()));
    findings
}

/// What cannot be said, and why.
fn unknown(record: &PagesRecord) -> Vec<String> {
    let mut unknown = parts::doubts(record.spec.repeats, 0.0, "sizes");
    let text = "What is published was measured with 20 to 100 times the data, on devices; here file \
                systems lie in loop files.";
    unknown.push(text.to_owned());
    unknown
}

fn published_ratios(record: &PagesRecord) -> Section {
    let item = |ratio: DropRatio| Published {
        group: ratio.file_system.clone(),
        name: ratio.what(),
        ratio: ratio.published,
        measured: ratio.measured,
    };
    let items: Vec<Published> = drop_ratios(record).into_iter().map(item).collect();
    let plot = parts::published(&items, published(record));
    Section::new("Published and measured").with_all(plot)
}

/// Bars by file system and layout.
fn plots(record: &PagesRecord) -> Section {
    let mut section = Section::new("Layouts and file systems");
    for (title, about, name) in BARS {
        let Some((_, of)) = columns().find(|(column, _)| *column == name) else { continue };
        let mut drawn = Vec::new();
        for file_system in &record.spec.file_systems {
            for (series, layout) in record.spec.layouts.iter().enumerate() {
                if let Some(value) = spread(record, file_system, *layout, *of) {
                    let (group, name) = (file_system.to_string(), layout.name().to_owned());
                    drawn.push(Bar { group, name, series, value });
                }
            }
        }
        let about = format!("Medians over the rounds, with their range. {about}");
        section = section.with_all(bars(title, &about, [title, name], &drawn));
    }
    section
}

fn figures(record: &PagesRecord) -> Section {
    let section = Section::new("All figures");
    if record.cells.is_empty() {
        return section;
    }
    section
        .with(Table::new("Writes and sizes, medians over the rounds", writes(record)))
        .with(Table::new("Dropping them, medians over the rounds", drops(record)))
        .with(Block::Text(NOTES.replace('\n', " ").trim().to_owned()))
}

fn checks(record: &PagesRecord) -> Section {
    let failed = |cell: &PagesCell| {
        let place = format!("{}, {}, round {}", cell.file_system, cell.layout, cell.repeat + 1);
        let late = cell.figures.as_ref().is_some_and(|figures| figures.drop.is_not_back);
        match (&cell.failure, late) {
            (Some(why), _) => Some(format!("{place}: {why}")),
            (None, true) => Some(format!("{place}: the space was not back in time")),
            (None, false) => None,
        }
    };
    let mut lines = vec![format!(
        "{} cells; pages that were read back decoded to whole pages",
        record.cells.len()
    )];
    lines.extend(record.cells.iter().filter_map(failed));
    Section::new("Checks").with(Block::List(lines))
}

fn facts(record: &PagesRecord) -> Vec<(String, String)> {
    let spec = &record.spec;
    let mut facts = parts::facts(machine_lines(&record.machine));
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    fact("pages", format!("{} of {} KiB, {}", spec.pages, PAGE_BYTES / 1024, spec.codec));
    fact("writes", format!("{} s of random pages, synced every 256", spec.seconds));
    facts
}
