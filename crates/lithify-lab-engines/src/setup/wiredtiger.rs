//! WiredTiger: built from its Python source package, and linked with the plain functions of the
//! adapter into one library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lithify_lab::adapter::{EngineError, EngineResult};
use lithify_lab::run::cell::EngineSettings;

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
    get,
};

/// What makes all that is needed there.
const PACKAGES: &str = "With Debian: apt-get install python3-pip cmake g++ make libsnappy-dev liblz4-dev zlib1g-dev \
     libzstd-dev";

/// Codecs that are built in. The library's compressors are extensions otherwise, which would have
/// to be found when a database is opened.
const CODECS: [&str; 4] = ["SNAPPY", "LZ4", "ZLIB", "ZSTD"];

/// A file that compiles where the headers are that the build needs.
const PROBE: &str = "#include <lz4.h>\n#include <snappy-c.h>\n#include <zlib.h>\n\
                     #include <zstd.h>\nint main(void) { return 0; }\n";

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
    check_tools(workshop)?;
    let source = fetch(workshop)?;
    let build = build(workshop, &source)?;
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

fn missing(what: &str) -> String {
    format!("{what} is not installed. {PACKAGES}")
}

/// Says what is missing before minutes are spent.
fn check_tools(workshop: &Workshop<'_>) -> EngineResult<()> {
    for tool in ["cmake", "make", "c++"] {
        workshop.run(Command::new(tool).arg("--version"), &missing(tool))?;
    }
    let probe = workshop.path().join("probe.c");
    fs::write(&probe, PROBE).map_err(|error| failed(&probe, error))?;
    let mut compiler = Command::new("cc");
    compiler.arg("-fsyntax-only").arg(&probe);
    workshop.run(&mut compiler, &missing("cc")).map_err(|error| {
        EngineError::fatal(format!("headers of the codecs are missing ({error}). {PACKAGES}"))
    })?;
    Ok(())
}

/// Fetches and unpacks the source; gives its directory.
fn fetch(workshop: &Workshop<'_>) -> EngineResult<PathBuf> {
    let version = workshop.version();
    workshop.say(&format!("fetching the source package wiredtiger {version} with pip"));
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--disable-pip-version-check", "--no-deps"])
        .args(["--no-binary", ":all:"])
        .arg(format!("wiredtiger=={version}"));
    workshop.run(&mut pip, &missing("python3"))?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(workshop.the_file("gz")?);
    workshop.run(&mut tar, &missing("tar"))?;
    let source = workshop.path().join(format!("wiredtiger-{version}"));
    if source.is_dir() { Ok(source) } else { Err(failed(&source, "is not in the package")) }
}

/// Builds the static library; gives the build's directory.
fn build(workshop: &Workshop<'_>, source: &Path) -> EngineResult<PathBuf> {
    let build = workshop.path().join("build");
    let mut configure = Command::new("cmake");
    configure
        .arg("-S")
        .arg(source)
        .arg("-B")
        .arg(&build)
        .args(["-G", "Unix Makefiles", "-DCMAKE_BUILD_TYPE=Release"])
        .args(["-DENABLE_STATIC=ON", "-DWITH_PIC=ON"])
        .args(WITHOUT.map(|option| format!("-D{option}=OFF")))
        .args(CODECS.map(|codec| format!("-DENABLE_{codec}=OFF")))
        .args(CODECS.map(|codec| format!("-DHAVE_BUILTIN_EXTENSION_{codec}=ON")));
    workshop.run(&mut configure, &missing("cmake"))?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    workshop.say(&format!("building it, {jobs} at a time; this takes a few minutes"));
    let mut make = Command::new("nice");
    make.args(["-n", "10", "cmake", "--build"]).arg(&build).args([
        "--target",
        "wiredtiger_static",
        "--parallel",
        &jobs.to_string(),
    ]);
    workshop.run(&mut make, &missing("nice"))?;
    Ok(build)
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
    workshop.run(&mut compiler, &missing("cc"))?;
    Ok(fresh)
}
