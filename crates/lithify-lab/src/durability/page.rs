//! The page of what crashes take and what commits cost.

use crate::durability::report::{commits, crashes, loss, losses, promise};
use crate::durability::{
    CommitFigures, Crash, DurabilityRecord, INTERVAL_MS, Loss, LossFigures, Mode, crash_name,
};
use crate::html::parts;
use crate::html::parts::{LatencyRow, claims};
use crate::report::card::machine_lines;
use crate::report::figures::{Spread, figure};
use crate::report::tables::{Align, Grid};
use lithify_report::charts::{Bar, bars};
use lithify_report::{
    Answer, Axis, Block, Drawing, Finding, Group, Outcome, Paint, Plot, Report, Row, Rows, Section,
    Table, Unit, filled,
};

const CRASHES: [Crash; 2] = [Crash::ProcessEnd, Crash::PowerCut];

/// What the page says.
pub fn report(record: &DurabilityRecord) -> Report {
    let page = Page { record };
    let (head, caveats) = parts::head_of("durability");
    let sections =
        [page.crashes(), page.commits(), page.recovery(), page.figures(), page.machine(), caveats];
    Report {
        answer: Answer { found: page.summary(), ..Answer::default() },
        context: page.kicker(),
        sections: filled(sections),
        footer: "Rates and latencies belong to this machine and its device.".to_owned(),
        ..head
    }
}

struct Page<'a> {
    record: &'a DurabilityRecord,
}

/// One or several.
fn writers(count: u64) -> String {
    if count == 1 { "1 writer".to_owned() } else { format!("{count} writers") }
}

impl Page<'_> {
    fn kicker(&self) -> String {
        let machine = &self.record.machine;
        let mut parts = vec![self.record.engine_name.clone()];
        parts.extend(self.record.started_unix_s.map(parts::day));
        parts.push(format!("{}, {} CPUs", machine.cpu, machine.cpus));
        parts.join(" · ")
    }

    fn lost(&self, mode: Mode, crash: Crash) -> Option<&LossFigures> {
        self.record.losses.iter().find(|figures| figures.mode == mode && figures.crash == crash)
    }

    fn cost(&self, mode: Mode, writers: u64) -> Option<&CommitFigures> {
        let mut all = self.record.commits.iter();
        all.find(|figures| figures.mode == mode && figures.writers == writers)
    }

    fn summary(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let broken = self.record.violations();
        findings.extend(broken.iter().map(|what| {
            Finding::new(Outcome::Missed, "Broken", format!("A promise was broken: {what}."))
        }));
        if broken.is_empty() && !self.record.losses.is_empty() {
            let crashes: u64 = self.record.losses.iter().map(|figures| figures.crashes).sum();
            let text = format!("Every promise was kept, over {crashes} crashes.");
            findings.push(Finding::new(Outcome::Met, "Promises", text));
        }
        // Each crash is a repeat.
        let repeats = self.record.losses.iter().map(|figures| figures.crashes).min();
        findings.extend(claims(repeats.unwrap_or(0), self.claims()));
        findings.extend(self.price());
        findings
    }

    /// What was published of a log and its syncs, and what the crashes say.
    fn claims(&self) -> Vec<(Outcome, String)> {
        let told = |mode: Mode, crash: Crash| {
            let figures = self.lost(mode, crash)?;
            let (seen, done) = (&figures.visible_lost, &figures.acknowledged_lost);
            let text = format!(
                "{}, {}: of those acknowledged lost {}, of those seen {}",
                mode.name(),
                crash_name(crash),
                loss(done),
                loss(seen)
            );
            Some(([done.commits, seen.commits], text))
        };
        let mut judged = Vec::new();
        let mut judge = |claim: &str, cases: &[(Mode, Crash)], loses: bool| {
            let found: Option<Vec<_>> = cases.iter().map(|(m, c)| told(*m, *c)).collect();
            let Some(found) = found else { return };
            let held = found.iter().all(|(lost, _)| lost.iter().all(|n| (*n > 0) == loses));
            let outcome = if held { Outcome::Met } else { Outcome::Missed };
            let figures: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
            judged.push((outcome, format!("\"{claim}\": {}.", figures.join("; "))));
        };
        let [process, power] = CRASHES;
        judge(
            "without a log what was seen and what was acknowledged can be lost at any crash",
            &[(Mode::None, process), (Mode::None, power)],
            true,
        );
        judge(
            "a log without sync survives the end of the process",
            &[(Mode::Buffered, process), (Mode::Interval, process)],
            false,
        );
        judge("it does not survive a power cut", &[(Mode::Buffered, power)], true);
        judge(
            "only a sync before the answer keeps what the client was told and what others saw",
            &[(Mode::Sync, process), (Mode::Sync, power)],
            false,
        );
        judged.extend(self.lost(Mode::Interval, power).map(|figures| {
            let late = figures.oldest_lost_ms;
            let held = late <= f64::from(INTERVAL_MS);
            let outcome = if held { Outcome::Met } else { Outcome::Missed };
            let text = format!(
                "\"a sync every {INTERVAL_MS} ms loses no more than that\": the oldest lost commit \
                 was acknowledged {} ms before the cut.",
                figure(late)
            );
            (outcome, text)
        }));
        judged
    }

    /// What a sync costs a commit.
    fn price(&self) -> Option<Finding> {
        let told = |count: &u64| {
            let (sync, buffered) =
                (self.cost(Mode::Sync, *count)?, self.cost(Mode::Buffered, *count)?);
            let per_group = sync.commits as f64 / sync.groups.max(1) as f64;
            Some(format!(
                "{}: {:.0} commits per second instead of {:.0}, p99 {} instead of {} µs, {} commits \
                 a group",
                writers(*count),
                sync.rate(),
                buffered.rate(),
                figure(sync.latency.p99_us),
                figure(buffered.latency.p99_us),
                figure(per_group)
            ))
        };
        let told: Vec<String> = self.record.spec.writers.iter().filter_map(told).collect();
        (!told.is_empty()).then(|| {
            let text = format!("What a sync before the answer costs. {}.", told.join("; "));
            Finding::new(Outcome::Note, "Price", text)
        })
    }

    fn crashes(&self) -> Section {
        let section = Section::new("What crashes took");
        let mut drawn = Vec::new();
        for figures in &self.record.losses {
            let LossFigures { mode, crash, .. } = figures;
            let kinds: [(&str, &Loss, usize); 2] = [
                ("acknowledged", &figures.acknowledged_lost, 0),
                ("seen by others", &figures.visible_lost, 1),
            ];
            for (name, lost, series) in kinds {
                let per_crash = lost.commits as f64 / figures.crashes.max(1) as f64;
                drawn.extend(Spread::of(vec![per_crash]).map(|value| Bar {
                    group: format!(
                        "{}, {} ({})",
                        mode.name(),
                        crash_name(*crash),
                        promise(*mode, *crash)
                    ),
                    name: name.to_owned(),
                    series,
                    value,
                }));
            }
        }
        let about = "Commits lost per crash, on average: of those whose callers had been told that \
                     they were done, and of those that a reader had seen. In brackets what is \
                     promised.";
        let names = ["lost", "commits lost per crash"];
        let plot = bars("Commits lost by mode and crash", about, names, &drawn);
        if self.record.losses.is_empty() {
            return section;
        }
        let lost = "Commits that crashes took, in all; the oldest lost one by its age at the crash";
        let counted = "Crashes, how many lost something and how much at most, and the time to open \
                       the database after them";
        let figures = &self.record.losses;
        section
            .with_all(plot)
            .with(Table::new(lost, losses(figures)))
            .with(Table::new(counted, crashes(figures)))
    }

    fn commits(&self) -> Section {
        let section = Section::new("What commits cost");
        let counts = &self.record.spec.writers;
        let series: Vec<String> = counts.iter().map(|count| writers(*count)).collect();
        let place = |count: u64| counts.iter().position(|known| *known == count);
        let row = |figures: &CommitFigures| {
            let (series, of) = (place(figures.writers)?, &figures.latency);
            let us = [of.p50_us, of.p99_us, of.p999_us, of.max_ms * 1e3].map(Some);
            Some(LatencyRow { operation: figures.mode.name().to_owned(), series, us })
        };
        let rows: Vec<LatencyRow> = self.record.commits.iter().filter_map(row).collect();
        section.with_all(self.rates(&series, &place)).with_all(parts::latencies(
            "Time of a commit, by mode",
            &series,
            &rows,
        ))
    }

    /// Commits per second by mode and number of writers.
    fn rates(&self, series: &[String], place: &dyn Fn(u64) -> Option<usize>) -> Option<Plot> {
        let (mut groups, mut lines): (Vec<Group>, Vec<Vec<String>>) = (Vec::new(), Vec::new());
        for mode in Mode::ALL {
            let of_mode = self.record.commits.iter().filter(|figures| figures.mode == mode);
            let mut group = Group { name: mode.name().to_owned(), rows: Vec::new() };
            for figures in of_mode {
                let (count, rate) = (writers(figures.writers), figures.rate());
                lines.push(vec![mode.name().to_owned(), count.clone(), format!("{rate:.0}")]);
                group.rows.push(Row {
                    name: count.clone(),
                    paint: Paint::Series(place(figures.writers)?),
                    band: None,
                    span: None,
                    marks: vec![rate],
                    published: None,
                    note: format!("{rate:.0}"),
                    words: format!("{}, {count}\n{rate:.0} commits per second", mode.name()),
                });
            }
            groups.push(group);
        }
        groups.retain(|group| !group.rows.is_empty());
        let columns =
            [("mode", Align::Left), ("writers", Align::Left), ("commits/s", Align::Right)];
        let title = "Commits per second, by mode and number of writers";
        (!groups.is_empty() && !series.is_empty()).then(|| Plot {
            title: title.to_owned(),
            about: "Each commit is one row. The axis is logarithmic; more is better.".to_owned(),
            series: Vec::new(),
            drawing: Drawing::Rows(Rows {
                x: Axis { name: "commits per second".to_owned(), unit: Unit::Number },
                bars: false,
                reference: None,
                groups,
            }),
            table: Table::folded(title, Grid::new(&columns, lines)),
        })
    }

    fn recovery(&self) -> Section {
        let bar = |figures: &LossFigures| {
            let [middle, longest] = figures.recovery_ms;
            Some(Bar {
                group: crash_name(figures.crash).to_owned(),
                name: figures.mode.name().to_owned(),
                series: Mode::ALL.iter().position(|mode| *mode == figures.mode)?,
                value: Spread { median: middle, min: middle, max: longest, count: 2 },
            })
        };
        let drawn: Vec<Bar> = self.record.losses.iter().filter_map(bar).collect();
        let about = "The bar is the median, the line reaches to the longest.";
        let names = ["recovery", "time to open after the crash, ms"];
        Section::new("Recovery").with_all(bars("Time to open the database", about, names, &drawn))
    }

    fn figures(&self) -> Section {
        if self.record.commits.is_empty() {
            return Section::new("All figures");
        }
        let caption = "What commits cost, by mode and number of writers";
        Section::new("All figures").with(Table::new(caption, commits(&self.record.commits)))
    }

    fn machine(&self) -> Section {
        let spec = &self.record.spec;
        let mut facts = parts::facts(machine_lines(&self.record.machine));
        let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
        fact("engine", self.record.engine_name.clone());
        fact("rows", format!("9 + {} bytes, one a commit", spec.value_bytes));
        let limit = match spec.memory_limit_mib {
            Some(limit_mib) => format!(", in {limit_mib} MiB, page cache included"),
            None => String::new(),
        };
        fact(
            "processes killed",
            format!("{} in each mode, on the real file system{limit}", spec.kills),
        );
        let world = "over a file system in memory that loses what was not synced";
        fact("power cuts", format!("{} in each mode, {world}", spec.cuts));
        Section::new("Machine and fairness").with(Block::Facts(facts))
    }
}
