//! WiredTiger: built from its Python source package, and linked with the plain functions of the
//! adapter into one library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineError, EngineResult};

use super::source::Needs;
use super::{Recipe, Workshop, failed};
use crate::wiredtiger::{FLAT_SOURCE, try_library};

/// How to get it.
pub static RECIPE: Recipe = Recipe {
    engine: "wiredtiger",
    title: "WiredTiger",
    about: "builds the library from the Python source package in a few minutes; needs pip, CMake, a \
            C and C++ compiler and headers of four codecs (apt-get install python3-pip cmake g++ \
            make libsnappy-dev liblz4-dev zlib1g-dev libzstd-dev)",
    versions: &["11.3.1"],
    advice: || None,
    get,
};

const NEEDS: Needs = Needs {
    headers: &["lz4.h", "snappy-c.h", "zlib.h", "zstd.h"],
    packages: "python3-pip cmake g++ make libsnappy-dev liblz4-dev zlib1g-dev libzstd-dev",
};

/// Codecs that are built in. The library's compressors are extensions otherwise, which would have
/// to be found when a database is opened.
const CODECS: [&str; 4] = ["SNAPPY", "LZ4", "ZLIB", "ZSTD"];

/// Switched off: what is not the library.
const WITHOUT: [&str; 7] = [
    "ENABLE_CPPSUITE",
    "ENABLE_MODEL",
    "ENABLE_PYTHON",
    "ENABLE_SHARED",
    "ENABLE_STRICT",
    "HAVE_DIAGNOSTIC",
    "HAVE_UNITTEST",
];

fn get(workshop: &Workshop<'_>) -> EngineResult<PathBuf> {
    NEEDS.check(workshop)?;
    let source = fetch(workshop)?;
    let options: Vec<String> = ["-DENABLE_STATIC=ON", "-DWITH_PIC=ON"]
        .map(str::to_owned)
        .into_iter()
        .chain(WITHOUT.map(|option| format!("-D{option}=OFF")))
        .chain(CODECS.map(|codec| format!("-DENABLE_{codec}=OFF")))
        .chain(CODECS.map(|codec| format!("-DHAVE_BUILTIN_EXTENSION_{codec}=ON")))
        .collect();
    let build = NEEDS.build(workshop, &source, &options, "wiredtiger_static")?;
    let fresh = link(workshop, &build)?;
    workshop.say("trying the library");
    let trial = workshop.path().join("trial");
    fs::create_dir(&trial).map_err(|error| failed(&trial, error))?;
    let (version, found) =
        (workshop.version(), try_library(&fresh, &trial, &EngineSettings::small())?);
    if found != version {
        return Err(EngineError::fatal(format!(
            "the package wiredtiger {version} holds WiredTiger {found}"
        )));
    }
    workshop.keep(&fresh, &super::library_name(RECIPE.engine))
}

/// Fetches and unpacks the source; gives its directory.
fn fetch(workshop: &Workshop<'_>) -> EngineResult<PathBuf> {
    let version = workshop.version();
    workshop.say(&format!("fetching the source package wiredtiger {version} with pip"));
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--disable-pip-version-check", "--no-deps"])
        .args(["--no-binary", ":all:"])
        .arg(format!("wiredtiger=={version}"));
    workshop.run(&mut pip, &NEEDS.missing("python3"))?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(workshop.the_file("gz")?);
    workshop.run(&mut tar, &NEEDS.missing("tar"))?;
    let source = workshop.path().join(format!("wiredtiger-{version}"));
    if source.is_dir() { Ok(source) } else { Err(failed(&source, "is not in the package")) }
}

/// Links the static library and the plain functions into the library that is loaded. Only the
/// plain functions can be found in it, so that nothing of it meets the symbols of another engine.
fn link(workshop: &Workshop<'_>, build: &Path) -> EngineResult<PathBuf> {
    let path = |name: &str| workshop.path().join(name);
    let (flat, fresh) = (path("flat.c"), path("library.so"));
    fs::write(&flat, FLAT_SOURCE).map_err(|error| failed(&flat, error))?;
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall"])
        .args(["-Wextra", "-Werror", "-shared", "-o"])
        .arg(&fresh)
        .arg("-I")
        .arg(build.join("include"))
        .arg(&flat)
        .arg(build.join("libwiredtiger.a"))
        .args(["-lsnappy", "-llz4", "-lz", "-lzstd", "-lpthread", "-ldl", "-lrt"])
        .args(["-Wl,--exclude-libs,ALL", "-Wl,-z,defs"]);
    workshop.run(&mut compiler, &NEEDS.missing("cc"))?;
    Ok(fresh)
}
