//! One library with its databases and objects: it does what an action says, and tells what came of it.
//!
//! Answers are bytes and texts as the library gave them. Two things are reduced by rule: the path of the
//! directory in texts, and figures, which no two engines have in common ([`figure`], [`World::sizes`]).

use crate::actions::{Action, COMPARATORS, Call, Opening, Place, SLOTS};
use crate::leveldb::{
    Batch, Comparator, Database, Functions, Iterator, Move, Options, Policy, Setting, Snapshot,
    Told, environment,
};
use std::path::Path;
use std::rc::Rc;

/// A key and a value.
pub type Row = (Vec<u8>, Vec<u8>);

/// What came of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There was nothing to do it with.
    Idle,
    Done(Option<String>),
    Value(Option<Vec<u8>>, Option<String>),
    Row(Option<Row>, Option<String>),
    Rows(Vec<Row>),
    Told(Told),
    Text(Option<String>),
    Sizes(Vec<Option<u64>>),
}

/// See the module.
pub struct World {
    functions: &'static Functions,
    directory: tempfile::TempDir,
    iterators: [Option<Iterator>; SLOTS],
    snapshots: [Option<Rc<Snapshot>>; SLOTS],
    database: Option<Rc<Database>>,
    batches: [Batch; SLOTS],
}

impl World {
    /// A library with an empty directory.
    pub fn new(functions: &'static Functions) -> World {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("file"), "not a database").expect("a file");
        World {
            functions,
            directory,
            iterators: [None, None, None],
            snapshots: [None, None, None],
            database: None,
            batches: [(); SLOTS].map(|()| Batch::new(functions)),
        }
    }

    /// Where the databases are.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn path(&self, place: Place) -> String {
        let name = match place {
            Place::Usual => "database",
            Place::WithoutParent => "not/there",
            Place::File => "file",
        };
        self.directory.path().join(name).to_string_lossy().into_owned()
    }

    fn options(&self, opening: &Opening) -> Options {
        let mut options = Options::new(self.functions);
        for (setting, value) in &opening.settings {
            options.set(*setting, *value);
        }
        if opening.comparator > 0 {
            let name = COMPARATORS[opening.comparator];
            options.set_comparator(Rc::new(Comparator::new(self.functions, name, false)));
        }
        if let Some(bits) = opening.filter_bits {
            options.set_policy(Rc::new(match bits {
                0 => Policy::own(self.functions, false),
                bits => Policy::bloom(self.functions, bits),
            }));
        }
        options
    }

    fn without_path(&self, text: Option<String>) -> Option<String> {
        let directory = self.directory.path().to_string_lossy().into_owned();
        text.map(|text| text.replace(&directory, "DIRECTORY"))
    }

    /// Does it.
    pub fn run(&mut self, call: &Call) -> Answer {
        let earlier = call.has_earlier.then_some("an earlier failure");
        match &call.action {
            Action::Open(opening) => self.open(opening, earlier),
            Action::Close => {
                self.close();
                Answer::Done(None)
            }
            Action::Destroy(opening) => {
                let failure = self.options(opening).destroy(&self.path(opening.place), earlier);
                Answer::Done(self.without_path(failure))
            }
            Action::Environment => {
                let (major, minor, path) = environment(self.functions);
                assert!(Path::new(&path).is_dir());
                Answer::Text(Some(format!("{major}.{minor} {path}")))
            }
            action if is_of_batches(action) => self.batch(action, earlier),
            action => match self.database.clone() {
                Some(database) => self.reach(&database, action, earlier),
                None => Answer::Idle,
            },
        }
    }

    fn open(&mut self, opening: &Opening, earlier: Option<&str>) -> Answer {
        let path = self.path(opening.place);
        let (opened, failure) = Database::open(&self.options(opening), &path, earlier);
        let failure = self.without_path(failure);
        if let Some(database) = opened {
            assert!(self.database.is_none(), "opened twice");
            self.database = Some(Rc::new(database));
        }
        Answer::Done(failure)
    }

    /// Whether a database is open. LevelDB repairs under an open one, and so breaks it.
    pub fn is_open(&self) -> bool {
        self.database.is_some()
    }

    /// Repairs a database.
    pub fn repair(&self, opening: &Opening) -> Option<String> {
        let failure = self.options(opening).repair(&self.path(opening.place), None);
        self.without_path(failure)
    }

    /// The rows of a database that is not open; nothing if it does not open.
    pub fn rows_at_rest(&self, opening: &Opening) -> Option<Vec<Row>> {
        let mut options = self.options(opening);
        options.set(Setting::ErrorIfExists, 0);
        options.set(Setting::CreateIfMissing, 0);
        let (database, _) = Database::open(&options, &self.path(opening.place), None);
        database.map(|database| all_rows(&Rc::new(database), false))
    }

    /// Ends all that is of the database, and then the database.
    pub fn close(&mut self) {
        self.iterators = [None, None, None];
        self.snapshots = [None, None, None];
        self.database = None;
    }

    fn batch(&mut self, action: &Action, earlier: Option<&str>) -> Answer {
        match action {
            Action::BatchPut { slot, key, value } => self.batches[*slot].put(key, value),
            Action::BatchDelete { slot, key } => self.batches[*slot].delete(key),
            Action::BatchClear(slot) => self.batches[*slot].clear(),
            Action::BatchAppend { to, from } => {
                let batches = self.batches.get_disjoint_mut([*to, *from]);
                let [to, from] = batches.expect("two batches");
                // They double with each turn.
                if to.told().len() + from.told().len() < 1000 {
                    to.append(from);
                }
            }
            Action::BatchTell(slot) => return Answer::Told(self.batches[*slot].told()),
            Action::Write { slot, is_synced } => {
                let Some(database) = &self.database else { return Answer::Idle };
                return Answer::Done(database.write(&self.batches[*slot], *is_synced, earlier));
            }
            _ => {}
        }
        Answer::Done(None)
    }

    fn reach(&mut self, database: &Rc<Database>, action: &Action, earlier: Option<&str>) -> Answer {
        match action {
            Action::Put { key, value, is_synced } => {
                Answer::Done(database.put(key, value, *is_synced, earlier))
            }
            Action::Delete { key, is_synced } => {
                Answer::Done(database.delete(key, *is_synced, earlier))
            }
            Action::Get { key, snapshot } => {
                let snapshot = snapshot.and_then(|slot| self.snapshots[slot].clone());
                let (value, failure) = database.get(key, snapshot.as_deref(), earlier);
                Answer::Value(value, failure)
            }
            Action::TakeSnapshot(slot) => {
                self.snapshots[*slot] = Some(Rc::new(Snapshot::new(database)));
                Answer::Done(None)
            }
            Action::ReleaseSnapshot(slot) => {
                self.snapshots[*slot] = None;
                Answer::Done(None)
            }
            Action::Property(name) => {
                Answer::Text(database.property(name).map(|text| figure(name, &text)))
            }
            Action::Sizes(ranges) => Answer::Sizes(sizes(database, ranges)),
            Action::Compact(start, limit) => {
                database.compact(start.as_deref(), limit.as_deref());
                let is_all = start.is_none() && limit.is_none();
                if is_all && !all_rows(database, false).is_empty() {
                    let all = (Vec::new(), vec![0xff; 5000]);
                    assert!(database.sizes(&[all])[0] > 0, "rows without a file");
                }
                Answer::Done(None)
            }
            Action::AllRows { is_backward } => Answer::Rows(all_rows(database, *is_backward)),
            action => self.iterate(database, action),
        }
    }

    fn iterate(&mut self, database: &Rc<Database>, action: &Action) -> Answer {
        match action {
            Action::OpenIterator { slot, snapshot } => {
                let snapshot = snapshot.and_then(|slot| self.snapshots[slot].clone());
                let iterator = Iterator::new(database, snapshot);
                let answer = row(&iterator);
                self.iterators[*slot] = Some(iterator);
                answer
            }
            Action::EndIterator(slot) => {
                self.iterators[*slot] = None;
                Answer::Done(None)
            }
            Action::Go(slot, to) => {
                let Some(iterator) = &mut self.iterators[*slot] else { return Answer::Idle };
                iterator.go(to);
                row(iterator)
            }
            other => unreachable!("{other:?} is done elsewhere"),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.close();
    }
}

fn is_of_batches(action: &Action) -> bool {
    matches!(
        action,
        Action::BatchPut { .. }
            | Action::BatchDelete { .. }
            | Action::BatchClear(_)
            | Action::BatchAppend { .. }
            | Action::BatchTell(_)
            | Action::Write { .. }
    )
}

fn row(iterator: &Iterator) -> Answer {
    let row = iterator.row().map(|(key, value)| (key.to_vec(), value.to_vec()));
    Answer::Row(row, iterator.failure())
}

/// All rows of now.
pub fn all_rows(database: &Rc<Database>, is_backward: bool) -> Vec<Row> {
    let mut iterator = Iterator::new(database, None);
    let (first, next) = match is_backward {
        true => (Move::Last, Move::Previous),
        false => (Move::First, Move::Next),
    };
    let mut rows = Vec::new();
    iterator.go(&first);
    while let Some((key, value)) = iterator.row() {
        rows.push((key.to_vec(), value.to_vec()));
        iterator.go(&next);
    }
    assert_eq!(iterator.failure(), None);
    rows
}

/// Ranges without a key take nothing; what others take is each engine's own.
fn sizes(database: &Database, ranges: &[(Vec<u8>, Vec<u8>)]) -> Vec<Option<u64>> {
    let found = database.sizes(ranges);
    assert!(found.iter().all(|size| *size < 1 << 40), "a size that was not written");
    ranges.iter().zip(found).map(|((from, to), size)| (from >= to).then_some(size)).collect()
}

/// What two engines have in common of a property: its form.
fn figure(name: &str, text: &str) -> String {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match name {
        "leveldb.stats" => text.lines().take(3).collect::<Vec<_>>().join("\n"),
        "leveldb.sstables" => {
            text.lines().filter(|line| line.starts_with("---")).collect::<Vec<_>>().join("\n")
        }
        _ if is_number => "a number".to_owned(),
        _ => text.to_owned(),
    }
}

/// Settings that make a database where none is.
pub fn making(functions: &'static Functions) -> Options {
    let mut options = Options::new(functions);
    options.set(Setting::CreateIfMissing, 1);
    options
}
