//! The page of loops of the classic key-value benchmark, engine against engine.

use std::collections::BTreeSet;

use super::ratios::{ratios_of_steps, tallies};
use crate::adapter::EngineName;
use crate::adapter::codec::Ladder;
use crate::comparison::results::ResultSet;
use crate::dbbench::figures::{METRICS, Measured, measured, metric};
use crate::dbbench::judged::Judgements;
use crate::dbbench::plan::{DbRecord, foreign_percent};
use crate::dbbench::spec::{DbResult, Role, StepResult};
use crate::dbbench::{floors, report, together, trees};
use crate::html::caveats::basis;
use crate::html::parts;
use crate::html::parts::{Amplification, Course, LatencyRow, Stalls};
use crate::kind::incomplete;
use crate::report::compare::FOREIGN_PERCENT_MAX;
use crate::report::figures::{Spread, figure, figure_or_dash};
use crate::report::floors as judged;
use crate::report::plural;
use crate::report::tables::{Align, Grid};
use lithify_report::charts::frontier;
use lithify_report::{
    Answer, Block, Cell, Column, Finding, Outcome, Report, Section, Table, Unit, filled,
};

/// What the page says.
pub fn report(record: &DbRecord) -> Report {
    let page = Page::of(record);
    let sections = [
        page.pairs(),
        basis(page.judged.basis()),
        page.throughput(),
        page.latencies(),
        page.size_and_cpu(),
        page.amplification(),
        page.levels(),
        page.stalls(),
        page.tables(),
        page.checks(),
        page.machine(),
    ];
    let engines: Vec<&str> = record.plan.engines.iter().map(EngineName::name).collect();
    Report {
        answer: Answer { found: page.summary(), unknown: page.unknown(), ..Answer::default() },
        title: match engines.as_slice() {
            [] => "The driver alone".to_owned(),
            [one] => format!("The loops of db_bench on {one}"),
            [first, others @ ..] => {
                format!("The loops of db_bench: {first} beside {}", others.join(" and "))
            }
        },
        context: page.kicker(),
        question: format!(
            "How fast is each step, and what does it take? {}",
            page.settings().lines().next().unwrap_or_default()
        ),
        source: String::new(),
        headline: Some(match page.names.len() {
            0..SERIES_SIDE_BY_SIDE => page.headline(),
            _ => page.side_by_side(),
        }),
        sections: filled(sections),
        footer: String::new(),
    }
}

/// The section of what the engines come to beside each other.
const SIDE_BY_SIDE: &str = "Side by side";

/// From so many series on the first table has a column for each.
const SERIES_SIDE_BY_SIDE: usize = 3;

/// A record on its way to a page. Series are engines with their ladders of codecs.
struct Page<'a> {
    record: &'a DbRecord,
    set: ResultSet,
    judged: Judgements,
    series: Vec<(EngineName, Ladder)>,
    names: Vec<String>,
    /// The loops, with their numbers.
    steps: Vec<String>,
}

impl<'a> Page<'a> {
    fn of(record: &'a DbRecord) -> Page<'a> {
        let ladders = record.plan.ladders();
        let mut series = Vec::new();
        for ladder in &ladders {
            series.extend(record.plan.engines.iter().map(|engine| (engine.clone(), *ladder)));
        }
        let name = |(engine, ladder): &(EngineName, Ladder)| match ladders.len() {
            1 => engine.to_string(),
            _ => format!("{engine} {ladder}"),
        };
        let steps = record.reference().or(record.driver()).into_iter().flat_map(DbResult::loops);
        let number = |(index, step): (usize, &StepResult)| format!("{}. {}", index + 1, step.spec);
        Page {
            record,
            set: super::compared::results(record),
            judged: Judgements::of(record),
            names: series.iter().map(name).collect(),
            series,
            steps: steps.enumerate().map(number).collect(),
        }
    }

    /// The results of a series, by repeat.
    fn results(&self, series: usize) -> impl Iterator<Item = &DbResult> {
        let (engine, ladder) = &self.series[series];
        self.record.of(engine, *ladder, Role::Measure)
    }

    /// A step of a series, repeat by repeat.
    fn measured(&self, series: usize, step: usize) -> Vec<Measured<'_>> {
        let driver = self.record.driver();
        self.results(series).filter_map(|result| measured(result, driver).nth(step)).collect()
    }

    fn spread(
        &self,
        series: usize,
        step: usize,
        value: impl Fn(&Measured<'_>) -> Option<f64>,
    ) -> Option<Spread> {
        Spread::of(self.measured(series, step).iter().filter_map(value).collect())
    }

    /// What each step came to on each engine.
    fn headline(&self) -> Table {
        let shown = ["throughput", "CPU per op until settled"].map(metric);
        let mut columns = Vec::from(["step", "engine"].map(Column::new));
        columns.extend(shown.iter().flatten().map(|metric| {
            let column = Column::new(metric.name).unit(metric.unit);
            Column { better: Some(metric.better.into()), ..column }
        }));
        let mut table = Table::new("Each step: medians [ranges] over the repeats", columns);
        for (step, name) in self.steps.iter().enumerate() {
            for (series, engine) in self.names.iter().enumerate() {
                let figures = shown.iter().flatten();
                let spreads = figures.map(|metric| {
                    let value = |of: &Measured<'_>| match metric.name {
                        "CPU per op until settled" => {
                            (metric.value)(of).or_else(|| of.cpu_us_per_operation())
                        }
                        _ => (metric.value)(of),
                    };
                    self.spread(series, step, value).into()
                });
                let step = name.split(':').next().unwrap_or(name);
                let names = [step, engine].map(Cell::from);
                table.push(names.into_iter().chain(spreads));
            }
        }
        table
    }

    /// The throughput of each step, all series beside each other.
    fn side_by_side(&self) -> Table {
        let names = self.names.iter().map(String::as_str);
        let columns: Vec<Column> = ["step"].into_iter().chain(names).map(Column::new).collect();
        let caption = "Throughput of each step, ops/s (higher is better): medians";
        let mut table = Table::new(caption, columns);
        for (step, name) in self.steps.iter().enumerate() {
            let medians = (0..self.names.len()).map(|series| {
                let rates = metric("throughput")
                    .and_then(|metric| self.spread(series, step, |of| (metric.value)(of)));
                rates.map_or(Cell::Missing, |rates| Cell::number(rates.median))
            });
            let step = name.split(':').next().unwrap_or(name);
            table.push([Cell::from(step)].into_iter().chain(medians));
        }
        table
    }

    fn settings(&self) -> String {
        let result = self.record.reference().or(self.record.driver());
        result.map_or_else(String::new, |r| report::settings(r, &self.record.plan))
    }

    fn kicker(&self) -> String {
        let repeats = self.record.plan.cells.iter().map(|cell| cell.repeat + 1).max().unwrap_or(0);
        let mut parts = vec![self.record.plan.name.clone(), crate::report::repeats(repeats)];
        if let Some(result) = self.record.reference() {
            parts.push(parts::day(result.started_unix_s));
            parts.push(format!("{}, {} CPUs", result.machine.cpu, result.machine.cpus));
        }
        parts.join(" · ")
    }

    fn summary(&self) -> Vec<Finding> {
        let missed = parts::missed(&floors::cells(self.record, &self.judged));
        let (count, missed) = missed.split_at(missed.len().min(1));
        let mut findings = incomplete::findings(&self.record.ends());
        let wrong = self.record.disagreements().into_iter();
        findings.extend(wrong.map(|text| Finding::new(Outcome::Missed, "Wrong", text)));
        findings.extend([count, &tallies(&self.set), missed].concat());
        findings
    }

    /// What cannot be said, and why.
    fn unknown(&self) -> Vec<String> {
        let foreign = self.record.results().map(foreign_percent).fold(0.0, f64::max);
        let noise = || {
            format!(
                "The machine was not quiet: other processes took up to {} % of its CPUs in a run.",
                figure(foreign)
            )
        };
        let noise = (foreign > FOREIGN_PERCENT_MAX).then(noise);
        noise.into_iter().chain(self.unlike_contents()).chain(self.short_form()).collect()
    }

    /// That engines read different rows, because an earlier step wrote for a time instead of a number.
    fn unlike_contents(&self) -> Option<String> {
        let first = self.record.reference()?;
        let others = self.record.results().filter(|other| {
            other.cell.role == Role::Measure && other.cell.spec.engine != first.cell.spec.engine
        });
        let steps: BTreeSet<String> =
            others.flat_map(|other| trees::unlike(first, other)).collect();
        let sum = format!(
            "Engines had different rows in {}: an earlier step wrote for a time, and the faster engine wrote \
             more. Their ratios are not of the same work. Give writing steps a number.",
            plural(steps.len() as u64, "step")
        );
        (!steps.is_empty()).then_some(sum)
    }

    /// That a run of several engines is no headline, and the first reason.
    fn short_form(&self) -> Option<String> {
        let (_, lacks) = trees::form(self.record).filter(|_| self.record.plan.engines.len() > 1)?;
        let (first, others) = lacks.split_first()?;
        let others = match others.len() {
            0 => String::new(),
            _ => format!(", and more under {SIDE_BY_SIDE}"),
        };
        Some(format!("Short form, to find regressions: ratios are no headline. {first}{others}."))
    }

    fn pairs(&self) -> Section {
        let mut section = Section::new(SIDE_BY_SIDE);
        if let Some((form, lacks)) = trees::form(self.record) {
            section = section.with(Block::Text(form)).with(Block::List(lacks));
        }
        let cells = floors::cells(self.record, &self.judged);
        let grid = judged::grid(&cells);
        if !grid.rows.is_empty() {
            let caption = format!("Targets of the first engine: {}", judged::counts(&cells));
            section = section.with(Table::new(caption, grid));
        }
        section
            .with_all(ratios_of_steps(&self.set))
            .with_all(together::tables(self.record, &self.judged))
            .with_all(report::comparisons(self.record, &self.judged))
    }

    fn throughput(&self) -> Section {
        let mut section = Section::new("Throughput over time");
        for (index, step) in self.steps.iter().enumerate() {
            let course = |(series, name): (usize, &String)| Course {
                name: name.clone(),
                repeats: self.measured(series, index).iter().map(|m| m.step.rates()).collect(),
            };
            let courses: Vec<Course> = self.names.iter().enumerate().map(course).collect();
            let (title, what) = (format!("{step}, second by second"), "operations per second");
            section = section.with_all(parts::over_time(&title, what, Unit::Number, &courses));
        }
        section
    }

    fn latencies(&self) -> Section {
        let mut rows = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            for series in 0..self.series.len() {
                let median = |us: fn(&StepResult) -> f64| {
                    self.spread(series, index, |m| Some(us(m.step))).map(|spread| spread.median)
                };
                let us = [
                    median(|step| step.latency.summary.p50_us),
                    median(|step| step.latency.summary.p99_us),
                    median(|step| step.latency.summary.p999_us),
                    median(|step| step.latency.summary.max_ms * 1e3),
                ];
                rows.push(LatencyRow { operation: step.clone(), series, us });
            }
        }
        rows.retain(|row| row.us[0].is_some());
        let plot = parts::latencies("Latencies by step", &self.names, &rows);
        Section::new("Latency by operation").with_all(plot)
    }

    /// After the last step that was waited for: all before it is in there.
    fn last_settled(&self) -> Option<usize> {
        let reference = self.record.reference()?;
        let is_settled = |step: &StepResult| step.settle.is_some();
        reference.loops().collect::<Vec<_>>().iter().rposition(|step| is_settled(step))
    }

    fn size_and_cpu(&self) -> Section {
        let section = Section::new("Size against CPU");
        let Some(index) = self.last_settled() else { return section };
        let point = |series: usize| {
            let size = self.spread(series, index, |m| {
                let settle = m.step.settle.as_ref()?;
                Some(settle.directory.allocated_bytes as f64 / (1u64 << 20) as f64)
            })?;
            let cpu = self.spread(series, index, |m| m.settled_cpu_us_per_operation())?;
            Some((series, size, cpu))
        };
        let points: Vec<_> = (0..self.series.len()).filter_map(point).collect();
        let names = ["directory settled, MiB", "CPU per operation until settled, µs"];
        let title = format!("Size against CPU after {}", self.steps[index]);
        section.with_all(frontier::of_series(&title, names, &self.names, &points))
    }

    fn amplification(&self) -> Section {
        let none = Section::new("Amplification");
        let Some(index) = self.last_settled() else { return none };
        let median = |series: usize, value: &dyn Fn(&Measured<'_>) -> Option<f64>| {
            self.spread(series, index, value).map(|spread| spread.median)
        };
        let logical = self
            .record
            .reference()
            .map_or(1.0, |result| (result.cell.spec.num * result.cell.spec.entry_bytes()) as f64);
        let row = |series: usize| Amplification {
            series,
            values: [
                median(series, &|m| m.written_per_byte()),
                median(series, &|m| {
                    let read = m.step.usage.process_io.read_syscall_bytes as f64;
                    (m.step.bytes > 0).then(|| read / m.step.bytes as f64)
                }),
                median(series, &|m| {
                    let stored = m.step.statistics_settled.live_bytes as f64;
                    (stored > 0.0).then_some(stored / logical)
                }),
            ],
        };
        let rows: Vec<Amplification> = (0..self.series.len()).map(row).collect();
        let title = format!(
            "Written per byte ingested, read per byte of the clients' operations, stored per byte \
             of all keys and values: {}",
            self.steps[index]
        );
        let corners = ["written", "read", "stored"];
        none.with_all(parts::amplification(&title, corners, &self.names, &rows))
    }

    fn levels(&self) -> Section {
        let columns = [
            ("of", Align::Left),
            ("level", Align::Left),
            ("codec in files", Align::Left),
            ("files", Align::Right),
            ("stored MB", Align::Right),
            ("stored/user", Align::Right),
            ("jobs", Align::Right),
            ("wall s/job", Align::Right),
            ("written MB", Align::Right),
            ("cpu s", Align::Right),
        ];
        let mut rows = Vec::new();
        for (series, name) in self.names.iter().enumerate() {
            let Some(step) = self.results(series).next().and_then(|r| r.loops().last()) else {
                continue;
            };
            let used =
                |level: &&crate::adapter::LevelStatistics| level.files > 0 || level.compactions > 0;
            for level in step.statistics_settled.levels.iter().filter(used) {
                let per_job = level.compaction_wall_us as f64 / 1e6 / level.compactions as f64;
                rows.push(vec![
                    name.clone(),
                    format!("L{}", level.level),
                    level.codec.clone(),
                    level.files.to_string(),
                    figure(level.stored_bytes as f64 / 1e6),
                    figure_or_dash(level.stored_per_user_byte()),
                    level.compactions.to_string(),
                    figure(per_job),
                    figure(level.compaction_write_bytes as f64 / 1e6),
                    figure(level.compaction_cpu_us as f64 / 1e6),
                ]);
            }
        }
        let mut section = Section::new("Levels, codecs, jobs");
        if let Some(grid) = trees::grid(self.record) {
            section = section.with(Table::folded("Trees before steps that read", grid));
            section = section.with(Block::List(trees::settled(self.record)));
        }
        if rows.is_empty() {
            return section;
        }
        let caption = "Levels after the last step, first valid repeat: codecs as files say; jobs \
                       since the database was opened";
        section.with(Table::new(caption, Grid::new(&columns, rows)))
    }

    fn stalls(&self) -> Section {
        let mut lines = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            for (series, name) in self.names.iter().enumerate() {
                let of_writes = self.measured(series, index).into_iter().enumerate();
                let of_writes = of_writes.filter(|(_, m)| m.step.throughput.is_some());
                lines.extend(of_writes.map(|(repeat, measured)| {
                    stall_line(format!("{step}: {name} r{repeat}"), &measured)
                }));
            }
        }
        let section = Section::new("Stalls");
        if lines.is_empty() {
            return section;
        }
        section.with(parts::stalls("Writers held back, by step and repeat", &lines))
    }

    fn tables(&self) -> Section {
        let mut section = Section::new("All figures");
        for (index, step) in self.steps.iter().enumerate() {
            let mut columns = vec![("figure".to_owned(), Align::Left)];
            columns.extend(self.names.iter().map(|name| (name.clone(), Align::Right)));
            let mut rows = Vec::new();
            for metric in &METRICS {
                let value = |series| self.spread(series, index, metric.value);
                let spreads: Vec<_> = (0..self.series.len()).map(value).collect();
                if spreads.iter().any(Option::is_some) {
                    let ranged = |spread: &Option<Spread>| {
                        spread.map_or_else(|| figure_or_dash(None), |s| s.with_range())
                    };
                    let cells = spreads.iter().map(ranged);
                    rows.push(std::iter::once(metric.heading()).chain(cells).collect());
                }
            }
            let caption = format!("{step}: medians [ranges] over the repeats");
            section = section.with(Table::new(caption, Grid { columns, rows }));
        }
        section.with(report::steps(self.record))
    }

    fn checks(&self) -> Section {
        Section::new("Checks").with(Block::List(report::checks(self.record)))
    }

    fn machine(&self) -> Section {
        let section = Section::new("Machine and fairness");
        let Some(result) = self.record.reference().or(self.record.driver()) else { return section };
        let machine = &result.machine;
        let fact = |name: &str, value: String| (name.to_owned(), value);
        let mut facts = vec![
            fact("machine", format!("{}, {} CPUs, {}", machine.cpu, machine.cpus, machine.kernel)),
            fact("memory", format!("{} MiB", machine.memory_bytes >> 20)),
            fact("data on", format!("{} on {}", machine.file_system, machine.device)),
            fact("built by", format!("{}, {}", machine.compiler, machine.build)),
            fact("allocator", machine.allocator.clone()),
        ];
        facts.extend(report::days_of(self.record).map(|days| fact("measured on", days)));
        let settings = self.settings();
        let lines = settings.lines().take(2);
        facts.extend(
            ["work", "settings"].into_iter().zip(lines).map(|(n, v)| fact(n, v.to_owned())),
        );
        for (series, name) in self.names.iter().enumerate() {
            if let Some(result) = self.results(series).next() {
                let labels = result.capabilities.labels.join(", ");
                let engine = &result.engine_name;
                let text =
                    if labels.is_empty() { engine.clone() } else { format!("{engine} ({labels})") };
                facts.push(fact(name, text));
            }
        }
        section.with(Block::Facts(facts))
    }
}

/// A step's line of the stall ledger.
pub(crate) fn stall_line<'a>(of: String, measured: &Measured<'a>) -> Stalls<'a> {
    let step = measured.step;
    let seen = step.throughput.as_ref();
    Stalls {
        of,
        statistics: [&step.statistics_before, &step.statistics],
        slowed_percent: measured.slowed_percent(),
        gap_percent: seen.map(|seen| 100.0 * seen.gap_share()),
        longest_gap_ms: seen.map(|seen| seen.longest_gap_ms),
    }
}
