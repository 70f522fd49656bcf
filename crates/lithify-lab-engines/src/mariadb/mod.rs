//! MariaDB's storage engines, through SQL on a private server.
//!
//! | file | owns |
//! |---|---|
//! | `wire` | packets over a local socket, and the fields in them |
//! | `connection` | statements, prepared statements, rows, errors |
//! | `server` | the installed programs, a server of one's own, its end |
//! | `options` | settings as arguments and table options; what is refused |
//! | `engine` | a server as an engine: figures, background work |
//! | `statistics` | counters and texts of the server |
//! | `tally` | what the server was asked for, to hold its counters against |
//! | `graph`, `rows` | LinkBench's graph in tables |
//! | `keys` | ordered keys in tables |
//! | `tables` | tables of an experiment as they are |
//! | `neighbour` | a client beside, for when the graph is dropped |
//!
//! Promises: no server outlives the process that started it, and none listens on a network. What is
//! matched with other engines and what is not stands in `docs/engines/mariadb.md`.

mod connection;
mod engine;
mod graph;
mod keys;
mod neighbour;
mod options;
mod rows;
mod server;
mod statistics;
mod tables;
mod tally;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::graph::GraphEngine;
use lithify_lab::adapter::provider::{Provider, Transactions};
use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::table::TableEngine;
use lithify_lab::adapter::table::schema::Schema;
use lithify_lab::adapter::{Capabilities, Engine, EngineResult, SpaceSpec};
use lithify_lab::engines::external_lock::ExternalLock;

use engine::MariaEngine;
use graph::MariaGraph;
use options::{Kind, Setup};
use server::{Installation, Server};
use tables::MariaTable;

/// What a private server in `directory` makes of options: the rows of `query`, after `statements`.
///
/// # Errors
/// No server is installed, it does not start with the options, or refuses a statement.
pub fn understood(
    directory: &Path,
    options: &[String],
    statements: &[String],
    query: &str,
) -> EngineResult<Vec<Vec<String>>> {
    on_private_server(directory, options, statements, |server, _| server.connect()?.query(query))?
}

/// What `asked` gets from the socket of a private server in `directory`, after `statements`.
///
/// # Errors
/// As for [`understood`].
pub fn beside_private_server<T>(
    directory: &Path,
    statements: &[String],
    asked: impl FnOnce(&Path) -> T,
) -> EngineResult<T> {
    on_private_server(directory, &[], statements, |_, socket| asked(socket))
}

fn on_private_server<T>(
    directory: &Path,
    options: &[String],
    statements: &[String],
    asked: impl FnOnce(&Server, &Path) -> T,
) -> EngineResult<T> {
    let server = Server::start(&Installation::find()?, directory, &[], options)?;
    let prepared = || {
        let mut connection = server.connect()?;
        statements.iter().try_for_each(|statement| connection.run(statement).map(|_| ()))
    };
    let socket = directory.join("data").join(server::SOCKET);
    let answer = prepared().map(|()| asked(&server, &socket));
    server.stop()?;
    answer
}

/// A storage engine of MariaDB that can be opened by name.
pub struct MariaDb {
    name: &'static str,
    about: &'static str,
    kind: Kind,
}

/// The storage engines, the one of the published experiments first.
pub static PROVIDERS: [MariaDb; 4] = [
    MariaDb {
        name: "myrocks",
        about: "MyRocks of an installed MariaDB, through SQL: own transactions in LinkBench, external lock \
                over ordered keys",
        kind: Kind::MyRocks,
    },
    MariaDb {
        name: "innodb",
        about: "InnoDB of an installed MariaDB, through SQL: own transactions in LinkBench, external lock \
                over ordered keys",
        kind: Kind::InnoDb,
    },
    MariaDb {
        name: "myisam",
        about: "MyISAM of an installed MariaDB, through SQL; external lock",
        kind: Kind::MyIsam,
    },
    MariaDb {
        name: "aria",
        about: "Aria of an installed MariaDB, through SQL; external lock",
        kind: Kind::Aria,
    },
];

/// Whether all of it is installed: the server, MyRocks, the codecs of pages.
///
/// # Errors
/// Something is missing.
pub fn available() -> EngineResult<()> {
    let installation = Installation::find()?;
    let codecs = options::PAGE_CODECS.iter().filter_map(|codec| options::codec_plugin(codec));
    let mut plugins = codecs.chain([options::MYROCKS_PLUGIN.to_owned()]);
    plugins.try_for_each(|plugin| installation.plugin(&plugin).map(|_| ()))
}

/// The program of the server.
///
/// # Errors
/// It is not installed.
pub fn server_program() -> EngineResult<PathBuf> {
    Ok(Installation::find()?.server_program().to_owned())
}

/// Starts a server with MyRocks in the empty `directory`, and gives the version that it names.
///
/// # Errors
/// A program or plugin that is missing, a server that does not work.
pub fn try_installation(directory: &Path, settings: &EngineSettings) -> EngineResult<String> {
    let setup = Setup::new(Kind::MyRocks, "myrocks", settings)?;
    let engine = MariaEngine::open(&Installation::find()?, directory, setup, &[], 0)?;
    let name = engine.name();
    Engine::close(Box::new(engine))?;
    Ok(name)
}

impl Provider for MariaDb {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn version(&self) -> String {
        Installation::find().and_then(|of| of.version()).unwrap_or_default()
    }

    fn capabilities(&self) -> Capabilities {
        // Over ordered keys; the graph has transactions where the engine has them.
        let mut capabilities = engine::capabilities(self.kind);
        capabilities.transactions = false;
        capabilities.labels.push("external lock".to_owned());
        capabilities
    }

    fn available(&self) -> EngineResult<()> {
        let installation = Installation::find()?;
        if self.kind == Kind::MyRocks {
            installation.plugin(options::MYROCKS_PLUGIN)?;
        }
        Ok(())
    }

    fn can_follow(&self, settings: &EngineSettings) -> EngineResult<()> {
        let setup = Setup::new(self.kind, self.name, settings)?;
        let installation = Installation::find()?;
        setup.plugins.iter().try_for_each(|plugin| installation.plugin(plugin).map(|_| ()))
    }

    fn open(
        &self,
        directory: &Path,
        settings: &EngineSettings,
        spaces: &[SpaceSpec],
        _transactions: Transactions,
    ) -> EngineResult<Box<dyn Engine>> {
        let setup = Setup::new(self.kind, self.name, settings)?;
        setup.expect_unpacked()?;
        let tables = keys::tables(&setup, spaces.len());
        let installation = Installation::find()?;
        let engine = MariaEngine::open(&installation, directory, setup, &tables, spaces.len())?;
        Ok(Box::new(ExternalLock::new(engine)))
    }

    fn open_graph(
        &self,
        directory: &Path,
        settings: &EngineSettings,
    ) -> EngineResult<Box<dyn GraphEngine>> {
        let setup = Setup::new(self.kind, self.name, settings)?;
        setup.expect_unpacked()?;
        Ok(Box::new(MariaGraph::open(&Installation::find()?, directory, setup)?))
    }

    fn open_table(
        &self,
        directory: &Path,
        settings: &EngineSettings,
        schema: &Arc<Schema>,
    ) -> EngineResult<Box<dyn TableEngine>> {
        let setup = Setup::new(self.kind, self.name, settings)?;
        let installation = Installation::find()?;
        Ok(Box::new(MariaTable::open(installation, directory, setup, settings, schema)?))
    }

    fn codec_library(&self, codec: Codec) -> EngineResult<String> {
        let place = match self.kind {
            Kind::MyRocks => "the system's, through MariaDB's RocksDB",
            Kind::InnoDb => "the system's, through MariaDB",
            Kind::MyIsam | Kind::Aria => "not used",
        };
        Ok(if codec == Codec::NONE { "none".to_owned() } else { place.to_owned() })
    }
}
