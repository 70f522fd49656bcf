//! Cells against processes that succeed, fail, die and hang.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;
use crate::adapter::EngineName;
use crate::experiment::file_system::FileSystemSpec;
use crate::kind::head;
use crate::linkbench::cell::{self, CellResult};
use crate::linkbench::kind::LinkBench;
use crate::linkbench::measure::{self, Limits};
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::sample;
use crate::run::cells::{PlanRunner, kept_entries};
use crate::run::file_system::Mounted;
use crate::run::process::Program;
use crate::run::progress::{Announcer, ProgressLine};
use crate::run::store::Store;

/// Keeps what was announced.
#[derive(Default)]
struct Notes(Vec<String>);

impl Announcer for Notes {
    fn say(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
    fn begin(&mut self, _text: &str) {}
    fn progress(&mut self, line: &ProgressLine) {
        self.0.push(format!("{} {}", line.stage, line.done));
    }
    fn end(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

/// A results directory, prepared results, and a shell in place of the program.
struct World {
    root: tempfile::TempDir,
    plan: Plan,
    /// Where data are, when not beside the results.
    data: Option<PathBuf>,
    interrupt: Arc<AtomicBool>,
}

/// Takes the job apart, so that scripts see `$id`, `$data` and `$result`.
const PREAMBLE: &str = "job=$(cat)\n\
    field() { printf '%s' \"$job\" | sed 's/.*\"'$1'\":\"\\([^\"]*\\)\".*/\\1/'; }\n\
    id=$(field id); data=$(field data_directory); result=$(field result_path)\n";

impl World {
    fn new(repeats: u64) -> World {
        World::of(sample::plan(&EngineName::model(), repeats))
    }

    fn of(plan: Plan) -> World {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("prepared")).expect("creates");
        for spec in &plan.cells {
            let text = serde_json::to_string(&sample::result(spec)).expect("to JSON");
            fs::write(root.path().join("prepared").join(format!("{}.json", spec.id)), text)
                .expect("writes");
        }
        World { root, plan, data: None, interrupt: Arc::new(AtomicBool::new(false)) }
    }

    fn results(&self) -> PathBuf {
        self.root.path().join("results")
    }

    /// Runs with a script, which has `succeed` to leave the prepared result.
    fn run(&self, script: &str) -> (Result<LinkBenchRecord, RunError>, Vec<String>) {
        let prepared = self.root.path().join("prepared");
        let text = format!(
            "{PREAMBLE}succeed() {{ echo data > \"$data/file\"; cp '{}'/\"$id\".json \"$result\"; }}\n\
             {script}",
            prepared.display()
        );
        let program = Program {
            kind: "test",
            path: "/bin/sh".into(),
            arguments: ["-c".into(), text.into()].into(),
            environment: Vec::new(),
        };
        let mut notes = Notes::default();
        let results = self.results();
        let runner = PlanRunner {
            plan: &self.plan,
            head: head::<LinkBench>(),
            program: &program,
            results: &results,
            data: self.data.as_deref(),
            databases: None,
            fresh: false,
            interrupt: &self.interrupt,
        };
        let entries = runner.run(&mut notes);
        let record = entries.map(|entries| LinkBenchRecord::new(self.plan.clone(), entries));
        (record, notes.0)
    }

    /// The run again, from what is kept of it.
    fn read(&self) -> LinkBenchRecord {
        let entries = kept_entries(&self.run_directory(), &self.plan);
        LinkBenchRecord::new(self.plan.clone(), entries)
    }

    fn run_directory(&self) -> PathBuf {
        self.results().join("runs").join(self.plan.name())
    }

    fn data_directories(&self) -> usize {
        let entries = fs::read_dir(self.run_directory()).expect("reads").flatten();
        entries.filter(|entry| entry.path().is_dir()).count()
    }
}

fn ids(record: &LinkBenchRecord) -> Vec<&str> {
    record.cells.iter().map(|cell| cell.spec.id.as_str()).collect()
}

#[test]
fn every_cell_is_measured_once() {
    let world = World::new(2);
    let (record, notes) = world.run(
        "echo '{\"stage\":\"load\",\"done\":5,\"total\":9,\"unit\":\"links\",\"rate\":1}'; succeed",
    );
    let record = record.expect("runs");
    assert!(record.is_complete());
    assert_eq!(record.valid_cells(), 7);
    assert_eq!(ids(&record)[..3], ["driver", "zlib-1-r0", "zlib-6-r0"]);
    assert_eq!(notes.iter().filter(|note| *note == "load 5").count(), 7, "{notes:#?}");
    assert_eq!(world.data_directories(), 0, "data are removed");
    // The second time nothing runs: a script that fails is not asked.
    let (again, notes) = world.run("exit 9");
    assert!(again.expect("runs").is_complete());
    assert!(notes.iter().all(|note| note.ends_with("measured already, kept")), "{notes:#?}");
    let read = world.read();
    assert!(read.is_complete());
    assert_eq!(ids(&read), ids(&record));
}

#[test]
fn only_what_is_missing_or_different_is_measured_again() {
    let world = World::new(1);
    assert!(world.run("succeed").0.expect("runs").is_complete());
    fs::remove_file(world.run_directory().join("zlib-6-r0.json")).expect("removes");
    fs::write(world.run_directory().join("zlib-1-r0.json"), "{ half").expect("writes");
    let mut other = sample::result(&world.plan.cells[3]);
    other.spec.query_seconds += 1;
    other.hash = other.spec.hash();
    let text = serde_json::to_string(&other).expect("to JSON");
    fs::write(world.run_directory().join("zstd-1-r0.json"), text).expect("writes");
    let (record, notes) = world.run("succeed");
    assert!(record.expect("runs").is_complete());
    let has = |part: &str| notes.iter().any(|note| note.contains(part));
    assert!(has("driver: measured already"), "{notes:#?}");
    assert!(has("zlib-1-r0: measuring again") && has("is no result"), "{notes:#?}");
    assert!(has("zstd-1-r0: measuring again: it was measured with other settings"), "{notes:#?}");
    assert!(has("zlib-6-r0: ") && !has("zlib-6-r0: measured already"), "{notes:#?}");
}

#[test]
fn a_cell_that_dies_costs_its_row_only() {
    let world = World::new(2);
    let (record, _) = world.run(
        "case $id in\n\
         zlib-1-r0) echo 'first line' >&2; echo 'the disk is on fire' >&2; exit 3;;\n\
         zlib-6-r1) kill -9 $$;;\n\
         zstd-1-r0) exit 0;;\n\
         zstd-1-r1) echo '{}' > \"$result\";;\n\
         *) succeed;;\n\
         esac",
    );
    let record = record.expect("the run goes on");
    let failure = |id: &str| {
        let cell = record.cells.iter().find(|cell| cell.spec.id == id).expect("is there");
        cell.failure.clone().unwrap_or_default()
    };
    assert_eq!(failure("zlib-1-r0"), "exit code 3: first line | the disk is on fire");
    assert_eq!(failure("zlib-6-r1"), "killed by SIGKILL");
    assert_eq!(failure("zstd-1-r0"), "it left no result");
    assert!(failure("zstd-1-r1").contains("is no result"));
    assert_eq!((record.valid_cells(), record.cells.len()), (3, 7));
    assert!(!record.is_complete() && !record.interrupted);
    assert_eq!(world.data_directories(), 0);
    // What failed runs again, what succeeded does not.
    let (again, notes) = world.run("succeed");
    assert!(again.expect("runs").is_complete());
    assert_eq!(notes.iter().filter(|note| note.ends_with("kept")).count(), 3, "{notes:#?}");
}

#[test]
fn an_interrupt_ends_the_child_and_keeps_what_was_measured() {
    let world = World::new(1);
    let started = world.root.path().join("started");
    let watcher = {
        let (started, interrupt) = (started.clone(), Arc::clone(&world.interrupt));
        std::thread::spawn(move || {
            while !started.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            interrupt.store(true, Ordering::Relaxed);
        })
    };
    let script = format!(
        "case $id in zlib-6-r0) echo x > '{}'; sleep 600; succeed;; *) succeed;; esac",
        started.display()
    );
    let (record, notes) = world.run(&script);
    watcher.join().expect("ends");
    let record = record.expect("an interrupt is no error");
    assert!(record.interrupted && !record.is_complete());
    assert_eq!(ids(&record), ["driver", "zlib-1-r0"]);
    assert!(notes.iter().any(|note| note == "zlib-6-r0: stopped"), "{notes:#?}");
    assert_eq!(world.data_directories(), 0, "the child's data are removed");
    assert!(world.read().interrupted);
    world.interrupt.store(false, Ordering::Relaxed);
    let (again, notes) = world.run("succeed");
    assert!(again.expect("runs").is_complete());
    assert_eq!(notes.iter().filter(|note| note.ends_with("kept")).count(), 2, "{notes:#?}");
}

#[test]
fn a_second_run_in_the_same_place_is_refused() {
    let world = World::new(1);
    let _store = Store::open(&world.results(), &world.plan.name()).expect("opens");
    let error = world.run("succeed").0.expect_err("is refused");
    assert!(error.to_string().contains("another run is writing here"), "{error}");
}

#[test]
fn foreign_directories_are_not_removed() {
    let world = World::new(1);
    let foreign = world.run_directory().join("driver.data");
    fs::create_dir_all(&foreign).expect("creates");
    fs::write(foreign.join("precious"), "x").expect("writes");
    let error = world.run("succeed").0.expect_err("is refused");
    assert!(error.to_string().contains("was not made by a run"), "{error}");
    assert!(foreign.join("precious").exists());
    // What a killed run of ours left behind is.
    fs::write(foreign.join("LITHIFY-CELL"), "").expect("writes");
    assert!(world.run("succeed").0.expect("runs").is_complete());
    assert!(!foreign.exists());
}

#[test]
fn bad_places_are_named() {
    let world = World::new(1);
    fs::write(world.results(), "a file").expect("writes");
    let error = world.run("succeed").0.expect_err("is refused").to_string();
    assert!(error.contains("results"), "{error}");
}

#[test]
fn a_full_disk_is_noticed_before_the_start() {
    let world = World::new(1);
    let mut plan = world.plan.clone();
    if let Some(scale) = plan.experiment.scales.get_mut("smoke") {
        scale.disk_mib = 1 << 30;
    }
    for cell in &mut plan.cells {
        cell.engine = EngineName::lithify();
    }
    let world = World { plan, ..world };
    let error = world.run("succeed").0.expect_err("is refused").to_string();
    assert!(error.contains("1073741824 MiB needed"), "{error}");
}

/// Where control groups can be made, every cell but the calibration runs in one with the budget
/// and the driver's memory as its limit, and none is left, however the cell ended. Where they
/// cannot, the run is refused in words.
#[test]
fn a_limited_cell_runs_in_a_group_that_is_gone_afterwards() {
    let mut plan = sample::plan(&EngineName::model(), 1);
    for cell in &mut plan.cells[1..] {
        cell.memory_limit_bytes = Some(64 << 20);
    }
    let world = World::of(plan);
    let groups = world.root.path().join("groups");
    let script = format!(
        "group=$(field group)\n\
         case $id in driver) succeed; exit 0;; esac\n\
         echo $$ > \"$group/cgroup.procs\" || exit 1\n\
         limit=$(cat \"$group\"/memory.limit_in_bytes \"$group\"/memory.max 2>/dev/null)\n\
         echo \"$group $limit $MALLOC_ARENA_MAX\" >> '{}'\n\
         case $id in zlib-6-r0) kill -9 $$;; *) succeed;; esac",
        groups.display()
    );
    let (record, _) = world.run(&script);
    let made = match record {
        Ok(record) => {
            assert_eq!(record.valid_cells(), 3, "{:?}", record.cells[1].failure);
            fs::read_to_string(&groups).expect("the groups are listed")
        }
        Err(error) => {
            assert!(error.to_string().starts_with("memory cannot be limited: "), "{error}");
            return;
        }
    };
    assert_eq!(made.lines().count(), 3, "{made}");
    for line in made.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [group, limit, "1"] = words[..] else { panic!("{line}: one arena is asked for") };
        // 60 MB are those of the driver in the sample; the kernel rounds to pages.
        assert_eq!(limit.parse::<u64>().expect("a number") >> 20, ((64 << 20) + 60_000_000) >> 20);
        assert!(!Path::new(group).exists(), "{group} is left");
    }
}

#[test]
fn a_limit_needs_a_calibration() {
    let mut plan = sample::plan(&EngineName::model(), 1);
    plan.cells.remove(0);
    plan.cells[0].memory_limit_bytes = Some(64 << 20);
    let world = World::of(plan);
    let error = world.run("succeed").0.expect_err("is refused").to_string();
    assert!(error.starts_with("memory cannot be limited: "), "{error}");
}

#[test]
fn a_cell_is_measured_from_end_to_end() {
    let mut spec = sample::plan(&EngineName::model(), 1).cells[1].clone();
    (spec.nodes, spec.warmup_seconds, spec.query_seconds) = (1_000, 0, 1);
    let directory = tempfile::tempdir().expect("a directory");
    let lines = std::sync::Mutex::new(Vec::new());
    let listener = |line: &ProgressLine| lines.lock().expect("not poisoned").push(line.clone());
    let result = measure::measure(&spec, directory.path(), Limits::default(), &listener)
        .expect("is measured");
    for phase in [&result.load, &result.query] {
        // One at the end at the least, however short the phase was.
        let last = phase.samples.last().expect("was sampled");
        assert_eq!(last.live_bytes, phase.statistics_settled.live_bytes);
        assert!(phase.peak_live_bytes() >= phase.statistics.live_bytes);
        assert!(phase.observed_stalls.longest_gap_us.is_some());
    }
    assert_eq!(result.hash, spec.hash());
    assert!(result.load.operations > 1_000 && result.query.operations > 100);
    assert_eq!(result.oracle.len(), 2);
    assert!(result.violation().is_none(), "{:?}", result.oracle);
    assert!(result.query.latencies.iter().any(|summary| summary.op == "GET_LINKS_LIST"));
    let lines = lines.into_inner().expect("not poisoned");
    assert!(
        ["load", "settle", "check", "query"]
            .iter()
            .all(|stage| { lines.iter().any(|line| line.stage == *stage) })
    );
}

#[test]
fn queries_with_each_number_of_clients_over_one_load() {
    let mut spec = sample::plan(&EngineName::model(), 1).cells[1].clone();
    (spec.nodes, spec.warmup_seconds, spec.query_seconds) = (1_000, 1, 1);
    (spec.clients, spec.requesters) = (vec![1, 2], 2);
    let directory = tempfile::tempdir().expect("a directory");
    let measure = |spec: &CellSpec| {
        measure::measure(spec, directory.path(), Limits::default(), &|_| {}).expect("is measured")
    };
    let result = measure(&spec);
    let queries: Vec<_> = result.queries().collect();
    assert_eq!(queries.iter().map(|(clients, _)| *clients).collect::<Vec<_>>(), [1, 2]);
    let [first, second] = [0, 1].map(|phase: usize| queries[phase].1);
    assert!(first.operations > 100 && second.operations > 100);
    let writes = |phase: &cell::PhaseResult| phase.driver["writes"].as_u64().expect("is told");
    // Those of the warm-ups count too.
    assert!(first.write_operations > writes(first), "{}", first.write_operations);
    let between = second.write_operations - first.write_operations;
    assert!(between > writes(second), "{between}");
    assert_eq!(result.turnover(second), second.write_operations as f64 / 1_000.0);
    assert_eq!(result.oracle.len(), 2, "after the load and after all queries");
    assert!(result.violation().is_none(), "{:?}", result.oracle);

    let loaded = measure(&CellSpec { purpose: Purpose::Load, loaders: 3, ..spec });
    assert_eq!((loaded.queries().count(), loaded.query.operations), (0, 0));
    assert_eq!(loaded.load.operations, result.load.operations);
    assert_eq!(loaded.oracle.len(), 1);
}

#[test]
fn a_second_log_is_counted_apart_and_stands_beside_the_data() {
    let mut spec = sample::plan(&EngineName::lithify(), 1).cells[1].clone();
    (spec.nodes, spec.warmup_seconds, spec.query_seconds) = (1_000, 0, 1);
    spec.second_log = true;
    let directory = tempfile::tempdir().expect("a directory");
    let result = measure::measure(&spec, directory.path(), Limits::default(), &|_| {});
    let result = result.expect("is measured");
    let log = |phase: &cell::PhaseResult| phase.second_log.expect("there is one");
    // Every link is a row in two indexes.
    assert!(log(&result.load).bytes > result.load.operations * 2 * 28);
    assert!(log(&result.query).records > 0 && log(&result.query).cpu_us > 0);
    let length = directory.path().join("second-log").metadata().expect("is there").len();
    assert_eq!(length, log(&result.load).bytes + log(&result.query).bytes);
    let size = result.query.usage.directory.apparent_bytes;
    assert!(size < length + result.query.statistics.live_bytes, "the log is not in the size");
    assert!(result.violation().is_none(), "{:?}", result.oracle);
}

#[test]
fn a_device_that_cannot_be_slowed_costs_its_row() {
    let mut plan = sample::plan(&EngineName::new("elsewhere"), 1);
    plan.cells[1].device = crate::experiment::DeviceSpeed::Disk;
    let mut world = World::of(plan);
    // No group slows what is on no disk; how much room there is there does not matter.
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("there is no /dev/shm: not tested");
        return;
    };
    world.data = Some(memory.path().to_owned());
    world.plan.scale = "undeclared".to_owned();
    let record = world.run("succeed").0.expect("the run goes on");
    let failure = record.cells[1].failure.as_deref().unwrap_or_default();
    assert!(failure.starts_with("the device cannot be slowed: "), "{failure}");
    assert_eq!(record.valid_cells(), record.cells.len() - 1);
}

#[test]
fn the_process_of_a_cell_gets_its_allocator_or_the_row_says_what_is_missing() {
    let mut plan = sample::plan(&EngineName::model(), 1);
    for (cell, allocator) in plan.cells[1..].iter_mut().zip(Allocator::ALL) {
        cell.allocator = allocator;
    }
    let world = World::of(plan);
    let script = "echo \"$id $LD_PRELOAD\" >> \"$(dirname \"$result\")/loaded\"; succeed";
    let record = world.run(script).0.expect("the run goes on");
    let loaded = fs::read_to_string(world.run_directory().join("loaded")).expect("was written");
    for cell in &record.cells {
        let preload = cell.spec.allocator.environment().first().map_or("", |(_, file)| *file);
        match &cell.failure {
            None => assert!(loaded.contains(&format!("{} {preload}\n", cell.spec.id)), "{loaded}"),
            Some(why) => assert!(why.contains("install the package"), "{why}"),
        }
    }
    assert!(record.cells[1].failure.is_none(), "the program's own is always there");
}

/// Queries that end at the last of these turnovers, or after two seconds.
fn aged(turnovers: &[f64]) -> CellResult {
    let mut spec = sample::plan(&EngineName::model(), 1).cells[1].clone();
    // The warm-up alone would be longer than that.
    (spec.nodes, spec.warmup_seconds, spec.query_seconds) = (1_000, 2, 2);
    spec.turnovers = turnovers.to_vec();
    let directory = tempfile::tempdir().expect("a directory");
    let limits = Limits::default();
    measure::measure(&spec, directory.path(), limits, &|_| {}).expect("is measured")
}

#[test]
fn queries_end_by_turnover_or_tell_how_far_they_came() {
    let result = aged(&[0.1, 0.5]);
    let writes = result.query.write_operations;
    let seconds = result.query.seconds;
    assert!(seconds > 0.0 && result.query.operations > 500, "{seconds}");
    // The one that ends it, and one more of every other client that was under way.
    assert!((500..500 + result.spec.requesters).contains(&writes), "{writes}");
    let last = result.query.ages.last().expect("was taken");
    assert_eq!(last.turnover, writes as f64 / 1_000.0);
    assert_eq!(last.operations, result.query.operations, "without the warm-up");
    assert!(result.violation().is_none(), "{:?}", result.oracle);

    // Two seconds are not enough for a hundred thousand writes to each node.
    let result = aged(&[0.1, 100_000.0]);
    let ages = &result.query.ages;
    assert!(ages.len() == 2 && ages[0].turnover >= 0.1, "{ages:?}");
    assert_eq!(ages[1].turnover, result.turnover(&result.query));
    assert!(ages[0].operations < ages[1].operations && ages[1].turnover < 100_000.0);
}

#[test]
fn a_database_that_is_dropped_is_gone_with_its_space() {
    let mut spec = sample::plan(&EngineName::lithify(), 1).cells[1].clone();
    (spec.nodes, spec.warmup_seconds, spec.query_seconds) = (1_000, 0, 1);
    (spec.drop_database, spec.plain_deletes) = (true, true);
    let directory = tempfile::tempdir().expect("a directory");
    let database = directory.path().join("db");
    fs::create_dir(&database).expect("creates");
    let result = measure::measure(&spec, &database, Limits::default(), &|_| {});
    let result = result.expect("is measured");
    assert!(!result.capabilities.single_delete, "every delete is plain");
    let dropped = result.dropped.expect("was dropped");
    assert_eq!(dropped.how, "closed, its files removed");
    assert!(dropped.before.directory.files > 0 && dropped.before.directory.allocated_bytes > 0);
    assert_eq!(dropped.after.directory.files, 0);
    assert!(!dropped.figures.is_not_back && dropped.figures.alone.operations > 0);
    assert_eq!(fs::read_dir(directory.path()).expect("is there").count(), 0);
}

#[test]
fn a_file_system_that_cannot_be_made_costs_its_row() {
    let mut plan = sample::plan(&EngineName::model(), 1);
    // Too small for any.
    let refused = FileSystemRequest { spec: FileSystemSpec::Ext4, size_bytes: 512 };
    plan.cells[1].file_system = Some(refused);
    let world = World::of(plan);
    let record = world.run("succeed").0.expect("the run goes on");
    let failure = record.cells[1].failure.as_deref().unwrap_or_default();
    assert!(failure.contains("mkfs.ext4") || failure.contains("only root"), "{failure}");
    assert_eq!(record.valid_cells(), record.cells.len() - 1);
    assert_eq!(world.data_directories(), 0);
}

/// What the process of a cell is told of its file system, and what is left of it: by a cell that
/// succeeds, by one that dies, and by a run that was killed before.
#[test]
fn a_cell_lies_on_a_file_system_of_its_own_that_goes_with_it() {
    let mut plan = sample::plan(&EngineName::model(), 1);
    let asked = FileSystemRequest::new(&FileSystemSpec::Ext4, 0);
    let place = tempfile::tempdir().expect("a directory");
    if let Err(why) = Mounted::make(&asked, place.path()) {
        println!("not tried: {why}");
        return;
    }
    plan.cells[1].file_system = Some(asked.clone());
    plan.cells[2].file_system = Some(asked);
    let world = World::of(plan);
    let list = world.root.path().join("mounts");
    let script = format!(
        "case $id in driver|zstd-1-r0) ;; *) stat -f -c %T \"$data\" >> '{0}'; \
         printf '%s' \"$job\" | grep -o '\"spec\":\"ext4\"' >> '{0}' ;; esac\n\
         case $id in zlib-6-r0) exit 3 ;; esac; succeed",
        list.display()
    );
    let record = world.run(&script).0.expect("runs");
    let seen = fs::read_to_string(&list).expect("was written");
    assert_eq!(seen.lines().filter(|line| *line == "ext2/ext3").count(), 2, "{seen}");
    // In the description of the cell, and beside what it is told.
    assert_eq!(seen.lines().filter(|line| line.contains("ext4")).count(), 4, "{seen}");
    assert!(record.cells[2].failure.as_deref().is_some_and(|why| why.starts_with("exit code 3")));
    assert_eq!(world.data_directories(), 0, "nothing is mounted or left");
}

#[test]
fn phases_that_end_by_time_are_known_beforehand() {
    let mut spec = sample::plan(&EngineName::model(), 1).cells[1].clone();
    (spec.warmup_seconds, spec.query_seconds, spec.clients) = (5, 20, vec![1, 4]);
    spec.open_loop_percent = vec![70];
    assert_eq!(spec.effort().declared_s, Some(70.0));
    spec.turnovers = vec![0.5, 1.0];
    assert_eq!(spec.effort().declared_s, Some(30.0), "when queries end is not known");
    spec.purpose = Purpose::Load;
    assert_eq!(spec.effort().declared_s, None, "a load takes as long as it takes");
    assert_eq!(spec.effort().work, 1.0);
    spec.purpose = Purpose::Calibrate;
    assert_eq!(spec.effort().work, 0.0, "the driver says nothing of engines");
}
