//! The scripted runs: short, and together all that changes what is on disk.

use crate::operation::{
    Change, Ending, FAMILY_COUNT, IngestWay, Key, Operation, Settings, TransactionCall, Value,
    Write, lifetimes::TIMED, operators,
};
use crate::random::Random;
use lithify::{CfOptions, Durability, Options};

/// The modes of durability that scripts are run in.
pub const MODES: [Durability; 4] = [
    Durability::Sync,
    Durability::Buffered,
    Durability::Interval { milliseconds: 5 },
    Durability::None,
];

/// One run.
pub struct Script {
    /// What it is about.
    pub name: &'static str,
    /// What is told first; then the process is killed, and only what comes then is recorded.
    pub before_a_kill: Vec<Operation>,
    /// What is told.
    pub operations: Vec<Operation>,
    /// The slot of the family with a compaction filter.
    pub filter: Option<usize>,
    /// Bytes over which a manifest is replaced.
    manifest_bytes_max: u64,
}

impl Script {
    /// The options that it is run with.
    pub fn options(&self, durability: Durability) -> Options {
        options(durability, self.manifest_bytes_max)
    }

    /// All that is told.
    pub fn told(&self) -> impl Iterator<Item = &Operation> {
        self.before_a_kill.iter().chain(&self.operations)
    }

    /// Its operations, one a line.
    pub fn lines(&self) -> Vec<String> {
        self.told().map(|operation| format!("{operation:?}")).collect()
    }
}

fn options(durability: Durability, manifest_bytes_max: u64) -> Options {
    Options {
        memory_budget_bytes: 1 << 20,
        memtable_bytes: 64 << 10,
        wal_bytes_max: 256 << 10,
        manifest_bytes_max,
        background_threads: 0,
        durability,
        ..Options::default()
    }
}

fn family_options(codecs: &str) -> CfOptions {
    CfOptions {
        compression: codecs.parse().unwrap_or_default(),
        block_size_bytes: 1024,
        table_bytes: 64 << 10,
        base_level_bytes_max: 64 << 10,
        fanout: 2,
        ..CfOptions::default()
    }
}

/// Writes operations down.
#[derive(Default)]
struct Lines {
    operations: Vec<Operation>,
    values: u64,
}

impl Lines {
    fn add(&mut self, operation: Operation) -> &mut Self {
        self.operations.push(operation);
        self
    }

    /// A value that no other write has.
    fn value(&mut self, length: u32) -> Value {
        self.values += 1;
        Value { seed: self.values.wrapping_mul(0x9e37_79b9_7f4a_7c15), length }
    }

    fn change(&mut self, key: &str, length: u32) -> Change {
        let value = self.value(length);
        match key.strip_prefix('-') {
            Some(key) => Change::Delete(key.into()),
            None if key.starts_with('~') => Change::Once(key.into(), value),
            None if key.starts_with('+') => Change::Merge(key[1..].into(), value),
            None => match key.split_once("..") {
                Some((start, end)) => Change::DeleteRange(start.into(), end.into()),
                None => Change::Put(key.into(), value),
            },
        }
    }

    /// Writes, one commit each: `key` puts, `+key` merges, `-key` deletes, `a..b` deletes a range,
    /// `~key` puts once or deletes singly.
    fn write(&mut self, family: usize, keys: &str, length: u32) -> &mut Self {
        for key in keys.split(' ') {
            let change = self.change(key, length);
            self.add(Operation::Write(Write { family, change }));
        }
        self
    }

    /// One batch: `0:key 1:-key`, the families before the changes.
    fn batch(&mut self, writes: &str, length: u32, is_synced: bool) -> &mut Self {
        let writes = self.writes(writes, length);
        self.add(Operation::Batch { writes, is_synced })
    }

    fn writes(&mut self, writes: &str, length: u32) -> Vec<Write> {
        let mut parsed = Vec::new();
        for write in writes.split(' ') {
            let (family, key) = write.split_once(':').unwrap_or(("0", write));
            let family = family.parse().unwrap_or(0);
            parsed.push(Write { family, change: self.change(key, length) });
        }
        parsed
    }

    fn transaction(&mut self, writes: &str, length: u32, is_synced: bool) -> &mut Self {
        let call = |call| Operation::Transaction { slot: 0, call };
        self.add(call(TransactionCall::Begin {
            has_snapshot: true,
            reads_at_snapshot: false,
            is_optimistic: is_synced,
        }));
        for write in self.writes(writes, length) {
            if let Change::Put(key, _) | Change::Merge(key, _) | Change::Delete(key) = &write.change
            {
                let key = key.clone();
                self.add(call(TransactionCall::GetForUpdate(write.family, key)));
            }
            self.add(call(TransactionCall::Write(write)));
        }
        self.add(call(TransactionCall::Commit { is_synced }))
    }

    fn ingest(&mut self, family: usize, keys: &str, length: u32, way: IngestWay) -> &mut Self {
        let mut rows: Vec<(Key, Option<Value>)> = Vec::new();
        for key in keys.split(' ') {
            let row = match key.strip_prefix('-') {
                Some(key) => (key.into(), None),
                None => (key.into(), Some(self.value(length))),
            };
            rows.push(row);
        }
        self.add(Operation::Ingest { family, rows, way })
    }

    fn families(&mut self, slots: &[usize]) -> &mut Self {
        let codecs = ["none", "snappy,lz4,zstd-1", "lz4"];
        for slot in slots {
            let options = Box::new(family_options(codecs[*slot % codecs.len()]));
            self.add(Operation::CreateFamily(*slot, options));
        }
        self
    }

    /// Families with what their slots have: merge operators or a time to live.
    fn families_of_slots(&mut self, slots: &[usize]) -> &mut Self {
        let random = &mut Random::new(1);
        for &slot in slots {
            let options = operators::with_operator(family_options("lz4"), slot, random);
            self.add(Operation::CreateFamily(slot, Box::new(options)));
        }
        self
    }

    fn flush(&mut self, family: Option<usize>) -> &mut Self {
        self.add(Operation::Flush(family))
    }

    fn compact(&mut self, family: usize) -> &mut Self {
        self.add(Operation::Compact { family, range: None })
    }

    fn settle(&mut self) -> &mut Self {
        self.add(Operation::Settle)
    }

    fn sync(&mut self) -> &mut Self {
        self.add(Operation::Sync)
    }

    fn advance(&mut self, by_us: u64) -> &mut Self {
        self.add(Operation::Advance(by_us))
    }

    fn age(&mut self) -> &mut Self {
        self.add(Operation::Age)
    }

    fn reopen(&mut self, durability: Durability, manifest_bytes_max: u64) -> &mut Self {
        let families = std::array::from_fn::<_, FAMILY_COUNT, _>(|_| CfOptions::default());
        let settings = Settings { database: options(durability, manifest_bytes_max), families };
        self.add(Operation::Reopen(Ending::Close, Box::new(settings)))
    }

    fn script(&mut self, name: &'static str) -> Script {
        let operations = std::mem::take(&mut self.operations);
        let manifest_bytes_max = MANIFEST_BYTES_MAX;
        Script { name, before_a_kill: Vec::new(), operations, filter: None, manifest_bytes_max }
    }
}

/// Manifests that are not replaced in a script that is short.
const MANIFEST_BYTES_MAX: u64 = 4 << 20;

/// All scripts.
pub fn all() -> Vec<Script> {
    vec![
        commits(),
        batches(),
        transactions(),
        flushes(),
        compactions(),
        levels(),
        ingested_rows(),
        ingested_tables(),
        merges(),
        families(),
        log_segments(),
        closings(),
        manifests(),
        after_a_kill(),
        intervals(),
        filtered(),
        expiring(),
    ]
}

fn commits() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0]).write(0, "a b c a -b d d e", 30).sync();
    lines.write(0, "~x a..c f ~x ~y -nothing g", 200).advance(2000);
    lines.write(0, "h", 900).write(0, "i -a", 0).sync().write(0, "j k", 40);
    lines.script("single commits")
}

fn batches() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0, 1, 2]);
    lines.batch("0:a 1:a 2:a", 40, false).batch("0:b 0:-a 1:b", 700, true);
    lines.batch("2:b 2:c 2:a..b 1:-a", 60, false).batch("0:~x 1:~x 2:d", 600, false);
    lines.batch("0:~x 1:c..z 2:e", 10, true).batch("0:c 1:d 2:f", 1500, false);
    // The second flush of a family finds nothing in it, and makes the batch before it durable.
    lines.flush(Some(1)).batch("0:i 2:i", 30, false).flush(Some(1));
    lines.batch("0:e 1:e 2:g", 90, false).batch("1:f 0:e", 20, false);
    lines.flush(Some(0)).batch("2:h 0:f 1:g", 30, false);
    lines.script("batches over families")
}

fn transactions() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0, 1]);
    lines.transaction("0:a 1:a", 50, false).transaction("0:-a 1:b 0:c", 600, true);
    lines.write(0, "d e", 20).transaction("0:d 1:-b", 30, false).flush(None);
    lines.transaction("0:e 0:f 1:c", 400, false).transaction("1:d", 10, true).sync();
    lines.transaction("1:-c 0:-d", 10, false);
    lines.script("transactions")
}

fn flushes() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0, 1]).write(0, "a b c", 100).write(1, "a b", 100).flush(Some(0));
    lines.write(0, "b d", 300).add(Operation::TakeSnapshot(0)).write(1, "b..c -a", 10);
    lines.flush(Some(1)).write(0, "-a e", 50).flush(None).write(0, "f", 10);
    lines.add(Operation::ReleaseSnapshot(0)).write(1, "z", 10).flush(Some(1)).settle();
    lines.script("flushes")
}

fn compactions() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0, 1]);
    for round in 0..5 {
        lines.write(0, "a c e g -b", 200 + round * 40).write(1, "a m z", 80).flush(Some(0));
    }
    lines.settle().write(0, "b..d ~s ~t", 100).flush(Some(0)).compact(0);
    lines.write(0, "~s x", 100).flush(None).write(1, "m -z", 100).flush(Some(1));
    lines.add(Operation::Compact { family: 1, range: Some(("a".into(), "n".into())) });
    lines.compact(0).settle();
    lines.script("compactions")
}

fn levels() -> Script {
    let mut lines = Lines::default();
    lines.families(&[1]);
    for round in 0..6 {
        for part in ["a b c d", "e f g h", "c e i j"] {
            lines.write(1, part, 4500 + round * 100);
        }
        lines.flush(Some(1)).settle();
    }
    lines.write(1, "a..f", 1).flush(Some(1)).settle().compact(1);
    lines.script("levels")
}

fn ingested_rows() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0, 1]).write(0, "b d", 60).write(1, "x", 60);
    lines.ingest(0, "a b c", 300, IngestWay::Rows).write(0, "c e", 60);
    lines.ingest(0, "c -d f", 800, IngestWay::Rows);
    lines.ingest(1, "a b", 60, IngestWay::GivenUp).ingest(1, "y z", 60, IngestWay::Rows);
    lines.write(1, "y", 10).flush(None).settle().ingest(0, "m n", 10, IngestWay::Rows);
    lines.script("ingested rows")
}

fn ingested_tables() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0, 1]).write(0, "b d", 60);
    lines.ingest(0, "a b c", 300, IngestWay::LinkedTable).write(0, "b", 60);
    lines.ingest(0, "b c e", 900, IngestWay::CopiedTable).write(1, "q", 30);
    lines.ingest(1, "a q -r", 60, IngestWay::LinkedTable).compact(0);
    lines.ingest(0, "f g", 60, IngestWay::CopiedTable).settle().write(0, "g", 10);
    lines.script("ingested tables")
}

fn merges() -> Script {
    let mut lines = Lines::default();
    lines
        .families_of_slots(&[0, operators::OWN])
        .write(0, "a +a +b +b", 10)
        .write(1, "+a +a", 20)
        .sync();
    lines.batch("0:+a 1:+a 0:+b 1:b", 15, false).flush(Some(0)).write(0, "+a -b +b", 5);
    lines.transaction("0:+a 1:+b", 12, true).add(Operation::TakeSnapshot(0)).write(1, "+a +b", 20);
    lines.flush(Some(1)).write(1, "+a b..c +b", 20).compact(1).write(0, "+a +c", 8).compact(0);
    lines.add(Operation::ReleaseSnapshot(0)).write(1, "+a", 3).flush(None).settle();
    lines.write(0, "+a +c", 7).batch("0:+a 1:+a", 9, true).script("merges")
}

fn families() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0]).write(0, "a b", 40).families(&[1]).write(1, "a", 40);
    lines.batch("0:c 1:c", 40, false).add(Operation::DropFamily(0)).write(1, "d", 40);
    lines.families(&[0]).write(0, "e", 40).flush(Some(0)).add(Operation::DropFamily(0));
    lines.families(&[2]).batch("1:f 2:f", 40, false).families(&[0]).write(0, "g", 10);
    let other = Box::new(family_options("zstd-1"));
    lines.add(Operation::ChangeFamily(1, other)).write(1, "h", 10).flush(None);
    lines.add(Operation::DropFamily(1)).add(Operation::DropFamily(2)).settle();
    lines.script("families")
}

fn log_segments() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0, 1]).write(1, "pins", 10);
    for keys in ["a b c d e", "f a b c d", "e f a b"] {
        lines.write(0, keys, 19_000).write(1, "small", 20);
    }
    lines.flush(Some(1)).write(0, "g h", 30_000).flush(None).write(0, "a b c", 25_000);
    lines.settle().write(0, "d", 100).sync().write(0, "e", 100).flush(None);
    lines.write(0, "f g h", 25_000).settle().write(1, "a b", 25_000).flush(None).settle();
    lines.write(0, "a b c", 25_000).settle().write(0, "d e", 19_000).write(1, "last", 10);
    lines.script("log segments")
}

fn closings() -> Script {
    let mut lines = Lines::default();
    let (manifest, modes) = (MANIFEST_BYTES_MAX, MODES);
    lines.families(&[0, 1]).write(0, "a b", 60).reopen(modes[1], manifest).write(0, "c", 60);
    lines.reopen(modes[3], manifest).write(0, "d", 10).write(1, "a", 10).flush(Some(1));
    lines.write(0, "e", 10).reopen(modes[0], manifest).write(0, "f", 10);
    lines.reopen(modes[2], manifest).reopen(modes[1], manifest).batch("0:g 1:g", 10, false);
    lines.reopen(modes[1], manifest).write(1, "h", 10);
    lines.script("closing and opening")
}

fn manifests() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0]);
    for _ in 0..7 {
        lines.write(0, "a b", 20).flush(Some(0)).families(&[1]).write(1, "a", 10);
        lines.add(Operation::DropFamily(1));
    }
    lines.settle().write(0, "c", 10);
    Script { manifest_bytes_max: 1024, ..lines.script("manifests") }
}

fn after_a_kill() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0, 1]).write(0, "a b c", 9_000).write(1, "a", 40).flush(Some(1));
    lines.write(0, "d e f", 18_000).batch("0:g 1:g", 40, false).write(0, "a..b", 10);
    let before_a_kill = std::mem::take(&mut lines.operations);
    lines.write(0, "h", 30).batch("0:i 1:i", 60, true).flush(Some(0)).write(1, "j", 20_000);
    lines.write(0, "k l", 25_000).flush(None).settle().write(0, "m", 10);
    Script { before_a_kill, ..lines.script("after a kill") }
}

fn intervals() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0, 2]);
    for round in 0..4 {
        lines.write(0, "a b", 30).advance(3000).write(2, "a", 500).advance(2500);
        lines.batch("0:c 2:c", 200, round == 2).write(0, "-b", 10).advance(1000);
    }
    lines.flush(Some(2)).advance(6000).write(0, "d e", 10).sync().write(2, "z", 10);
    lines.script("intervals")
}

/// Rows are filtered below newer ones, beside a snapshot, and before and behind an opening.
fn filtered() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0, 2]).write(2, "a b c d e f g h", 300).write(0, "a", 30).flush(Some(2));
    lines.write(2, "c d i j k l m", 700).flush(Some(2)).compact(2).write(2, "a -b e m", 40);
    lines.batch("0:b 2:f 2:n 2:g", 60, false).add(Operation::TakeSnapshot(0)).compact(2);
    lines.write(2, "h..j o p", 500).flush(Some(2)).compact(2).add(Operation::CompareAll);
    lines.add(Operation::ReleaseSnapshot(0)).write(2, "q", 20).settle().compact(2);
    lines.write(2, "a b c ~s", 200).reopen(MODES[1], MANIFEST_BYTES_MAX).write(2, "d ~s", 90);
    lines.ingest(2, "a e j", 80, IngestWay::Rows).compact(2).batch("0:c 2:e 2:j", 30, true);
    Script { filter: Some(2), ..lines.script("filtered rows") }
}

/// Rows expire in the log, in memtables and in tables, beside a snapshot, and before and behind an opening.
fn expiring() -> Script {
    let mut lines = Lines::default();
    lines.families_of_slots(&[2, TIMED]).write(TIMED, "a b c d ~s", 300).write(2, "a", 30).age();
    lines.write(TIMED, "b -c e", 60).flush(Some(TIMED)).write(TIMED, "f", 20).age();
    lines.add(Operation::CompareAll).add(Operation::TakeSnapshot(0)).write(TIMED, "a ~s", 40);
    lines.batch("3:d 2:b 3:b..c", 500, false).flush(Some(TIMED)).compact(TIMED).age();
    lines.write(TIMED, "g d", 90).compact(TIMED).add(Operation::CompareAll);
    lines.add(Operation::ReleaseSnapshot(0)).settle().write(TIMED, "h", 700);
    lines.reopen(MODES[1], MANIFEST_BYTES_MAX).age().batch("3:i 2:c", 30, true).settle();
    lines.ingest(TIMED, "a -d j", 80, IngestWay::Rows).write(TIMED, "k", 10).age().compact(TIMED);
    lines.ingest(TIMED, "b k", 80, IngestWay::LinkedTable).age().flush(None).settle();
    lines.add(Operation::CompareAll).age().settle().write(TIMED, "l", 10);
    lines.script("expiring rows")
}

/// The scripts, and one that reads what is on disk in every way.
pub fn with_reads() -> Vec<Script> {
    let mut scripts = all();
    scripts.push(reads());
    scripts
}

fn reads() -> Script {
    let mut lines = Lines::default();
    lines.families(&[0, 1]);
    for part in ["a b c d e", "c d e f g", "a f h"] {
        lines.write(0, part, 3000).write(1, part, 300).flush(None);
    }
    lines.write(0, "b..d", 10).flush(Some(0)).reopen(MODES[1], MANIFEST_BYTES_MAX);
    let get = |family, key: &str| Operation::Get { family, key: key.into(), at: None };
    lines.add(get(0, "a")).add(get(0, "c")).add(get(1, "nothing")).add(Operation::CompareAll);
    lines.transaction("0:a 1:h", 40, false);
    let keys = ["a", "g", "z"].map(Key::from).to_vec();
    lines.add(Operation::MultiGet { family: 1, keys, at: None });
    lines.add(Operation::TakeSnapshot(0)).write(0, "e", 50).compact(0).add(Operation::CompareAll);
    lines.script("reads")
}
