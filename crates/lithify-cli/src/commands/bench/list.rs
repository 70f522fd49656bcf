//! `lithify bench list`: the experiments to choose from, one row each, or all of one experiment.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use lithify_lab::adapter::EngineName;
use lithify_lab::engines::registry;
use lithify_lab::experiment::{AnyExperiment, Source};
use lithify_report::{Block, Report, Section, Table};

use super::screen;
use crate::fault::{Fault, print};

/// `bench list`
#[derive(Debug, Args)]
#[command(after_help = "\
The table has one row for each experiment. With NAME, or with --full for all, the list has every
scale with its size, the arms, the engines, which of them are missing here, and the file.

Examples:
  lithify bench list
  lithify bench list zlib-vs-zstd
  lithify bench list E4
  lithify bench list --full")]
pub struct ListArguments {
    /// Show one experiment in full: its name, its number, or a .toml file
    name: Option<String>,
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
            Ok((experiment, place)) => entries.push(Entry::new(experiment, place)),
            Err(fault) => broken.push((name, fault)),
        }
    }
    entries.sort_by_key(|entry| {
        (entry.experiment.number().unwrap_or(u64::MAX), entry.experiment.name().to_owned())
    });
    if let Some(name) = &arguments.name {
        return one(name, &entries, broken, arguments);
    }
    let text = match screen::is_full() {
        true => entries.iter().map(|entry| screen::whole(&details(entry))).collect::<Vec<_>>(),
        false => vec![screen::whole(&table(&entries))],
    };
    print(&text.join("\n"))?;
    match broken.is_empty() {
        true => Ok(()),
        false => {
            let faults: Vec<&str> = broken.iter().map(|(_, fault)| fault.text()).collect();
            Err(Fault::usage(faults.join("; ")))
        }
    }
}

/// All of the experiment of that name or number.
fn one(
    name: &str,
    entries: &[Entry],
    broken: Vec<(String, Fault)>,
    arguments: &ListArguments,
) -> Result<(), Fault> {
    let is_named = |entry: &&Entry| {
        let experiment = &entry.experiment;
        experiment.name() == name || experiment.id().is_some_and(|id| id.eq_ignore_ascii_case(name))
    };
    if let Some(entry) = entries.iter().find(is_named) {
        return print(&screen::whole(&details(entry)));
    }
    if let Some((_, fault)) = broken.into_iter().find(|(broken, _)| broken == name) {
        return Err(fault);
    }
    let (experiment, place) = super::find(name, &arguments.experiments)?;
    print(&screen::whole(&details(&Entry::new(experiment, place))))
}

/// An experiment of the list.
struct Entry {
    experiment: AnyExperiment,
    /// The file, or that it is part of the program.
    place: String,
    engines: Engines,
}

impl Entry {
    fn new(experiment: AnyExperiment, place: String) -> Entry {
        let engines = Engines::of(&experiment);
        Entry { experiment, place, engines }
    }
}

/// The engines of an experiment, each once.
struct Engines {
    all: Vec<EngineName>,
    /// Those that are not here.
    missing: Vec<String>,
}

impl Engines {
    /// Those that its arms name; an arm that names none runs on Lithify.
    fn of(experiment: &AnyExperiment) -> Engines {
        let lithify = EngineName::lithify();
        let mut named = experiment.engines();
        if let AnyExperiment::LinkBench(experiment) = experiment
            && experiment.arms.iter().any(|arm| arm.engine.is_none())
        {
            named.push(&lithify);
        }
        let names: BTreeSet<&str> = named.into_iter().map(EngineName::name).collect();
        let all: Vec<EngineName> = names.into_iter().map(EngineName::new).collect();
        let missing = all.iter().filter(|name| registry::available(name).is_err());
        Engines { missing: missing.map(|name| name.name().to_owned()).collect(), all }
    }

    /// Whether the experiment runs here.
    fn word(&self) -> &'static str {
        match self.missing.len() {
            0 => "yes",
            count if count == self.all.len() => "no",
            _ => "part",
        }
    }
}

/// Columns of the number, of the word whether it runs here, and of the gaps.
const BESIDE_TITLE_COLUMNS: usize = 3 + 4 + 3 * 2;

/// A title on one line of so many columns.
fn fitted(title: &str, columns: usize) -> String {
    match title.chars().count() <= columns {
        true => title.to_owned(),
        false => title.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// What one chooses by.
fn table(entries: &[Entry]) -> Report {
    let columns = ["no.", "name", "here", "what it asks"];
    let mut table = Table::new("", columns).keyed_by(2);
    let names = entries.iter().map(|entry| entry.experiment.name().chars().count());
    let room = screen::width().saturating_sub(names.max().unwrap_or(0) + BESIDE_TITLE_COLUMNS);
    for entry in entries {
        let experiment = &entry.experiment;
        table.push([
            experiment.id().unwrap_or_default().into(),
            experiment.name().into(),
            entry.engines.word().into(),
            fitted(head(experiment).0, room).into(),
        ]);
    }
    let here: BTreeSet<u64> =
        entries.iter().filter_map(|entry| entry.experiment.number()).collect();
    let absent: Vec<String> = (1..=PUBLISHED)
        .filter(|number| !here.contains(number))
        .map(|number| format!("E{number}"))
        .collect();
    let absent = match absent.is_empty() {
        true => String::new(),
        false => format!("No file here for {}.\n", absent.join(", ")),
    };
    Report {
        title: format!("{} experiments. E1 to E{PUBLISHED} have published figures.", entries.len()),
        headline: Some(table),
        footer: format!(
            "{absent}part: an engine is missing here, and its arms are skipped; lithify bench setup \
             says how to get it.\n\
             lithify bench list NAME has the scales and arms of one, --full of all.\n\
             lithify bench run NAME --scale smoke is the shortest run of most."
        ),
        ..Report::default()
    }
}

/// All of one experiment.
fn details(entry: &Entry) -> Report {
    let Entry { experiment, place, engines } = entry;
    let (title, question, source) = head(experiment);
    let id = experiment.id().map_or_else(String::new, |id| format!("{id} "));
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    if let Some(Source { author, title, date, .. }) = source {
        fact("published", format!("{author}, {title}, {date}"));
    }
    for scale in scales(experiment) {
        fact(&format!("scale {}", scale.name), scale.about);
    }
    let arms = arms(experiment);
    if !arms.is_empty() {
        fact("arms", arms.join(", "));
    }
    let names: Vec<&str> = engines.all.iter().map(EngineName::name).collect();
    fact("engines", names.join(", "));
    let missing = engines.missing.join(", ");
    fact(
        "runs here",
        match engines.word() {
            "part" => format!(
                "in part: {missing} missing, their arms are skipped; lithify bench setup says how \
                 to get them"
            ),
            "no" => format!("no: {missing} missing; lithify bench setup says how to get them"),
            word => word.to_owned(),
        },
    );
    if let AnyExperiment::Command(experiment) = experiment {
        fact("by", format!("lithify {}", experiment.workload.command));
    }
    fact("from", place.clone());
    Report {
        title: format!("{id}{}: {title}", experiment.name()),
        question: question.to_owned(),
        sections: vec![Section::default().always().with(Block::Facts(facts))],
        ..Report::default()
    }
}

/// Title, question and published source.
fn head(experiment: &AnyExperiment) -> (&str, &str, Option<&Source>) {
    match experiment {
        AnyExperiment::LinkBench(of) => (&of.title, &of.question, of.source.as_ref()),
        AnyExperiment::Loops(of) => (&of.title, &of.question, of.source.as_ref()),
        AnyExperiment::Tables(of) => (&of.title, &of.question, of.source.as_ref()),
        AnyExperiment::Chunks(of) => (&of.title, &of.question, of.source.as_ref()),
        AnyExperiment::Command(of) => (&of.title, &of.question, of.source.as_ref()),
    }
}

/// A scale of an experiment.
struct ScaleEntry {
    /// How much data it has, in the unit of its kind.
    size: u64,
    name: String,
    /// Its size and its remark.
    about: String,
}

/// The scales, the smallest first.
fn scales(experiment: &AnyExperiment) -> Vec<ScaleEntry> {
    let entry = |name: &String, size: u64, unit: &str, about: &str| ScaleEntry {
        size,
        name: name.clone(),
        about: format!("{size} {unit}; {about}"),
    };
    let mut scales: Vec<ScaleEntry> = match experiment {
        AnyExperiment::LinkBench(experiment) => {
            let scales = experiment.scales.iter().map(|(name, scale)| {
                let limited = scale.memory_limit_mib.map_or_else(String::new, |limit| {
                    format!(" (limited to {limit} MiB of memory by a control group)")
                });
                entry(name, scale.nodes, "nodes", &format!("{}{limited}", scale.about))
            });
            scales.collect()
        }
        AnyExperiment::Loops(experiment) => {
            let scales = experiment.scales.iter();
            scales.map(|(name, scale)| entry(name, scale.keys, "keys", &scale.about)).collect()
        }
        AnyExperiment::Tables(experiment) => {
            let scales = experiment.scales.iter().map(|(name, scale)| {
                let rows: Vec<String> = scale
                    .rows
                    .iter()
                    .map(|(table, rows)| format!("{rows} rows of {table}"))
                    .collect();
                let size = scale.rows.values().sum();
                let about = format!("{}; {}", rows.join(", "), scale.about);
                ScaleEntry { size, name: name.clone(), about }
            });
            scales.collect()
        }
        AnyExperiment::Chunks(experiment) => {
            let scales = experiment.scales.iter();
            let unit = "KiB of text";
            scales.map(|(name, scale)| entry(name, scale.text_kib, unit, &scale.about)).collect()
        }
        AnyExperiment::Command(_) => Vec::new(),
    };
    scales.sort_by_key(|scale| scale.size);
    scales
}

/// The names of the arms.
fn arms(experiment: &AnyExperiment) -> Vec<String> {
    match experiment {
        AnyExperiment::LinkBench(of) => of.arms.iter().map(|arm| arm.name.clone()).collect(),
        AnyExperiment::Loops(of) => of.arms.iter().map(|arm| arm.name.clone()).collect(),
        AnyExperiment::Tables(of) => of.arms.iter().map(|arm| arm.name.clone()).collect(),
        AnyExperiment::Chunks(of) => of.arms().iter().map(ToString::to_string).collect(),
        AnyExperiment::Command(_) => Vec::new(),
    }
}
