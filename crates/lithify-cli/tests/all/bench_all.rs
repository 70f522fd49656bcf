//! `lithify bench run --all` from outside: what is said before, what fails beside what is done, runs
//! that are stopped and go on, the index over the results.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn bench(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    command.current_dir(directory).arg("bench").args(arguments);
    command.env("LITHIFY_ENGINES", "nowhere");
    command
}

fn output(directory: &Path, arguments: &[&str]) -> Output {
    bench(directory, arguments).output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An experiment of a second or two: text of `kib` in chunks.
fn tiny(name: &str, engines: &str, kib: u64) -> String {
    format!(
        "name = \"{name}\"\ntitle = \"Tiny {name}\"\nquestion = \"?\"\nhypothesis = \"!\"\n\
         [workload]\nkind = \"chunks\"\nengines = [{engines}]\ntext = \"actors\"\npartitions = 2\n\
         chunks_kib = [4]\ncodecs = [\"none\", \"lz4\"]\ndurability = \"buffered\"\nseed = 1\n\
         [scale.smoke]\nabout = \"tiny\"\ntext_kib = {kib}\nflushes = 1\nscans = 1\n\
         codec_passes = 1\nrepeats = 1\nmemory_budget_mib = {}\nblock_cache_mib = 8\n\
         memtable_kib = {}\ntable_kib = 65536\nbackground_threads = 1\n\
         [caveats]\nnotes = []\nnot_reproduced = []\n",
        (kib / 128).max(32),
        2 * kib
    )
}

/// A directory with experiments that work, one that is broken, one without its engine.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory");
    let experiments = place.path().join("experiments");
    fs::create_dir(&experiments).expect("is made");
    let write = |name: &str, text: String| {
        fs::write(experiments.join(format!("{name}.toml")), text).expect("writes");
    };
    write("tiny-one", tiny("tiny-one", "\"lithify\"", 256));
    write("tiny-two", tiny("tiny-two", "\"lithify\", \"rocksdb\"", 256));
    write("tiny-lost", tiny("tiny-lost", "\"rocksdb\"", 256));
    place
}

const ALL: [&str; 4] = ["run", "--all", "--only", "tiny-*"];

#[test]
fn what_there_is_to_do_is_said_and_nothing_is_done() {
    let place = place();
    let dry = output(place.path(), &[&ALL[..], &["--dry-run"]].concat());
    let said = text(&dry.stdout);
    assert_eq!(dry.status.code(), Some(0), "{}", text(&dry.stderr));
    let row = |name: &str| {
        let line = said.lines().find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name} is missing in {said}")).to_owned()
    };
    let one = row("tiny-one");
    assert!(one.contains("smoke") && one.contains("not known"), "{one}");
    assert!(row("tiny-lost").contains("left out: the arms on rocksdb are skipped"), "{said}");
    assert!(said.contains("in all: 4 cells, 0 of them done; not known"), "{said}");
    assert!(
        said.contains("the arms on rocksdb are skipped") && said.contains("MiB free"),
        "{said}"
    );
    assert!(said.contains("bench setup rocksdb"), "it says how to get it: {said}");
    let nowhere = output(place.path(), &[&ALL[..], &["--dry-run", "--scale", "vast"]].concat());
    assert_eq!(nowhere.status.code(), Some(2), "{}", text(&nowhere.stdout));
    let error = text(&nowhere.stderr);
    assert!(error.contains("error: no experiment runs at scale vast: "), "{error}");
    assert!(!place.path().join("results").exists());
}

#[test]
fn one_failure_stops_no_other_and_nothing_is_measured_twice() {
    let place = place();
    fs::write(place.path().join("experiments/tiny-bad.toml"), "name = 1\n").expect("writes");
    let dry = output(place.path(), &[&ALL[..], &["--dry-run"]].concat());
    assert_eq!(dry.status.code(), Some(1), "{}", text(&dry.stderr));
    let run = output(place.path(), &ALL);
    let (summary, progress) = (text(&run.stdout), text(&run.stderr));
    assert_eq!(run.status.code(), Some(1), "{progress}");
    assert!(progress.contains("error: 1 of 4 experiments failed"), "{progress}");
    let row = |name: &str| {
        let line = summary.lines().find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name} is missing in {summary}")).to_owned()
    };
    assert!(row("tiny-bad").contains("FAILED") && row("tiny-bad").contains("tiny-bad.toml:1"));
    assert!(row("tiny-lost").contains("left out"), "{summary}");
    for name in ["tiny-one", "tiny-two"] {
        assert!(row(name).contains(" done ") && row(name).contains("2, 0, 2"), "{summary}");
    }
    assert!(progress.contains("[3 of 4 cells done, about "), "an estimate by cells: {progress}");
    let index = fs::read_to_string(place.path().join("results/index.html")).expect("is there");
    assert!(index.contains("<a href=\"tiny-one-smoke.html\">tiny-one-smoke</a>"), "{index}");
    assert!(index.contains("2 runs of 2 questions"), "{index}");
    assert!(place.path().join("results/tiny-two-smoke.html").is_file());

    fs::remove_file(place.path().join("experiments/tiny-bad.toml")).expect("is there");
    let dry = text(&output(place.path(), &[&ALL[..], &["--dry-run"]].concat()).stdout);
    assert!(dry.contains("in all: 4 cells, 4 of them done; nothing"), "{dry}");
    let again = output(place.path(), &ALL);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert_eq!(text(&again.stderr).matches(": measured already, kept").count(), 4);
    let fresh = [&ALL[..], &["--dry-run", "--fresh"]].concat();
    let dry = text(&output(place.path(), &fresh).stdout);
    assert!(dry.contains("by measured cells") && dry.contains("0 of them done"), "{dry}");
}

#[test]
fn a_stopped_matrix_goes_on() {
    let place = place();
    // The second cell takes long enough to be met by the signal.
    let large = tiny("tiny-two", "\"lithify\"", 16 << 10).replace("flushes = 1", "flushes = 50");
    fs::write(place.path().join("experiments/tiny-two.toml"), large).expect("writes");
    let mut child = bench(place.path(), &ALL)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("is piped")).lines();
    let is_second = |line: &String| line.contains("cell 1/2 ") && line.contains("[2 of 4");
    let began = lines.by_ref().map_while(Result::ok).find(is_second);
    assert!(began.is_some(), "the second experiment begins");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("is there");
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let ended = child.wait_with_output().expect("ends");
    assert_eq!(ended.status.code(), Some(130), "{rest:?}");
    let summary = text(&ended.stdout);
    assert!(summary.contains(" done ") && summary.contains(" stopped "), "{summary}");
    assert!(rest.last().is_some_and(|last| last.contains("the same command goes on")), "{rest:?}");
    let dry = text(&output(place.path(), &[&ALL[..], &["--dry-run"]].concat()).stdout);
    assert!(dry.contains("in all: 4 cells, 2 of them done"), "{dry}");
}

#[test]
fn wrong_command_lines_exit_with_2() {
    let place = tempfile::tempdir().expect("a directory");
    for (wrong, part) in [
        (&["run"][..], "required"),
        (&["run", "zlib-vs-zstd", "--all"], "cannot be used with"),
        (&["run", "zlib-vs-zstd", "--only", "E*"], "--only is of --all"),
        (&["run", "zlib-vs-zstd", "--only", "E1"], "--only is of --all"),
        (&["run", "--all", "--arms", "x"], "cannot be used with"),
        (&["run", "--all", "--only", "no-such-*"], "no experiment has such a name"),
        (&["run", "--all", "--only", "[x"], "invalid value"),
    ] {
        let output = output(place.path(), wrong);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {error}");
        assert!(error.contains(part) && error.lines().count() == 1, "{wrong:?}: {error}");
    }
    assert!(!place.path().join("results").exists());
}
