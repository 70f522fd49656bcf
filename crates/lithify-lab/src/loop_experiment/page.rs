//! The page of an experiment over the loops of the classic key-value benchmark.

use crate::adapter::EngineName;
use crate::dbbench::figures::Measured;
use crate::dbbench::page::stall_line;
use crate::dbbench::plan::foreign_percent;
use crate::dbbench::spec::{Role, StepResult};
use crate::experiment::loops::LoopColumn;
use crate::html::caveats::{basis, caveats};
use crate::html::parts;
use crate::html::parts::{Amplification, Course, LatencyRow, Published, claims, outcome};
use crate::keyvalue::benchmark::Benchmark;
use crate::kind::incomplete;
use crate::loop_experiment::figures::{Figures, column_value};
use crate::loop_experiment::{LoopRecord, report};
use crate::report::figures::Spread;
use crate::report::repeats;
use lithify_report::charts::frontier;
use lithify_report::{Answer, Block, Finding, Outcome, Report, Section, Table, Unit, filled};

/// What the page says.
pub fn report(record: &LoopRecord) -> Report {
    let page = Page::of(record);
    let experiment = &record.plan.experiment;
    let mut sections = vec![page.published()];
    sections.extend([page.throughput(), page.latencies(), page.size_and_cpu()]);
    sections.extend([page.amplification(), page.levels(), page.jobs(), page.stalls()]);
    sections.extend([page.tables(), basis(&page.judged.basis), page.checks(), page.machine()]);
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

/// A record on its way to a page. Series are arms on engines, engine by engine.
struct Page<'a> {
    record: &'a LoopRecord,
    figures: Figures<'a>,
    judged: report::Claims<'a>,
    series: Vec<(EngineName, String)>,
    names: Vec<String>,
}

impl<'a> Page<'a> {
    fn of(record: &'a LoopRecord) -> Page<'a> {
        let mut series = Vec::new();
        for engine in &record.plan.engines {
            series.extend(record.plan.arms.iter().map(|arm| (engine.clone(), arm.clone())));
        }
        let name = |(engine, arm): &(EngineName, String)| match record.plan.engines.len() {
            1 => arm.clone(),
            _ => format!("{engine} {arm}"),
        };
        let names = series.iter().map(name).collect();
        let figures = Figures::of(record);
        let judged = report::claims(record, &figures);
        Page { record, figures, judged, series, names }
    }

    fn tests(&self) -> &[Benchmark] {
        &self.record.plan.experiment.workload.tests
    }

    /// The engines, each with the number of its first series.
    fn engines(&self) -> impl Iterator<Item = (&EngineName, usize)> {
        let arms = self.record.plan.arms.len();
        self.record
            .plan
            .engines
            .iter()
            .enumerate()
            .map(move |(index, engine)| (engine, index * arms))
    }

    /// A test of a series, repeat by repeat.
    fn measured(&self, series: usize, test: Benchmark) -> Vec<Measured<'a>> {
        let (engine, arm) = &self.series[series];
        self.figures.tests(engine, arm, test)
    }

    fn spread(
        &self,
        series: usize,
        test: Benchmark,
        value: impl Fn(&Measured<'_>) -> Option<f64>,
    ) -> Option<Spread> {
        Spread::of(self.measured(series, test).iter().filter_map(value).collect())
    }

    fn kicker(&self) -> String {
        let plan = &self.record.plan;
        let mut parts = vec![format!("scale {}", plan.scale), repeats(plan.sizes.repeats)];
        let mut results = self.record.run.results();
        if let Some(result) = results.find(|result| result.cell.role == Role::Measure) {
            parts.push(parts::day(result.started_unix_s));
            parts.push(format!("{}, {} CPUs", result.machine.cpu, result.machine.cpus));
        }
        parts.join(" · ")
    }

    fn summary(&self) -> Vec<Finding> {
        let judged = &self.judged;
        let outcomes = judged.items.iter().map(|item| outcome(item.comparison.as_ref()));
        let mut findings = incomplete::findings(&self.record.run.ends());
        findings.extend(claims(
            self.record.plan.sizes.repeats,
            outcomes.zip(report::sentences(judged)).collect(),
        ));
        let note = |text: String| Finding::new(Outcome::Note, "Note", text);
        findings.extend(report::zeros(self.record, &self.figures).into_iter().map(note));
        findings
    }

    /// What cannot be said, and why.
    fn unknown(&self) -> Vec<String> {
        let foreign = self.record.run.results().map(foreign_percent).fold(0.0, f64::max);
        parts::doubts(self.record.plan.sizes.repeats, foreign, "bytes and CPU of jobs")
    }

    fn published(&self) -> Section {
        let judged = &self.judged;
        let item = |of: &report::Claimed<'_>| Published {
            group: format!("{}, {}", of.engine, of.item.test),
            name: format!("{}: {} / {}", of.item.column, of.item.arm, of.item.base),
            ratio: of.item.published,
            measured: of.comparison,
        };
        let items: Vec<Published> = judged.items.iter().map(item).collect();
        let grid = report::comparison_grid(self.record, judged);
        Section::new("Published and measured").with_all(parts::published(&items, grid))
    }

    fn throughput(&self) -> Section {
        let mut section = Section::new("Throughput over time");
        for test in self.tests() {
            for (engine, first) in self.engines() {
                let course = |(arm, name): (usize, &String)| Course {
                    name: name.clone(),
                    repeats: self.measured(first + arm, *test).iter().map(rates).collect(),
                };
                let arms = self.record.plan.arms.iter().enumerate();
                let courses: Vec<Course> = arms.map(course).collect();
                let what = format!("{}s per second", test.operation());
                let title = format!("{test} on {engine}, second by second");
                section = section.with_all(parts::over_time(&title, &what, Unit::Number, &courses));
            }
        }
        section
    }

    fn latencies(&self) -> Section {
        let mut rows = Vec::new();
        for test in self.tests() {
            for (engine, first) in self.engines() {
                for arm in 0..self.record.plan.arms.len() {
                    let median = |us: fn(&StepResult) -> f64| {
                        let spread = self.spread(first + arm, *test, |m| Some(us(m.step)));
                        spread.map(|spread| spread.median)
                    };
                    let us = [
                        median(|step| step.latency.summary.p50_us),
                        median(|step| step.latency.summary.p99_us),
                        median(|step| step.latency.summary.p999_us),
                        median(|step| step.latency.summary.max_ms * 1e3),
                    ];
                    let operation = format!("{test} on {engine}");
                    rows.push(LatencyRow { operation, series: arm, us });
                }
            }
        }
        rows.retain(|row| row.us[0].is_some());
        let plot = parts::latencies("Latencies of the clients", &self.record.plan.arms, &rows);
        Section::new("Latency by operation").with_all(plot)
    }

    fn size_and_cpu(&self) -> Section {
        let mut section = Section::new("Size against CPU");
        for test in self.tests() {
            let mib = |m: &Measured<'_>| {
                let settled = m.step.statistics_settled.live_bytes as f64;
                (settled > 0.0).then_some(settled / (1u64 << 20) as f64)
            };
            let point = |series: usize| {
                let size = self.spread(series, *test, mib)?;
                let cpu = self.spread(series, *test, |m| {
                    m.settled_cpu_us_per_operation().or(m.cpu_us_per_operation())
                })?;
                Some((series, size, cpu))
            };
            let points: Vec<_> = (0..self.series.len()).filter_map(point).collect();
            let names = ["live settled, MiB", "CPU per operation until settled, µs"];
            let title = format!("Size against CPU after {test}");
            section = section.with_all(frontier::of_series(&title, names, &self.names, &points));
        }
        section
    }

    fn amplification(&self) -> Section {
        let mut section = Section::new("Amplification");
        let Some(test) = self.tests().last() else { return section };
        for (engine, first) in self.engines() {
            let row = |arm: usize| self.amplified(first + arm, *test, arm);
            let rows: Vec<Amplification> = (0..self.record.plan.arms.len()).map(row).collect();
            let title =
                format!("Written, read and stored per byte of keys and values, {test} on {engine}");
            let corners = ["written per byte", "read per byte", "stored per byte"];
            let arms = &self.record.plan.arms;
            section = section.with_all(parts::amplification(&title, corners, arms, &rows));
        }
        section
    }

    fn amplified(&self, series: usize, test: Benchmark, arm: usize) -> Amplification {
        let median = |value: &dyn Fn(&Measured<'_>) -> Option<f64>| {
            self.spread(series, test, value).map(|spread| spread.median)
        };
        let workload = &self.record.plan.experiment.workload;
        let entry_bytes = workload.key_bytes + workload.value_bytes;
        let logical = (self.record.plan.sizes.keys * entry_bytes) as f64;
        let values = [
            median(&|m| m.written_per_byte()),
            median(&|m| {
                let read = m.step.usage.process_io.read_syscall_bytes as f64;
                (m.step.ingested_bytes > 0).then(|| read / m.step.ingested_bytes as f64)
            }),
            median(&|m| {
                let stored = m.step.statistics_settled.live_bytes as f64;
                (stored > 0.0).then_some(stored / logical)
            }),
        ];
        Amplification { series: arm, values }
    }

    fn levels(&self) -> Section {
        let grid = report::levels(self.record, &self.figures);
        if grid.rows.is_empty() {
            return Section::new("Levels and codecs");
        }
        let caption = "Levels when the clients of the last test ended: codecs as files say";
        let shape = report::shape(self.record, &self.figures);
        let lines = shape.lines().map(|line| format!("{line}.")).collect();
        Section::new("Levels and codecs").with(Table::new(caption, grid)).with(Block::List(lines))
    }

    fn jobs(&self) -> Section {
        let mut section = Section::new("Jobs");
        let columns = [
            LoopColumn::JobLevel0,
            LoopColumn::JobBase,
            LoopColumn::JobNext,
            LoopColumn::JobDeeper,
        ];
        for test in self.tests() {
            for (engine, first) in self.engines() {
                let mut times = Vec::new();
                for column in columns {
                    for arm in 0..self.record.plan.arms.len() {
                        let value = |m: &Measured<'_>| column_value(m, column);
                        let spread = self.spread(first + arm, *test, value);
                        let level = column.name().trim_start_matches("job ").to_owned();
                        times.extend(spread.map(|spread| (level, arm, spread.median)));
                    }
                }
                let title = format!("{test} on {engine}: time of a job by the level it wrote into");
                let arms = &self.record.plan.arms;
                section = section.with_all(parts::jobs(&title, arms, &times));
                let grid = report::job_grid(self.record, &self.figures, engine, *test);
                if !grid.rows.is_empty() {
                    let caption = format!("{test} on {engine}: jobs by level, all repeats");
                    section = section.with(Table::folded(caption, grid));
                }
            }
            if let Some(grid) = report::published_jobs(self.record, *test) {
                let caption = format!("{test}, as published: wall seconds per job");
                section = section.with(Table::new(caption, grid));
            }
        }
        section
    }

    fn stalls(&self) -> Section {
        let mut section = Section::new("Stalls");
        for test in self.tests() {
            let mut lines = Vec::new();
            for (series, name) in self.names.iter().enumerate() {
                for (repeat, measured) in self.measured(series, *test).into_iter().enumerate() {
                    lines.push(stall_line(format!("{name} r{repeat}"), &measured));
                }
            }
            if !lines.is_empty() {
                let caption = format!("Writers held back in {test}, by repeat");
                section = section.with(parts::stalls(&caption, &lines));
            }
        }
        section
    }

    fn tables(&self) -> Section {
        let mut section = Section::new("All figures");
        for engine in &self.record.plan.engines {
            let name = report::engine_name(&self.figures, self.record, engine);
            let grid = report::published_columns(self.record, &self.figures, engine);
            let caption = format!("{name}, medians over the repeats; GB are 2^30 bytes");
            section = section.with(Table::new(caption, grid));
            let grid = report::beside(self.record, &self.figures, engine);
            let caption = format!("{name}: beside the published columns");
            section = section.with(Table::new(caption, grid));
        }
        if self.record.plan.experiment.published.is_empty() {
            return section;
        }
        section.with(Table::new("As published", report::published(self.record)))
    }

    fn checks(&self) -> Section {
        let lines = report::checks(self.record, &self.figures);
        let points = lines.iter().map(|line| line.trim().to_owned()).collect();
        Section::new("Checks").with(Block::List(points))
    }

    fn machine(&self) -> Section {
        let facts = parts::facts(report::card(self.record));
        let section = Section::new("Machine and fairness");
        if facts.is_empty() { section } else { section.with(Block::Facts(facts)) }
    }
}

/// The rates of the seconds of a test.
fn rates(measured: &Measured<'_>) -> Vec<f64> {
    measured.step.rates()
}
