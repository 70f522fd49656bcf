//! The command line from outside: exit codes, one-line errors, a run that is stopped and goes on.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn lithify(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    command.current_dir(directory).args(arguments);
    command
}

fn output(directory: &Path, arguments: &[&str]) -> Output {
    lithify(directory, arguments).output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A directory to run in.
fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Expects an exit code and one line on standard error that has `part`.
#[track_caller]
fn refused(arguments: &[&str], code: i32, part: &str) {
    let place = place();
    fs::write(place.path().join("file"), "not a directory, no experiment = ").expect("writes");
    let output = output(place.path(), arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(error.starts_with("error: ") && error.contains(part), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_missing_engine_says_how_to_get_it() {
    let place = place();
    let without = |arguments: &[&str]| {
        let mut command = lithify(place.path(), arguments);
        command.env("LITHIFY_ENGINES", "nowhere").output().expect("starts")
    };
    let listed = without(&["bench", "engines"]);
    assert_eq!(listed.status.code(), Some(0));
    let listed = text(&listed.stdout);
    let line = "rocksdb is missing: RocksDB 11.8.1 is not here; get it with: lithify bench setup";
    assert!(listed.contains(line), "{listed}");
    let listed = text(&without(&["bench", "setup"]).stdout);
    assert!(listed.contains("RocksDB 11.8.1, 10.4.2") && listed.contains("apt-get"), "{listed}");
    let listed = text(&without(&["bench", "engines", "--json"]).stdout);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("is JSON");
    assert_eq!(listed[0]["name"], "lithify");
    assert_eq!(listed[0]["capabilities"]["transactions"], true);
    let refused = without(&["bench", "overwrite", "--engine", "rocksdb-10.4.2"]);
    assert_eq!(refused.status.code(), Some(1));
    let error = text(&refused.stderr);
    assert_eq!(
        error,
        "error: RocksDB 10.4.2 is not here; get it with: lithify bench setup rocksdb --version \
         10.4.2\n"
    );
    let skipped = without(&["bench", "run", "lithify-vs-rocksdb", "--arms", "rocksdb-lz4"]);
    assert_eq!(skipped.status.code(), Some(2));
    let error = text(&skipped.stderr);
    assert!(error.contains("arm rocksdb-lz4 is skipped: RocksDB 11.8.1 is not here"), "{error}");
}

#[cfg(not(feature = "embedded-engines"))]
#[test]
fn an_engine_that_is_not_in_this_build_says_how_to_get_it() {
    let line = "lmdb is not in this build; get it with: cargo build --release -p lithify-cli \
                --features embedded-engines";
    refused(&["bench", "db", "--engine", "lmdb", "--compression", "none"], 1, line);
    let arms = ["bench", "run", "lithify-vs-rocksdb", "--engine", "lmdb"];
    refused(&arms, 1, line);
    let place = place();
    let listed = output(place.path(), &["bench", "engines"]);
    assert!(text(&listed.stdout).contains(&format!("lmdb is missing: {line}\n")));
}

#[test]
fn wrong_command_lines_exit_with_2() {
    let run = ["bench", "run", "zlib-vs-zstd"];
    let with = |more: &[&'static str]| [run.as_slice(), more].concat();
    refused(&["fly"], 2, "unrecognized subcommand 'fly'");
    refused(&with(&["--fast"]), 2, "unexpected argument '--fast'");
    refused(&["bench", "run"], 2, "required arguments were not provided: <EXPERIMENT>");
    refused(&with(&["--repeats", "many"]), 2, "invalid value 'many'");
    refused(&with(&["--repeats", "0"]), 2, "allowed: 1 to 100");
    refused(&with(&["--seconds", "0"]), 2, "allowed: 1 to 864000");
    refused(&with(&["--nodes", "5"]), 2, "allowed: 1000 to 10000000000");
    refused(&with(&["--scale", "huge"]), 2, "there are: cached, io-l, io-s, smoke");
    refused(&with(&["--arms", "zlib-1,gzip"]), 2, "there is no arm \"gzip\"");
    refused(&with(&["--engine", "other"]), 2, "invalid value 'other'");
    refused(&["bench", "setup", "rocksdb", "--version", "1"], 2, "there are: 11.8.1, 10.4.2");
    refused(&["bench", "setup", "other"], 2, "no setup is known for \"other\"; there are: rocksdb");
    refused(&with(&["--results", "file"]), 2, "file is no directory");
    refused(&with(&["--data", "file"]), 2, "file is no directory");
    refused(&["bench", "run", "no-such"], 2, "there is no experiment \"no-such\"");
    refused(&["bench", "run", "no-such.toml"], 2, "no-such.toml: ");
    refused(&["bench", "run", "./file"], 2, "./file:1: ");
    refused(&["bench", "show", "missing"], 2, "missing: there is no such file");
    for command in ["show", "report"] {
        refused(&["bench", command, "."], 2, ". is no directory of a run");
    }
    refused(&["bench", "db", "--option", "no_such=1"], 2, "there is no option \"no_such\"");
    refused(&["bench", "db", "--option", "x"], 2, "NAME=VALUE");
    let codec = ["bench", "db", "--option", "compression=foo"];
    refused(&codec, 2, "'--option <NAME=VALUE>': compression: expected one of none, ");
    refused(&["bench", "db", "--engine", "litify"], 2, "similar: lithify,");
    let budget = ["bench", "db", "--memory-budget-mib", "8q"];
    refused(&budget, 2, "expected a whole number from 1 to 1000000");
    for arguments in [&["levels"][..], &["verify"], &["explain"], &["repair", "--to", "new"]] {
        for directory in ["missing", "."] {
            let line = [arguments, &[directory]].concat();
            refused(&line, 2, &format!("error: there is no database here: {directory}"));
        }
    }
    let alone = ["bench", "db", "--engine", "model", "--option", "space_slack_percent=60"];
    refused(&alone, 2, "--option sets options of Lithify, which --engine does not name");
    let sized = ["bench", "db", "--block-size", "8q"];
    refused(&sized, 2, "expected bytes, as 4096, 8k, 16MiB or 2GB");
    refused(&["bench", "db", "--block-size", "2MiB"], 2, "2097152 is not in 1024..=1048576");
    refused(&["bench", "pack", "missing", "--to", "x"], 2, "missing: there is no such file");
    refused(&["bench", "pack", "file", "--to", "."], 2, "--to . is a directory");
    refused(&["bench", "pack", "file", "--to", "x.zst"], 2, "--to x.zst does not end in .json or ");
}

#[test]
fn what_was_likely_meant_is_named() {
    for (arguments, part) in [
        (&["lvels", "x"][..], "unrecognized subcommand 'lvels'; similar: levels"),
        // As other tools call it, whatever it looks like.
        (&["select", "x"], "unrecognized subcommand 'select'; similar: scan"),
        (&["dbsize", "x"], "unrecognized subcommand 'dbsize'; similar: count"),
        (&["scan", "x", "--limt", "3"], "unexpected argument '--limt' found; similar: --limit"),
        (&["bench", "shw"], "unrecognized subcommand 'shw'; similar: show"),
    ] {
        refused(arguments, 2, part);
    }
}

#[test]
fn failures_exit_with_1() {
    refused(&["bench", "show", "file"], 1, "file is no record of a run");
    refused(&["bench", "pack", "file", "--to", "x.json"], 1, "file is no record of a run");
}

#[test]
fn help_has_examples_and_exit_codes() {
    let place = place();
    for (arguments, part) in [
        (&["--help"][..], "Exit codes:"),
        (&["bench", "run", "--help"], "Examples:\n  lithify bench run zlib-vs-zstd\n"),
        (&["bench", "show", "--help"], "Examples:"),
        (&["--version"], "lithify "),
    ] {
        let output = output(place.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(text(&output.stdout).contains(part), "{arguments:?}");
        assert!(!text(&output.stdout).contains("cell  "), "the hidden command is hidden");
    }
    let bare = output(place.path(), &[]);
    assert_eq!(bare.status.code(), Some(2));
    assert!(text(&bare.stderr).contains("Usage:"));
}

#[test]
fn experiments_are_listed() {
    let place = place();
    let output = output(place.path(), &["bench", "list"]);
    assert_eq!(output.status.code(), Some(0));
    let list = text(&output.stdout);
    for part in ["what it asks", "E1   zlib-vs-zstd ", "--scale smoke", "     rocksdb-versions "] {
        assert!(list.contains(part), "{part} is missing in:\n{list}");
    }
    let wide = list.lines().find(|line| line.chars().count() > 100);
    assert!(wide.is_none() && list.lines().count() < 30, "{wide:?} in:\n{list}");
    // The numbers come first, in their order; those of our own without one follow.
    let at = |part: &str| list.find(part).unwrap_or_else(|| panic!("{part} is missing"));
    let order = ["\nE2 ", "\nE3 ", "\nE8 ", "\nE13 ", "\n     embedded-engines "].map(at);
    assert!(order.is_sorted(), "{order:?} in:\n{list}");
}

#[test]
fn all_of_an_experiment_is_listed_by_its_name_or_number() {
    let place = place();
    let listed = |arguments: &[&str]| {
        let output = output(place.path(), &[&["bench", "list"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        text(&output.stdout)
    };
    let one = listed(&["zlib-vs-zstd"]);
    for part in [
        "E1 zlib-vs-zstd: zlib against zstd",
        "What does zstd instead of zlib",
        "published     Mark Callaghan",
        "arms          none, lz4, zlib-1",
        "scale cached  1000000 nodes; ",
        "limited to 128 MiB",
        "runs here     yes",
        "from          the program's own zlib-vs-zstd",
    ] {
        assert!(one.contains(part), "{part} is missing in:\n{one}");
    }
    assert_eq!(listed(&["E1"]), one);
    let all = listed(&["--full"]);
    assert!(all.contains(&one) && all.contains("by         lithify bench amp"), "{all}");
    let odd = all.lines().find(|line| line.contains("skipped") || line.contains(" no: "));
    assert!(odd.is_none_or(|line| line.contains(" missing")), "{odd:?}");
    let similar = "there is no experiment \"zlib-vs-zst\"; similar: zlib-vs-zstd; ";
    refused(&["bench", "list", "zlib-vs-zst"], 2, similar);
}

#[test]
fn a_directory_of_experiments_that_is_not_there_is_no_list_of_others() {
    let place = place();
    for command in ["list", "run"] {
        let arguments = ["bench", command, "--experiments", "nowhere"];
        let name = (command == "run").then_some("zlib-vs-zstd");
        let output = output(place.path(), &arguments.into_iter().chain(name).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2));
        let error = text(&output.stderr);
        assert!(error.contains("there is no such directory of experiment files"), "{error}");
    }
}

#[test]
fn an_experiment_with_a_command_of_its_own_names_it() {
    let place = place();
    let refused = output(place.path(), &["bench", "run", "amplification", "--repeats", "2"]);
    assert_eq!(refused.status.code(), Some(2));
    let error = text(&refused.stderr);
    let expected = "error: amplification takes no choices here; it has a command of its own: lithify \
                    bench amp\n";
    assert_eq!(error, expected);
    let dry = output(place.path(), &["bench", "run", "headline", "--dry-run"]);
    assert!(dry.status.success(), "{}", text(&dry.stderr));
    let dry = text(&dry.stdout);
    assert!(dry.contains(" headline ") && dry.contains("at least "), "{dry}");
    assert!(!place.path().join("results").exists(), "nothing is done");
}

#[test]
fn amplification_is_measured_once_and_reported() {
    let place = place();
    let amp = |more: &[&'static str]| {
        let arguments = ["bench", "amp", "--engines", "model", "--keys", "4000", "--queries", "10"];
        output(place.path(), &[arguments.as_slice(), more].concat())
    };
    let first = amp(&["--full"]);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let report = text(&first.stdout);
    for part in ["Write: bytes per byte", "Space: ", "Read: ", "uniform", "zipf", "linkbench"] {
        assert!(report.contains(part), "{part} is missing in:\n{report}");
    }
    for file in ["amplification.txt", "amplification.csv", "amplification.json"] {
        assert!(place.path().join("results").join(file).exists(), "{file}");
    }
    let again = amp(&["--full"]);
    assert_eq!(text(&again.stdout), report);
    assert_eq!(text(&again.stderr).matches("measured already, kept").count(), 3);
    let wrong = amp(&["--workloads", "pareto"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("allowed: uniform, zipf, linkbench"));
}

#[test]
fn a_job_that_is_none_is_refused() {
    let place = place();
    let mut command = lithify(place.path(), &["bench", "cell"]);
    let output = command.stdin(Stdio::null()).output().expect("starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: standard input is no job: "));
}

const SMALL: [&str; 10] = [
    "bench",
    "run",
    "zlib-vs-zstd",
    "--nodes",
    "1000",
    "--arms",
    "zlib-1,zstd-1",
    "--repeats",
    "1",
    "--seconds",
];

fn small(engine: &'static str, seconds: &'static str) -> Vec<&'static str> {
    [SMALL.as_slice(), &[seconds, "--engine", engine]].concat()
}

#[test]
fn a_run_prints_the_tables_and_can_be_shown_again() {
    let place = place();
    let run = output(place.path(), &[&small("null", "1")[..], &["--full"]].concat());
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let report = text(&run.stdout);
    for part in ["Published ratios, and those", "Published against measured", "zstd-1 / zlib-1"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    let progress = text(&run.stderr);
    assert!(progress.contains("cell 1/2 zlib-1-r0"), "{progress}");
    assert!(progress.contains("inserts/s"), "{progress}");
    let name = "results/zlib-vs-zstd-smoke-null";
    // The file says at its end which others lie beside it; the terminal has been told so.
    let file = fs::read_to_string(place.path().join(format!("{name}.txt"))).expect("is there");
    let (file, beside) = file.split_once("All figures: ").expect("names the others");
    assert!(report.starts_with(file) && beside.contains("-null.csv"), "{beside}");
    for again in [format!("{name}.json"), "results/runs/zlib-vs-zstd-smoke-null".to_owned()] {
        let show = output(place.path(), &["bench", "show", "--full", &again]);
        assert_eq!(text(&show.stdout), report, "{again}");
    }
    let answer = text(&output(place.path(), &["bench", "show", &format!("{name}.json")]).stdout);
    assert!(answer.contains("What does zstd instead of zlib"), "the question first: {answer}");
    assert!(answer.contains("? Not known: 1 repeat") && answer.contains("→ Next: "), "{answer}");
    assert!(answer.contains("published") && answer.contains("0.555"), "{answer}");
    assert!(answer.lines().count() <= 40, "one screen: {answer}");
    assert!(answer.lines().all(|line| line.chars().count() <= 100), "{answer}");
    let csv = output(place.path(), &["bench", "show", &format!("{name}.json"), "--format", "csv"]);
    assert_eq!(text(&csv.stdout).lines().count(), 5);
    let json = format!("{name}.json");
    let pack = |arguments: &[&str]| {
        let packed = output(place.path(), &[&["bench", "pack"], arguments].concat());
        assert_eq!(packed.status.code(), Some(0), "{}", text(&packed.stderr));
    };
    pack(&[&json, "--to", "packed.json.zst"]);
    pack(&["packed.json.zst", "--to", "again.json"]);
    pack(&["packed.json.zst", "--to", "thin.json", "--samples", "2"]);
    let bytes = |file: &str| fs::read(place.path().join(file)).expect("is there");
    assert!(bytes("packed.json.zst").len() < bytes(&json).len() / 4);
    assert!(bytes("again.json") == bytes(&json), "packing loses nothing");
    assert!(bytes("thin.json").len() < bytes(&json).len());
    for copy in ["packed.json.zst", "thin.json"] {
        let show = output(place.path(), &["bench", "show", "--full", copy]);
        assert_eq!(text(&show.stdout), report, "{copy} says the same");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let place = place();
    let mut child = lithify(place.path(), &["bench", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn nobody_reading_standard_error_is_no_panic() {
    for arguments in [&["bench"][..], &["fly"]] {
        let place = place();
        let mut child =
            lithify(place.path(), arguments).stderr(Stdio::piped()).spawn().expect("starts");
        drop(child.stderr.take());
        assert_eq!(child.wait().expect("ends").code(), Some(2), "{arguments:?}");
    }
    let place = place();
    let results = place.path().join("results").to_string_lossy().into_owned();
    let mut arguments = small("null", "1");
    arguments.extend(["--results", &results]);
    let mut child = lithify(place.path(), &arguments).stderr(Stdio::piped()).spawn().expect("runs");
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}

/// A run in the background whose second cell is under way.
struct Started {
    child: Child,
    place: tempfile::TempDir,
}

impl Started {
    /// Starts a run with one calibration and two long cells; returns when the first long one runs.
    fn new() -> Started {
        let place = place();
        let child = lithify(place.path(), &small("model", "600"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut started = Started { child, place };
        let lines = BufReader::new(started.child.stderr.take().expect("is piped")).lines();
        let (sender, heard) = std::sync::mpsc::channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The test may have ended; the child's output is drained all the same.
                let _ = sender.send(line);
            }
        });
        while let Ok(line) = heard.recv_timeout(Duration::from_secs(60)) {
            if line.starts_with("  query") && started.runs().join("driver.json").exists() {
                return started;
            }
        }
        panic!("the second cell never began");
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("is delivered");
    }

    fn runs(&self) -> PathBuf {
        self.place.path().join("results/runs/zlib-vs-zstd-smoke-model")
    }

    /// Processes whose working directory is the place: the run and its child.
    fn processes(&self) -> usize {
        let Ok(here) = self.place.path().canonicalize() else { return 0 };
        let entries = fs::read_dir("/proc").expect("reads").flatten();
        entries
            .filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == here))
            .count()
    }

    fn data_directories(&self) -> usize {
        let entries = fs::read_dir(self.runs()).expect("reads").flatten();
        entries.filter(|entry| entry.path().is_dir()).count()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Both fail only when it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a condition that other processes bring about.
#[track_caller]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Interrupted: a clean end. Killed: nobody is left behind. Both ways the results that were there
/// are whole, and the next run keeps them.
#[test]
fn a_stopped_run_goes_on() {
    let mut started = Started::new();
    started.signal(Signal::SIGINT);
    let status = started.child.wait().expect("ends");
    assert_eq!(status.code(), Some(130));
    assert_eq!(started.data_directories(), 0, "the child's data are removed");
    wait_until("the child is gone", || started.processes() == 0);
    let record = fs::read_to_string(started.runs().join("driver.json")).expect("is kept");
    assert!(serde_json::from_str::<serde_json::Value>(&record).is_ok());

    let arguments = small("model", "1");
    let again = output(started.place.path(), &[&arguments[..], &["--full"]].concat());
    let progress = text(&again.stderr);
    assert_eq!(again.status.code(), Some(0), "{progress}");
    assert!(progress.contains("driver: measured already, kept"), "{progress}");
    assert!(text(&again.stdout).contains("zlib-1: oracle passed 2 times"));
}

#[test]
fn a_killed_run_leaves_nobody_behind() {
    let mut started = Started::new();
    started.signal(Signal::SIGKILL);
    started.child.wait().expect("ends");
    wait_until("the kernel ends the child with its parent", || started.processes() == 0);
    assert_eq!(started.data_directories(), 1, "nobody could remove it");
    let again = output(started.place.path(), &small("model", "1"));
    let progress = text(&again.stderr);
    assert_eq!(again.status.code(), Some(0), "{progress}");
    assert!(progress.contains("driver: measured already, kept"), "{progress}");
    assert_eq!(started.data_directories(), 0, "the next run did");
}
