//! Values that the types allow and the world does not.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::{Claim, Experiment, Scale};

/// An impossible value under a key.
pub(super) struct Fault {
    /// Key with its tables.
    pub(super) key: String,
    /// What is wrong and what is allowed.
    pub(super) what: String,
}

fn fault(key: impl Into<String>, what: impl Into<String>) -> Fault {
    Fault { key: key.into(), what: what.into() }
}

/// A published ratio may differ by this much from the published table it is taken from: both
/// are rounded.
const RATIO_TOLERANCE: f64 = 0.01;

/// Refuses what cannot be run.
pub(super) fn check(experiment: &Experiment) -> Result<(), Fault> {
    check_name("name", &experiment.name)?;
    // TOML integers are signed, and repeats are added to the seed.
    in_range("workload.seed", experiment.workload.seed, 0..=i64::MAX as u64 / 2)?;
    for (index, percent) in experiment.workload.open_loop_percent.iter().enumerate() {
        in_range(&format!("workload.open_loop_percent[{index}]"), *percent, 1..=200)?;
    }
    in_range("engine.block_kib", experiment.engine.block_kib, 1..=1024)?;
    if experiment.scales.is_empty() {
        return Err(fault("scale", "an experiment needs at least one scale"));
    }
    for (name, scale) in &experiment.scales {
        check_name(&format!("scale.{name}"), name)?;
        check_scale(&format!("scale.{name}"), scale)?;
    }
    check_arms(experiment)?;
    check_published(experiment)?;
    check_headlines(experiment)
}

fn check_name(key: &str, name: &str) -> Result<(), Fault> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > 40 || !name.bytes().all(allowed) {
        return Err(fault(
            key,
            format!(
                "impossible name \"{name}\"; allowed: 1 to 40 lower-case letters, digits, dashes"
            ),
        ));
    }
    Ok(())
}

fn in_range(key: &str, value: u64, allowed: RangeInclusive<u64>) -> Result<(), Fault> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let (min, max) = allowed.into_inner();
    Err(fault(key, format!("{value} is out of range; allowed: {min} to {max}")))
}

fn check_scale(key: &str, scale: &Scale) -> Result<(), Fault> {
    let limits: [(&str, u64, RangeInclusive<u64>); 15] = [
        ("nodes", scale.nodes, 1_000..=10_000_000_000),
        ("loaders", scale.loaders, 1..=256),
        ("requesters", scale.requesters, 1..=256),
        ("warmup_seconds", scale.warmup_seconds, 0..=86_400),
        ("query_seconds", scale.query_seconds, 1..=864_000),
        ("calibration_seconds", scale.calibration_seconds, 1..=3_600),
        ("repeats", scale.repeats, 1..=100),
        ("memory_budget_mib", scale.memory_budget_mib, 16..=1 << 24),
        ("block_cache_mib", scale.block_cache_mib, 1..=1 << 24),
        ("memtable_kib", scale.memtable_kib, 64..=4_194_304),
        ("table_kib", scale.table_kib, 64..=4_194_304),
        ("base_level_mib", scale.base_level_mib, 1..=1 << 20),
        ("fanout", scale.fanout, 2..=100),
        ("background_threads", scale.background_threads, 0..=64),
        ("disk_mib", scale.disk_mib, 0..=1 << 30),
    ];
    for (name, value, allowed) in limits {
        in_range(&format!("{key}.{name}"), value, allowed)?;
    }
    if let Some(limit) = scale.memory_limit_mib
        && limit < scale.memory_budget_mib
    {
        return Err(fault(
            format!("{key}.memory_limit_mib"),
            format!(
                "{limit} is less than memory_budget_mib ({}), which the engine will use",
                scale.memory_budget_mib
            ),
        ));
    }
    if scale.claims == Some(Claim::IoBound) && scale.memory_limit_mib.is_none() {
        return Err(fault(
            format!("{key}.claims"),
            "io-bound needs memory_limit_mib: without it the page cache holds the database",
        ));
    }
    if scale.block_cache_mib >= scale.memory_budget_mib {
        return Err(fault(
            format!("{key}.block_cache_mib"),
            format!(
                "{} is not less than memory_budget_mib ({}), which holds the cache",
                scale.block_cache_mib, scale.memory_budget_mib
            ),
        ));
    }
    Ok(())
}

fn check_arms(experiment: &Experiment) -> Result<(), Fault> {
    if experiment.arms.is_empty() {
        return Err(fault("arm", "an experiment needs at least one arm"));
    }
    let mut names = BTreeSet::new();
    for (index, arm) in experiment.arms.iter().enumerate() {
        let key = format!("arm[{index}].name");
        check_name(&key, &arm.name)?;
        if !names.insert(arm.name.as_str()) {
            return Err(fault(key, format!("a second arm is named \"{}\"", arm.name)));
        }
    }
    for (index, pair) in experiment.pairs.iter().enumerate() {
        known_arm(experiment, &format!("pair[{index}].arm"), &pair.arm)?;
        known_arm(experiment, &format!("pair[{index}].base"), &pair.base)?;
    }
    Ok(())
}

fn known_arm(experiment: &Experiment, key: &str, name: &str) -> Result<(), Fault> {
    if experiment.arm(name).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = experiment.arms.iter().map(|arm| arm.name.as_str()).collect();
    Err(fault(key, format!("there is no arm \"{name}\"; there are: {}", names.join(", "))))
}

fn check_published(experiment: &Experiment) -> Result<(), Fault> {
    for (index, table) in experiment.published.iter().enumerate() {
        let key = format!("published[{index}]");
        if let Some(column) =
            table.columns.iter().find(|column| !table.phase.columns().contains(column))
        {
            return Err(fault(
                format!("{key}.columns"),
                format!("{column} is no column of the {} table", table.phase),
            ));
        }
        for (row_index, row) in table.rows.iter().enumerate() {
            let key = format!("{key}.rows[{row_index}]");
            known_arm(experiment, &format!("{key}.arm"), &row.arm)?;
            if row.values.len() != table.columns.len() {
                return Err(fault(
                    format!("{key}.values"),
                    format!("{} values for {} columns", row.values.len(), table.columns.len()),
                ));
            }
        }
    }
    Ok(())
}

fn check_headlines(experiment: &Experiment) -> Result<(), Fault> {
    for (index, headline) in experiment.headlines.iter().enumerate() {
        let key = format!("headline[{index}]");
        known_arm(experiment, &format!("{key}.arm"), &headline.arm)?;
        known_arm(experiment, &format!("{key}.base"), &headline.base)?;
        if !headline.phase.columns().contains(&headline.column) {
            return Err(fault(
                format!("{key}.column"),
                format!("{} is no column of the {} table", headline.column, headline.phase),
            ));
        }
        if !(headline.published.is_finite() && headline.published > 0.0) {
            return Err(fault(format!("{key}.published"), "a ratio is above 0"));
        }
        let value = |arm| experiment.published_value(headline.phase, headline.column, arm);
        let (Some(arm), Some(base)) = (value(&headline.arm), value(&headline.base)) else {
            continue;
        };
        let ratio = arm / base;
        if (headline.published / ratio - 1.0).abs() > RATIO_TOLERANCE {
            return Err(fault(
                format!("{key}.published"),
                format!("{} contradicts the published table: {ratio:.3}", headline.published),
            ));
        }
    }
    Ok(())
}
