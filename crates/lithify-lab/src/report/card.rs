//! The fairness card: what the figures were taken on, and what all arms had in common.

use super::figures::figure;
use crate::adapter::settings::EngineSettings;
use crate::meter::machine::Machine;

const MIB: f64 = (1u64 << 20) as f64;

/// What the figures were taken on, where nothing limits the memory of a process.
pub(crate) fn machine_lines(machine: &Machine) -> Vec<(&'static str, String)> {
    machine_with(machine, "not limited")
}

/// The same with how the memory of processes is limited.
pub(crate) fn machine_with(machine: &Machine, limit: &str) -> Vec<(&'static str, String)> {
    vec![
        ("machine", format!("{}, {} CPUs, {}", machine.cpu, machine.cpus, machine.kernel)),
        ("memory", format!("{} MiB, {limit}", figure(machine.memory_bytes as f64 / MIB))),
        ("data on", format!("{} on {}", machine.file_system, machine.device)),
        ("built by", format!("{}, {}", machine.compiler, machine.build)),
        ("allocator", machine.allocator.clone()),
    ]
}

/// The shape of the tree that the settings ask for.
pub(crate) fn tree(settings: &EngineSettings) -> String {
    let mib = |bytes: u64| format!("{} MiB", figure(bytes as f64 / MIB));
    format!(
        "tables {}, base level at most {}, fanout {}, blocks {} KiB, {} background threads",
        mib(settings.table_bytes),
        mib(settings.base_level_bytes),
        settings.fanout,
        settings.block_bytes / 1024,
        settings.background_threads
    )
}
