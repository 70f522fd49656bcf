//! A record made small enough for a repository: fewer samples over time, fewer digits.
//!
//! Promises: only lists named `samples` get shorter, and keep their first, their last and the
//! greatest of every figure in bytes; numbers keep [`DIGITS`] significant digits. Whether a report
//! says the same afterwards is for the caller to see, by making it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Number, Value};

/// Significant digits that stay of a number with a fraction. Reports print rates as whole numbers of
/// up to eight digits; with nine kept, two of a thousand were rounded the other way.
pub const DIGITS: usize = 12;

/// The name of lists over time.
const SAMPLES: &str = "samples";

/// Leaves `samples` (at least the first and the last) of every list over time, spread evenly, and
/// the peaks; rounds what has a fraction.
pub fn thin(record: &mut Value, samples: usize) {
    match record {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let (SAMPLES, Value::Array(list)) = (name.as_str(), &mut *value) {
                    keep(list, samples);
                }
                thin(value, samples);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| thin(value, samples)),
        Value::Number(number) => *number = rounded(number),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn keep(list: &mut Vec<Value>, samples: usize) {
    let Some(last) = list.len().checked_sub(1) else { return };
    let steps = samples.max(2) - 1;
    let mut kept: BTreeSet<usize> = (0..=steps).map(|step| step * last / steps).collect();
    kept.extend(peaks(list));
    let mut place = 0..;
    list.retain(|_| place.next().is_some_and(|index| kept.contains(&index)));
}

/// Where each figure in bytes is greatest, the first time.
fn peaks(list: &[Value]) -> Vec<usize> {
    let figures: Vec<BTreeMap<String, f64>> = list.iter().map(bytes_of).collect();
    let names = figures.first().into_iter().flatten().map(|(name, _)| name);
    let peak = |name: &String| {
        let of = |index: &usize| figures[*index].get(name).copied().unwrap_or(0.0);
        (0..list.len()).rev().max_by(|a, b| of(a).total_cmp(&of(b)))
    };
    names.filter_map(peak).collect()
}

/// The figures in bytes of a sample, by the path of their names.
fn bytes_of(sample: &Value) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    for (name, value) in sample.as_object().into_iter().flatten() {
        if let Some(bytes) = value.as_f64().filter(|_| name.ends_with("_bytes")) {
            figures.insert(name.clone(), bytes);
        }
        figures
            .extend(bytes_of(value).into_iter().map(|(of, bytes)| (format!("{name}.{of}"), bytes)));
    }
    figures
}

fn rounded(number: &Number) -> Number {
    if !number.is_f64() {
        return number.clone();
    }
    let short = number.as_f64().and_then(|value| format!("{value:.*e}", DIGITS - 1).parse().ok());
    short.and_then(Number::from_f64).unwrap_or_else(|| number.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn samples_keep_their_ends_and_peaks_and_numbers_their_first_digits() {
        let sample = |at: u64, live_bytes: u64, jobs: u64| json!({"at_s": at, "directory": {"live_bytes": live_bytes}, "jobs": jobs});
        let list: Vec<Value> =
            (0..100).map(|at| sample(at, if at == 37 || at == 38 { 900 } else { at }, 1)).collect();
        let mut record = json!({
            "cells": [{"samples": list, "per_second": [1.0, 2.0, 3.0], "ratio": 1.234_567_890_123_4}],
            "samples": "a word",
            "hash": u64::MAX,
            "small": -0.000_012_345_678_901_23,
        });
        thin(&mut record, 3);
        let at: Vec<&Value> = record["cells"][0]["samples"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|s| &s["at_s"])
            .collect();
        assert_eq!(at, [0, 37, 49, 99]);
        assert_eq!(record["cells"][0]["per_second"], json!([1.0, 2.0, 3.0]));
        assert_eq!(record["cells"][0]["ratio"], json!(1.23456789012));
        assert_eq!(record["small"], json!(-0.0000123456789012));
        assert_eq!((&record["samples"], &record["hash"]), (&json!("a word"), &json!(u64::MAX)));
    }

    #[test]
    fn short_lists_stay_as_they_are() {
        for list in [json!([]), json!([{"live_bytes": 1}]), json!([{"a": 1}, {"a": 2}])] {
            let mut record = json!({"samples": list.clone()});
            thin(&mut record, 0);
            assert_eq!(record["samples"], list);
        }
    }
}
