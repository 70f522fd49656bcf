//! RocksDB: the shared library out of its Java package, fetched by Maven; or one built here for this
//! processor, from the source that a crate carries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lithify_lab::adapter::allocator::Allocator;
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineError, EngineResult};

use super::archive::extract;
use super::source::Needs;
use super::{Recipe, Workshop, failed};

/// How to get it.
pub static RECIPE: Recipe = Recipe {
    engine: "rocksdb",
    title: "RocksDB",
    about: "takes the library out of the Java package; needs Maven (apt-get install maven). \
            11.8.1-native is built for this processor instead, which takes half an hour on two; it \
            needs cargo, CMake, a C++ compiler and headers of four codecs (apt-get install cmake \
            g++ make libsnappy-dev liblz4-dev zlib1g-dev libzstd-dev)",
    versions: &["11.8.1", "10.4.2", "11.8.1-native"],
    advice,
    get,
};

/// `rocksdb-expert` runs with jemalloc, which is no part of the library.
fn advice() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let missing = Allocator::Jemalloc.require(&program).err()?;
    Some(format!("rocksdb-expert needs jemalloc beside it: {missing}"))
}

/// What follows the version of a library that is built here.
pub const NATIVE: &str = "-native";

/// What the package of newer versions lacks in its name: they hold the libraries of all systems,
/// older ones have a smaller package with one.
const CLASSIFIERS: [(&str, &str); 1] = [("10.4.2", ":jar:linux64")];

/// The library in the package, for the processor that this program was built for.
const LIBRARY: &str = if cfg!(target_arch = "aarch64") {
    "librocksdbjni-linux-aarch64.so"
} else {
    "librocksdbjni-linux64.so"
};

const NO_MAVEN: &str =
    "Maven (mvn) is not installed; it fetches the package. With Debian: apt-get install maven";

/// The crate that carries the source, and its version for each of RocksDB's.
const CRATE: &str = "librocksdb-sys";
const CRATE_VERSIONS: [(&str, &str); 1] = [("11.8.1", "0.19.0")];

const NO_CARGO: &str = "cargo is not installed; it fetches the source. See https://rustup.rs";

const NEEDS: Needs = Needs {
    headers: &["lz4.h", "snappy-c.h", "zlib.h", "zstd.h"],
    packages: "cmake g++ make libsnappy-dev liblz4-dev zlib1g-dev libzstd-dev",
};

/// `PORTABLE=0` is for the instructions of this processor. Codecs are the system's.
const SWITCHES: [&str; 14] = [
    "PORTABLE=0",
    "ROCKSDB_BUILD_SHARED=ON",
    "FAIL_ON_WARNINGS=OFF",
    "WITH_LZ4=ON",
    "WITH_SNAPPY=ON",
    "WITH_ZLIB=ON",
    "WITH_ZSTD=ON",
    "WITH_BENCHMARK_TOOLS=OFF",
    "WITH_CORE_TOOLS=OFF",
    "WITH_GFLAGS=OFF",
    "WITH_LIBURING=OFF",
    "WITH_TESTS=OFF",
    "WITH_TOOLS=OFF",
    "WITH_TRACE_TOOLS=OFF",
];

fn get(workshop: &Workshop<'_>) -> EngineResult<PathBuf> {
    let (version, fresh) = match workshop.version().strip_suffix(NATIVE) {
        Some(version) => (version, build(workshop, version)?),
        None => (workshop.version(), fetch(workshop)?),
    };
    workshop.say("trying the library");
    let trial = workshop.path().join("trial");
    let found = crate::rocksdb::try_library(&fresh, &trial, &EngineSettings::small())?;
    if found != version {
        return Err(EngineError::fatal(format!("RocksDB {found} was found, not {version}")));
    }
    workshop.keep(&fresh, &super::library_name(RECIPE.engine))
}

/// Takes the library out of the Java package.
fn fetch(workshop: &Workshop<'_>) -> EngineResult<PathBuf> {
    let version = workshop.version();
    let classifier = CLASSIFIERS.iter().find(|(known, _)| *known == version);
    let classifier = classifier.map_or("", |(_, classifier)| classifier);
    let package = format!("org.rocksdb:rocksdbjni:{version}{classifier}");
    workshop.say(&format!("fetching {package} with Maven"));
    let mut maven = Command::new("mvn");
    maven
        .args(["--batch-mode", "--quiet", "dependency:copy"])
        .arg(format!("-Dartifact={package}"))
        .arg(format!("-DoutputDirectory={}", workshop.path().display()));
    workshop.run(&mut maven, NO_MAVEN)?;
    let fresh = workshop.path().join("library.so");
    extract(&workshop.the_file("jar")?, LIBRARY, &fresh)?;
    Ok(fresh)
}

/// Builds the library of `version` for this processor.
fn build(workshop: &Workshop<'_>, version: &str) -> EngineResult<PathBuf> {
    NEEDS.check(workshop)?;
    let source = fetch_source(workshop, version)?;
    let options = SWITCHES.map(|switch| format!("-D{switch}"));
    let build = NEEDS.build(workshop, &source, &options, "rocksdb-shared")?;
    // The name without a version is a link to the library.
    let link = build.join("librocksdb.so");
    fs::canonicalize(&link).map_err(|error| failed(&link, error))
}

/// Has cargo fetch the crate; gives the directory of RocksDB's source in it.
fn fetch_source(workshop: &Workshop<'_>, version: &str) -> EngineResult<PathBuf> {
    let known = CRATE_VERSIONS.iter().find(|(known, _)| *known == version);
    let (_, of_crate) = known.ok_or_else(|| {
        EngineError::fatal(format!("no source of RocksDB {version} is known here"))
    })?;
    workshop.say(&format!("fetching the source in {CRATE} {of_crate} with cargo"));
    let write = |name: &str, text: &str| {
        let path = workshop.path().join(name);
        fs::write(&path, text).map_err(|error| failed(&path, error))
    };
    write("Cargo.toml", &manifest(of_crate))?;
    write("empty.rs", "")?;
    let mut cargo = Command::new("cargo");
    cargo.args(["vendor", "--quiet", "vendor"]);
    workshop.run(&mut cargo, NO_CARGO)?;
    let source = workshop.path().join(Path::new("vendor").join(CRATE).join("rocksdb"));
    if source.is_dir() { Ok(source) } else { Err(failed(&source, "is not in the crate")) }
}

/// A package that depends on the crate alone, in a workspace of its own.
fn manifest(of_crate: &str) -> String {
    format!(
        "[package]\nname = \"rocksdb-source\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
         [lib]\npath = \"empty.rs\"\n\n[dependencies]\n{CRATE} = \"={of_crate}\"\n\n\
         [workspace]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_native_version_has_a_source() {
        let native = RECIPE.versions.iter().filter_map(|version| version.strip_suffix(NATIVE));
        let known: Vec<&str> = CRATE_VERSIONS.iter().map(|(version, _)| *version).collect();
        assert_eq!(native.collect::<Vec<_>>(), known);
        assert!(manifest("1.2.3").contains("librocksdb-sys = \"=1.2.3\"\n"));
    }
}
