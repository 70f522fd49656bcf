//! Engines by name: a list of those who can open one, and the way through it.
//!
//! Owns: the list of [`Provider`]s of this process. The lab's own engines (lithify, null, model)
//! stand in it from the start; a program that links adapters of other engines adds theirs with
//! [`register`] before it does anything else, so that the lab depends on none of them.
//!
//! Promises: a name finds its provider or an error that lists the names there are; an engine that
//! is known and not there is an error that says how to get it. May be called from any thread.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use crate::adapter::allocator::Allocator;
use crate::adapter::codec::Codec;
use crate::adapter::graph::GraphEngine;
use crate::adapter::provider::{Content, Provider, Transactions};
use crate::adapter::settings::{DurabilityMode, EngineSettings};
use crate::adapter::table::TableEngine;
use crate::adapter::table::schema::Schema;
use crate::adapter::text::TextEngine;
use crate::adapter::{Capabilities, Engine, EngineError, EngineName, EngineResult, SpaceSpec};
use crate::engines::lithify::{self as lithify_engine, LithifyEngine};
use crate::engines::model::{self, ModelEngine};
use crate::engines::null::{self, NullEngine};
use crate::experiment::DeviceSpeed;

static PROVIDERS: RwLock<Vec<&'static dyn Provider>> = RwLock::new(Vec::new());

const BUILT_IN: [&dyn Provider; 7] = [
    &Lithify { name: "lithify", about: "the engine of this project", decides: None },
    &Lithify {
        name: "lithify-auto",
        about: "the same; it chooses codecs and block sizes",
        decides: Some("auto"),
    },
    &Lithify {
        name: "lithify-auto-throughput",
        about: "the same; CPU is dear",
        decides: Some("auto:throughput"),
    },
    &Lithify {
        name: "lithify-auto-endurance",
        about: "the same; writes are dear",
        decides: Some("auto:endurance"),
    },
    &Lithify {
        name: "lithify-auto-space",
        about: "the same; space and reads are dear",
        decides: Some("auto:space"),
    },
    &Null,
    &Model,
];

/// Adds an engine to those that can be opened by name. A name that is taken already stays with
/// the one who has it.
pub fn register(provider: &'static dyn Provider) {
    let mut added = PROVIDERS.write().unwrap_or_else(PoisonError::into_inner);
    if BUILT_IN.iter().chain(added.iter()).all(|known| known.name() != provider.name()) {
        added.push(provider);
    }
}

/// All who can open an engine, the lab's own first.
pub fn providers() -> Vec<&'static dyn Provider> {
    let added = PROVIDERS.read().unwrap_or_else(PoisonError::into_inner);
    BUILT_IN.into_iter().chain(added.iter().copied()).collect()
}

/// The provider of that name.
///
/// # Errors
/// There is none; the text lists those there are.
pub fn find(engine: &EngineName) -> EngineResult<&'static dyn Provider> {
    let known = providers();
    known.iter().copied().find(|provider| provider.name() == engine.name()).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|provider| provider.name()).collect();
        EngineError::fatal(format!(
            "there is no engine \"{engine}\"; there are: {}",
            names.join(", ")
        ))
    })
}

/// Says that an engine is known and can be opened here.
///
/// # Errors
/// Nobody knows it, or it is not there; how to get it.
pub fn available(engine: &EngineName) -> EngineResult<()> {
    find(engine)?.available()
}

/// The allocator of the process that measures an engine: the one that is asked for, else the one
/// that the engine needs, else what the program has.
///
/// # Errors
/// The engine needs another one than is asked for.
pub fn allocator_for(engine: &EngineName, asked: Option<Allocator>) -> EngineResult<Allocator> {
    let needed = find(engine).ok().and_then(Provider::allocator);
    match (asked, needed) {
        (Some(asked), Some(needed)) if asked != needed => Err(EngineError::fatal(format!(
            "{engine} is measured with {needed} only, not with {asked}: name no allocator, or take \
             another engine"
        ))),
        (asked, needed) => Ok(asked.or(needed).unwrap_or_default()),
    }
}

/// True when the engine keeps its data on disk; so does one that nobody here knows.
pub fn uses_disk(engine: &EngineName) -> bool {
    find(engine).map_or(true, Provider::uses_disk)
}

/// True when what was written can be read back; from one that nobody here knows, too.
pub fn stores(engine: &EngineName) -> bool {
    find(engine).map_or(true, Provider::stores)
}

/// Whether an engine is this project's, whatever it decides by itself.
pub fn is_lithify(engine: &EngineName) -> bool {
    engine.name() == "lithify" || engine.name().starts_with("lithify-")
}

/// What tables are written with in the place of the shared settings; nothing where those hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnFormat {
    /// Codecs, or what chooses them.
    pub codecs: Option<String>,
    /// Sizes of blocks, or what chooses them.
    pub blocks: Option<String>,
}

/// What an engine of this project decides by itself, or is told by options of its own.
pub fn own_format(engine: &EngineName, settings: &EngineSettings) -> OwnFormat {
    if !is_lithify(engine) {
        return OwnFormat::default();
    }
    if let Some(goal) = find(engine).ok().and_then(Provider::decides) {
        return OwnFormat { codecs: Some(goal.to_owned()), blocks: Some("auto".to_owned()) };
    }
    let codecs = settings.options.get("compression").cloned();
    let blocks = settings.options.get("block_size_bytes").map(|size| match size.as_str() {
        "0" => "auto".to_owned(),
        size => size.to_owned(),
    });
    OwnFormat { codecs, blocks }
}

/// Opens an engine on an empty directory to hold the graph of LinkBench.
///
/// # Errors
/// The engine's own, an unknown name, an engine that is not there.
pub fn open_graph(
    engine: &EngineName,
    directory: &Path,
    settings: &EngineSettings,
) -> EngineResult<Box<dyn GraphEngine>> {
    require(engine, settings, Content::Graph)?.open_graph(directory, settings)
}

/// Opens an engine on a directory with spaces of the caller's. The engine that stores nothing
/// finds nothing in them.
///
/// # Errors
/// The engine's own, an unknown name, an engine that is not there.
pub fn open_spaces(
    engine: &EngineName,
    directory: &Path,
    settings: &EngineSettings,
    spaces: &[SpaceSpec],
    transactions: Transactions,
) -> EngineResult<Box<dyn Engine>> {
    require(engine, settings, Content::Keys)?.open(directory, settings, spaces, transactions)
}

/// The provider of an engine that is there and can hold `content`.
///
/// # Errors
/// An unknown name, an engine that is not there or is not measured with such content.
pub fn available_for(engine: &EngineName, content: Content) -> EngineResult<&'static dyn Provider> {
    let provider = find(engine)?;
    provider.available()?;
    provider.can_hold(content)?;
    Ok(provider)
}

/// The provider of an engine that is there, can hold `content` and can follow `settings`, as far as
/// that can be told before it is opened.
///
/// # Errors
/// As of [`available_for`]; a codec, a durability or an option that it does not have.
pub fn require(
    engine: &EngineName,
    settings: &EngineSettings,
    content: Content,
) -> EngineResult<&'static dyn Provider> {
    let provider = available_for(engine, content)?;
    settings.expect_within(provider.name(), &provider.capabilities())?;
    provider.can_follow(settings)?;
    Ok(provider)
}

/// Opens an engine on a directory with one table.
///
/// # Errors
/// The engine's own, an unknown name, an engine that is not there.
pub fn open_table(
    engine: &EngineName,
    directory: &Path,
    settings: &EngineSettings,
    schema: &Arc<Schema>,
) -> EngineResult<Box<dyn TableEngine>> {
    require(engine, settings, Content::Table)?.open_table(directory, settings, schema)
}

/// Opens an engine on a directory with rows of text.
///
/// # Errors
/// The engine's own, an unknown name, an engine that is not there.
pub fn open_text(
    engine: &EngineName,
    directory: &Path,
    settings: &EngineSettings,
) -> EngineResult<Box<dyn TextEngine>> {
    require(engine, settings, Content::Text)?.open_text(directory, settings)
}

/// Name and version of the library behind each codec that `settings` names.
///
/// # Errors
/// A codec that the engine does not know.
pub fn codec_libraries(
    engine: &EngineName,
    settings: &EngineSettings,
) -> EngineResult<BTreeMap<String, String>> {
    let provider = find(engine)?;
    [settings.codec_small, settings.codec_middle, settings.codec_bottom]
        .iter()
        .chain(&settings.codec_level0)
        .map(|codec| Ok((codec.to_string(), provider.codec_library(*codec)?)))
        .collect()
}

/// The engine, with the codecs and the block size of the settings or with its own decision.
struct Lithify {
    name: &'static str,
    about: &'static str,
    /// The option `compression` of families that choose for themselves.
    decides: Option<&'static str>,
}

impl Lithify {
    fn options(
        &self,
        settings: &EngineSettings,
    ) -> EngineResult<(lithify::Options, lithify::CfOptions)> {
        let (options, family) = with_own_options(settings, lithify_options(settings)?)?;
        let Some(goal) = self.decides else { return Ok((options, family)) };
        let compression = goal
            .parse()
            .map_err(|error| EngineError::fatal(format!("compression {goal}: {error}")))?;
        Ok((options, lithify::CfOptions { compression, block_size_bytes: 0, ..family }))
    }
}

impl Provider for Lithify {
    fn name(&self) -> &'static str {
        self.name
    }

    fn decides(&self) -> Option<&'static str> {
        self.decides
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        lithify_engine::capabilities()
    }

    fn can_follow(&self, settings: &EngineSettings) -> EngineResult<()> {
        self.options(settings)?;
        lithify_world(settings).map(|_| ())
    }

    fn open(
        &self,
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
        _transactions: Transactions,
    ) -> EngineResult<Box<dyn Engine>> {
        let (options, family) = self.options(settings)?;
        let world = lithify_world(settings)?;
        Ok(Box::new(LithifyEngine::open_in(world, directory, spaces, options, family)?))
    }

    fn codec_library(&self, codec: Codec) -> EngineResult<String> {
        Ok(lithify::codec::library_name_and_version(codec.into()))
    }
}

struct Null;

impl Provider for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn about(&self) -> &'static str {
        "does nothing: what the driver alone costs"
    }

    fn capabilities(&self) -> Capabilities {
        null::capabilities()
    }

    fn uses_disk(&self) -> bool {
        false
    }

    fn stores(&self) -> bool {
        false
    }

    fn open(
        &self,
        _directory: &Path,
        _settings: &EngineSettings,
        _spaces: &[SpaceSpec],
        _transactions: Transactions,
    ) -> EngineResult<Box<dyn Engine>> {
        Ok(Box::new(NullEngine::new(Vec::new())))
    }

    fn open_graph(
        &self,
        _directory: &Path,
        _settings: &EngineSettings,
    ) -> EngineResult<Box<dyn GraphEngine>> {
        let engine: Box<dyn Engine> = Box::new(NullEngine::of_graph());
        Ok(Box::new(engine))
    }

    fn codec_library(&self, _codec: Codec) -> EngineResult<String> {
        Ok("none: nothing is stored".to_owned())
    }
}

struct Model;

impl Provider for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn about(&self) -> &'static str {
        "an ordered map in memory: the reference"
    }

    fn capabilities(&self) -> Capabilities {
        model::capabilities()
    }

    fn uses_disk(&self) -> bool {
        false
    }

    fn open(
        &self,
        _directory: &Path,
        _settings: &EngineSettings,
        spaces: &[SpaceSpec],
        _transactions: Transactions,
    ) -> EngineResult<Box<dyn Engine>> {
        Ok(Box::new(ModelEngine::new(spaces)))
    }

    fn codec_library(&self, _codec: Codec) -> EngineResult<String> {
        Ok("none: nothing is compressed".to_owned())
    }
}

/// The option with which Lithify slows its own files to the speed of a device.
pub(crate) const SLOW_FILES: &str = "slow-files";

/// Sets one of Lithify's own options, of the database or of all its families.
fn set_own_option(
    (options, family): (&mut lithify::Options, &mut lithify::CfOptions),
    name: &str,
    value: &str,
) -> lithify::Result<()> {
    match name {
        SLOW_FILES => Ok(()),
        _ if lithify::FAMILY_OPTIONS.iter().any(|option| option.name == name) => {
            family.set(name, value)
        }
        _ => options.set(name, value),
    }
}

/// Says whether Lithify has an option of that name that takes the value.
///
/// # Errors
/// It has none, or the value is none.
pub fn check_own_option(name: &str, value: &str) -> lithify::Result<()> {
    let (mut options, mut family) = Default::default();
    set_own_option((&mut options, &mut family), name, value)
}

/// Sets what the settings name of Lithify's own options, of the database or of all its families.
fn with_own_options(
    settings: &EngineSettings,
    (mut options, mut family): (lithify::Options, lithify::CfOptions),
) -> EngineResult<(lithify::Options, lithify::CfOptions)> {
    for (name, value) in &settings.options {
        set_own_option((&mut options, &mut family), name, value)
            .map_err(|error| EngineError::fatal(error.to_string()))?;
    }
    options
        .validate()
        .and_then(|()| family.validate())
        .map_err(|error| EngineError::fatal(error.to_string()))?;
    Ok((options, family))
}

/// The files that Lithify works on: those that are there, or slower ones.
fn lithify_world(settings: &EngineSettings) -> EngineResult<lithify::fs::World> {
    let Some(speed) = settings.options.get(SLOW_FILES) else {
        return Ok(lithify::fs::World::system());
    };
    let speed: DeviceSpeed = speed
        .parse()
        .map_err(|error| EngineError::fatal(format!("{SLOW_FILES} \"{speed}\": {error}")))?;
    let rates = speed.rates();
    Ok(rates.map_or_else(lithify::fs::World::system, crate::engines::slow_files::world))
}

/// The settings as options of Lithify. The block cache gets what the other uses leave of the one
/// memory budget; it has no size of its own.
fn lithify_options(
    settings: &EngineSettings,
) -> EngineResult<(lithify::Options, lithify::CfOptions)> {
    let level0 = settings.codec_level0.unwrap_or(settings.codec_small);
    let policy = format!(
        "{level0},{},{},{}",
        settings.codec_small, settings.codec_middle, settings.codec_bottom
    );
    let compression = policy
        .parse()
        .map_err(|error| EngineError::fatal(format!("codec policy {policy}: {error}")))?;
    let options = lithify::Options {
        memory_budget_bytes: settings.memory_budget_bytes as usize,
        memtable_bytes: settings.memtable_bytes as usize,
        background_threads: settings.background_threads as usize,
        durability: match settings.durability {
            DurabilityMode::Sync => lithify::Durability::Sync,
            DurabilityMode::Buffered => lithify::Durability::Buffered,
            DurabilityMode::None => lithify::Durability::None,
        },
        direct_reads: settings.direct_reads,
        ..lithify::Options::default()
    };
    let family = lithify::CfOptions {
        compression,
        block_size_bytes: settings.block_bytes as usize,
        table_bytes: settings.table_bytes,
        base_level_bytes_max: settings.base_level_bytes,
        fanout: settings.fanout as u32,
        ..lithify::CfOptions::default()
    };
    Ok((options, family))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Absent;

    impl Provider for Absent {
        fn name(&self) -> &'static str {
            "absent"
        }

        fn about(&self) -> &'static str {
            "never there"
        }

        fn available(&self) -> EngineResult<()> {
            Err(EngineError::fatal("absent is not here: get it somewhere"))
        }

        fn open(
            &self,
            _directory: &Path,
            _settings: &EngineSettings,
            _spaces: &[SpaceSpec],
            _transactions: Transactions,
        ) -> EngineResult<Box<dyn Engine>> {
            Err(EngineError::fatal("was asked all the same"))
        }

        fn codec_library(&self, _codec: Codec) -> EngineResult<String> {
            Ok(String::new())
        }
    }

    struct Picky;

    impl Provider for Picky {
        fn name(&self) -> &'static str {
            "picky"
        }

        fn about(&self) -> &'static str {
            "needs an allocator"
        }

        fn allocator(&self) -> Option<Allocator> {
            Some(Allocator::Jemalloc)
        }

        fn open(
            &self,
            _directory: &Path,
            _settings: &EngineSettings,
            _spaces: &[SpaceSpec],
            _transactions: Transactions,
        ) -> EngineResult<Box<dyn Engine>> {
            Err(EngineError::fatal("is never opened"))
        }

        fn codec_library(&self, _codec: Codec) -> EngineResult<String> {
            Ok(String::new())
        }
    }

    #[test]
    fn an_engine_gets_the_allocator_that_it_needs_and_no_other() {
        register(&Picky);
        let [picky, lithify] = [EngineName::new("picky"), EngineName::lithify()];
        let of = |engine, asked| allocator_for(engine, asked).map_err(|error| error.to_string());
        assert_eq!(of(&picky, None), Ok(Allocator::Jemalloc));
        assert_eq!(of(&picky, Some(Allocator::Jemalloc)), Ok(Allocator::Jemalloc));
        let error = of(&picky, Some(Allocator::System)).expect_err("is refused");
        assert!(
            error.starts_with("picky is measured with jemalloc only, not with system"),
            "{error}"
        );
        assert_eq!(of(&lithify, None), Ok(Allocator::System));
        assert_eq!(of(&lithify, Some(Allocator::Mimalloc)), Ok(Allocator::Mimalloc));
        assert_eq!(of(&EngineName::new("unknown"), None), Ok(Allocator::System));
    }

    #[test]
    fn options_of_lithify_are_set_by_name_and_others_are_refused() {
        let with = |pairs: &[(&str, &str)]| {
            let spec = crate::linkbench::sample::plan(&EngineName::lithify(), 1).cells[1].clone();
            let pair = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
            let options = pairs.iter().map(pair).collect();
            EngineSettings { options, ..spec.settings }
        };
        let settings = with(&[("space_slack_percent", "100"), ("block_size_bytes", "4k")]);
        let shared = lithify_options(&settings).expect("are settings");
        let (options, family) = with_own_options(&settings, shared).expect("are options");
        assert_eq!((options.space_slack_percent, family.block_size_bytes), (100, 4096));
        for (pair, part) in [
            (("no_such", "1"), "no option \"no_such\""),
            (("space_slack_percent", "x"), "expected a number"),
            (("space_slack_percent", "1"), "out of its range"),
            ((SLOW_FILES, "no-such-device"), "slow-files"),
        ] {
            let lithify = EngineName::lithify();
            let error = require(&lithify, &with(&[pair]), Content::Keys).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
        let own = |name: &str, pairs: &[(&str, &str)]| {
            let OwnFormat { codecs, blocks } = own_format(&EngineName::new(name), &with(pairs));
            [codecs, blocks].map(Option::unwrap_or_default)
        };
        assert_eq!(own("lithify", &[]), ["", ""]);
        assert_eq!(own("lithify-auto-space", &[]), ["auto:space", "auto"]);
        assert_eq!(own("lithify", &[("compression", "auto")]), ["auto", ""]);
        let both = [("compression", "auto"), ("block_size_bytes", "0")];
        assert_eq!(own("lithify", &both), ["auto", "auto"]);
        assert_eq!(own("null", &[("compression", "auto")]), ["", ""]);
        assert!(is_lithify(&EngineName::new("lithify-auto")) && !is_lithify(&EngineName::null()));
    }

    #[test]
    fn names_find_engines_and_errors_say_what_there_is() {
        register(&Absent);
        register(&Absent);
        let names: Vec<&str> = providers().iter().map(|provider| provider.name()).collect();
        let built_in = [
            "lithify",
            "lithify-auto",
            "lithify-auto-throughput",
            "lithify-auto-endurance",
            "lithify-auto-space",
            "null",
            "model",
        ];
        assert_eq!(names[..7], built_in);
        assert_eq!(names.iter().filter(|name| **name == "absent").count(), 1);
        let error = find(&EngineName::new("other")).map(Provider::name).expect_err("is unknown");
        let known = names.join(", ");
        let expected = format!("there is no engine \"other\"; there are: {known}");
        // Another test may add an engine meanwhile.
        assert!(error.to_string().starts_with(&expected), "{error}");
        let spec = crate::linkbench::sample::plan(&EngineName::new("absent"), 1).cells[1].clone();
        let error =
            open_graph(&spec.engine, Path::new("."), &spec.settings).err().expect("is absent");
        assert_eq!(error.to_string(), "absent is not here: get it somewhere");
        assert!(stores(&spec.engine) && uses_disk(&spec.engine));
        assert!(!stores(&EngineName::null()) && !uses_disk(&EngineName::model()));
    }
}
