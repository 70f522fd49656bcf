//! MariaDB: the packages of the system, installed so that no server of it is started.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::{EngineError, EngineResult};

use super::{Recipe, Workshop, failed};
use crate::mariadb;

/// How to get it.
pub static RECIPE: Recipe = Recipe {
    engine: "mariadb",
    title: "MariaDB",
    about: "installs the system's packages with apt-get, as root; starts no service",
    versions: &["system"],
    advice: || None,
    get,
};

/// The server, MyRocks, and the codecs of compressed pages.
const PACKAGES: [&str; 7] = [
    "mariadb-server",
    "mariadb-plugin-rocksdb",
    "mariadb-plugin-provider-bzip2",
    "mariadb-plugin-provider-lz4",
    "mariadb-plugin-provider-lzma",
    "mariadb-plugin-provider-lzo",
    "mariadb-plugin-provider-snappy",
];

/// A script that packages ask whether they may start their services, and its answer: no.
const POLICY: &str = "/usr/sbin/policy-rc.d";
const POLICY_REFUSES: &str = "#!/bin/sh\nexit 101\n";

fn install_line() -> String {
    format!("apt-get install --yes --no-install-recommends {}", PACKAGES.join(" "))
}

fn get(workshop: &Workshop<'_>) -> EngineResult<PathBuf> {
    if let Err(missing) = mariadb::available() {
        workshop.say(&missing.to_string());
        install(workshop)?;
    }
    workshop.say("trying the server");
    let trial = workshop.path().join("trial");
    let name = mariadb::try_installation(&trial, &EngineSettings::small())?;
    workshop.say(&format!("{name} works"));
    mariadb::server_program()
}

fn install(workshop: &Workshop<'_>) -> EngineResult<()> {
    let line = install_line();
    if !nix::unistd::geteuid().is_root() {
        return Err(EngineError::fatal(format!("only root may install packages: {line}")));
    }
    let _policy = Policy::refuse(Path::new(POLICY))?;
    workshop.say(&line);
    let mut words = line.split(' ');
    let mut install = Command::new(words.next().unwrap_or_default());
    install.args(words).env("DEBIAN_FRONTEND", "noninteractive");
    let missing = "apt-get is not here: install MariaDB 10.11 with MyRocks and its codecs by hand";
    workshop.run(&mut install, missing).map(|_| ())
}

/// The answer to packages while they are installed; one that is there already stays.
struct Policy<'a>(Option<&'a Path>);

impl<'a> Policy<'a> {
    fn refuse(path: &'a Path) -> EngineResult<Policy<'a>> {
        if path.exists() {
            return Ok(Policy(None));
        }
        let made = fs::write(path, POLICY_REFUSES)
            .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)));
        let policy = Policy(Some(path));
        made.map_err(|error| failed(path, error))?;
        Ok(policy)
    }
}

impl Drop for Policy<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            // One that stays keeps other packages from starting services, and can be seen.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_goes_as_it_came() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("policy");
        drop(Policy::refuse(&path).expect("is made"));
        assert!(!path.exists());
        fs::write(&path, "of somebody else").expect("is written");
        drop(Policy::refuse(&path).expect("is there"));
        assert!(path.exists());
    }
}
