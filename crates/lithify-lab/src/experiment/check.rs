//! Values that the types allow and the world does not.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::{Arm, Claim, Column, EngineSizes, Experiment, Scale, WorkloadKind};
use crate::adapter::EngineName;
use crate::statistics::verdicts::ROUNDS_MIN;

/// An impossible value under a key.
pub(super) struct Fault {
    /// Key with its tables.
    pub(super) key: String,
    /// What is wrong and what is allowed.
    pub(super) what: String,
}

pub(super) fn fault(key: impl Into<String>, what: impl Into<String>) -> Fault {
    Fault { key: key.into(), what: what.into() }
}

/// A published ratio may differ by this much from the published table it is taken from: both
/// are rounded.
const RATIO_TOLERANCE: f64 = 0.01;

/// Refuses what cannot be run.
pub(super) fn check(experiment: &Experiment) -> Result<(), Fault> {
    check_name("name", &experiment.name)?;
    check_id(experiment.id.as_deref())?;
    check_kind(experiment.workload.kind, WorkloadKind::LinkBench)?;
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
    check_arms(&experiment.arms)?;
    check_file_systems(experiment)?;
    for (index, pair) in experiment.pairs.iter().enumerate() {
        known_arm(&experiment.arms, &format!("pair[{index}].arm"), &pair.arm)?;
        known_arm(&experiment.arms, &format!("pair[{index}].base"), &pair.base)?;
    }
    check_published(experiment)?;
    check_series(experiment)?;
    check_ageing(experiment)?;
    check_drops(experiment)?;
    check_headlines(experiment)?;
    let claims = experiment.headlines.len() + experiment.drops.len();
    check_claims(claims, experiment.scales.values().map(|scale| scale.repeats))
}

/// Refuses claims that no scale can decide: a verdict rests on so many repeats.
pub(super) fn check_claims(claims: usize, repeats: impl Iterator<Item = u64>) -> Result<(), Fault> {
    let most = repeats.max().unwrap_or(0);
    if claims == 0 || most >= ROUNDS_MIN as u64 {
        return Ok(());
    }
    let what = format!(
        "{claims} claims and no scale that decides them: repeats is {most} at most; one scale needs \
         {ROUNDS_MIN}"
    );
    Err(fault("scale", what))
}

/// The largest number of a published experiment.
const ID_MAX: u64 = 14;

/// Refuses a number that no published experiment has.
pub(super) fn check_id(id: Option<&str>) -> Result<(), Fault> {
    let Some(id) = id else { return Ok(()) };
    let number = id.strip_prefix('E').and_then(|number| number.parse::<u64>().ok());
    if number.is_some_and(|number| (1..=ID_MAX).contains(&number)) {
        return Ok(());
    }
    Err(fault("id", format!("impossible number \"{id}\"; allowed: E1 to E{ID_MAX}")))
}

/// Refuses a file of the other kind.
pub(super) fn check_kind(kind: WorkloadKind, wanted: WorkloadKind) -> Result<(), Fault> {
    if kind == wanted {
        return Ok(());
    }
    Err(fault("workload.kind", "this is a file of the other kind of workload"))
}

pub(super) fn check_name(key: &str, name: &str) -> Result<(), Fault> {
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

pub(super) fn in_range(key: &str, value: u64, allowed: RangeInclusive<u64>) -> Result<(), Fault> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let (min, max) = allowed.into_inner();
    Err(fault(key, format!("{value} is out of range; allowed: {min} to {max}")))
}

fn check_scale(key: &str, scale: &Scale) -> Result<(), Fault> {
    let limits: [(&str, u64, RangeInclusive<u64>); 8] = [
        ("nodes", scale.nodes, 1_000..=10_000_000_000),
        ("loaders", scale.loaders, 1..=256),
        ("requesters", scale.requesters, 1..=256),
        ("warmup_seconds", scale.warmup_seconds, 0..=86_400),
        ("query_seconds", scale.query_seconds, 1..=864_000),
        ("calibration_seconds", scale.calibration_seconds, 1..=3_600),
        ("repeats", scale.repeats, 1..=100),
        ("disk_mib", scale.disk_mib, 0..=1 << 30),
    ];
    for (name, value, allowed) in limits {
        in_range(&format!("{key}.{name}"), value, allowed)?;
    }
    check_sizes(key, &scale.sizes())?;
    check_clients(key, scale)?;
    check_turnovers(&format!("{key}.turnovers"), &scale.turnovers)?;
    if !scale.turnovers.is_empty() && !scale.clients.is_empty() {
        return Err(fault(
            format!("{key}.turnovers"),
            "phases with several numbers of clients end by time: leave out clients or turnovers",
        ));
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
    Ok(())
}

/// Refuses a list of engines in which there is none, or one twice.
pub(super) fn check_engines(key: &str, engines: &[EngineName]) -> Result<(), Fault> {
    if engines.is_empty() {
        return Err(fault(key, "an experiment needs at least one engine"));
    }
    for (index, engine) in engines.iter().enumerate() {
        if engines[..index].contains(engine) {
            return Err(fault(format!("{key}[{index}]"), format!("{engine} twice")));
        }
    }
    Ok(())
}

/// Refuses numbers of clients that do not go up to that of the last phase.
fn check_clients(key: &str, scale: &Scale) -> Result<(), Fault> {
    for (name, counts) in [("clients", &scale.clients), ("load_clients", &scale.load_clients)] {
        check_counts(&format!("{key}.{name}"), counts)?;
    }
    match scale.clients.last() {
        Some(last) if *last != scale.requesters => Err(fault(
            format!("{key}.clients"),
            format!(
                "the last one is {last} and requesters is {}: they must agree",
                scale.requesters
            ),
        )),
        _ => Ok(()),
    }
}

/// Refuses numbers of clients that are impossible or do not ascend.
fn check_counts(key: &str, counts: &[u64]) -> Result<(), Fault> {
    for (index, count) in counts.iter().enumerate() {
        in_range(&format!("{key}[{index}]"), *count, 1..=256)?;
    }
    if counts.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    Err(fault(key, "numbers of clients must ascend"))
}

/// Refuses sizes that no engine can be opened with.
pub(super) fn check_sizes(key: &str, sizes: &EngineSizes) -> Result<(), Fault> {
    let limits: [(&str, u64, RangeInclusive<u64>); 7] = [
        ("memory_budget_mib", sizes.memory_budget_mib, 16..=1 << 24),
        ("block_cache_mib", sizes.block_cache_mib, 1..=1 << 24),
        ("memtable_kib", sizes.memtable_kib, 64..=4_194_304),
        ("table_kib", sizes.table_kib, 64..=4_194_304),
        ("base_level_mib", sizes.base_level_mib, 1..=1 << 20),
        ("fanout", sizes.fanout, 2..=100),
        ("background_threads", sizes.background_threads, 0..=64),
    ];
    for (name, value, allowed) in limits {
        in_range(&format!("{key}.{name}"), value, allowed)?;
    }
    if sizes.block_cache_mib >= sizes.memory_budget_mib {
        return Err(fault(
            format!("{key}.block_cache_mib"),
            format!(
                "{} is not less than memory_budget_mib ({}), which holds the cache",
                sizes.block_cache_mib, sizes.memory_budget_mib
            ),
        ));
    }
    Ok(())
}

pub(super) fn check_arms(arms: &[Arm]) -> Result<(), Fault> {
    if arms.is_empty() {
        return Err(fault("arm", "an experiment needs at least one arm"));
    }
    let mut names = BTreeSet::new();
    for (index, arm) in arms.iter().enumerate() {
        let key = format!("arm[{index}].name");
        check_name(&key, &arm.name)?;
        if !names.insert(arm.name.as_str()) {
            return Err(fault(key, format!("a second arm is named \"{}\"", arm.name)));
        }
    }
    Ok(())
}

/// Refuses file systems of their own on slower devices: what is held back there is the process, and
/// a file in which a file system lies is read and written by the kernel.
fn check_file_systems(experiment: &Experiment) -> Result<(), Fault> {
    for (index, arm) in experiment.arms.iter().enumerate() {
        let own = arm.device.into_iter();
        let mut devices = own.chain(experiment.scales.values().map(|scale| scale.device));
        if arm.file_system.is_some() && devices.any(|device| !device.is_fast()) {
            return Err(fault(
                format!("arm[{index}].file_system"),
                "a file system that is made for an arm lies on no slower device",
            ));
        }
    }
    Ok(())
}

/// Refuses what only arms of LinkBench can be run under.
pub(super) fn check_plain_arms(arms: &[Arm]) -> Result<(), Fault> {
    for (index, arm) in arms.iter().enumerate() {
        let conditions = [
            ("claims", arm.claims.is_some()),
            ("device", arm.device.is_some()),
            ("second_log", arm.second_log),
            ("plain_deletes", arm.plain_deletes),
            ("file_system", arm.file_system.is_some()),
            ("hardware_threads", arm.hardware_threads.is_some()),
            ("allocator", arm.allocator.is_some()),
        ];
        if let Some((name, _)) = conditions.iter().find(|(_, given)| *given) {
            return Err(fault(
                format!("arm[{index}].{name}"),
                "only arms of linkbench can be run under it",
            ));
        }
    }
    Ok(())
}

pub(super) fn known_arm(arms: &[Arm], key: &str, name: &str) -> Result<(), Fault> {
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    if names.contains(&name) {
        return Ok(());
    }
    Err(fault(key, format!("there is no arm \"{name}\"; there are: {}", names.join(", "))))
}

fn check_published(experiment: &Experiment) -> Result<(), Fault> {
    for (index, table) in experiment.published.iter().enumerate() {
        let key = format!("published[{index}]");
        if let Some(column) = table.columns.iter().find(|column| !table.phase.publishes(**column)) {
            return Err(fault(
                format!("{key}.columns"),
                format!("{column} is no column of the {} table", table.phase),
            ));
        }
        for (row_index, row) in table.rows.iter().enumerate() {
            let key = format!("{key}.rows[{row_index}]");
            known_arm(&experiment.arms, &format!("{key}.arm"), &row.arm)?;
            check_width(&key, row.values.len(), table.columns.len())?;
        }
    }
    Ok(())
}

fn check_series(experiment: &Experiment) -> Result<(), Fault> {
    for (index, series) in experiment.series.iter().enumerate() {
        let key = format!("series[{index}]");
        check_counts(&format!("{key}.clients"), &series.clients)?;
        for (row_index, row) in series.rows.iter().enumerate() {
            let key = format!("{key}.rows[{row_index}]");
            known_arm(&experiment.arms, &format!("{key}.arm"), &row.arm)?;
            check_width(&key, row.values.len(), series.clients.len())?;
        }
    }
    Ok(())
}

/// The largest turnover: a hundred writes to each loaded node.
const TURNOVER_MAX: f64 = 100.0;

/// Refuses turnovers that are none or do not ascend.
fn check_turnovers(key: &str, turnovers: &[f64]) -> Result<(), Fault> {
    for (index, turnover) in turnovers.iter().enumerate() {
        if !(*turnover > 0.0 && *turnover <= TURNOVER_MAX) {
            return Err(fault(
                format!("{key}[{index}]"),
                format!("{turnover} is out of range; allowed: above 0, at most {TURNOVER_MAX}"),
            ));
        }
    }
    if turnovers.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    Err(fault(key, "turnovers must ascend"))
}

fn check_ageing(experiment: &Experiment) -> Result<(), Fault> {
    for (index, ageing) in experiment.ageing.iter().enumerate() {
        let key = format!("ageing[{index}]");
        if !matches!(ageing.column, Column::Tps | Column::Size) {
            return Err(fault(
                format!("{key}.column"),
                format!("{} is not taken by turnover; allowed: tps, size", ageing.column),
            ));
        }
        check_turnovers(&format!("{key}.turnovers"), &ageing.turnovers)?;
        for (row_index, row) in ageing.rows.iter().enumerate() {
            let key = format!("{key}.rows[{row_index}]");
            known_arm(&experiment.arms, &format!("{key}.arm"), &row.arm)?;
            check_width(&key, row.values.len(), ageing.turnovers.len())?;
        }
    }
    Ok(())
}

fn check_drops(experiment: &Experiment) -> Result<(), Fault> {
    for (index, drop) in experiment.drops.iter().enumerate() {
        let key = format!("drop[{index}]");
        if !experiment.workload.drop_database {
            return Err(fault(key, "nothing is dropped: set workload.drop_database"));
        }
        known_arm(&experiment.arms, &format!("{key}.arm"), &drop.arm)?;
        known_arm(&experiment.arms, &format!("{key}.base"), &drop.base)?;
        check_ratio(&key, drop.published, None, None)?;
    }
    Ok(())
}

/// Refuses a row that does not fit its table.
pub(super) fn check_width(key: &str, values: usize, columns: usize) -> Result<(), Fault> {
    if values == columns {
        return Ok(());
    }
    Err(fault(format!("{key}.values"), format!("{values} values for {columns} columns")))
}

fn check_headlines(experiment: &Experiment) -> Result<(), Fault> {
    for (index, headline) in experiment.headlines.iter().enumerate() {
        let key = format!("headline[{index}]");
        known_arm(&experiment.arms, &format!("{key}.arm"), &headline.arm)?;
        known_arm(&experiment.arms, &format!("{key}.base"), &headline.base)?;
        if !headline.phase.publishes(headline.column) {
            return Err(fault(
                format!("{key}.column"),
                format!("{} is no column of the {} table", headline.column, headline.phase),
            ));
        }
        let value = |arm| experiment.headline_value(headline, arm);
        check_ratio(&key, headline.published, value(&headline.arm), value(&headline.base))?;
    }
    Ok(())
}

/// Refuses a published ratio that is none, or that is not that of the published table, where that
/// has both figures.
pub(super) fn check_ratio(
    key: &str,
    published: f64,
    arm: Option<f64>,
    base: Option<f64>,
) -> Result<(), Fault> {
    let key = format!("{key}.published");
    if !(published.is_finite() && published > 0.0) {
        return Err(fault(key, "a ratio is above 0"));
    }
    let (Some(arm), Some(base)) = (arm, base) else { return Ok(()) };
    let ratio = arm / base;
    if (published / ratio - 1.0).abs() > RATIO_TOLERANCE {
        return Err(fault(key, format!("{published} contradicts the published table: {ratio:.3}")));
    }
    Ok(())
}
