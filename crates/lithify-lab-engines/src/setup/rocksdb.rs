//! RocksDB: the shared library out of its Java package, fetched by Maven.

use std::path::PathBuf;
use std::process::Command;

use lithify_lab::adapter::{EngineError, EngineResult};
use lithify_lab::run::cell::EngineSettings;

use super::archive::extract;
use super::{Recipe, Workshop};

/// How to get it.
pub static RECIPE: Recipe = Recipe {
    engine: "rocksdb",
    title: "RocksDB",
    about: "takes the library out of the Java package; needs Maven (apt-get install maven)",
    versions: &["11.8.1", "10.4.2"],
    get,
};

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

fn get(workshop: &Workshop<'_>) -> EngineResult<PathBuf> {
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
    workshop.say("trying the library");
    let trial = workshop.path().join("trial");
    let found = crate::rocksdb::try_library(&fresh, &trial, &EngineSettings::small())?;
    if found != version {
        return Err(EngineError::fatal(format!(
            "the package {package} holds RocksDB {found}, not {version}"
        )));
    }
    workshop.keep(&fresh, &super::library_name(RECIPE.engine))
}
