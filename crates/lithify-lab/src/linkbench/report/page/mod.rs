//! The page of an experiment over the social graph.

mod clients;

use crate::adapter::codec::Codec;
use crate::experiment::{Column as Figure, Headline, Phase};
use crate::html::parts::{
    Amplification, Course, LatencyRow, Published, Ratio, Stalls, claims, outcome,
};
use crate::html::{caveats, parts};
use crate::kind::incomplete;
use crate::linkbench::cell::{CellResult, PhaseResult, Purpose};
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::figures::{
    Figures, settled_cpu_us_per_operation, slowed_percent, table_gb,
};
use crate::linkbench::report::judged::{Claimed, Judgements};
use crate::linkbench::report::{
    GATES_HEADING, OPEN_LOOP_HEADING, ageing, better_pairs, card, checks, conditions, dropping,
    gates, glance, heading, headlines, open_loop, pairs, servers, tables,
};
use crate::report::compare::{Comparison, REPEATS_WANTED, Verdict};
use crate::report::figures::{Spread, figure};
use crate::report::tables::{Align, Grid};
use crate::report::{floors, repeats};
use lithify_report::charts::frontier;
use lithify_report::{
    Answer, Block, Cell, Claim, Column, Finding, Outcome, Report, Section, Table, Unit, filled,
};

const PHASES: [Phase; 2] = [Phase::Load, Phase::Query];

/// What the page says.
pub fn report(record: &LinkBenchRecord) -> Report {
    let figures = Figures::of(record);
    let judged = Judgements::of(record, &figures);
    let page = Page { record, figures, judged, arms: &record.plan.arms };
    let experiment = &record.plan.experiment;
    let sections = [
        page.pairs(),
        page.published(),
        caveats::basis(&page.judged.basis),
        clients::section(record, &page.figures),
        page.throughput(),
        page.latencies(),
        page.size_and_cpu(),
        page.amplification(),
        page.levels(),
        page.jobs(),
        page.stalls(),
        page.tables(),
        page.processes(),
        page.conditions(),
        page.ageing(),
        page.dropping(),
        page.checks(),
        page.machine(),
        caveats::caveats(&experiment.caveats),
    ];
    Report {
        answer: Answer {
            found: page.summary(),
            unknown: headlines::doubts(record),
            next: next(record),
        },
        context: page.kicker(),
        headline: page.headline(),
        sections: filled(sections),
        footer:
            "Ratios of one session on one machine are compared; absolute figures belong to this \
                 machine."
                .to_owned(),
        ..parts::head(
            &experiment.title,
            &experiment.question,
            &experiment.hypothesis,
            experiment.source.as_ref(),
        )
    }
}

/// What to do after reading the answer.
fn next(record: &LinkBenchRecord) -> Vec<String> {
    let plan = &record.plan;
    let repeats = plan.repeats.max(REPEATS_WANTED) + 2;
    let more = format!("--repeats {repeats} decides more; what is measured is kept.");
    let decided = plan.repeats > REPEATS_WANTED;
    (!decided).then_some(more).into_iter().collect()
}

/// What a table of claims does not say by itself: whose CPU it has, and what round brackets are.
fn legend(claims: &[Claimed<'_>], is_noisy: bool) -> String {
    let is_of_cpu = |of: &Claimed<'_>| {
        matches!(of.item.column, Figure::McpuPerInsert | Figure::McpuPerTransaction)
    };
    let has_own = |of: &Claimed<'_>| is_noisy && is_of_cpu(of) && of.believable().next().is_some();
    let texts = [
        (claims.iter().any(is_of_cpu), "all CPU: of every process"),
        (claims.iter().any(has_own), "own CPU: of the measured one without its driver"),
        (claims.iter().any(Claimed::has_range), "(a to b): the range of the repeats"),
    ];
    texts.iter().filter(|(has, _)| *has).map(|(_, text)| format!("; {text}")).collect()
}

/// A record on its way to a page. Series are arms, by their places in the plan.
struct Page<'a> {
    record: &'a LinkBenchRecord,
    figures: Figures<'a>,
    judged: Judgements<'a>,
    arms: &'a [String],
}

impl Page<'_> {
    fn kicker(&self) -> String {
        let plan = &self.record.plan;
        let mut parts = vec!["LinkBench".to_owned(), format!("scale {}", plan.scale)];
        parts.push(repeats(plan.repeats));
        if let Some(result) = self.first() {
            parts.push(parts::day(result.started_unix_s));
            parts.push(format!("{}, {} CPUs", result.machine.cpu, result.machine.cpus));
        }
        parts.join(" · ")
    }

    fn first(&self) -> Option<&CellResult> {
        let results = self.record.cells.iter().filter_map(|cell| cell.result.as_ref());
        let mut measured = results.filter(|result| result.spec.purpose == Purpose::Measure);
        measured.next()
    }

    fn summary(&self) -> Vec<Finding> {
        let judged = &self.judged;
        let outcomes = judged.headlines.iter().map(|item| outcome(item.comparison.as_ref()));
        let claims =
            claims(self.record.plan.repeats, outcomes.zip(headlines::sentences(judged)).collect());
        let (tally, claims) = claims.split_at(claims.len().min(1));
        let mut findings = incomplete::findings(&self.record.ends());
        findings.extend(self.misnamed());
        findings.extend_from_slice(tally);
        findings.extend(self.directions());
        let pairs = judged.pairs.iter();
        let cells: Vec<floors::Cell> =
            pairs.flat_map(|(pair, lines)| pairs::floors(&self.figures, pair, lines)).collect();
        let missed = parts::missed(&cells);
        let (count, missed) = missed.split_at(missed.len().min(1));
        findings.extend_from_slice(count);
        for (pair, lines) in &judged.pairs {
            let sides = [pair.arm.as_str(), pair.base.as_str()];
            let text = parts::tally(sides, &ratios(lines), &["operations/s", "CPU us/op"]);
            findings.push(Finding::new(Outcome::Note, "Pair", text));
        }
        findings.extend_from_slice(missed);
        findings.extend_from_slice(claims);
        findings.extend(clients::findings(self.record, &self.figures));
        let failed = |arm: &String| {
            let label = gates::label(self.record, self.figures.results(arm))?;
            Some(format!("{arm} ({label})"))
        };
        let failed: Vec<String> = self.arms.iter().filter_map(failed).collect();
        if !failed.is_empty() {
            let text = format!("Failed a gate of the scale: {}.", failed.join(", "));
            findings.push(Finding::new(Outcome::Note, "Gates", text));
        }
        findings
    }

    /// Arms that are named for no codec and have one at the bottom level, as older files named them.
    fn misnamed(&self) -> Option<Finding> {
        let ladder = |arm: &String| {
            let cells = &self.record.plan.cells;
            let cell = cells.iter().find(|cell| cell.arm == *arm)?;
            let is_named_none = arm.split('-').next_back() == Some("none");
            let ladder = cell.settings.ladder();
            (is_named_none && ladder.bottom != Codec::NONE).then(|| format!("{arm} is {ladder}"))
        };
        let arms: Vec<String> = self.arms.iter().filter_map(ladder).collect();
        let text = format!("Codecs of small, middle and bottom levels: {}.", arms.join("; "));
        (!arms.is_empty()).then(|| Finding::new(Outcome::Note, "Arms", text))
    }

    /// How many ratios point as published, and what the first one is.
    fn directions(&self) -> Option<Finding> {
        let is_noisy = headlines::disturbance_percent(self.record).is_some();
        // With others on the machine a figure that they disturb gives way to one that stands for it.
        let mut measured = Vec::new();
        for of in &self.judged.headlines {
            let believable = of.believable().next().filter(|_| is_noisy);
            let believable = believable.map(|(companion, found)| (companion.word(), found));
            let own = of.comparison.as_ref().map(|found| (of.item.column.word(), found));
            measured.extend(believable.or(own).map(|(word, found)| (of.item, word, found)));
        }
        let (item, word, first) = *measured.first()?;
        let points = |(_, _, found): &&(_, _, &Comparison)| {
            matches!(found.verdict, Verdict::Confirmed(_) | Verdict::DirectionOnly(true))
        };
        let text = format!(
            "{} of {} ratios point as published. {} of the {}: {} has {} of {}'s here, {} published.",
            measured.iter().filter(points).count(),
            measured.len(),
            word,
            item.phase,
            item.arm,
            figure(first.judged.ratio?),
            item.base,
            figure(item.published)
        );
        Some(Finding::new(Outcome::Note, "Found", text))
    }

    /// The published ratios beside the measured ones; where none was measured, those of the pairs.
    fn headline(&self) -> Option<Table> {
        let several = |of: &Claimed<'_>| match of.item.clients {
            None => String::new(),
            Some(1) => ", 1 client".to_owned(),
            Some(clients) => format!(", {clients} clients"),
        };
        let row = |item: &Headline, figure: String, measured: Option<&Comparison>| {
            [
                Cell::from(item.phase.to_string()),
                Cell::from(figure),
                Cell::from(format!("{} / {}", item.arm, item.base)),
                Cell::number(item.published),
                measured.map_or(Cell::Missing, |measured| Cell::from(&measured.judged)),
                measured.map_or(Cell::Missing, |measured| Claim::from(measured.verdict).into()),
            ]
        };
        let columns = [
            Column::new("phase"),
            Column::new("figure"),
            Column::new("ratio of"),
            Column::new("published"),
            Column::new("here [95\u{a0}%]"),
            Column::new("verdict"),
        ];
        let mut table =
            Table::new("Published ratios, and those of this machine", columns).keyed_by(4);
        let is_noisy = headlines::disturbance_percent(self.record).is_some();
        for of in &self.judged.headlines {
            let figure = format!("{}{}", of.item.column.word(), several(of));
            table.push(row(of.item, figure, of.comparison.as_ref()));
            for (companion, measured) in of.believable().filter(|_| is_noisy) {
                table.push(row(of.item, companion.word().to_owned(), Some(measured)));
            }
        }
        table.caption.push_str(&legend(&self.judged.headlines, is_noisy));
        let is_measured = self.judged.headlines.iter().any(|of| of.comparison.is_some());
        let claims = (!table.rows.is_empty()).then_some(table);
        match is_measured {
            true => claims,
            false => glance::headline(&self.judged).or(claims),
        }
    }

    fn pairs(&self) -> Section {
        let mut section = Section::new("Side by side");
        for (pair, lines) in &self.judged.pairs {
            let sides = [pair.arm.as_str(), pair.base.as_str()];
            let title = format!("{} : {}", pair.arm, pair.base);
            section = section.with_all(parts::ratios(&title, sides, &ratios(lines)));
            let cells = pairs::floors(&self.figures, pair, lines);
            let grid = floors::grid(&cells);
            if !grid.rows.is_empty() {
                let caption = format!("Targets of {}: {}", pair.arm, floors::counts(&cells));
                section = section.with(Table::new(caption, grid));
            }
        }
        let better = better_pairs::grids(&self.record.plan.experiment, &self.judged);
        section = section.with_all(better.into_iter().map(|(title, grid)| Table::new(title, grid)));
        let glance = glance::grid(&self.judged);
        section.with_all(glance.map(|grid| Table::folded(glance::HEADING, grid)))
    }

    fn published(&self) -> Section {
        let item = |of: &Claimed<'_>| Published {
            group: of.item.phase.to_string(),
            name: format!("{}: {} / {}", of.item.column, of.item.arm, of.item.base),
            ratio: of.item.published,
            measured: of.comparison,
        };
        let items: Vec<Published> = self.judged.headlines.iter().map(item).collect();
        let grid = headlines::grid(self.record, &self.judged);
        Section::new("Published and measured").with_all(parts::published(&items, grid))
    }

    fn throughput(&self) -> Section {
        let mut section = Section::new("Throughput over time");
        for phase in PHASES {
            let course = |arm: &String| Course {
                name: arm.clone(),
                repeats: self
                    .figures
                    .results(arm)
                    .iter()
                    .map(|r| seconds(r.phase(phase)))
                    .collect(),
            };
            let courses: Vec<Course> = self.arms.iter().map(course).collect();
            let what = match phase {
                Phase::Load => "rows per second",
                Phase::Query => "operations per second",
            };
            let title = format!("The {phase}, second by second");
            section = section.with_all(parts::over_time(&title, what, Unit::Number, &courses));
        }
        section
    }

    fn latencies(&self) -> Section {
        let mut section = Section::new("Latency by operation");
        for phase in [Phase::Query, Phase::Load] {
            let mut rows = Vec::new();
            let names = self.operations(phase);
            for operation in names {
                for (series, arm) in self.arms.iter().enumerate() {
                    let median = |us: fn(&crate::latency::LatencySummary) -> f64| {
                        let spread = self.figures.spread(arm, |result| {
                            let mut found = result.phase(phase).latencies.iter();
                            found.find(|s| s.op == operation && s.count > 0).map(us)
                        });
                        spread.map(|spread| spread.median)
                    };
                    let us = [
                        median(|s| s.p50_us),
                        median(|s| s.p99_us),
                        median(|s| s.p999_us),
                        median(|s| s.max_ms * 1e3),
                    ];
                    rows.push(LatencyRow { operation: operation.clone(), series, us });
                }
            }
            rows.retain(|row| row.us[0].is_some());
            let title = format!("Latencies of the {phase}");
            section = section.with_all(parts::latencies(&title, self.arms, &rows));
        }
        if let Some(grid) = open_loop::grid(self.record, &self.figures) {
            section = section.with(Table::new(OPEN_LOOP_HEADING, grid));
        }
        section
    }

    /// The operations of a phase in the order in which results name them.
    fn operations(&self, phase: Phase) -> Vec<String> {
        let latencies = self.first().map_or(&[][..], |result| &result.phase(phase).latencies);
        latencies.iter().map(|summary| summary.op.clone()).collect()
    }

    fn size_and_cpu(&self) -> Section {
        let mut section = Section::new("Size against CPU");
        for phase in [Phase::Query, Phase::Load] {
            let driver_us = self.figures.driver_us(phase);
            let point = |(series, arm): (usize, &String)| {
                let size = self.figures.spread(arm, |result| size_gb(result.phase(phase)))?;
                let cpu = self.figures.spread(arm, |result| {
                    Some(settled_cpu_us_per_operation(result.phase(phase)) - driver_us)
                })?;
                Some((series, size, cpu))
            };
            let points: Vec<(usize, Spread, Spread)> =
                self.arms.iter().enumerate().filter_map(point).collect();
            let names = ["settled size, GB", "CPU per operation until settled, µs"];
            let title = format!("Size against CPU, {phase}");
            section = section.with_all(frontier::of_series(&title, names, self.arms, &points));
        }
        section
    }

    fn amplification(&self) -> Section {
        let per_operation = |phase: &PhaseResult, bytes: u64| {
            (phase.operations > 0).then(|| bytes as f64 / 1024.0 / phase.operations as f64)
        };
        let median = |arm: &String, value: &dyn Fn(&PhaseResult) -> Option<f64>| {
            let spread = self.figures.spread(arm, |result| value(&result.query));
            spread.map(|spread| spread.median)
        };
        let row = |(series, arm): (usize, &String)| Amplification {
            series,
            values: [
                median(arm, &|query| {
                    let settling = query.settle.process_io.written_syscall_bytes;
                    let bytes = query.usage.process_io.written_syscall_bytes + settling;
                    per_operation(query, bytes)
                }),
                median(arm, &|query| {
                    per_operation(query, query.usage.process_io.read_syscall_bytes)
                }),
                median(arm, &size_gb),
            ],
        };
        let rows: Vec<Amplification> = self.arms.iter().enumerate().map(row).collect();
        Section::new("Amplification").with_all(parts::amplification(
            "Written, read and stored for the same queries",
            ["KB written/op until settled", "KB read/op", "GB stored"],
            self.arms,
            &rows,
        ))
    }

    fn levels(&self) -> Section {
        let grid = tables::levels(self.record);
        let section = Section::new("Levels and codecs");
        if grid.rows.is_empty() {
            return section;
        }
        let caption = "Levels at the end of the queries, first valid repeat: codecs as files say";
        let section = section.with(Table::new(caption, grid));
        match tables::shape(self.record) {
            line if line.is_empty() => section,
            line => section.with(Block::Text(format!("{line}."))),
        }
    }

    fn jobs(&self) -> Section {
        let mut times = Vec::new();
        for (series, arm) in self.arms.iter().enumerate() {
            let Some(result) = self.figures.results(arm).first() else { continue };
            for level in &result.query.statistics_settled.levels {
                if level.compactions > 0 && level.compaction_wall_us > 0 {
                    let seconds = level.compaction_wall_us as f64 / 1e6 / level.compactions as f64;
                    times.push((format!("L{}", level.level), series, seconds));
                }
            }
        }
        let title = "Time of a job by the level that it wrote into, from open to the end";
        Section::new("Jobs").with_all(parts::jobs(title, self.arms, &times))
    }

    fn stalls(&self) -> Section {
        let mut section = Section::new("Stalls");
        for phase in PHASES {
            let mut lines = Vec::new();
            for result in self.arms.iter().flat_map(|arm| self.figures.results(arm)) {
                let of = result.phase(phase);
                lines.push(Stalls {
                    of: format!("{} r{}", result.spec.arm, result.spec.repeat),
                    statistics: [&of.statistics_before, &of.statistics],
                    slowed_percent: slowed_percent(of),
                    gap_percent: Some(100.0 * of.observed_stalls.share()),
                    longest_gap_ms: of.observed_stalls.longest_gap_us.map(|us| us as f64 / 1e3),
                });
            }
            if !lines.is_empty() {
                let caption = format!("Writers held back in the {phase}, by repeat");
                section = section.with(parts::stalls(&caption, &lines));
            }
        }
        section
    }

    fn tables(&self) -> Section {
        let mut section = Section::new("All figures");
        for phase in PHASES {
            let caption = heading(self.record, phase);
            let grid = tables::published_columns(self.record, &self.figures, phase);
            section = section.with(Table::new(caption, grid));
            for grid in tables::published(self.record, phase) {
                section = section.with(Table::new(format!("{phase}, as published"), grid));
            }
            let caption = format!("{phase}: what an operation costs this process");
            let grid = tables::process_columns(self.record, &self.figures, phase);
            section = section.with(Table::new(caption, grid));
        }
        let causes = tables::causes(self.record);
        if !causes.rows.is_empty() {
            section = section.with(Table::new("What the engine booked, from open on", causes));
        }
        section
    }

    /// Engines with processes of their own, apart from the driver's.
    fn processes(&self) -> Section {
        let grid = servers::grid(self.record, &self.figures);
        let caption = "CPU, I/O and memory of engines with processes of their own";
        Section::new("Processes of engines").with_all(grid.map(|grid| Table::new(caption, grid)))
    }

    /// What arms run under beside the settings of their engines.
    fn conditions(&self) -> Section {
        let mut section = Section::new("Conditions of the arms");
        if let Some((grid, notes)) = conditions::grid(self.record, &self.figures) {
            section = section.with(Table::new("Device, the driver's own log, allocator", grid));
            section = section.with(Block::List(notes));
        }
        let memory = conditions::memory(self.record, &self.figures);
        section =
            section.with_all(memory.map(|grid| Table::new("Memory by cache turnovers", grid)));
        let caption = "File systems: GB of the files, and GB used as the file system counts";
        let file_systems = conditions::file_systems(self.record, &self.figures);
        section.with_all(file_systems.map(|grid| Table::new(caption, grid)))
    }

    fn ageing(&self) -> Section {
        let section = Section::new("While the data age");
        let Some((ours, published)) = ageing::grids(self.record, &self.figures) else {
            return section;
        };
        let published = published.into_iter().map(|grid| Table::new("as published", grid));
        section.with(Table::new(ageing::HEADING, ours)).with_all(published)
    }

    fn dropping(&self) -> Section {
        let section = Section::new("The end of the databases");
        let Some(grid) = dropping::grid(self.record, &self.figures) else { return section };
        let section = section.with(Table::new(dropping::HEADING, grid));
        let section = section.with(Block::List(dropping::calls(self.record, &self.figures)));
        let published = dropping::published(self.record, &self.judged);
        if published.rows.is_empty() {
            return section;
        }
        section
            .with(Table::new("time to drop: published and measured", published))
            .with(Block::List(dropping::sentences(&self.judged)))
    }

    fn checks(&self) -> Section {
        let lines = checks::lines(self.record, &self.figures);
        let section = Section::new("Checks").with(Block::List(lines));
        match gates::grid(self.record, &self.figures) {
            Some(grid) => section.with(Table::new(GATES_HEADING, grid)),
            None => section,
        }
    }

    fn machine(&self) -> Section {
        let facts = parts::facts(card::lines(self.record));
        let section = Section::new("Machine and fairness");
        if facts.is_empty() {
            return section;
        }
        section.with(Block::Facts(facts)).with(self.capabilities())
    }

    /// What each engine did by itself.
    fn capabilities(&self) -> Table {
        let yes = |has: bool| if has { "yes" } else { "no" }.to_owned();
        let row = |arm: &String| {
            let result = self.figures.results(arm).first()?;
            let can = &result.capabilities;
            Some(vec![
                arm.clone(),
                result.engine_name.clone(),
                result.spec.settings.ladder().to_string(),
                yes(can.transactions),
                yes(can.prefix_filter),
                yes(can.single_delete),
                yes(can.multi_get),
            ])
        };
        let columns = [
            ("arm", Align::Left),
            ("engine", Align::Left),
            ("codecs: small, middle, bottom", Align::Left),
            ("row locks", Align::Left),
            ("prefix filter", Align::Left),
            ("single delete", Align::Left),
            ("multi-get", Align::Left),
        ];
        Table::new(
            "What each arm's engine does by itself",
            Grid::new(&columns, self.arms.iter().filter_map(row).collect()),
        )
    }
}

/// The figures of a pair in a plot.
fn ratios(lines: &[pairs::Line]) -> Vec<Ratio> {
    let ratio = |line: &pairs::Line| Ratio {
        group: line.phase.to_string(),
        name: line.name.clone(),
        better: line.better,
        comparison: line.comparison.clone(),
    };
    lines.iter().map(ratio).collect()
}

/// The rates of whole seconds: the last one is a part of one.
fn seconds(phase: &PhaseResult) -> Vec<f64> {
    let whole = (phase.seconds.floor() as usize).min(phase.per_second.len());
    phase.per_second[..whole].iter().map(|count| *count as f64).collect()
}

/// The tables when nothing was due; the directory for an engine without levels.
fn size_gb(phase: &PhaseResult) -> Option<f64> {
    table_gb(phase).or_else(|| {
        let directory = phase.settle.directory.allocated_bytes;
        (directory > 0).then_some(directory as f64 / 1e9)
    })
}
