//! The page of an experiment over text in chunks.

use crate::adapter::EngineName;
use crate::adapter::codec::Codec;
use crate::chunks::figures::{ArmFigures, of_engine};
use crate::chunks::plan::ChunkPlan;
use crate::chunks::report;
use crate::chunks::spec::ChunkOutcome;
use crate::html::caveats::caveats;
use crate::html::parts;
use crate::html::parts::claims;
use crate::kind::incomplete;
use crate::report::figures::{Spread, figure};
use crate::report::repeats;
use crate::run::cells::Run;
use lithify_report::charts::frontier::{self, Cost};
use lithify_report::charts::heat;
use lithify_report::{Answer, Block, Finding, Outcome, Report, Section, Table, filled};

/// A figure of an arm.
type Figure = fn(&ArmFigures) -> Option<f64>;

/// What the matrices show: name and figure.
const MATRICES: [(&str, Figure); 6] = [
    ("Stored bytes per byte of text", |of| Some(of.stored_share)),
    ("Text flushed, MB/s", |of| Some(of.flush_mb_per_s)),
    ("Scan with empty caches, ms", |of| Some(of.cold_ms.mean)),
    ("Scan with warm caches, ms", |of| Some(of.warm_ms.mean)),
    ("Longest call of the codec, ms", |of| Some(of.longest_call_ms)),
    ("Longest unit of work on the caller's thread, ms (0: below 1)", |of| of.longest_unit_ms),
];

/// What the page says.
pub fn report(run: &Run<ChunkPlan>) -> Report {
    let plan = &run.plan;
    let engines = plan.engines.iter().map(|engine| (engine, of_engine(run, engine))).collect();
    let page = Page { run, engines };
    let experiment = &plan.experiment;
    let sections = [
        page.size_and_cpu(),
        page.matrices(),
        page.figures(),
        page.checks(),
        page.machine(),
        caveats(&experiment.caveats),
    ];
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
    run: &'a Run<ChunkPlan>,
    engines: Vec<(&'a EngineName, Vec<ArmFigures>)>,
}

impl Page<'_> {
    /// The results of an engine that count.
    fn outcomes(&self, engine: &EngineName) -> impl Iterator<Item = &ChunkOutcome> {
        self.run.entries.results().filter(move |outcome| outcome.cell.engine == *engine)
    }

    fn kicker(&self) -> String {
        let plan = &self.run.plan;
        let mut parts = vec![format!("scale {}", plan.scale), repeats(plan.sizes.repeats)];
        if let Some(outcome) = self.run.entries.results().next() {
            parts.push(parts::day(outcome.started_unix_s));
            parts.push(format!("{}, {} CPUs", outcome.machine.cpu, outcome.machine.cpus));
        }
        parts.join(" · ")
    }

    fn summary(&self) -> Vec<Finding> {
        let mut judged = Vec::new();
        for (engine, figures) in &self.engines {
            for (verdict, text) in report::findings(self.run, engine, figures) {
                judged.push((parts::verdict(verdict), format!("{engine}: {text}.")));
            }
        }
        let ends = incomplete::ends(&self.run.entries.cells);
        let ends = incomplete::with_planned(ends, &self.run.plan.cells);
        let mut findings = incomplete::findings(&ends);
        findings.extend(claims(self.run.plan.sizes.repeats, judged));
        findings.extend(self.engines.iter().filter_map(|(engine, _)| self.best(engine)));
        findings.extend(self.run.plan.skipped.iter().map(|line| {
            Finding::new(Outcome::Note, "Left out", format!("{}.", line.trim_end_matches('.')))
        }));
        findings
    }

    /// What cannot be said, and why.
    fn unknown(&self) -> Vec<String> {
        let foreign = report::foreign_percent(self.run);
        parts::doubts(self.run.plan.sizes.repeats, foreign, "sizes")
    }

    /// The arms of an engine that nothing else beats in both size and CPU.
    fn best(&self, engine: &EngineName) -> Option<Finding> {
        let costs = self.costs(engine);
        let beaten = |one: &Cost| {
            costs.iter().any(|other| {
                let [size, cpu] = [
                    other.size.median.total_cmp(&one.size.median),
                    other.cpu.median.total_cmp(&one.cpu.median),
                ];
                size.is_le() && cpu.is_le() && (size.is_lt() || cpu.is_lt())
            })
        };
        let mut best: Vec<&Cost> = costs.iter().filter(|cost| !beaten(cost)).collect();
        best.sort_by(|a, b| a.size.median.total_cmp(&b.size.median));
        let (smallest, cheapest) = (best.first()?, best.last()?);
        let told = |cost: &Cost| {
            let (size, cpu) = (figure(100.0 * cost.size.median), figure(cost.cpu.median));
            format!("{} ({size} % of the text, {cpu} ms CPU per MB)", cost.label)
        };
        let names: Vec<&str> = best.iter().map(|cost| cost.label.as_str()).collect();
        let text = format!(
            "{engine}: the smallest is {}, the cheapest of the frontier {}. Of {} arms nothing \
             beats: {}.",
            told(smallest),
            told(cheapest),
            costs.len(),
            names.join(", ")
        );
        Some(Finding::new(Outcome::Note, "Frontier", text))
    }

    /// The codecs that were measured, as series of plots.
    fn codecs(&self) -> Vec<Codec> {
        let is_measured =
            |codec: &&Codec| self.run.entries.results().any(|o| o.cell.codec == **codec);
        self.run.plan.experiment.workload.codecs.iter().filter(is_measured).copied().collect()
    }

    /// What the arms of an engine cost: size, and CPU of a flush.
    fn costs(&self, engine: &EngineName) -> Vec<Cost> {
        let mut costs = Vec::new();
        for (series, codec) in self.codecs().into_iter().enumerate() {
            for chunk_kib in &self.run.plan.experiment.workload.chunks_kib {
                let is = |outcome: &&ChunkOutcome| {
                    outcome.cell.codec == codec && outcome.cell.chunk_kib == *chunk_kib
                };
                let of = |value: fn(&ChunkOutcome) -> f64| {
                    Spread::of(self.outcomes(engine).filter(is).map(value).collect())
                };
                let size =
                    of(|outcome| outcome.stored_bytes() as f64 / outcome.text_bytes.max(1) as f64);
                let cpu = of(flush_cpu_ms_per_mb);
                if let Some((size, cpu)) = size.zip(cpu) {
                    costs.push(Cost { series, label: format!("{codec}-{chunk_kib}k"), size, cpu });
                }
            }
        }
        costs
    }

    fn size_and_cpu(&self) -> Section {
        let mut section = Section::new("Size against CPU");
        let series: Vec<String> = self.codecs().iter().map(Codec::to_string).collect();
        for engine in &self.run.plan.engines {
            let title = format!("Codecs and chunks on {}", report::engine_name(self.run, engine));
            let names = ["stored bytes per byte of text", "CPU of a flush, ms per MB of text"];
            let costs = self.costs(engine);
            section = section.with_all(frontier::of_arms(&title, names, &series, &costs, true));
        }
        section
    }

    fn matrices(&self) -> Section {
        let mut section = Section::new("Codec by chunk");
        let measured = self.codecs();
        let codecs: Vec<String> = measured.iter().map(Codec::to_string).collect();
        let chunks_kib = &self.run.plan.experiment.workload.chunks_kib;
        let chunks: Vec<String> = chunks_kib.iter().map(|kib| format!("{kib} KiB")).collect();
        for (engine, figures) in self.engines.iter().filter(|(_, figures)| !figures.is_empty()) {
            section = section.with(Block::Heading(report::engine_name(self.run, engine)));
            for (name, of) in MATRICES {
                let value = |row: usize, column: usize| {
                    let is = |arm: &&ArmFigures| {
                        arm.arm.codec == measured[row] && arm.arm.chunk_kib == chunks_kib[column]
                    };
                    figures.iter().find(is).and_then(of)
                };
                let caption = format!("{name}: the larger, the deeper the shade");
                section = section.with_all(heat(&caption, "codec", [&codecs, &chunks], value));
            }
        }
        section
    }

    fn figures(&self) -> Section {
        let table = |(engine, figures): &(&EngineName, Vec<ArmFigures>)| {
            let grid = report::arms(self.run, figures);
            (!grid.rows.is_empty()).then(|| Table::new(report::heading(self.run, engine), grid))
        };
        Section::new("All figures").with_all(self.engines.iter().filter_map(table))
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
        let measured = self.run.plan.engines.iter().filter_map(|name| self.outcomes(name).next());
        let engines: Vec<_> = measured.map(|o| (o.engine_name.as_str(), &o.capabilities)).collect();
        let libraries = self.run.entries.results().map(|outcome| outcome.codec_library.as_str());
        section
            .with(Block::Facts(facts))
            .with(parts::libraries(libraries))
            .with(parts::abilities(&engines))
    }
}

/// CPU of the process for flushing a megabyte (10^6 bytes) of text, milliseconds.
fn flush_cpu_ms_per_mb(outcome: &ChunkOutcome) -> f64 {
    let flushed_mb = outcome.text_bytes as f64 / 1e6 * outcome.flush_ms.len() as f64;
    outcome.flush_usage.process_cpu.total_us() as f64 / 1e3 / flushed_mb.max(1e-9)
}
