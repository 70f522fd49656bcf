//! Cassandra as an engine of text: a table of lines on a private node, through CQL.
//!
//! | file | owns |
//! |---|---|
//! | `protocol` | CQL's native protocol over a socket on loopback |
//! | `configuration` | settings as `cassandra.yaml` and as options of the table; what is refused |
//! | `node` | the installed Java and packages, a node of one's own, orders to it, its end |
//! | `LabNode.java` | the node's side of the orders; compiled by the setup |
//! | `table_files` | what the table's files take, and what they say of their codec |
//! | `text` | the table as an engine of text |
//!
//! Promises: no node outlives the process that started it, and none can be reached from another
//! machine. What is matched with other engines and what is not stands in
//! `docs/engines/cassandra.md`. Does not: ordered keys, tables of other shapes, graphs.

mod configuration;
mod node;
mod protocol;
mod table_files;
mod text;

use std::path::{Path, PathBuf};

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::provider::{Content, Provider, Transactions};
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::text::TextEngine;
use lithify_lab::adapter::{Capabilities, Engine, EngineError, EngineResult, SpaceSpec};

use crate::setup;

use configuration::Configuration;
use node::Installation;
use text::CassandraText;

pub use node::{CLASSES, JARS, MAIN_CLASS, MAIN_SOURCE, find_java};

/// The name of the engine, also of its setup.
const NAME: &str = "cassandra";

/// The version that is got and opened.
pub const VERSION: &str = "5.0.4";

/// In the engine's home: all that a node consists of.
pub const KEPT: &str = "node";

/// Cassandra, opened by its name.
pub struct Cassandra;

/// The one that opens it.
pub static PROVIDER: Cassandra = Cassandra;

/// The packages behind codecs; zlib is Java's own.
const CODEC_PACKAGES: [(&str, &str); 3] =
    [("lz4", "lz4-java"), ("snappy", "snappy-java"), ("zstd", "zstd-jni")];

/// Starts a node of the files in `home`, writes a row in the empty `directory`, finds it after a
/// flush, and gives the version that the node names.
///
/// # Errors
/// Java or packages that are missing, a node that does not work.
pub fn try_installation(
    home: &Path,
    directory: &Path,
    settings: &EngineSettings,
) -> EngineResult<String> {
    let installation = Installation::open(home)?;
    let text = CassandraText::open(&installation, directory, Configuration::new(settings)?)?;
    let mut session = text.session()?;
    session.insert((1, 2, b"a line"))?;
    session.finish()?;
    text.flush()?;
    text.rest()?;
    let mut line = Vec::new();
    if !session.get(1, 2, &mut line)? || line != b"a line" {
        return Err(EngineError::fatal("the node does not find what it was given"));
    }
    drop(session);
    let version = text.version().to_owned();
    Box::new(text).close()?;
    Ok(version)
}

/// The program that asks Cassandra's own parser of compression options.
const JUDGE: &str = include_str!("Judge.java");

/// What Cassandra makes of a map of compression options, such as
/// `{'class': 'ZstdCompressor', 'chunk_length_in_kb': '16'}`: the map that it would keep. No node is
/// started; `directory` is for the program.
///
/// # Errors
/// Cassandra or Java are not here, or the map is not taken.
pub fn understood(map: &str, directory: &Path) -> EngineResult<String> {
    let failed = |what: String| EngineError::fatal(format!("Cassandra: {what}"));
    let program = directory.join("Judge.java");
    std::fs::write(&program, JUDGE).map_err(|error| failed(error.to_string()))?;
    let jars = home()?.join("jars").join("*");
    let mut command = std::process::Command::new("java");
    command.arg("-cp").arg(jars).arg(&program).arg(map);
    let output = command.output().map_err(|error| failed(format!("java: {error}")))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(said(&output.stdout)),
        false => Err(failed(said(&output.stderr))),
    }
}

/// Where the files of a node are kept.
fn home() -> EngineResult<PathBuf> {
    setup::recipe(NAME)?.kept(VERSION, KEPT)
}

fn capabilities() -> Capabilities {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    Capabilities {
        ordered_scan: true,
        codecs: texts(&["none", "snappy", "lz4", "zlib", "zstd"]),
        block_size: true,
        durability: texts(&["sync", "buffered", "none"]),
        labels: texts(&[
            "text only, through CQL",
            "a Java heap beside the memory budget",
            "buffered loses the last moments when the node is killed",
        ]),
        ..Capabilities::default()
    }
}

fn text_only() -> EngineError {
    EngineError::fatal(
        "cassandra is measured on text in chunks only (lithify bench run chunk-length)",
    )
}

impl Provider for Cassandra {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "Cassandra on a private node, through CQL; text in chunks only"
    }

    fn version(&self) -> String {
        VERSION.to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn available(&self) -> EngineResult<()> {
        home()?;
        find_java().map(|_| ())
    }

    fn can_hold(&self, content: Content) -> EngineResult<()> {
        if content == Content::Text { Ok(()) } else { Err(text_only()) }
    }

    fn can_follow(&self, settings: &EngineSettings) -> EngineResult<()> {
        Configuration::new(settings).map(|_| ())
    }

    fn open(
        &self,
        _directory: &Path,
        _settings: &EngineSettings,
        _spaces: &[SpaceSpec],
        _transactions: Transactions,
    ) -> EngineResult<Box<dyn Engine>> {
        Err(text_only())
    }

    fn open_text(
        &self,
        directory: &Path,
        settings: &EngineSettings,
    ) -> EngineResult<Box<dyn TextEngine>> {
        let configuration = Configuration::new(settings)?;
        let installation = Installation::open(&home()?)?;
        let text = CassandraText::open(&installation, directory, configuration)?;
        Ok(Box::new(text))
    }

    fn codec_library(&self, codec: Codec) -> EngineResult<String> {
        if codec == Codec::NONE {
            return Ok("none".to_owned());
        }
        let package = CODEC_PACKAGES.iter().find(|(kind, _)| *kind == codec.kind());
        let Some((_, package)) = package else { return Ok("zlib of Java's Deflater".to_owned()) };
        Ok(Installation::jar(&home()?, package).unwrap_or_else(|| (*package).to_owned()))
    }
}
