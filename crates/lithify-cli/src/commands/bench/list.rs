//! `lithify bench list`: the experiments with their scales and arms, and whether they run here.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use lithify_lab::adapter::EngineName;
use lithify_lab::engines::registry;
use lithify_lab::experiment::{
    AnyExperiment, Arm, ChunkExperiment, Experiment, LoopExperiment, Source, TableExperiment,
};

use crate::fault::{Fault, print};

/// `bench list`
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Directory of experiment files
    #[arg(long, value_name = "DIR", default_value = super::EXPERIMENTS,
        value_parser = super::parse_experiments)]
    experiments: PathBuf,
}

/// The published experiments: those of the five posts, and the sweep over devices.
const PUBLISHED: u64 = 13;

/// Lists files of the directory and what is part of the program; a file goes before. Published
/// experiments come first, by their numbers. A file that cannot be read hides no other.
pub fn run(arguments: &ListArguments) -> Result<(), Fault> {
    let (mut entries, mut broken) = (Vec::new(), Vec::new());
    for name in super::names(&arguments.experiments) {
        match super::find(&name, &arguments.experiments) {
            Ok((experiment, place)) => {
                let number = experiment.number().unwrap_or(u64::MAX);
                entries.push((number, name, described(&experiment), place));
            }
            Err(fault) => broken.push(fault.text().to_owned()),
        }
    }
    entries.sort();
    let mut text = String::new();
    for (_, _, entry, place) in &entries {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{entry}    from: {place}");
    }
    let here: BTreeSet<u64> = entries.iter().map(|(number, ..)| *number).collect();
    let missing: Vec<String> = (1..=PUBLISHED)
        .filter(|number| !here.contains(number))
        .map(|number| format!("E{number}"))
        .collect();
    if !missing.is_empty() {
        let _ = writeln!(text, "no file here for: {}", missing.join(", "));
    }
    print(&text)?;
    match broken.is_empty() {
        true => Ok(()),
        false => Err(Fault::usage(broken.join("; "))),
    }
}

/// One experiment of the list.
fn described(experiment: &AnyExperiment) -> String {
    let mut text = String::new();
    match experiment {
        AnyExperiment::LinkBench(experiment) => describe(&mut text, experiment),
        AnyExperiment::Loops(experiment) => describe_loops(&mut text, experiment),
        AnyExperiment::Tables(experiment) => describe_tables(&mut text, experiment),
        AnyExperiment::Chunks(experiment) => describe_chunks(&mut text, experiment),
        AnyExperiment::Command(experiment) => {
            let head = Head {
                id: experiment.id.as_deref(),
                name: &experiment.name,
                title: &experiment.title,
            };
            head.write(&mut text, &experiment.question, experiment.source.as_ref());
            let _ = writeln!(text, "    by: lithify {}", experiment.workload.command);
            runs_here(&mut text, experiment.workload.engines.iter());
        }
    }
    text
}

/// What the first line of an experiment says.
struct Head<'a> {
    id: Option<&'a str>,
    name: &'a str,
    title: &'a str,
}

impl Head<'_> {
    fn write(&self, text: &mut String, question: &str, source: Option<&Source>) {
        let id = self.id.map_or_else(String::new, |id| format!("{id} "));
        let _ = writeln!(text, "{id}{}  {}", self.name, self.title);
        let _ = writeln!(text, "    {question}");
        if let Some(source) = source {
            let (author, title, date) = (&source.author, &source.title, &source.date);
            let _ = writeln!(text, "    published: {author}, {title}, {date}");
        }
    }
}

/// Whether all engines are here, or which are not.
fn runs_here<'a>(text: &mut String, engines: impl Iterator<Item = &'a EngineName>) {
    let engines: BTreeSet<&str> = engines.map(EngineName::name).collect();
    let missing: Vec<&str> = engines
        .iter()
        .copied()
        .filter(|name| registry::available(&EngineName::new(*name)).is_err())
        .collect();
    let verdict = match missing.len() {
        0 => "yes".to_owned(),
        count if count == engines.len() => format!("no: {} missing", missing.join(", ")),
        _ => format!("in part: {} missing, their arms are skipped", missing.join(", ")),
    };
    let _ = writeln!(text, "    runs here: {verdict}");
}

fn arms(text: &mut String, arms: &[Arm]) {
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    let _ = writeln!(text, "    arms: {}", names.join(", "));
}

fn describe_loops(text: &mut String, experiment: &LoopExperiment) {
    let head =
        Head { id: experiment.id.as_deref(), name: &experiment.name, title: &experiment.title };
    head.write(text, &experiment.question, experiment.source.as_ref());
    for (name, scale) in &experiment.scales {
        let _ = writeln!(text, "    scale {name}: {} keys; {}", scale.keys, scale.about);
    }
    arms(text, &experiment.arms);
    on(text, &experiment.workload.engines);
}

fn describe_tables(text: &mut String, experiment: &TableExperiment) {
    let head =
        Head { id: experiment.id.as_deref(), name: &experiment.name, title: &experiment.title };
    head.write(text, &experiment.question, experiment.source.as_ref());
    for (name, scale) in &experiment.scales {
        let rows: Vec<String> =
            scale.rows.iter().map(|(table, rows)| format!("{rows} rows of {table}")).collect();
        let _ = writeln!(text, "    scale {name}: {}; {}", rows.join(", "), scale.about);
    }
    let arms: Vec<&str> = experiment.arms.iter().map(|arm| arm.name.as_str()).collect();
    let _ = writeln!(text, "    arms: {}", arms.join(", "));
    on(text, &experiment.workload.engines);
}

fn describe_chunks(text: &mut String, experiment: &ChunkExperiment) {
    let head =
        Head { id: experiment.id.as_deref(), name: &experiment.name, title: &experiment.title };
    head.write(text, &experiment.question, experiment.source.as_ref());
    for (name, scale) in &experiment.scales {
        let _ = writeln!(text, "    scale {name}: {} KiB of text; {}", scale.text_kib, scale.about);
    }
    let arms: Vec<String> = experiment.arms().iter().map(ToString::to_string).collect();
    let _ = writeln!(text, "    arms: {}", arms.join(", "));
    on(text, &experiment.workload.engines);
}

/// The engines that all arms run on, and whether they are here.
fn on(text: &mut String, engines: &[EngineName]) {
    let names: Vec<&str> = engines.iter().map(EngineName::name).collect();
    let _ = writeln!(text, "    on: {}", names.join(", "));
    runs_here(text, engines.iter());
}

fn describe(text: &mut String, experiment: &Experiment) {
    let head =
        Head { id: experiment.id.as_deref(), name: &experiment.name, title: &experiment.title };
    head.write(text, &experiment.question, experiment.source.as_ref());
    for (name, scale) in &experiment.scales {
        let limited = match scale.memory_limit_mib {
            Some(limit) => format!(" (held to {limit} MiB of memory by a control group)"),
            None => String::new(),
        };
        let _ = writeln!(text, "    scale {name}: {} nodes; {}{limited}", scale.nodes, scale.about);
    }
    arms(text, &experiment.arms);
    let lithify = EngineName::lithify();
    let engines = experiment.arms.iter().map(|arm| arm.engine.as_ref().unwrap_or(&lithify));
    runs_here(text, engines);
}
