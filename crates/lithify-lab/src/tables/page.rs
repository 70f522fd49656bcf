//! The page of an experiment over tables of rows.

use crate::adapter::EngineName;
use crate::datasets::TableData;
use crate::experiment::tables::{TableArm, TableColumn, UpdateMode};
use crate::html::caveats::{basis, caveats};
use crate::html::parts;
use crate::html::parts::{Published, claims, outcome};
use crate::kind::incomplete;
use crate::report::compare::{NO_VERDICT, REPEATS_WANTED};
use crate::report::figures::Spread;
use crate::report::repeats;
use crate::run::cells::Run;
use crate::tables::figures::{mode_process_kb, mode_spread, results, spread};
use crate::tables::plan::TablePlan;
use crate::tables::report::ModeOrder;
use crate::tables::spec::TableOutcome;
use crate::tables::{causes, report};
use lithify_report::charts::frontier::{self, Cost};
use lithify_report::charts::{Bar, bars};
use lithify_report::{Answer, Block, Finding, Outcome, Report, Section, Table, filled};

/// The figures that have bars: name, unit, column.
const BARS: [(&str, &str, TableColumn); 5] = [
    ("Load", "seconds", TableColumn::LoadSeconds),
    ("Size after the load", "GB", TableColumn::Size),
    ("Large aggregate", "seconds", TableColumn::ScanSeconds),
    ("Updates of single rows", "seconds", TableColumn::UpdateSeconds),
    ("Written per update", "KB to the device", TableColumn::UpdateWrittenDevice),
];

/// What the page says.
pub fn report(run: &Run<TablePlan>) -> Report {
    let page = Page { run, claimed: report::claimed(run) };
    let experiment = &run.plan.experiment;
    let mut sections = vec![page.published()];
    sections.extend(run.plan.tables.iter().map(|data| page.table(*data)));
    sections.extend([page.figures(), basis(&page.claimed.basis), page.checks(), page.machine()]);
    sections.push(caveats(&experiment.caveats));
    Report {
        answer: Answer { found: page.summary(), unknown: page.unknown(), ..Answer::default() },
        context: page.kicker(),
        sections: filled(sections),
        footer: "Each engine is judged by itself; absolute figures belong to this machine."
            .to_owned(),
        ..parts::head(
            &experiment.title,
            &experiment.question,
            &experiment.hypothesis,
            experiment.source.as_ref(),
        )
    }
}

/// A run on its way to a page.
struct Page<'a> {
    run: &'a Run<TablePlan>,
    claimed: report::Claims<'a>,
}

impl<'a> Page<'a> {
    fn first(&self) -> Option<&'a TableOutcome> {
        self.run.entries.measured().next()
    }

    fn kicker(&self) -> String {
        let plan = &self.run.plan;
        let mut parts = vec![format!("scale {}", plan.scale), repeats(plan.sizes.repeats)];
        if let Some(outcome) = self.first() {
            parts.push(parts::day(outcome.started_unix_s));
            parts.push(format!("{}, {} CPUs", outcome.machine.cpu, outcome.machine.cpus));
        }
        parts.join(" · ")
    }

    /// The engines as the series of all plots.
    fn series(&self) -> Vec<String> {
        self.run.plan.engines.iter().map(EngineName::to_string).collect()
    }

    /// The measured arms over a table, each with the number of its engine and its outcomes.
    fn arms(&self, data: TableData) -> Vec<(usize, &'a TableArm, Vec<&'a TableOutcome>)> {
        let of = |(engine, arm): (&'a EngineName, &'a TableArm)| {
            let outcomes = results(self.run, data, engine, &arm.name);
            let series = self.run.plan.engines.iter().position(|known| known == engine)?;
            (!outcomes.is_empty()).then_some((series, arm, outcomes))
        };
        report::arms(self.run).into_iter().filter_map(of).collect()
    }

    fn summary(&self) -> Vec<Finding> {
        let claimed = &self.claimed;
        let outcomes = claimed.items.iter().map(|item| outcome(item.comparison.as_ref()));
        let ends = incomplete::ends(&self.run.entries.cells);
        let ends = incomplete::with_planned(ends, &self.run.plan.cells);
        let mut findings = incomplete::findings(&ends);
        findings.extend(claims(
            self.run.plan.sizes.repeats,
            outcomes.zip(report::sentences(claimed)).collect(),
        ));
        findings.extend(self.run.plan.tables.iter().filter_map(|data| self.order(*data)));
        let skipped = &self.run.plan.skipped;
        if !skipped.is_empty() {
            let lines: Vec<&str> = skipped.iter().map(|line| line.trim_end_matches('.')).collect();
            let text = format!("{} arms or tables: {}.", skipped.len(), lines.join("; "));
            findings.push(Finding::new(Outcome::Note, "Left out", text));
        }
        findings
    }

    /// What cannot be said, and why.
    fn unknown(&self) -> Vec<String> {
        let foreign = report::foreign_percent(self.run);
        parts::doubts(self.run.plan.sizes.repeats, foreign, "sizes and bytes")
    }

    /// Whether what an update writes falls from mode to mode, as published.
    fn order(&self, data: TableData) -> Option<Finding> {
        let all = report::arm_modes(self.run, data);
        let of = |wanted: ModeOrder| all.iter().filter(move |arm| arm.order() == wanted);
        let [as_published, alike] =
            [ModeOrder::AsPublished, ModeOrder::Alike].map(|order| of(order).count());
        let other: Vec<String> = of(ModeOrder::Other)
            .map(|arm| format!("{} {} ({} KB)", arm.engine, arm.arm, arm.figures()))
            .collect();
        let is_direction = self.run.plan.sizes.repeats < REPEATS_WANTED;
        let (outcome, tag) = match (as_published, alike, other.len()) {
            (0, 0, 0) => return None,
            _ if is_direction => (Outcome::Undecided, "Undecided"),
            (0, _, 0) => (Outcome::Undecided, "Undecided"),
            (_, _, 0) => (Outcome::Met, "Confirmed"),
            _ => (Outcome::Missed, "Contradicted"),
        };
        let mut text = format!(
            "{data}: an update writes most in a transaction of its own and least in one \
             transaction without gaps, in {as_published} of {} arms",
            as_published + alike + other.len()
        );
        if alike > 0 {
            text.push_str(&format!("; in {alike} two of the modes differ by less than 2 %"));
        }
        if !other.is_empty() {
            text.push_str(&format!("; not in {}", other.join("; ")));
        }
        if is_direction {
            text.push_str(&format!(": {NO_VERDICT}"));
        }
        Some(Finding::new(outcome, tag, format!("{text}.")))
    }

    fn published(&self) -> Section {
        let claimed = &self.claimed;
        let item = |of: &report::Claimed<'_>| Published {
            group: format!("{}, {}", of.engine, of.item.table),
            name: format!("{}: {} / {}", of.item.column, of.item.arm, of.item.base),
            ratio: of.item.published,
            measured: of.comparison,
        };
        let items: Vec<Published> = claimed.items.iter().map(item).collect();
        let grid = report::headlines(claimed);
        Section::new("Published and measured").with_all(parts::published(&items, grid))
    }

    /// The plots of a table.
    fn table(&self, data: TableData) -> Section {
        let arms = self.arms(data);
        let series = self.series();
        let mut section = Section::new(&format!("Table {data}"));
        if arms.is_empty() {
            return section;
        }
        section = section.with_all(self.size_and_cpu(data));
        for (title, unit, column) in BARS {
            let bar = |(number, arm, outcomes): &(usize, &TableArm, Vec<&TableOutcome>)| {
                let value = spread(outcomes, column)?;
                let group = series[*number].clone();
                Some(Bar { group, name: arm.name.clone(), series: *number, value })
            };
            let drawn: Vec<Bar> = arms.iter().filter_map(bar).collect();
            let about = "Medians over the repeats; less is better.";
            let names = [title, &format!("{}, {unit}", column.name())];
            section = section.with_all(bars(&format!("{title}, {data}"), about, names, &drawn));
        }
        let causes = causes::grids(self.run, data).into_iter();
        section
            .with_all(self.modes(data))
            .with_all(causes.map(|(caption, grid)| Table::folded(caption, grid)))
    }

    /// What a row costs the CPU until it is settled, against the bytes of the directory.
    fn size_and_cpu(&self, data: TableData) -> Option<Block> {
        let series = self.series();
        let cost = |(number, arm, outcomes): (usize, &TableArm, Vec<&TableOutcome>)| {
            let cpu = outcomes.iter().map(|outcome| {
                let load = &outcome.load;
                let all = load.usage.process_cpu.plus(&load.maintenance.process_cpu);
                all.total_us() as f64 / outcome.rows.max(1) as f64
            });
            Some(Cost {
                series: number,
                label: format!("{} {}", series[number], arm.name),
                size: spread(&outcomes, TableColumn::SizePerLogical)?,
                cpu: Spread::of(cpu.collect())?,
            })
        };
        let costs: Vec<Cost> = self.arms(data).into_iter().filter_map(cost).collect();
        let names = ["directory per byte of the columns", "CPU of the load per row, settled, µs"];
        let title = format!("Size against CPU of the load, {data}");
        frontier::of_arms(&title, names, &series, &costs, false).map(Block::from)
    }

    /// What updates write by mode, with what was published of them.
    fn modes(&self, data: TableData) -> Vec<Block> {
        let Some(grid) = report::modes(&report::arm_modes(self.run, data)) else {
            return Vec::new();
        };
        let series = self.series();
        let mut drawn = Vec::new();
        for (number, arm, outcomes) in self.arms(data) {
            for mode in UpdateMode::ALL {
                if let Some(value) = mode_spread(&outcomes, mode, mode_process_kb) {
                    let group = format!("{} {}", series[number], arm.name);
                    drawn.push(Bar { group, name: mode.name().to_owned(), series: number, value });
                }
            }
        }
        let about = "KB handed to write calls per update, maintenance included and compactions not. \
                     Published: the first most, the last least.";
        let title = format!("What an update writes by its transaction, {data}");
        let plot = bars(&title, about, ["written per update", "KB per update"], &drawn);
        let caption = format!("{data}: {}", report::MODES_HEADING);
        let mut blocks: Vec<Block> = plot.into_iter().map(Block::from).collect();
        blocks.push(Table::new(caption, grid).into());
        let published = report::published_modes(self.run);
        if !published.is_empty() {
            blocks.push(Block::Text(format!("As published, per update: {published}.")));
        }
        blocks
    }

    fn figures(&self) -> Section {
        let medians = repeats(self.run.plan.sizes.repeats);
        let mut section = Section::new("All figures");
        for data in &self.run.plan.tables {
            let caption = report::heading(self.run, *data, &medians);
            section = section.with(Table::new(caption, report::columns(self.run, *data)));
            let published = report::published(self.run, *data);
            if !published.is_empty() {
                section = section.with(Block::Text(format!("As published: {published}.")));
            }
        }
        section
    }

    fn checks(&self) -> Section {
        Section::new("Checks").with(Block::List(report::checks(self.run)))
    }

    fn machine(&self) -> Section {
        let facts = parts::facts(report::card(self.run));
        let section = Section::new("Machine and fairness");
        if facts.is_empty() {
            return section;
        }
        let outcome = |engine: &EngineName| {
            let mut results = self.run.entries.results();
            results.find(|outcome| outcome.cell.engine == *engine)
        };
        let measured = self.run.plan.engines.iter().filter_map(outcome);
        let engines: Vec<_> = measured.map(|o| (o.engine_name.as_str(), &o.capabilities)).collect();
        let libraries = self.run.entries.results().map(|outcome| outcome.codec_library.as_str());
        section
            .with(Block::Facts(facts))
            .with(parts::libraries(libraries))
            .with(parts::abilities(&engines))
    }
}
