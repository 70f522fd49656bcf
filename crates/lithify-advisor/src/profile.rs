//! Advice that was saved: what was measured, without a row of the data. It can be priced anew anywhere.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::answer::{Advice, Course, DataFacts, Outcome, TargetAdvice, reprice};
use crate::error::{AdviseError, Result};
use crate::estimate::Estimate;
use crate::input::{Facts, KEY_SEPARATOR, OWN_KEYS, Present, Stored};
use crate::json::{COLLECTED, SCHEMA};
use crate::targets::{Basis, Setting, TARGETS, Target};
use crate::tree::Use;
use crate::unknown::unknown;
use crate::{Request, target};

/// How a profile begins.
const HEAD: &[u8] = b"{\"schema\":\"lithify-advice/";

/// Whether a file is a profile. Nothing but a file is opened: a pipe would wait for its writer.
pub fn is_profile(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let mut head = [0; HEAD.len()];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *HEAD
}

/// The key that the rows of a profile were sorted by: names of columns, none where rows came as they were.
/// `None` if the data were a database with keys of its own, which have no names.
///
/// # Errors
/// It cannot be read, or is no profile.
pub fn key(path: &Path) -> Result<Option<Vec<String>>> {
    let text = std::fs::read_to_string(path).map_err(|error| AdviseError::of_file(path, &error))?;
    let document: Value = serde_json::from_str(&text).map_err(|error| {
        AdviseError::data(format_args!("{}: no profile: {error}", path.display()))
    })?;
    let key = document["data"]["key"].as_str().unwrap_or_default();
    let names = key.split(KEY_SEPARATOR).filter(|name| !name.is_empty());
    Ok((key != OWN_KEYS).then(|| names.map(str::to_owned).collect()))
}

/// The advice of a profile at the prices and expectations of a request.
///
/// # Errors
/// It cannot be read, is of another version, or has nothing for a target that is asked for.
pub fn read(request: &Request) -> Result<Advice> {
    let path = &request.path;
    let text = std::fs::read_to_string(path).map_err(|error| AdviseError::of_file(path, &error))?;
    let wrong = |what: &str| AdviseError::data(format_args!("{}: {what}", path.display()));
    let document: Value =
        serde_json::from_str(&text).map_err(|error| wrong(&format!("no profile: {error}")))?;
    if document["schema"] != SCHEMA {
        return Err(wrong(&format!("a profile of another version; {SCHEMA} is read")));
    }
    let mut data =
        data_of(&document["data"]).ok_or_else(|| wrong("a figure of the data is missing"))?;
    if let Some(database_bytes) = request.expectations.database_bytes {
        data.basis.database_bytes = database_bytes;
    }
    // All targets are all that it has.
    let is_choice = !request.targets.is_empty() && request.targets.len() < TARGETS.len();
    let (mut targets, mut names) = (Vec::new(), Vec::new());
    for saved in document["targets"].as_array().into_iter().flatten() {
        let target = target(saved["name"].as_str().unwrap_or_default())?;
        names.push(target.name);
        let is_wanted = |wanted: &Target| wanted.name == target.name;
        if !is_choice || request.targets.iter().any(is_wanted) {
            let use_of = Use {
                target: &target,
                basis: &data.basis,
                prices: &request.prices,
                expectations: &request.expectations,
            };
            let advice = advice_of(&target, saved, &data.basis, request)
                .map(|advice| advice.beside(data.present.as_ref(), &use_of));
            let what = || wrong(&format!("a figure of {} is missing", target.title));
            targets.push(advice.ok_or_else(what)?);
        }
    }
    let is_missing = |wanted: &&Target| !names.contains(&wanted.name);
    if let Some(missing) = request.targets.iter().filter(|_| is_choice).find(is_missing) {
        let (missing, names) = (missing.name, names.join(", "));
        let what = format!("it was not measured for {missing}; it has: {names}");
        return Err(AdviseError::usage(format_args!("{}: {what}", path.display())));
    }
    let course = course_of(&document, request);
    let unknown = unknown(request, &data, &targets, &course);
    Ok(Advice {
        took: Duration::from_secs_f64(document["took_s"].as_f64().unwrap_or(0.0).clamp(0.0, 1e9)),
        data,
        targets,
        goal: request.goal.clone(),
        prices: request.prices,
        expectations: request.expectations,
        course,
        unknown,
        samples: Vec::new(),
    })
}

/// How far its run came, as far as the request asks for it.
fn course_of(document: &Value, request: &Request) -> Course {
    let saved = document["unmeasured_targets"].as_array().into_iter().flatten();
    let is_wanted = |target: &Target| {
        let wanted = &request.targets;
        wanted.is_empty() || wanted.iter().any(|wanted| wanted.name == target.name)
    };
    let missing = saved.filter_map(|name| target(name.as_str()?).ok()).filter(is_wanted);
    Course {
        is_stopped: document["is_stopped"].as_bool().unwrap_or(false),
        missing: missing.map(|target| target.name).collect(),
        is_past: true,
    }
}

fn number(object: &Value, name: &str) -> Option<f64> {
    object[name].as_f64().filter(|number| number.is_finite() && *number >= 0.0)
}

fn data_of(saved: &Value) -> Option<DataFacts> {
    let text = |name: &str| saved[name].as_str().map(str::to_owned);
    let rows = saved["rows"].as_u64();
    let bytes = saved["bytes"].as_u64()?;
    Some(DataFacts {
        path: text("path")?,
        input: Facts {
            format: text("format")?,
            data_bytes: bytes,
            files: saved["files"].as_u64()?,
            has_rows: rows.is_some(),
            has_bytes: true,
            native: &[],
            key: text("key")?,
        },
        rows: rows.unwrap_or(0),
        basis: Basis {
            key_bytes: number(saved, "key_bytes")?,
            row_bytes: number(saved, "row_bytes").unwrap_or(0.0),
            data_bytes: bytes as f64,
            has_rows: rows.is_some(),
            database_bytes: bytes as f64,
        },
        places: saved["places"].as_u64()? as usize,
        sampled_bytes: saved["sampled_bytes"].as_u64()?,
        present: present_of(&saved["present"]),
        notes: texts(&saved["notes"]),
        is_sorted: saved["is_sorted_by_key"].as_bool().unwrap_or(false),
        entropy_bits: number(saved, "entropy_bits_per_byte")?,
        incompressible: number(saved, "incompressible_share"),
        far_repeats: saved["far_repeats_share"].as_f64(),
    })
}

/// The codecs above the bottom that were set.
fn upper_of(saved: &Value) -> Option<[lithify::Compression; 2]> {
    let codec = |at: usize| saved.get(at)?.as_str()?.parse().ok();
    Some([codec(0)?, codec(1)?])
}

/// How a database had the data when they were measured.
fn present_of(saved: &Value) -> Option<Present> {
    let stored = |saved: &Value| {
        Some(Stored {
            compression: saved["codec"].as_str()?.parse().ok()?,
            block_size_bytes: saved["block_size_bytes"].as_u64()? as usize,
            has_dictionary: saved["has_dictionary"].as_bool()?,
        })
    };
    Some(Present {
        target: target(saved["target"].as_str()?).ok()?.name,
        settings: saved["settings"].as_str()?.to_owned(),
        bottom: stored(&saved["bottom"]),
        upper: upper_of(&saved["upper"]),
        is_set: saved["is_set"].as_bool()?,
        found: saved["found"].as_array()?.iter().filter_map(stored).collect(),
        stored_bytes: saved["stored_bytes"].as_u64()?,
        tables: saved["tables"].as_u64()?,
        rows_in_log: saved["rows_in_log"].as_u64()?,
    })
}

/// The texts of a list.
fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

fn advice_of(
    target: &Target,
    saved: &Value,
    basis: &Basis,
    request: &Request,
) -> Option<TargetAdvice> {
    let settings = (target.settings)();
    let of = |saved: &Value| -> Option<Outcome> {
        let name = saved["name"].as_str()?;
        // A setting that this version does not have any more is left out.
        let setting = settings.iter().find(|setting| setting.name() == name)?;
        outcome_of(setting, saved)
    };
    let all = saved["settings"].as_array()?;
    let outcomes: Vec<Outcome> = all.iter().filter_map(of).collect();
    let collected = COLLECTED.iter().find(|(_, text)| saved["order"] == *text)?.0;
    // Some that were tried have no outcome: a dictionary cannot be made of too little.
    let without = settings.len().saturating_sub(outcomes.len());
    let unmeasured = saved["unmeasured_settings"].as_u64().map_or(without, |count| count as usize);
    let (prices, expectations) = (&request.prices, &request.expectations);
    let advice = reprice(target, outcomes, unmeasured, collected, basis, prices, expectations)?;
    Some(TargetAdvice { unfit: texts(&saved["unfit_settings"]), ..advice })
}

fn outcome_of(setting: &Setting, saved: &Value) -> Option<Outcome> {
    let half_width = number(saved, "stored_share_half_width")?;
    let bottom = Estimate { value: number(saved, "bottom_stored_share")?, half_width };
    let held_out = number(saved, "held_out_predicted_share")
        .zip(number(saved, "held_out_found_share"))
        .map(|(predicted, found)| {
            let half_width = number(saved, "held_out_half_width").unwrap_or(0.0);
            [Estimate { value: predicted, half_width }, Estimate { value: found, half_width: 0.0 }]
        });
    Some(Outcome {
        setting: setting.clone(),
        upper: [setting.compression; 2],
        has_set_upper: false,
        ratio: bottom,
        bottom,
        held_out,
        encode_ns: number(saved, "encode_ns_per_byte")?,
        decode_ns: number(saved, "decode_ns_per_byte")?,
        write_ns: number(saved, "encode_ns_per_byte")?,
        unit_decode_us: number(saved, "unit_decode_us")?,
        unit_data_bytes: number(saved, "unit_data_bytes")?,
        long_calls: number(saved, "calls_over_1_ms_share")?,
        is_too_long: false,
        terms: lithify::chooser::Terms::default(),
    })
}
