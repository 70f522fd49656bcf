//! What is said of a subject and of a machine, in one form for all kinds of runs.
//!
//! A subject's settings are the description of its cells without what names them and what is
//! random. All have to be the same in two runs that are compared but for what tells the arms of a
//! run apart (engine, codecs, options of an engine's own).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::results::Subject;
use crate::meter::machine::Machine;

/// What tells the arms of a run apart. Two runs may differ in it, and say so.
const OF_ARM: [&str; 6] =
    ["codec_level0", "codec_small", "codec_middle", "codec_bottom", "options", "allocator"];

/// What is no setting: names and randomness.
const NO_SETTINGS: [&str; 11] = [
    "schema",
    "id",
    "purpose",
    "role",
    "arm",
    "repeat",
    "engine",
    "seed",
    "build",
    "benchmarks",
    "use_existing",
];

/// A subject with the settings in a description of its cells.
pub(crate) fn subject(name: &str, engine: &str, spec: &impl Serialize) -> Subject {
    let mut settings = BTreeMap::new();
    if let Ok(value) = serde_json::to_value(spec) {
        flatten(&value, &mut settings);
    }
    let of_arm = OF_ARM.iter().filter_map(|name| settings.remove_entry(*name)).collect();
    Subject {
        name: name.to_owned(),
        arm: String::new(),
        engine: engine.to_owned(),
        settings,
        of_arm,
    }
}

/// The settings by their names; nested ones by their own names alone, those of an engine's own as
/// one.
fn flatten(value: &Value, found: &mut BTreeMap<String, String>) {
    let Value::Object(fields) = value else { return };
    for (name, field) in fields.iter().filter(|(name, _)| !NO_SETTINGS.contains(&name.as_str())) {
        match field {
            Value::Object(options) if name == "options" => {
                let said = options.iter().map(|(name, value)| format!("{name}={value}"));
                let said: Vec<String> = said.collect();
                found.extend((!said.is_empty()).then(|| (name.clone(), said.join(", "))));
            }
            Value::Object(_) => flatten(field, found),
            Value::Null => {}
            Value::String(text) => {
                found.insert(name.clone(), text.clone());
            }
            other => {
                found.insert(name.clone(), other.to_string());
            }
        }
    }
}

pub(crate) fn machine(machine: &Machine) -> BTreeMap<String, String> {
    let facts = [
        ("machine's CPU", machine.cpu.clone()),
        ("machine's CPUs", machine.cpus.to_string()),
        ("machine's memory in MiB", (machine.memory_bytes >> 20).to_string()),
        ("kernel", machine.kernel.clone()),
        ("file system", machine.file_system.clone()),
        ("build", machine.build.clone()),
        ("allocator", machine.allocator.clone()),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
