//! A table with its secondary index as SQL has it: multi-row inserts and updates of single rows by
//! prepared statements, aggregates summed up by the server.
//!
//! Owns: the statements. An insert of more values than one statement takes is several statements in
//! one transaction. Engines without transactions apply every statement at once, whatever the mode
//! of updates. A table of MyISAM that is to be packed is packed when maintenance is due after the
//! load ([`TableEngine::rest`]), by the programs that come with the server, while nobody has it open;
//! it is read only from then on.
//!
//! Threads: as the traits say.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lithify_lab::adapter::settings::EngineSettings;
use lithify_lab::adapter::table::Access;
use lithify_lab::adapter::table::schema::{
    Answer, Group, Kind as ColumnKind, Query, Row, Schema, Value,
};
use lithify_lab::adapter::table::{PageAccount, Rest, TableEngine, TableSession, Update};
use lithify_lab::adapter::{Capabilities, Engine, EngineError, EngineResult, EngineStatistics};

use super::connection::{Arguments, Connection, Prepared};
use super::engine::{self, DATABASE, MariaEngine};
use super::options::{Compression, Kind, Setup};
use super::server::Installation;

/// Values of one statement: each costs the server memory for as long as the statement is prepared.
/// A thousand rows of a table of few columns go together.
const VALUES_MAX: usize = 8192;

const INDEX: &str = "secondary";

/// How a table says that it is packed.
const PACKED_FORMAT: &str = "Compressed";

/// The largest day that a column holds.
const LAST_DAY: i64 = 99_991_231;

/// A server with one table.
pub struct MariaTable {
    engine: MariaEngine,
    installation: Installation,
    schema: Arc<Schema>,
    directory: PathBuf,
    /// Pages or blocks have the size that the settings ask for.
    follows_blocks: bool,
    memory_budget_bytes: u64,
}

fn quoted(schema: &Schema, column: usize) -> String {
    format!("`{}`", schema.columns[column].name)
}

fn list(schema: &Schema, columns: &[usize]) -> String {
    columns.iter().map(|column| quoted(schema, *column)).collect::<Vec<_>>().join(", ")
}

/// The statement that creates a table of that shape.
fn create(schema: &Schema, setup: &Setup) -> String {
    let columns = schema.columns.iter();
    let columns = columns.map(|c| format!("`{}` {} NOT NULL", c.name, c.kind.sql_type()));
    let mut parts: Vec<String> = columns.collect();
    parts.push(format!("PRIMARY KEY ({})", list(schema, &schema.primary)));
    if !schema.secondary.is_empty() {
        parts.push(format!("KEY `{INDEX}` ({})", list(schema, &schema.secondary)));
    }
    let partitions = schema.primary.first().map(|column| quoted(schema, *column));
    format!(
        "CREATE TABLE IF NOT EXISTS `{}` ({}) {} DEFAULT CHARSET=latin1 COLLATE=latin1_bin{}",
        schema.name,
        parts.join(", "),
        setup.table_options,
        setup.partition_clause(&partitions.unwrap_or_default()),
    )
}

/// The statement that answers a query: groups, rows, then sum and maximum of each figure.
fn select(schema: &Schema, query: &Query, access: Access) -> String {
    let name = |column: &usize| quoted(schema, *column);
    // A day plus nothing is its number.
    let whole = |column: &usize| match schema.columns[*column].kind {
        ColumnKind::Date => format!("{} + 0", name(column)),
        _ => name(column),
    };
    let mut columns: Vec<String> = query.group.iter().map(whole).collect();
    columns.push("COUNT(*)".to_owned());
    for figure in &query.figures {
        columns.push(format!("SUM({})", name(figure)));
        columns.push(format!("MAX({})", name(figure)));
    }
    let mut sql = format!("SELECT {} FROM `{}`", columns.join(", "), schema.name);
    let begins =
        |key: &[usize]| query.range.as_ref().is_some_and(|r| key.first() == Some(&r.column));
    if access == Access::Secondary && begins(&schema.secondary) {
        sql.push_str(&format!(" FORCE INDEX (`{INDEX}`)"));
    } else if begins(&schema.primary) {
        sql.push_str(" FORCE INDEX (PRIMARY)");
    } else if !schema.secondary.is_empty() {
        sql.push_str(&format!(" IGNORE INDEX (`{INDEX}`)"));
    }
    if let Some(range) = &query.range {
        let to = match schema.columns[range.column].kind {
            ColumnKind::Date => range.to.min(LAST_DAY),
            _ => range.to,
        };
        sql.push_str(&format!(" WHERE {} BETWEEN {} AND {to}", name(&range.column), range.from));
    }
    if !query.group.is_empty() {
        sql.push_str(&format!(" GROUP BY {}", list(schema, &query.group)));
    }
    let mut order: Vec<String> = query.group.iter().map(name).collect();
    if let (Some(_), Some(first)) = (query.top, query.figures.first()) {
        order.insert(0, format!("SUM({}) DESC", name(first)));
    }
    if !order.is_empty() {
        sql.push_str(&format!(" ORDER BY {}", order.join(", ")));
    }
    if let Some(top) = query.top {
        sql.push_str(&format!(" LIMIT {top}"));
    }
    sql
}

/// The statement that counts the entries of the index by reading them. The condition, which always
/// holds, keeps the server from answering with the number of rows that it has written down.
fn count_entries(schema: &Schema) -> Option<String> {
    let column = schema.secondary.first()?;
    let least = if schema.columns[*column].kind == ColumnKind::Signed64 { i64::MIN } else { 0 };
    let (table, name) = (schema.name, quoted(schema, *column));
    Some(format!("SELECT COUNT(*) FROM `{table}` FORCE INDEX (`{INDEX}`) WHERE {name} >= {least}"))
}

/// A line of an answer.
fn group(query: &Query, row: &[String]) -> EngineResult<Group> {
    let odd = || EngineError::fatal(format!("the server's answer is no line: {row:?}"));
    let numbers = row.iter().map(|text| text.parse::<i64>().ok());
    let numbers: Vec<i64> = numbers.collect::<Option<_>>().ok_or_else(odd)?;
    let (key, rest) = numbers.split_at_checked(query.group.len()).ok_or_else(odd)?;
    let (rows, figures) = rest.split_first().ok_or_else(odd)?;
    if figures.len() != 2 * query.figures.len() {
        return Err(odd());
    }
    Ok(Group {
        key: key.to_vec(),
        rows: *rows as u64,
        sums: figures.iter().step_by(2).copied().collect(),
        maxima: figures.iter().skip(1).step_by(2).copied().collect(),
    })
}

impl MariaTable {
    /// The table in `directory`, made when it is not there.
    ///
    /// # Errors
    /// The server's own.
    pub fn open(
        installation: Installation,
        directory: &Path,
        mut setup: Setup,
        settings: &EngineSettings,
        schema: &Arc<Schema>,
    ) -> EngineResult<MariaTable> {
        setup.count_writes();
        let table = create(schema, &setup);
        let follows_blocks = match (setup.kind, &setup.compression) {
            (Kind::MyRocks, _) => true,
            (Kind::InnoDb, Compression::KeyBlocks(kib)) => kib << 10 == settings.block_bytes,
            (Kind::InnoDb, _) => setup.page_bytes == settings.block_bytes,
            (Kind::MyIsam | Kind::Aria, _) => false,
        };
        let engine = MariaEngine::open(&installation, directory, setup, &[table], 0)?;
        Ok(MariaTable {
            engine,
            installation,
            schema: Arc::clone(schema),
            directory: directory.to_owned(),
            follows_blocks,
            memory_budget_bytes: settings.memory_budget_bytes,
        })
    }

    /// How the table stores its rows, and how many it has.
    fn format_and_rows(&self) -> EngineResult<(String, u64)> {
        let rows = self.engine.query(&format!(
            "SELECT ROW_FORMAT, TABLE_ROWS FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = '{DATABASE}' AND TABLE_NAME = '{}'",
            self.schema.name
        ))?;
        let row = rows.into_iter().next().and_then(|row| <[String; 2]>::try_from(row).ok());
        let [format, rows] = row.unwrap_or_default();
        Ok((format, rows.parse().unwrap_or(0)))
    }

    /// Packs a table that has rows and is not packed yet.
    fn pack(&self) -> EngineResult<()> {
        let (format, rows) = self.format_and_rows()?;
        if format == PACKED_FORMAT || rows == 0 {
            return Ok(());
        }
        // The server lets go of the files, and finds others in their place.
        self.engine.run("FLUSH TABLES")?;
        let table = self.directory.join("data").join(DATABASE).join(self.schema.name);
        let mut temporary = OsString::from("--tmpdir=");
        temporary.push(self.directory.join("temporary"));
        let index = table.with_extension("MYI");
        let [temporary, table, index] =
            [temporary.as_os_str(), table.as_os_str(), index.as_os_str()];
        let flags = ["--silent", "--force"].map(OsStr::new);
        self.installation.call("myisampack", &[&flags[..], &[temporary, table]].concat())?;
        // Rows have moved: the index is built anew.
        let buffer = format!("--myisam-sort-buffer-size={}", self.memory_budget_bytes);
        let flags = ["--silent", "--recover", "--quick", &buffer].map(OsStr::new);
        self.installation.call("myisamchk", &[&flags[..], &[temporary, index]].concat())?;
        self.engine.run("FLUSH TABLES")
    }
}

impl TableEngine for MariaTable {
    fn name(&self) -> String {
        self.engine.name()
    }

    fn capabilities(&self) -> Capabilities {
        let setup = self.engine.setup();
        let mut capabilities = engine::capabilities(setup.kind);
        capabilities.labels.extend_from_slice(&setup.labels);
        Capabilities { block_size: self.follows_blocks, ..capabilities }
    }

    fn session(&self) -> EngineResult<Box<dyn TableSession + '_>> {
        Ok(Box::new(SqlSession {
            table: self,
            connection: self.engine.connect()?,
            inserts: HashMap::new(),
            updates: HashMap::new(),
            arguments: Arguments::default(),
        }))
    }

    /// These engines say when nothing is due, so the limit is never needed.
    fn rest(&self, _limit: Duration) -> EngineResult<Rest> {
        self.engine.flush()?;
        self.engine.wait_for_compaction()?;
        if self.engine.setup().packed {
            self.pack()?;
        }
        Ok(Rest::Idle)
    }

    fn statistics(&self) -> EngineResult<EngineStatistics> {
        Engine::statistics(&self.engine)
    }

    fn pages(&self) -> EngineResult<Option<PageAccount>> {
        self.engine.pages()
    }

    fn codec_in_force(&self) -> EngineResult<Option<String>> {
        match self.engine.setup().kind {
            Kind::InnoDb | Kind::MyRocks => {
                let codecs: Vec<String> = self.engine.codecs()?.into_keys().collect();
                Ok((!codecs.is_empty()).then(|| codecs.join(" + ")))
            }
            Kind::MyIsam | Kind::Aria => {
                let (format, _) = self.format_and_rows()?;
                Ok((format == PACKED_FORMAT).then(|| "packed".to_owned()))
            }
        }
    }

    fn refuses_updates(&self) -> Option<String> {
        self.engine.setup().packed.then(|| "a packed table is read only".to_owned())
    }

    fn process_ids(&self) -> Vec<u32> {
        self.engine.process_ids()
    }

    fn close(self: Box<Self>) -> EngineResult<()> {
        Engine::close(Box::new(self.engine))
    }
}

/// One thread's connection and statements.
struct SqlSession<'a> {
    table: &'a MariaTable,
    connection: Connection,
    /// By the number of their rows.
    inserts: HashMap<usize, Prepared>,
    /// By the column that they change.
    updates: HashMap<usize, Prepared>,
    arguments: Arguments,
}

impl SqlSession<'_> {
    /// Inserts rows by as few statements as take them.
    fn put(&mut self, rows: &[Row], rows_max: usize) -> EngineResult<()> {
        let schema = &self.table.schema;
        for rows in rows.chunks(rows_max) {
            self.arguments.clear();
            for value in rows.iter().flatten() {
                match value {
                    Value::Whole(number) => self.arguments.signed(*number),
                    Value::Float(number) => self.arguments.float(*number),
                    Value::Text(text) => self.arguments.bytes(text),
                };
            }
            let insert = self.inserts.entry(rows.len()).or_insert_with(|| {
                let row = format!("({})", vec!["?"; schema.columns.len()].join(","));
                let values = vec![row; rows.len()].join(",");
                Prepared::new(format!("INSERT INTO `{}` VALUES {values}", schema.name))
            });
            insert.execute(&mut self.connection, &self.arguments)?;
        }
        Ok(())
    }

    fn run(&mut self, sql: &str) -> EngineResult<()> {
        let done = self.connection.run(sql);
        done.map(|_| ()).map_err(|error| self.table.engine.explain(error))
    }

    fn query(&mut self, sql: &str) -> EngineResult<Vec<Vec<String>>> {
        let rows = self.connection.query(sql);
        rows.map_err(|error| self.table.engine.explain(error))
    }
}

impl TableSession for SqlSession<'_> {
    fn insert(&mut self, rows: &[Row]) -> EngineResult<()> {
        let rows_max = (VALUES_MAX / self.table.schema.columns.len().max(1)).max(1);
        let has_transactions = self.table.engine.setup().kind.has_transactions();
        if rows.len() <= rows_max || !has_transactions {
            return self.put(rows, rows_max).map_err(|error| self.table.engine.explain(error));
        }
        self.begin()?;
        if let Err(error) = self.put(rows, rows_max) {
            // The first error is the one to report.
            let _ = self.rollback();
            return Err(self.table.engine.explain(error));
        }
        self.commit()
    }

    fn aggregate(&mut self, query: &Query, access: Access) -> EngineResult<Answer> {
        let rows = self.query(&select(&self.table.schema, query, access))?;
        // Without a group there is always a line, and its sums of no rows are no numbers.
        let place = query.group.len();
        let is_line = |row: &&Vec<String>| row.get(place).is_none_or(|rows| rows != "0");
        let lines = rows.iter().filter(is_line).map(|row| group(query, row));
        Ok(Answer { groups: lines.collect::<EngineResult<_>>()? })
    }

    fn index_entries(&mut self) -> EngineResult<u64> {
        let Some(sql) = count_entries(&self.table.schema) else { return Ok(0) };
        let count = self.query(&sql)?.into_iter().flatten().next();
        count
            .and_then(|count| count.parse().ok())
            .ok_or_else(|| EngineError::fatal("the server did not count the entries of the index"))
    }

    fn begin(&mut self) -> EngineResult<()> {
        self.run("START TRANSACTION")
    }

    fn update(&mut self, update: &Update) -> EngineResult<bool> {
        let schema = &self.table.schema;
        let statement = self.updates.entry(update.column).or_insert_with(|| {
            let column = quoted(schema, update.column);
            let keys = schema.primary.iter().map(|key| format!("{} = ?", quoted(schema, *key)));
            let keys = keys.collect::<Vec<_>>().join(" AND ");
            let table = schema.name;
            Prepared::new(format!("UPDATE `{table}` SET {column} = {column} + ? WHERE {keys}"))
        });
        self.arguments.clear().signed(update.amount);
        for number in &update.key {
            self.arguments.signed(*number);
        }
        let done = statement.execute(&mut self.connection, &self.arguments);
        done.map(|changes| changes.matched > 0).map_err(|error| self.table.engine.explain(error))
    }

    fn commit(&mut self) -> EngineResult<()> {
        self.run("COMMIT")
    }

    fn rollback(&mut self) -> EngineResult<()> {
        self.run("ROLLBACK")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lithify_lab::adapter::codec::Codec;
    use lithify_lab::adapter::table::schema::Range;
    use lithify_lab::datasets::{PageCounts, Table, Wide};

    fn setup() -> Setup {
        let settings = EngineSettings { codec_bottom: Codec::NONE, ..EngineSettings::small() };
        Setup::new(Kind::InnoDb, "innodb", &settings).expect("is possible")
    }

    #[test]
    fn statements_of_both_shapes() {
        let table = PageCounts::new(1000, 1);
        let schema = table.schema();
        let sql = create(schema, &setup());
        assert!(sql.starts_with("CREATE TABLE IF NOT EXISTS `page_counts` (`id` INT UNSIGNED"));
        assert!(sql.contains("PRIMARY KEY (`id`), KEY `secondary` (`day`, `hour`)) ENGINE=InnoDB"));
        assert_eq!(
            select(schema, &table.query(), Access::Secondary),
            "SELECT `day` + 0, `hour`, COUNT(*), SUM(`request`), MAX(`request`), SUM(`size`), \
             MAX(`size`) FROM `page_counts` FORCE INDEX (`secondary`) \
             WHERE `day` BETWEEN 20160105 AND 20160105 GROUP BY `day`, `hour` \
             ORDER BY `day`, `hour`"
        );
        assert!(select(schema, &table.query(), Access::Primary).contains("IGNORE INDEX"));
        let range = Range { column: 1, from: 1, to: i64::from(u32::MAX) };
        let all = Query { range: Some(range), ..table.query() };
        assert!(select(schema, &all, Access::Primary).contains("BETWEEN 1 AND 99991231"));
        let table = Wide::new(1000, 1);
        let sql = select(table.schema(), &table.query(), Access::Secondary);
        assert!(sql.contains("FORCE INDEX (PRIMARY) WHERE `start_ts` BETWEEN"), "{sql}");
        let end =
            "GROUP BY `query_class_id` ORDER BY SUM(`m00_sum`) DESC, `query_class_id` LIMIT 10";
        assert!(sql.ends_with(end), "{sql}");
    }

    #[test]
    fn lines_of_answers_are_whole_numbers() {
        let query = Query { range: None, group: vec![1], figures: vec![5], top: None };
        let line = |texts: &[&str]| {
            let row: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            group(&query, &row)
        };
        let found = line(&["7", "2", "-3", "4"]).expect("is one");
        let wanted = Group { key: vec![7], rows: 2, sums: vec![-3], maxima: vec![4] };
        assert_eq!(found, wanted);
        for bad in [&["7", "2", "", ""][..], &["7", "2", "1.5", "1"], &["7", "2", "1"], &[]] {
            assert!(line(bad).is_err(), "{bad:?}");
        }
    }
}
