//! `lithify bench db` from outside: exit codes, one-line errors, files, a run that is stopped and
//! goes on, databases that are kept.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn bench_db(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    command.current_dir(directory).args(["bench", "db"]).args(arguments);
    command
}

fn output(directory: &Path, arguments: &[&str]) -> Output {
    bench_db(directory, arguments).output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Expects exit code 2 and one line on standard error that has `part`.
#[track_caller]
fn refused(arguments: &[&str], part: &str) {
    let place = tempfile::tempdir().expect("a directory");
    fs::write(place.path().join("file"), "not a directory").expect("writes");
    let output = output(place.path(), arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.starts_with("error: ") && error.contains(part), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(!place.path().join("results").exists(), "nothing was done");
}

#[test]
fn a_dry_run_names_arms_time_and_disk_and_does_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let engines = ["--engine", "lithify,model", "--repeats", "3", "--control", "--dry-run"];
    let dry = output(place.path(), &[&engines[..], &["--num", "1000"]].concat());
    let said = text(&dry.stdout);
    assert_eq!(dry.status.code(), Some(0), "{}", text(&dry.stderr));
    for part in [
        "driver alone",
        "\n lithify with none,lz4,zstd-1 ",
        "\n A/A control of model with none,lz4,zstd-1 ",
        "in all: 13 cells, 0 of them done; ",
        "\ndisk: at most 256 MiB at once, ",
    ] {
        assert!(said.contains(part), "{part} of {said}");
    }
    let vast = output(place.path(), &["--num", "10000000000", "--dry-run"]);
    let said = text(&vast.stdout);
    assert!(said.contains("; too little: free some, or name another place with --data"), "{said}");
    assert!(!place.path().join("results").exists(), "nothing was done");
}

#[test]
fn wrong_command_lines_exit_with_2() {
    refused(&["--benchmarks", "fillseq,fly"], "there is no benchmark \"fly\"");
    refused(&["--benchmarks", "readrandom"], "begin with fillseq or fillrandom");
    refused(&["--engine", "other"], "there is no engine \"other\"");
    refused(&["--engine", "lithify,lithify"], "--control runs each one twice");
    refused(&["--num", "5"], "5 is not in 100..=10000000000");
    refused(&["--num=many"], "invalid value 'many'");
    refused(&["--key_size=7"], "7 is not in 8..=1024");
    refused(&["--compression", "none,lz4"], "takes 3 codecs");
    refused(&["--compression", "none,lz4,gzip"], "codec \"gzip\": ");
    refused(&["--compression", "lz4-13"], "codec \"lz4-13\": ");
    refused(&["--compression", "lz4", "--compression", "lz4,lz4,lz4"], "names lz4,lz4,lz4 twice");
    refused(&["--compression=lz4", "--compression=none", "--db", "x"], "give one --compression");
    refused(&["--allocator", "hoard"], "allowed: system, jemalloc, mimalloc, tcmalloc");
    refused(&["--benchmarks", "fillseq,readrandom:seek-nexts=1"], "seek-nexts has no meaning in");
    refused(&["--benchmarks", "fillseq,overwrite:threads=2"], "no setting \"threads\" of its own");
    refused(&["--benchmarks", "fillseq,overwrite:duration=x"], "duration is \"x\"; allowed: 0 to");
    refused(&["--compression_ratio=0"], "allowed: 0.01 to 1");
    refused(&["--repeats", "0"], "0 is not in 1..=100");
    refused(&["--use_existing_db=2"], "allowed: 1, true, 0, false");
    refused(&["--use_existing_db=1"], "--use-existing needs --db");
    refused(&["--use-existing", "--db", "nowhere"], "nowhere/lithify holds no database");
    refused(&["--sync", "--disable_wal=1"], "--sync contradicts --disable-wal");
    refused(&["--cache_size=33554432", "--memory-budget-mib", "64"], "cannot be used with");
    refused(&["--benchmark_write_rate_limit=5", "--mb-write-per-sec", "1"], "cannot be used with");
    refused(&["--memory-budget-mib", "16"], "it must be at most half");
    refused(&["--name", "../x"], "allowed: letters");
    refused(&["--results", "file"], "file is no directory");
    refused(&["--db", "file"], "file is no directory");
}

const SMALL: [&str; 8] = [
    "--num=2000",
    "--value_size=100",
    "--write_buffer_size=1048576",
    "--memory-budget-mib",
    "8",
    "--seed=42",
    "--threads=1",
    "--max_background_jobs=1",
];

#[test]
fn one_engine_prints_result_lines_and_leaves_files() {
    let place = tempfile::tempdir().expect("a directory");
    let steps = "fillseq,readrandom,flush,seekrandom";
    let arguments = [&["--benchmarks", steps][..], &SMALL].concat();
    let run = output(place.path(), &arguments);
    let report = text(&run.stdout);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    for part in [
        "fillseq      : ",
        " seconds 2000 operations; ",
        "(2000 of 2000 found)",
        "Microseconds per seek:",
        "flush        : ",
        "CPU per op",
    ] {
        assert!(report.contains(part), "{part} is missing in:\n{report}");
    }
    let results = place.path().join("results");
    for file in ["db-lithify.txt", "db-lithify.csv", "db-lithify.tsv", "db-lithify.json"] {
        assert!(results.join(file).is_file(), "{file}");
    }
    let runs = results.join("runs/db-lithify");
    let interval = fs::read_to_string(runs.join("lithify-r0-0-fillseq.report.csv"));
    let header = "secs_elapsed,interval_qps,clients_qps,background_writer_qps\n";
    assert!(interval.expect("is there").starts_with(header));
    assert!(!runs.join("lithify-r0.data").exists(), "the data are gone");
    // The same command measures nothing again, another one does.
    let again = output(place.path(), &arguments);
    let progress = text(&again.stderr);
    assert!(progress.contains("lithify-r0: measured already, kept"), "{progress}");
    assert_eq!(text(&again.stdout), report);
    let other = output(place.path(), &[&arguments[..], &["--reads=500"]].concat());
    assert!(text(&other.stdout).contains("(500 of 500 found)"), "{}", text(&other.stdout));
}

#[test]
fn pairs_are_compared_and_a_stopped_run_goes_on() {
    let place = tempfile::tempdir().expect("a directory");
    let pair = ["--benchmarks", "fillrandom,readrandom", "--engine", "lithify,model"];
    let slow = ["--full", "--repeats=2", "--control", "--benchmark_write_rate_limit=200000"];
    let arguments = [&pair[..], &slow, &SMALL].concat();
    let mut child = bench_db(place.path(), &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let second = lines.by_ref().map_while(Result::ok).find(|line| line.contains("cell 3/9 "));
    assert!(second.is_some(), "the third run never began");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("is there");
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(child.wait().expect("ends").code(), Some(130), "{rest:?}");
    let kept = "stopped; 2 of 9 cells are measured and kept, the same command goes on";
    assert!(rest.iter().any(|line| line.contains(kept)), "{rest:?}");

    let run = output(place.path(), &arguments);
    let (report, progress) = (text(&run.stdout), text(&run.stderr));
    assert_eq!(run.status.code(), Some(0), "{progress}");
    assert_eq!(progress.matches("measured already, kept").count(), 2, "{progress}");
    for part in [
        "fillrandom (step 1): lithify against model",
        "A/A lithify",
        "A/A model",
        "lithify-r0 and model-r0 read the same",
        "reads found exactly what was written: 8 steps, scans at the end: 8 runs",
    ] {
        assert!(report.contains(part), "{part} is missing in:\n{report}");
    }
    assert!(!report.contains("WRONG"), "{report}");
}

#[test]
fn databases_are_kept_for_later_runs() {
    let place = tempfile::tempdir().expect("a directory");
    let with = |more: &[&'static str]| [&["--db", "kept"][..], more, &SMALL].concat();
    let fill = output(place.path(), &with(&["--benchmarks", "fillseq", "--name", "fill"]));
    assert_eq!(fill.status.code(), Some(0), "{}", text(&fill.stderr));
    assert!(place.path().join("kept/lithify/db").is_dir());
    let more = ["--benchmarks", "readrandom", "--use_existing_db=1", "--name", "read"];
    let read = output(place.path(), &with(&more));
    assert_eq!(read.status.code(), Some(0), "{}", text(&read.stderr));
    assert!(text(&read.stdout).contains("(2000 of 2000 found)"), "{}", text(&read.stdout));
    assert!(place.path().join("kept/lithify/db").is_dir());
}

/// A pipe stands in for what is kept beside the database: the signal comes while the child, which has the
/// database open, waits to read it.
#[test]
#[cfg(target_os = "linux")]
fn a_run_that_is_stopped_while_it_opens_a_database_goes_on() {
    use nix::sys::stat::Mode;

    let place = tempfile::tempdir().expect("a directory");
    let with = |more: &[&'static str]| [&["--db", "kept"][..], more, &SMALL].concat();
    let fill = output(place.path(), &with(&["--benchmarks", "fillseq", "--name", "fill"]));
    assert_eq!(fill.status.code(), Some(0), "{}", text(&fill.stderr));
    let contents = place.path().join("kept/lithify/contents.json");
    let aside = place.path().join("contents.json");
    fs::rename(&contents, &aside).expect("renames");
    nix::unistd::mkfifo(&contents, Mode::S_IRWXU).expect("makes a pipe");

    let arguments = with(&["--benchmarks", "readrandom", "--use-existing", "--name", "read"]);
    let mut child = bench_db(place.path(), &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    // Held until the end: the reader waits for what never comes.
    let pipe = opened_for_a_reader(&contents);
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("is there");
    let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(child.wait().expect("ends").code(), Some(130), "{rest:?}");
    let kept = "stopped; 1 of 2 cells are measured and kept, the same command goes on";
    assert!(rest.iter().any(|line| line.contains(kept)), "{rest:?}");
    drop(pipe);

    fs::rename(&aside, &contents).expect("renames");
    let run = output(place.path(), &arguments);
    let progress = text(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{progress}");
    assert_eq!(progress.matches("measured already, kept").count(), 1, "{progress}");
    assert!(text(&run.stdout).contains("(2000 of 2000 found)"), "{}", text(&run.stdout));
}

/// A pipe as its writer has it, once somebody reads it.
#[cfg(target_os = "linux")]
fn opened_for_a_reader(pipe: &Path) -> fs::File {
    use std::os::unix::fs::OpenOptionsExt;

    let flags = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let begin = std::time::Instant::now();
    loop {
        match fs::OpenOptions::new().write(true).custom_flags(flags).open(pipe) {
            Ok(file) => return file,
            Err(error) => assert!(begin.elapsed().as_secs() < 60, "nobody opens it: {error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn several_ladders_make_one_report() {
    let place = tempfile::tempdir().expect("a directory");
    let pair = ["--benchmarks", "fillrandom,readwhilewriting:mb-write-per-sec=1", "--reads=500"];
    let ladders =
        ["--full", "--engine", "lithify,model", "--compression=lz4-9", "--compression=none"];
    let arguments = [&pair[..], &ladders, &SMALL].concat();
    let run = output(place.path(), &arguments);
    let report = text(&run.stdout);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    for part in [
        " targets missed, ",
        "fillrandom (step 1), codecs lz4-9,lz4-9,lz4-9: lithify against model",
        "readwhilewriting:mb-write-per-sec=1 (step 2), codecs none,none,none: lithify against model",
    ] {
        assert!(report.contains(part), "{part} is missing in:\n{report}");
    }
    let runs = place.path().join("results/runs/db-lithify-model");
    assert!(runs.join("lithify-none+none+none-r0.json").is_file());
    assert!(runs.join("lithify-lz4-9+lz4-9+lz4-9-r0-1-readwhilewriting.report.csv").is_file());
    let again = output(place.path(), &arguments);
    assert_eq!(text(&again.stderr).matches("measured already, kept").count(), 5);
    assert_eq!(text(&again.stdout), report);
}

#[test]
fn an_allocator_is_in_force_or_missing() {
    let place = tempfile::tempdir().expect("a directory");
    let arguments = [&["--benchmarks", "fillseq", "--allocator=jemalloc"][..], &SMALL].concat();
    let run = output(place.path(), &arguments);
    if run.status.code() == Some(1) {
        let error = text(&run.stderr);
        assert!(error.contains("install the package libjemalloc2"), "{error}");
        assert!(!place.path().join("results").exists(), "nothing was done");
        println!("skipped: {error}");
        return;
    }
    let report = text(&run.stdout);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    assert!(report.contains(", allocator jemalloc (/"), "{report}");
    let record = fs::read_to_string(place.path().join("results/db-lithify-jemalloc.json"));
    let record = record.expect("is there");
    assert!(record.contains("\"allocator\":\"jemalloc\""), "what was asked for");
    assert!(record.contains("\"allocator\":\"jemalloc (/"), "what was in force");
}
