//! The machine and the build that figures were taken on.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::process::keyed_number;

/// What a reader needs to know about the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Model name of the CPU.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Kernel name and release.
    pub kernel: String,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Type of the file system that holds the data.
    pub file_system: String,
    /// Block device that holds the data.
    pub device: String,
    /// Compiler that built this program.
    pub compiler: String,
    /// `release` or `debug`.
    pub build: String,
    /// Who gives this process its memory: `glibc`, or the name of a library that is loaded before
    /// it, and its place.
    #[serde(default = "unknown")]
    pub allocator: String,
}

/// What a record does not tell.
fn unknown() -> String {
    "unknown".to_owned()
}

impl Machine {
    /// Describes this machine; `directory` is where the data will be.
    pub fn describe(directory: &Path) -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mounts = read("/proc/self/mounts");
        Machine {
            cpu: cpu_model(&read("/proc/cpuinfo")),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: format!(
                "{} {}",
                read("/proc/sys/kernel/ostype").trim(),
                read("/proc/sys/kernel/osrelease").trim()
            ),
            memory_bytes: keyed_number(&read("/proc/meminfo"), "MemTotal:").unwrap_or(0) * 1024,
            file_system: fs::canonicalize(directory)
                .map(|directory| file_system_of(&mounts, &directory))
                .unwrap_or_else(|_| unknown()),
            device: super::system::Device::of(directory)
                .map_or_else(|why| why, |device| device.name),
            compiler: env!("LITHIFY_LAB_COMPILER").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            allocator: allocator_in_force(),
        }
    }
}

/// Who gives this process its memory, as [`Machine::allocator`] has it.
pub fn allocator_in_force() -> String {
    allocator(&fs::read_to_string("/proc/self/maps").unwrap_or_default())
}

/// The allocator among the libraries that are mapped into a process.
fn allocator(maps: &str) -> String {
    let mut libraries = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let known = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or_default();
        ["jemalloc", "tcmalloc", "mimalloc"]
            .into_iter()
            .find(|name| file.starts_with(&format!("lib{name}")))
    };
    let found = libraries.find_map(|path| Some((known(path)?, path)));
    let own = if cfg!(target_env = "gnu") { "glibc" } else { "the C library" };
    found.map_or_else(|| own.to_owned(), |(name, path)| format!("{name} ({path})"))
}

fn cpu_model(cpuinfo: &str) -> String {
    cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name))
        .map_or_else(unknown, |name| name.trim().to_owned())
}

/// Type of the innermost mount that holds `directory`.
fn file_system_of(mounts: &str, directory: &Path) -> String {
    mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?, words.next()?))
        })
        .filter(|(point, _)| directory.starts_with(point))
        .max_by_key(|(point, _)| point.len())
        .map_or_else(unknown, |(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn innermost_mount_wins() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/x xfs rw 0 0\n";
        assert_eq!(file_system_of(mounts, Path::new("/home")), "ext4");
        assert_eq!(file_system_of(mounts, Path::new("/tmp/y")), "tmpfs");
        assert_eq!(file_system_of(mounts, Path::new("/tmp/x/z")), "xfs");
        assert_eq!(file_system_of(mounts, Path::new("/tmpfile")), "ext4");
        assert_eq!(file_system_of("", Path::new("/")), "unknown");
    }

    #[test]
    fn a_preloaded_allocator_is_seen() {
        let maps = "7f00-7f01 r-xp 00000000 fe:00 12 /usr/lib/libc.so.6\n\
                    7f02-7f03 rw-p 00000000 00:00 0\n\
                    7f04-7f05 r-xp 00000000 fe:00 13 /usr/lib/x86_64-linux-gnu/libjemalloc.so.2\n";
        assert_eq!(allocator(maps), "jemalloc (/usr/lib/x86_64-linux-gnu/libjemalloc.so.2)");
        let own = allocator(maps.lines().next().unwrap_or_default());
        assert!(!own.is_empty() && !own.contains("jemalloc"), "{own}");
    }

    #[test]
    fn this_machine_can_be_described() {
        let machine = Machine::describe(&std::env::temp_dir());
        assert!(machine.cpus >= 1 && machine.compiler.contains("rustc"), "{machine:?}");
        assert!(!machine.allocator.is_empty(), "{machine:?}");
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: AMD EPYC\n"), "AMD EPYC");
        assert_eq!(cpu_model(""), "unknown");
    }
}
