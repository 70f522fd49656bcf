//! The loop over cells against processes that succeed, fail, and leave something else; runs that are
//! stopped and go on.

use std::fs;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::chunks::plan::ChunkPlan;
use crate::chunks::sample;
use crate::run::progress::ProgressLine;

/// Keeps what was announced; sets the interrupt when a cell has ended that it names.
struct Notes<'a> {
    lines: Vec<String>,
    stop_after: Option<&'a str>,
    interrupt: &'a AtomicBool,
}

impl Announcer for Notes<'_> {
    fn say(&mut self, text: &str) {
        self.lines.push(text.to_owned());
    }
    fn begin(&mut self, _text: &str) {}
    fn progress(&mut self, _line: &ProgressLine) {}
    fn end(&mut self, text: &str) {
        self.lines.push(text.to_owned());
        if self.stop_after.is_some_and(|cell| text.starts_with(cell)) {
            self.interrupt.store(true, Ordering::Relaxed);
        }
    }
}

/// Takes the job apart, so that scripts see `$id`, `$data` and `$result`.
const PREAMBLE: &str = "job=$(cat)\n\
    field() { printf '%s' \"$job\" | sed 's/.*\"'$1'\":\"\\([^\"]*\\)\".*/\\1/'; }\n\
    id=$(field id); data=$(field data_directory); result=$(field result_path)\n";

/// A results directory, and prepared results beside it.
struct World {
    root: tempfile::TempDir,
    plan: ChunkPlan,
}

impl World {
    fn new(arms: &[&str]) -> World {
        let (root, plan) = (tempfile::tempdir().expect("a directory"), sample::plan(arms));
        for cell in &plan.cells {
            let text = serde_json::to_string(&sample::outcome(cell)).expect("to JSON");
            fs::write(root.path().join(format!("{}.prepared", cell.id)), text).expect("writes");
        }
        World { root, plan }
    }

    /// Runs with a script, which has `succeed` to leave the prepared result.
    fn run(&self, script: &str, stop_after: Option<&str>) -> (Run<ChunkPlan>, Vec<String>) {
        let root = self.root.path();
        let text = format!(
            "{PREAMBLE}succeed() {{ echo data > \"$data/file\"; \
             cp '{}'/\"$id\".prepared \"$result\"; }}\n{script}",
            root.display()
        );
        let program = Program {
            kind: "test",
            path: "/bin/sh".into(),
            arguments: ["-c".into(), text.into()].into(),
            environment: Vec::new(),
        };
        let interrupt = AtomicBool::new(false);
        let mut notes = Notes { lines: Vec::new(), stop_after, interrupt: &interrupt };
        let results = root.join("results");
        let head = RecordHead { kind: "test".to_owned(), schema: 1 };
        let runner = PlanRunner {
            plan: &self.plan,
            head,
            program: &program,
            results: &results,
            data: None,
            databases: None,
            fresh: false,
            interrupt: &interrupt,
        };
        let entries = runner.run(&mut notes).expect("runs");
        (Run::new(self.plan.clone(), entries), notes.lines)
    }

    fn read(&self) -> Run<ChunkPlan> {
        Run::new(self.plan.clone(), kept_entries(&self.directory(), &self.plan))
    }

    fn directory(&self) -> PathBuf {
        self.root.path().join("results/runs").join(&self.plan.name)
    }
}

#[test]
fn a_run_that_was_stopped_goes_on_and_measures_nothing_twice() {
    let world = World::new(&["none-4k", "lz4-4k", "snappy-4k"]);
    let (stopped, _) = world.run("succeed", Some("lithify-none-4k-r0"));
    assert!(stopped.entries.interrupted && stopped.valid_cells() == 1);
    let read = world.read();
    assert!(read.entries.interrupted && read.valid_cells() == 1, "what is there can be shown");
    let (run, notes) = world.run("case $id in *none*) exit 9;; *) succeed;; esac", None);
    assert!(run.is_complete(), "{notes:#?}");
    assert_eq!(notes[0], "lithify-none-4k-r0: measured already, kept");
    let (_, notes) = world.run("exit 9", None);
    assert!(notes.iter().all(|note| note.ends_with("measured already, kept")), "{notes:#?}");
    let read = world.read();
    assert!(read.is_complete());
    let left = fs::read_dir(world.directory()).expect("reads").flatten();
    assert_eq!(left.filter(|entry| entry.path().is_dir()).count(), 0, "data are removed");
}

#[test]
fn a_cell_that_fails_costs_its_row_only() {
    let world = World::new(&["none-4k", "lz4-4k", "snappy-4k"]);
    let (run, _) = world.run(
        "case $id in\n\
         *lz4*) echo 'first line' >&2; echo 'no engine here' >&2; exit 3;;\n\
         *snappy*) echo '{}' > \"$result\";;\n\
         *) succeed;; esac",
        None,
    );
    assert_eq!((run.valid_cells(), run.is_complete()), (1, false));
    let problems = run.entries.problems();
    assert_eq!(problems[0], "lithify-lz4-4k-r0: FAILED: exit code 3: first line | no engine here");
    assert!(problems[1].contains("lithify-snappy-4k-r0.json is no result: "), "{problems:?}");
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn a_result_of_another_description_is_measured_again() {
    let world = World::new(&["none-4k"]);
    assert!(world.run("succeed", None).0.is_complete());
    let mut other = World::new(&["none-4k"]);
    other.plan.cells[0].build.push('x');
    other.root = world.root;
    let text = serde_json::to_string(&sample::outcome(&other.plan.cells[0])).expect("to JSON");
    fs::write(other.root.path().join("lithify-none-4k-r0.prepared"), text).expect("writes");
    let (run, notes) = other.run("succeed", None);
    assert!(run.is_complete() && !notes[0].contains("kept"), "{notes:?}");
}

#[test]
fn results_of_other_settings_are_set_aside() {
    let world = World::new(&["none-4k"]);
    assert!(world.run("succeed", None).0.is_complete());
    let mut other = World::new(&["none-4k"]);
    other.plan.cells[0].scans += 1;
    other.root = world.root;
    let text = serde_json::to_string(&sample::outcome(&other.plan.cells[0])).expect("to JSON");
    fs::write(other.root.path().join("lithify-none-4k-r0.prepared"), text).expect("writes");
    let (run, notes) = other.run("succeed", None);
    assert!(run.is_complete() && notes[0].contains("-before-1"), "{notes:?}");
    let aside = other.directory().with_file_name(format!("{}-before-1", other.plan.name));
    let kept = kept_entries(&aside, &world.plan);
    assert_eq!(kept.results().count(), 1, "the first run can still be shown");
    // A second time nothing is moved: these settings are there.
    let (_, notes) = other.run("exit 9", None);
    assert_eq!(notes, ["lithify-none-4k-r0: measured already, kept"]);
}
