//! Cassandra: its packages, fetched by Maven, and the class that starts a node, compiled by the
//! compiler that is among them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineError, EngineResult};

use super::{Recipe, Workshop, failed};
use crate::cassandra::{
    CLASSES, JARS, KEPT, MAIN_CLASS, MAIN_SOURCE, VERSION, find_java, try_installation,
};

/// How to get it.
pub static RECIPE: Recipe = Recipe {
    engine: "cassandra",
    title: "Cassandra",
    about: "fetches about 100 Java packages, 70 MB; needs Maven and Java 11 or 17 (apt-get install \
            maven openjdk-17-jre-headless)",
    versions: &[VERSION],
    advice: || None,
    get,
};

/// The words of a node need a library for logs; Cassandra's packages leave it to the user.
const LOG_PACKAGE: (&str, &str) = ("ch.qos.logback:logback-classic", "1.2.12");

/// The compiler among Cassandra's packages: it needs no development kit.
const COMPILER: &str = "org.eclipse.jdt.internal.compiler.batch.Main";

/// The oldest Java that Cassandra 5.0 runs on.
const JAVA_LEVEL: &str = "11";

const NO_MAVEN: &str =
    "Maven (mvn) is not installed; it fetches the packages. With Debian: apt-get install maven";

fn get(workshop: &Workshop<'_>) -> EngineResult<PathBuf> {
    let java = find_java()?;
    let home = workshop.path().join(KEPT);
    fetch(workshop, &home)?;
    compile(workshop, &java, &home)?;
    workshop.say("starting a node; this takes up to a minute");
    let trial = workshop.path().join("trial");
    fs::create_dir(&trial).map_err(|error| failed(&trial, error))?;
    let found = try_installation(&home, &trial, &EngineSettings::small())?;
    if found != workshop.version() {
        return Err(EngineError::fatal(format!(
            "the packages of Cassandra {} start a node of {found}",
            workshop.version()
        )));
    }
    workshop.keep(&home, KEPT)
}

/// Has Maven copy the packages, with all that they need.
fn fetch(workshop: &Workshop<'_>, home: &Path) -> EngineResult<()> {
    let version = workshop.version();
    workshop.say(&format!("fetching the packages of Cassandra {version} with Maven"));
    let project = workshop.path().join("pom.xml");
    fs::write(&project, project_of(version)).map_err(|error| failed(&project, error))?;
    let mut maven = Command::new("mvn");
    maven
        .args(["--batch-mode", "--quiet", "dependency:copy-dependencies", "-DincludeScope=runtime"])
        .arg(format!("-DoutputDirectory={}", home.join(JARS).display()));
    workshop.run(&mut maven, NO_MAVEN).map(|_| ())
}

/// A project of Maven that needs Cassandra and is nothing else.
fn project_of(version: &str) -> String {
    let (log, log_version) = LOG_PACKAGE;
    let dependency = |package: &str, version: &str| {
        let (group, name) = package.split_once(':').unwrap_or_default();
        format!(
            "    <dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>\
             <version>{version}</version></dependency>\n"
        )
    };
    format!(
        "<project>\n  <modelVersion>4.0.0</modelVersion>\n  <groupId>lithify</groupId>\n  \
         <artifactId>cassandra-node</artifactId>\n  <version>1</version>\n  <dependencies>\n{}{}  \
         </dependencies>\n</project>\n",
        dependency("org.apache.cassandra:cassandra-all", version),
        dependency(log, log_version)
    )
}

/// Compiles the class that starts a node.
fn compile(workshop: &Workshop<'_>, java: &Path, home: &Path) -> EngineResult<()> {
    workshop.say("compiling the class that starts a node");
    let source = workshop.path().join(format!("{MAIN_CLASS}.java"));
    fs::write(&source, MAIN_SOURCE).map_err(|error| failed(&source, error))?;
    let jars = home.join(JARS);
    // That one alone: another of them has classes in a package of Java's own.
    let package = jars.join(format!("cassandra-all-{}.jar", workshop.version()));
    let mut compiler = Command::new(java);
    compiler
        .args(["-cp", &format!("{}/*", jars.display()), COMPILER])
        .args(["-nowarn", "-proc:none", "-encoding", "UTF-8"])
        .args(["-source", JAVA_LEVEL, "-target", JAVA_LEVEL])
        .arg("-classpath")
        .arg(&package)
        .arg("-d")
        .arg(home.join(CLASSES))
        .arg(&source);
    workshop.run(&mut compiler, "Java is not installed").map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_names_both_packages() {
        let project = project_of("5.0.4");
        let cassandra = "<groupId>org.apache.cassandra</groupId><artifactId>cassandra-all\
                         </artifactId><version>5.0.4</version>";
        assert!(project.contains(cassandra), "{project}");
        assert!(project.contains("logback-classic</artifactId><version>1.2.12<"), "{project}");
    }
}
