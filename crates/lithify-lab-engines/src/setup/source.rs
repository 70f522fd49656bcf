//! Building a library from its source with CMake: what has to be installed for it, and the build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lithify_lab::adapter::{EngineError, EngineResult};

use super::{Workshop, failed};

/// What a build needs beside CMake, make and a compiler.
pub struct Needs {
    /// Headers of other libraries.
    pub headers: &'static [&'static str],
    /// All that has to be installed for it, as Debian names it.
    pub packages: &'static str,
}

impl Needs {
    /// What is said of a program that is missing.
    pub fn missing(&self, what: &str) -> String {
        format!("{what} is not installed. {}", self.advice())
    }

    fn advice(&self) -> String {
        format!("With Debian: apt-get install {}", self.packages)
    }

    /// Says what is missing before minutes are spent.
    ///
    /// # Errors
    /// A tool or a header is missing: how to get it.
    pub fn check(&self, workshop: &Workshop<'_>) -> EngineResult<()> {
        for tool in ["cmake", "make", "c++"] {
            workshop.run(Command::new(tool).arg("--version"), &self.missing(tool))?;
        }
        let probe = workshop.path().join("probe.c");
        let includes = self.headers.iter().map(|header| format!("#include <{header}>\n"));
        let text = format!("{}int main(void) {{ return 0; }}\n", includes.collect::<String>());
        fs::write(&probe, text).map_err(|error| failed(&probe, error))?;
        let mut compiler = Command::new("cc");
        compiler.arg("-fsyntax-only").arg(&probe);
        workshop.run(&mut compiler, &self.missing("cc")).map_err(|error| {
            EngineError::fatal(format!("headers are missing ({error}). {}", self.advice()))
        })?;
        Ok(())
    }

    /// Builds a target of `source` on all processors, behind other programs; gives the build's
    /// directory.
    ///
    /// # Errors
    /// CMake's or the compiler's first complaint; a stop.
    pub fn build(
        &self,
        workshop: &Workshop<'_>,
        source: &Path,
        options: &[String],
        target: &str,
    ) -> EngineResult<PathBuf> {
        let build = workshop.path().join("build");
        let mut configure = Command::new("cmake");
        configure
            .arg("-S")
            .arg(source)
            .arg("-B")
            .arg(&build)
            .args(["-G", "Unix Makefiles", "-DCMAKE_BUILD_TYPE=Release"])
            .args(options);
        workshop.run(&mut configure, &self.missing("cmake"))?;
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        workshop.say(&format!("building it, {jobs} at a time; this takes minutes"));
        let mut make = Command::new("nice");
        make.args(["-n", "10", "cmake", "--build"]).arg(&build).args([
            "--target",
            target,
            "--parallel",
            &jobs.to_string(),
        ]);
        workshop.run(&mut make, &self.missing("nice"))?;
        Ok(build)
    }
}
