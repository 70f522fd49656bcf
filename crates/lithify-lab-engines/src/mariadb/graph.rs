//! LinkBench's graph in tables, by the statements of the original.
//!
//! The tables are its three, the columns in its order; a link's secondary index covers a list read.
//! A link is inserted by one statement that changes the visibility of what it finds; the rows that
//! it touched say whether count and data have to be written, too. Operations of several statements
//! are transactions on a connection that commits when it is told to; all others go over one that
//! commits each statement. Engines without transactions hold the lock of the source instead.
//!
//! Does not: read the old row of a link or node before it writes it. A digest of reads therefore
//! holds what was read, and not, as over ordered keys, what writes met.

use std::ops::ControlFlow;
use std::path::Path;

use lithify_lab::adapter::graph::schema::{
    COUNT, CountRow, LINK, LINK_SECONDARY, Link, NODE, NODE_TYPE, NodeRow, VISIBILITY_DEFAULT,
    VISIBILITY_HIDDEN, count_key, decode_count_key, decode_node_key, link_key, node_key,
};
use lithify_lab::adapter::graph::store::{ListQuery, ListResult, MULTIGET_MAX, ReadDigest};
use lithify_lab::adapter::graph::{GraphEngine, GraphRows, GraphSession, LinkBefore};
use lithify_lab::adapter::{
    BatchOp, Engine, EngineError, EngineResult, Neighbour, SpaceId, WriteBatch,
};
use lithify_lab::engines::external_lock::Stripes;

use super::connection::{Arguments, Connection, Prepared, Row};
use super::engine::MariaEngine;
use super::neighbour::OtherClient;
use super::options::{Kind, Setup};
use super::rows::TableRows;
use super::server::Installation;

/// The secondary index of links.
const SECONDARY_KEY: &str = "id1_type (id1, link_type, visibility, time, id2, version, data)";

/// The graph in a server of its own.
#[derive(Debug)]
pub struct MariaGraph {
    engine: MariaEngine,
    /// Of sources, for engines without transactions.
    locks: Option<Stripes>,
}

/// The statements that create the tables.
fn tables(setup: &Setup) -> Vec<String> {
    // MyRocks keeps each index in a family of its own; lists are read backwards, so theirs is.
    let family = |name: &str| match setup.kind {
        Kind::MyRocks => format!(" COMMENT '{name}'"),
        Kind::InnoDb | Kind::MyIsam | Kind::Aria => String::new(),
    };
    let (links, lists) = (family("cf_link_pk"), family("rev:cf_link_id1_type"));
    let (counts, nodes) = (family("cf_count_pk"), family("cf_node_pk"));
    let end = |column: &str| {
        let partitions = setup.partition_clause(column);
        format!(") {} DEFAULT CHARSET=latin1 COLLATE=latin1_bin{partitions}", setup.table_options)
    };
    vec![
        format!(
            "CREATE TABLE IF NOT EXISTS linktable (\
             id1 bigint unsigned NOT NULL DEFAULT 0, id2 bigint unsigned NOT NULL DEFAULT 0, \
             link_type bigint unsigned NOT NULL DEFAULT 0, visibility tinyint NOT NULL DEFAULT 0, \
             data varchar(255) NOT NULL DEFAULT '', time bigint unsigned NOT NULL DEFAULT 0, \
             version int unsigned NOT NULL DEFAULT 0, \
             PRIMARY KEY (link_type, id1, id2){links}, KEY {SECONDARY_KEY}{lists}{}",
            end("id1")
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS counttable (\
             id bigint unsigned NOT NULL DEFAULT 0, link_type bigint unsigned NOT NULL DEFAULT 0, \
             count int unsigned NOT NULL DEFAULT 0, time bigint unsigned NOT NULL DEFAULT 0, \
             version bigint unsigned NOT NULL DEFAULT 0, PRIMARY KEY (id, link_type){counts}{}",
            end("id")
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS nodetable (\
             id bigint unsigned NOT NULL AUTO_INCREMENT, type int unsigned NOT NULL, \
             version bigint unsigned NOT NULL, time int unsigned NOT NULL, \
             data mediumtext NOT NULL, PRIMARY KEY (id){nodes}{}",
            end("id")
        ),
    ]
}

impl MariaGraph {
    /// An empty graph in `directory`.
    ///
    /// # Errors
    /// The server's own.
    pub fn open(
        installation: &Installation,
        directory: &Path,
        mut setup: Setup,
    ) -> EngineResult<MariaGraph> {
        let locks = (!setup.kind.has_transactions()).then(Stripes::default);
        if locks.is_some() {
            setup.labels.push("external lock".to_owned());
        }
        let tables = tables(&setup);
        let engine = MariaEngine::open(installation, directory, setup, &tables, 0)?;
        Ok(MariaGraph { engine, locks })
    }
}

impl GraphEngine for MariaGraph {
    fn below(&self) -> &dyn Engine {
        &self.engine
    }

    fn graph_session(&self, hashing: bool) -> EngineResult<Box<dyn GraphSession + '_>> {
        Ok(Box::new(SqlSession::new(self, hashing)?))
    }

    fn rows(&self, space: SpaceId, prefix: &[u8]) -> EngineResult<Box<dyn GraphRows + '_>> {
        Ok(Box::new(TableRows::new(&self.engine, space, prefix)?))
    }

    fn defer_secondary_index(&self) -> EngineResult<()> {
        self.engine.run("ALTER TABLE linktable DROP KEY id1_type")
    }

    fn build_secondary_index(
        &self,
        _batch_rows: usize,
        _done: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> EngineResult<()> {
        let family = match self.engine.setup().kind {
            Kind::MyRocks => " COMMENT 'rev:cf_link_id1_type'",
            Kind::InnoDb | Kind::MyIsam | Kind::Aria => "",
        };
        self.engine.run(&format!("ALTER TABLE linktable ADD KEY {SECONDARY_KEY}{family}"))
    }

    fn neighbour(&self) -> EngineResult<Option<Box<dyn Neighbour + '_>>> {
        Ok(Some(Box::new(OtherClient::new(&self.engine)?)))
    }

    fn drop_graph(&self) -> EngineResult<String> {
        self.engine.drop_database()
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        Engine::close(Box::new(self.engine))
    }
}

/// A row with the columns of a link.
pub(super) fn link_of<'a>(row: &mut Row<'a>) -> EngineResult<Link<'a>> {
    Ok(Link {
        id1: row.number()?,
        id2: row.number()?,
        link_type: row.number()?,
        visibility: row.number()? as u8,
        data: row.bytes()?,
        time_ms: row.number()?,
        version: row.short()?,
    })
}

/// A row with the columns of a node, its id apart.
pub(super) fn node_of<'a>(row: &mut Row<'a>) -> EngineResult<(u64, NodeRow<'a>)> {
    let id = row.number()?;
    let node = NodeRow {
        node_type: row.short()?,
        version: row.number()?,
        time_s: row.short()?,
        data: row.bytes()?,
    };
    Ok((id, node))
}

/// A row with the columns of a count behind its key.
pub(super) fn count_of(row: &mut Row<'_>) -> EngineResult<CountRow> {
    Ok(CountRow { count: row.short()?, time_ms: row.number()?, version: row.number()? })
}

/// Inserts as many rows as there are, by one statement.
#[derive(Debug)]
struct Bulk {
    into: &'static str,
    row: &'static str,
    rows: usize,
    arguments: Arguments,
    /// For the number of rows that came last; batches are of one size.
    statement: Option<(usize, Prepared)>,
}

impl Bulk {
    fn new(into: &'static str, row: &'static str) -> Bulk {
        Bulk { into, row, rows: 0, arguments: Arguments::default(), statement: None }
    }

    fn add(&mut self) -> &mut Arguments {
        self.rows += 1;
        &mut self.arguments
    }

    fn clear(&mut self) {
        self.rows = 0;
        self.arguments.clear();
    }

    fn write(&mut self, connection: &mut Connection) -> EngineResult<()> {
        if self.rows == 0 {
            return Ok(());
        }
        if self.statement.as_ref().is_none_or(|(rows, _)| *rows != self.rows) {
            if let Some((_, old)) = self.statement.take() {
                old.forget(connection)?;
            }
            let rows = vec![self.row; self.rows].join(",");
            let sql = format!("INSERT INTO {} VALUES {rows}", self.into);
            self.statement = Some((self.rows, Prepared::new(sql)));
        }
        if let Some((_, statement)) = &mut self.statement {
            statement.execute(connection, &self.arguments)?;
        }
        Ok(())
    }
}

/// Statements of one thread, each parsed when it is needed first.
#[derive(Debug)]
struct Statements {
    insert_link: Prepared,
    update_link: Prepared,
    lock_link: Prepared,
    hide_link: Prepared,
    expunge_link: Prepared,
    add_to_count: Prepared,
    take_from_count: Prepared,
    get_count: Prepared,
    list: Prepared,
    /// By the logarithm of the number of targets.
    multiget: Vec<Prepared>,
    add_node: Prepared,
    update_node: Prepared,
    delete_node: Prepared,
    get_node: Prepared,
}

/// Multi-gets ask for as many targets as the next power of two, the last one several times: a few
/// statements do for all.
const MULTIGET_STATEMENTS: u32 = usize::BITS - (MULTIGET_MAX - 1).leading_zeros() + 1;

impl Statements {
    fn new() -> Statements {
        const LINK_COLUMNS: &str = "id1, id2, link_type, visibility, data, time, version";
        const THE_LINK: &str = "WHERE id1 = ? AND id2 = ? AND link_type = ?";
        let multiget = |power: u32| {
            let targets = vec!["?"; 1 << power].join(",");
            Prepared::new(format!(
                "SELECT {LINK_COLUMNS} FROM linktable WHERE id1 = ? AND link_type = ? \
                 AND id2 IN ({targets})"
            ))
        };
        let count = |base: u8, change: &str| {
            Prepared::new(format!(
                "INSERT INTO counttable (id, link_type, count, time, version) \
                 VALUES (?, ?, {base}, ?, 0) ON DUPLICATE KEY UPDATE \
                 count = {change}, version = version + 1, time = VALUES(time)"
            ))
        };
        Statements {
            insert_link: Prepared::new(format!(
                "INSERT INTO linktable ({LINK_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) \
                 ON DUPLICATE KEY UPDATE visibility = VALUES(visibility)"
            )),
            update_link: Prepared::new(format!(
                "UPDATE linktable SET visibility = ?, data = ?, time = ?, version = ? {THE_LINK}"
            )),
            lock_link: Prepared::new(format!(
                "SELECT visibility FROM linktable {THE_LINK} FOR UPDATE"
            )),
            hide_link: Prepared::new(format!(
                "UPDATE linktable SET visibility = {VISIBILITY_HIDDEN} {THE_LINK}"
            )),
            expunge_link: Prepared::new(format!("DELETE FROM linktable {THE_LINK}")),
            add_to_count: count(1, "count + 1"),
            take_from_count: count(0, "IF(count = 0, 0, count - 1)"),
            get_count: Prepared::new(
                "SELECT count, time, version FROM counttable WHERE id = ? AND link_type = ?",
            ),
            list: Prepared::new(format!(
                "SELECT {LINK_COLUMNS} FROM linktable FORCE INDEX (id1_type) \
                 WHERE id1 = ? AND link_type = ? AND time >= 0 AND time <= ? \
                 AND visibility = {VISIBILITY_DEFAULT} ORDER BY time DESC LIMIT ?, ?"
            )),
            multiget: (0..MULTIGET_STATEMENTS).map(multiget).collect(),
            add_node: Prepared::new(
                "INSERT INTO nodetable (id, type, version, time, data) VALUES (?, ?, 1, ?, ?)",
            ),
            update_node: Prepared::new(
                "UPDATE nodetable SET version = 2, time = ?, data = ? WHERE id = ? AND type = ?",
            ),
            delete_node: Prepared::new("DELETE FROM nodetable WHERE id = ? AND type = ?"),
            get_node: Prepared::new(
                "SELECT id, type, version, time, data FROM nodetable WHERE id = ?",
            ),
        }
    }
}

/// One thread's connections and statements.
struct SqlSession<'a> {
    graph: &'a MariaGraph,
    /// Commits every statement.
    single: Connection,
    /// Commits when it is told to.
    several: Connection,
    statements: Statements,
    nodes: Bulk,
    links: Bulk,
    counts: Bulk,
    arguments: Arguments,
    digest: ReadDigest,
    value: Vec<u8>,
    /// Links of a multi-get: targets, and the ends of their values in `values`.
    found: Vec<(u64, usize)>,
    values: Vec<u8>,
}

impl<'a> SqlSession<'a> {
    fn new(graph: &'a MariaGraph, hashing: bool) -> EngineResult<SqlSession<'a>> {
        let mut several = graph.engine.connect()?;
        several.run("SET autocommit = 0")?;
        Ok(SqlSession {
            graph,
            single: graph.engine.connect()?,
            several,
            statements: Statements::new(),
            nodes: Bulk::new("nodetable (id, type, version, time, data)", "(?,?,?,?,?)"),
            links: Bulk::new(
                "linktable (id1, id2, link_type, visibility, data, time, version)",
                "(?,?,?,?,?,?,?)",
            ),
            counts: Bulk::new("counttable (id, link_type, count, time, version)", "(?,?,?,?,?)"),
            arguments: Arguments::default(),
            digest: ReadDigest::new(hashing),
            value: Vec::new(),
            found: Vec::new(),
            values: Vec::new(),
        })
    }

    /// Runs `body` as a transaction; it says whether there is something to commit.
    fn transact<T>(
        &mut self,
        row_group: u64,
        body: impl FnOnce(&mut Self) -> EngineResult<(T, bool)>,
    ) -> EngineResult<T> {
        let graph = self.graph;
        let _held = graph.locks.as_ref().map(|locks| locks.lock(row_group));
        let done = body(self).and_then(|(answer, changed)| {
            self.several.run(if changed { "COMMIT" } else { "ROLLBACK" })?;
            Ok(answer)
        });
        done.map_err(|error| {
            // The first error is the one to report; a rollback that fails too adds nothing.
            let _ = self.several.run("ROLLBACK");
            graph.engine.explain(error)
        })
    }

    fn change_count(
        &mut self,
        id1: u64,
        link_type: u64,
        add: bool,
        now_ms: u64,
    ) -> EngineResult<()> {
        self.arguments.clear().number(id1).number(link_type).number(now_ms);
        let statements = &mut self.statements;
        let statement =
            if add { &mut statements.add_to_count } else { &mut statements.take_from_count };
        statement.execute(&mut self.several, &self.arguments).map(|_| ())
    }

    fn put_link_locked(&mut self, link: &Link<'_>, now_ms: u64) -> EngineResult<LinkBefore> {
        let arguments = &mut self.arguments;
        arguments.clear().number(link.id1).number(link.id2).number(link.link_type);
        arguments.number(link.visibility).bytes(link.data);
        arguments.number(link.time_ms).number(link.version);
        let inserted = self.statements.insert_link.execute(&mut self.several, arguments)?;
        // 1: there was none. 2: there was one, which was hidden and is not, or the other way round.
        let existed = inserted.affected != 1;
        let visible = link.visibility == VISIBILITY_DEFAULT;
        if inserted.affected == 2 || (!existed && visible) {
            self.change_count(link.id1, link.link_type, visible, now_ms)?;
        }
        if existed {
            let arguments = &mut self.arguments;
            arguments.clear().number(link.visibility).bytes(link.data);
            arguments.number(link.time_ms).number(link.version);
            arguments.number(link.id1).number(link.id2).number(link.link_type);
            self.statements.update_link.execute(&mut self.several, arguments)?;
        }
        // A link that changed its visibility had the other one.
        let was_visible = visible != (inserted.affected == 2);
        Ok(match (existed, was_visible) {
            (false, _) => LinkBefore::Missing,
            (true, true) => LinkBefore::Visible,
            (true, false) => LinkBefore::Hidden,
        })
    }

    fn delete_link_locked(
        &mut self,
        [id1, link_type, id2]: [u64; 3],
        expunge: bool,
        now_ms: u64,
    ) -> EngineResult<bool> {
        self.arguments.clear().number(id1).number(id2).number(link_type);
        let mut visibility = None;
        let statements = &mut self.statements;
        statements.lock_link.select(&mut self.several, &self.arguments, &mut |mut row| {
            visibility = Some(row.number()?);
            Ok(())
        })?;
        let was_visible = visibility == Some(u64::from(VISIBILITY_DEFAULT));
        if visibility.is_none() || !(was_visible || expunge) {
            return Ok(false);
        }
        let statement =
            if expunge { &mut statements.expunge_link } else { &mut statements.hide_link };
        statement.execute(&mut self.several, &self.arguments)?;
        if was_visible {
            self.change_count(id1, link_type, false, now_ms)?;
        }
        Ok(true)
    }

    fn gather(&mut self, rows: &WriteBatch) -> EngineResult<()> {
        let malformed = || EngineError::fatal("a row of the load is malformed");
        for bulk in [&mut self.nodes, &mut self.links, &mut self.counts] {
            bulk.clear();
        }
        for op in rows.ops() {
            let BatchOp::Put(space, key, value) = op else { return Err(malformed()) };
            match space {
                NODE => {
                    let id = decode_node_key(key).ok_or_else(malformed)?;
                    let row = NodeRow::decode(value).ok_or_else(malformed)?;
                    let arguments = self.nodes.add();
                    arguments.number(id).number(row.node_type).number(row.version);
                    arguments.number(row.time_s).bytes(row.data);
                }
                LINK => {
                    let link = Link::decode(key, value).ok_or_else(malformed)?;
                    let arguments = self.links.add();
                    arguments.number(link.id1).number(link.id2).number(link.link_type);
                    arguments.number(link.visibility).bytes(link.data);
                    arguments.number(link.time_ms).number(link.version);
                }
                // The server keeps it.
                LINK_SECONDARY => {}
                COUNT => {
                    let (id, link_type) = decode_count_key(key).ok_or_else(malformed)?;
                    let row = CountRow::decode(value).ok_or_else(malformed)?;
                    let arguments = self.counts.add();
                    arguments.number(id).number(link_type).number(row.count);
                    arguments.number(row.time_ms).number(row.version);
                }
                other => return Err(EngineError::no_space(other)),
            }
        }
        Ok(())
    }
}

impl GraphSession for SqlSession<'_> {
    fn digest(&self) -> ReadDigest {
        self.digest
    }

    fn load(&mut self, rows: &WriteBatch) -> EngineResult<()> {
        self.gather(rows)?;
        let written = [&mut self.nodes, &mut self.links, &mut self.counts]
            .into_iter()
            .try_for_each(|bulk| bulk.write(&mut self.several))
            .and_then(|()| self.several.run("COMMIT"));
        written.map(|_| ()).map_err(|error| {
            let _ = self.several.run("ROLLBACK");
            self.graph.engine.explain(error)
        })
    }

    fn put_link(&mut self, link: &Link<'_>, now_ms: u64) -> EngineResult<LinkBefore> {
        self.transact(link.id1, |session| Ok((session.put_link_locked(link, now_ms)?, true)))
    }

    fn delete_link(
        &mut self,
        id1: u64,
        link_type: u64,
        id2: u64,
        expunge: bool,
        now_ms: u64,
    ) -> EngineResult<bool> {
        self.transact(id1, |session| {
            let deleted = session.delete_link_locked([id1, link_type, id2], expunge, now_ms)?;
            Ok((deleted, deleted))
        })
    }

    fn count_links(&mut self, id1: u64, link_type: u64) -> EngineResult<u32> {
        self.arguments.clear().number(id1).number(link_type);
        let mut count = None;
        let statement = &mut self.statements.get_count;
        let read = statement.select(&mut self.single, &self.arguments, &mut |mut row| {
            count = Some(count_of(&mut row)?);
            Ok(())
        });
        read.map_err(|error| self.graph.engine.explain(error))?;
        let key = count_key(id1, link_type);
        match count {
            Some(row) => {
                row.encode(&mut self.value);
                self.digest.found(&key, &self.value);
                Ok(row.count)
            }
            None => {
                self.digest.missed(&key);
                Ok(0)
            }
        }
    }

    fn multiget_links(&mut self, id1: u64, link_type: u64, targets: &[u64]) -> EngineResult<u64> {
        let targets = &targets[..targets.len().min(MULTIGET_MAX)];
        let Some(last) = targets.last() else { return Ok(0) };
        let asked = targets.len().next_power_of_two();
        self.arguments.clear().number(id1).number(link_type);
        for target in targets.iter().chain(std::iter::repeat(last)).take(asked) {
            self.arguments.number(*target);
        }
        self.found.clear();
        self.values.clear();
        let (found, values, value) = (&mut self.found, &mut self.values, &mut self.value);
        let statement = self.statements.multiget.get_mut(asked.trailing_zeros() as usize);
        let statement =
            statement.ok_or_else(|| EngineError::fatal("a multi-get of too many targets"))?;
        let read = statement.select(&mut self.single, &self.arguments, &mut |mut row| {
            let link = link_of(&mut row)?;
            link.encode(value);
            values.extend_from_slice(value);
            found.push((link.id2, values.len()));
            Ok(())
        });
        read.map_err(|error| self.graph.engine.explain(error))?;
        // In the order of the targets, one that is named twice twice: as over ordered keys.
        let before = self.digest.rows;
        for target in targets {
            let Some(index) = self.found.iter().position(|(id2, _)| id2 == target) else {
                continue;
            };
            let start = if index == 0 { 0 } else { self.found[index - 1].1 };
            let value = &self.values[start..self.found[index].1];
            self.digest.found(&link_key(link_type, id1, *target), value);
        }
        Ok(self.digest.rows - before)
    }

    fn list_links(&mut self, query: &ListQuery) -> EngineResult<ListResult> {
        self.arguments.clear().number(query.id1).number(query.link_type);
        self.arguments.number(query.max_time_ms).number(query.offset).number(query.limit);
        let mut result = ListResult::default();
        let (digest, value) = (&mut self.digest, &mut self.value);
        let statement = &mut self.statements.list;
        let read = statement.select(&mut self.single, &self.arguments, &mut |mut row| {
            let link = link_of(&mut row)?;
            link.encode_secondary(value);
            digest.found(&link.secondary_key(), value);
            result.rows += 1;
            result.last_time_ms = link.time_ms;
            Ok(())
        });
        read.map_err(|error| self.graph.engine.explain(error))?;
        Ok(result)
    }

    fn add_node(&mut self, id: u64, time_s: u32, data: &[u8]) -> EngineResult<()> {
        self.arguments.clear().number(id).number(NODE_TYPE).number(time_s).bytes(data);
        let added = self.statements.add_node.execute(&mut self.single, &self.arguments);
        added.map(|_| ()).map_err(|error| self.graph.engine.explain(error))
    }

    fn update_node(&mut self, id: u64, time_s: u32, data: &[u8]) -> EngineResult<bool> {
        self.arguments.clear().number(time_s).bytes(data).number(id).number(NODE_TYPE);
        let updated = self.statements.update_node.execute(&mut self.single, &self.arguments);
        let updated = updated.map_err(|error| self.graph.engine.explain(error))?;
        // One that is rewritten as it was is found and not affected.
        Ok(updated.matched > 0)
    }

    fn delete_node(&mut self, id: u64) -> EngineResult<bool> {
        self.arguments.clear().number(id).number(NODE_TYPE);
        let deleted = self.statements.delete_node.execute(&mut self.single, &self.arguments);
        let deleted = deleted.map_err(|error| self.graph.engine.explain(error))?;
        Ok(deleted.affected > 0)
    }

    fn get_node(&mut self, id: u64) -> EngineResult<bool> {
        self.arguments.clear().number(id);
        let (digest, value) = (&mut self.digest, &mut self.value);
        let (key, mut found) = (node_key(id), None);
        let statement = &mut self.statements.get_node;
        let read = statement.select(&mut self.single, &self.arguments, &mut |mut row| {
            let (_, node) = node_of(&mut row)?;
            node.encode(value);
            digest.found(&key, value);
            found = Some(node.node_type);
            Ok(())
        });
        read.map_err(|error| self.graph.engine.explain(error))?;
        if found.is_none() {
            self.digest.missed(&key);
        }
        Ok(found == Some(NODE_TYPE))
    }
}
