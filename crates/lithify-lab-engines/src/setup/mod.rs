//! Getting other engines, and where they are kept.
//!
//! Owns: a directory outside of any build tree (`LITHIFY_ENGINES`, else
//! `$XDG_CACHE_HOME/lithify/engines`, else `~/.cache/lithify/engines`), the list of [`RECIPES`],
//! one for each engine that can be got, and the [`Workshop`] in which a recipe works: a directory
//! of its own, programs that are run with their words kept, and the way out of it.
//!
//! Promises: what has its name in the directory was loaded and tried; it gets the name as the last
//! step. A setup that fails or is stopped takes its work with it, and ends what it has started.
//!
//! May be called from any thread; one setup of an engine's version at a time.

mod archive;
mod cassandra;
mod mariadb;
mod rocksdb;
mod source;
mod wiredtiger;
mod workshop;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use lithify_lab::adapter::{EngineError, EngineResult};

pub use rocksdb::NATIVE;
pub use workshop::Workshop;

/// How to get one engine.
pub struct Recipe {
    /// The engine, as the setup is told it; also the name of its library.
    pub engine: &'static str,
    /// What it is called in sentences.
    pub title: &'static str,
    /// What is done and what it needs, in one line.
    pub about: &'static str,
    /// The versions that can be had; the first one unless another is asked for.
    pub versions: &'static [&'static str],
    /// What else to get, and why, when it is missing; nothing when it is there.
    pub advice: fn() -> Option<String>,
    /// Gets and tries it; gives where it is.
    pub get: fn(&Workshop<'_>) -> EngineResult<PathBuf>,
}

/// All that can be got.
pub static RECIPES: [&Recipe; 4] =
    [&rocksdb::RECIPE, &wiredtiger::RECIPE, &mariadb::RECIPE, &cassandra::RECIPE];

/// The recipe of that name.
///
/// # Errors
/// There is none; the text lists those there are.
pub fn recipe(engine: &str) -> EngineResult<&'static Recipe> {
    RECIPES.iter().copied().find(|recipe| recipe.engine == engine).ok_or_else(|| {
        let known: Vec<&str> = RECIPES.iter().map(|recipe| recipe.engine).collect();
        EngineError::fatal(format!(
            "no setup is known for \"{engine}\"; there are: {}",
            known.join(", ")
        ))
    })
}

impl Recipe {
    /// The version that is got when none is named.
    pub fn default_version(&self) -> &'static str {
        self.versions.first().copied().unwrap_or_default()
    }

    /// The version of that name.
    ///
    /// # Errors
    /// It is none of the recipe's.
    pub fn known(&self, version: &str) -> EngineResult<&'static str> {
        self.versions.iter().copied().find(|known| *known == version).ok_or_else(|| {
            EngineError::fatal(format!(
                "version {version} of {} is not known here; there are: {}",
                self.title,
                self.versions.join(", ")
            ))
        })
    }

    /// Gets `version` into `directory` and tries it; gives where it is. `say` is told every step in
    /// one line; `interrupt` stops it.
    ///
    /// # Errors
    /// A version that is not known, a program or package that is missing, an engine that does not
    /// work, a stop.
    pub fn follow(
        &self,
        directory: &Path,
        version: &str,
        interrupt: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> EngineResult<PathBuf> {
        let version = self.known(version)?;
        let home = home_in(directory, self.engine, version);
        Workshop::open(home, version, interrupt, say)?.follow(self.get)
    }

    /// The library of a version that was got.
    ///
    /// # Errors
    /// It is not there: one line that says how to get it.
    pub fn library(&self, version: &str) -> EngineResult<PathBuf> {
        self.kept(version, &library_name(self.engine))
    }

    /// What a version that was got is kept under, file or directory.
    ///
    /// # Errors
    /// It is not there: one line that says how to get it.
    pub fn kept(&self, version: &str, name: &str) -> EngineResult<PathBuf> {
        let path = home_in(&directory()?, self.engine, version).join(name);
        if path.exists() {
            return Ok(path);
        }
        let option = if version == self.default_version() {
            String::new()
        } else {
            format!(" --version {version}")
        };
        let Recipe { engine, title, .. } = self;
        Err(EngineError::fatal(format!(
            "{title} {version} is not here; get it with: lithify bench setup {engine}{option}"
        )))
    }
}

/// Where engines are kept.
///
/// # Errors
/// Neither of the variables is set that lead there.
pub fn directory() -> EngineResult<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(directory) = variable("LITHIFY_ENGINES") {
        return Ok(directory.into());
    }
    let cache = variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".cache")));
    cache.map(|cache| cache.join("lithify").join("engines")).ok_or_else(|| {
        EngineError::fatal("set LITHIFY_ENGINES to a directory for the libraries of engines")
    })
}

/// Where a version of an engine is kept below `directory`.
fn home_in(directory: &Path, engine: &str, version: &str) -> PathBuf {
    directory.join(format!("{engine}-{version}"))
}

/// The name of an engine's library in its home.
fn library_name(engine: &str) -> String {
    format!("lib{engine}.so")
}

fn failed(path: &Path, error: impl std::fmt::Display) -> EngineError {
    EngineError::fatal(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_engine_or_version_names_the_known_ones() {
        let error = recipe("other").map(|recipe| recipe.engine).expect_err("is unknown");
        assert!(
            error.to_string().starts_with("no setup is known for \"other\"; there are: rocksdb")
        );
        let directory = tempfile::tempdir().expect("a directory");
        let recipe = recipe("rocksdb").expect("is known");
        let interrupt = AtomicBool::new(false);
        let error = recipe.follow(directory.path(), "1.0", &interrupt, &|_| ());
        assert_eq!(
            error.expect_err("is unknown").to_string(),
            "version 1.0 of RocksDB is not known here; there are: 11.8.1, 10.4.2, 11.8.1-native"
        );
        assert_eq!(std::fs::read_dir(directory.path()).expect("is there").count(), 0);
    }

    #[test]
    fn recipes_are_complete() {
        for recipe in RECIPES {
            assert!(!recipe.versions.is_empty(), "{}", recipe.engine);
            assert!(!recipe.about.contains('\n') && !recipe.about.is_empty(), "{}", recipe.engine);
        }
    }
}
