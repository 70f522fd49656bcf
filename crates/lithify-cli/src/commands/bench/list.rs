//! `lithify bench list`: the experiments with their scales and arms.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use lithify_lab::adapter::EngineName;
use lithify_lab::experiment::{
    AnyExperiment, Arm, BUILT_IN, ChunkExperiment, Experiment, LoopExperiment, Source,
    TableExperiment,
};

use crate::fault::{Fault, print};

/// `bench list`
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Directory of experiment files
    #[arg(long, value_name = "DIR", default_value = "experiments")]
    experiments: PathBuf,
}

/// Lists files of the directory and what is part of the program; a file goes before.
pub fn run(arguments: &ListArguments) -> Result<(), Fault> {
    let mut names: BTreeMap<String, ()> =
        BUILT_IN.iter().map(|(name, _)| ((*name).to_owned(), ())).collect();
    if let Ok(entries) = std::fs::read_dir(&arguments.experiments) {
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "toml")
                && let Some(name) = path.file_stem()
            {
                names.insert(name.to_string_lossy().into_owned(), ());
            }
        }
    }
    let mut text = String::new();
    for name in names.keys() {
        let (experiment, place) = super::find(name, &arguments.experiments)?;
        // Writing to a String cannot fail.
        match experiment {
            AnyExperiment::LinkBench(experiment) => describe(&mut text, &experiment),
            AnyExperiment::Loops(experiment) => describe_loops(&mut text, &experiment),
            AnyExperiment::Tables(experiment) => describe_tables(&mut text, &experiment),
            AnyExperiment::Chunks(experiment) => describe_chunks(&mut text, &experiment),
        }
        let _ = writeln!(text, "    from: {place}");
    }
    print(&text)
}

fn head(text: &mut String, [name, title, question]: [&str; 3], source: Option<&Source>) {
    let _ = writeln!(text, "{name}  {title}");
    let _ = writeln!(text, "    {question}");
    if let Some(source) = source {
        let (author, title, date) = (&source.author, &source.title, &source.date);
        let _ = writeln!(text, "    published: {author}, {title}, {date}");
    }
}

fn arms(text: &mut String, arms: &[Arm]) {
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    let _ = writeln!(text, "    arms: {}", names.join(", "));
}

fn describe_loops(text: &mut String, experiment: &LoopExperiment) {
    let names = [&*experiment.name, &*experiment.title, &*experiment.question];
    head(text, names, experiment.source.as_ref());
    for (name, scale) in &experiment.scales {
        let _ = writeln!(text, "    scale {name}: {} keys; {}", scale.keys, scale.about);
    }
    arms(text, &experiment.arms);
    on(text, &experiment.workload.engines);
}

fn describe_tables(text: &mut String, experiment: &TableExperiment) {
    let names = [&*experiment.name, &*experiment.title, &*experiment.question];
    head(text, names, experiment.source.as_ref());
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
    let names = [&*experiment.name, &*experiment.title, &*experiment.question];
    head(text, names, experiment.source.as_ref());
    for (name, scale) in &experiment.scales {
        let _ = writeln!(text, "    scale {name}: {} KiB of text; {}", scale.text_kib, scale.about);
    }
    let arms: Vec<String> = experiment.arms().iter().map(ToString::to_string).collect();
    let _ = writeln!(text, "    arms: {}", arms.join(", "));
    on(text, &experiment.workload.engines);
}

fn on(text: &mut String, engines: &[EngineName]) {
    let engines: Vec<&str> = engines.iter().map(EngineName::name).collect();
    let _ = writeln!(text, "    on: {}", engines.join(", "));
}

fn describe(text: &mut String, experiment: &Experiment) {
    let names = [&*experiment.name, &*experiment.title, &*experiment.question];
    head(text, names, experiment.source.as_ref());
    for (name, scale) in &experiment.scales {
        let limited = match scale.memory_limit_mib {
            Some(limit) => format!(" (held to {limit} MiB of memory by a control group)"),
            None => String::new(),
        };
        let _ = writeln!(text, "    scale {name}: {} nodes; {}{limited}", scale.nodes, scale.about);
    }
    arms(text, &experiment.arms);
}
