//! The place in which one engine is got.
//!
//! Owns: a directory that is there while the setup works, and programs that run in it: each in a
//! process group of its own, so that a stop ends all of it; with its words in a file, of which the
//! last line is told every few seconds and the first complaint becomes the error.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lithify_lab::adapter::{EngineError, EngineResult};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::failed;

/// How often the end of a program and a stop are looked for.
const POLL: Duration = Duration::from_millis(50);

/// How often the last line of a program that takes its time is told.
const TELL: Duration = Duration::from_secs(10);

/// Characters of a program's line that are told or quoted.
const LINE_CHARS: usize = 160;

/// A directory to work in, which goes with this.
pub struct Workshop<'a> {
    version: &'a str,
    home: PathBuf,
    path: PathBuf,
    interrupt: &'a AtomicBool,
    say: &'a dyn Fn(&str),
}

impl<'a> Workshop<'a> {
    /// An empty directory below `home`; what a setup left there that was killed is removed.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub(super) fn open(
        home: PathBuf,
        version: &'a str,
        interrupt: &'a AtomicBool,
        say: &'a dyn Fn(&str),
    ) -> EngineResult<Workshop<'a>> {
        let path = home.join("setup");
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&path, error));
            }
            _ => {}
        }
        fs::create_dir_all(&path).map_err(|error| failed(&path, error))?;
        Ok(Workshop { version, home, path, interrupt, say })
    }

    /// Lets a recipe work; removes the directory afterwards.
    pub(super) fn follow(
        self,
        get: fn(&Workshop<'_>) -> EngineResult<PathBuf>,
    ) -> EngineResult<PathBuf> {
        get(&self)
    }

    /// The version that was asked for, one of the recipe's.
    pub fn version(&self) -> &str {
        self.version
    }

    /// The directory, which is gone when the recipe is done.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells what is done now, in one line.
    pub fn say(&self, line: &str) {
        (self.say)(line);
    }

    /// Runs a program in the directory until it ends; gives what it printed. `missing` is the error
    /// when there is no such program: it says how to get it.
    ///
    /// # Errors
    /// The program cannot be started or fails: its first complaint; a stop.
    pub fn run(&self, command: &mut Command, missing: &str) -> EngineResult<String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let log_path = self.path.join("said.log");
        let log = File::create(&log_path).map_err(|error| failed(&log_path, error))?;
        let same_log = log.try_clone().map_err(|error| failed(&log_path, error))?;
        let started = command
            .current_dir(&self.path)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(same_log)
            .process_group(0)
            .spawn();
        let child = started.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => EngineError::fatal(missing),
            _ => EngineError::fatal(format!("{name}: {error}")),
        })?;
        let status = self.wait(child, &log_path)?;
        let said = fs::read(&log_path).map_err(|error| failed(&log_path, error))?;
        let said = String::from_utf8_lossy(&said).into_owned();
        if status.success() {
            return Ok(said);
        }
        let complaint = complaint(&said).unwrap_or("it gave no reason");
        Err(EngineError::fatal(format!("{name} failed ({status}): {complaint}")))
    }

    fn wait(&self, mut child: Child, log_path: &Path) -> EngineResult<ExitStatus> {
        let (mut told, mut told_line) = (Instant::now(), String::new());
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(error) => {
                    end(&mut child);
                    return Err(EngineError::fatal(format!("waiting for a program: {error}")));
                }
            }
            if self.interrupt.load(Ordering::Relaxed) {
                end(&mut child);
                return Err(EngineError::fatal("stopped; nothing is left behind"));
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                let said = fs::read(log_path).unwrap_or_default();
                let said = String::from_utf8_lossy(&said);
                let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
                let last = shortened(last.unwrap_or_default());
                if !last.is_empty() && last != told_line {
                    self.say(&format!("  {last}"));
                    told_line = last.to_owned();
                }
            }
            std::thread::sleep(POLL);
        }
    }

    /// The one file of a kind in the directory, by its extension.
    ///
    /// # Errors
    /// There is none.
    pub fn the_file(&self, extension: &str) -> EngineResult<PathBuf> {
        let entries = fs::read_dir(&self.path).map_err(|error| failed(&self.path, error))?;
        let is_it = |path: &PathBuf| path.extension().is_some_and(|kind| kind == extension);
        let file = entries.flatten().map(|entry| entry.path()).find(is_it);
        file.ok_or_else(|| failed(&self.path, format_args!("no .{extension} file was fetched")))
    }

    /// Gives a finished file or directory its name in the engine's home: the last step.
    ///
    /// # Errors
    /// It cannot be written out or renamed.
    pub fn keep(&self, finished: &Path, name: &str) -> EngineResult<PathBuf> {
        let kept = self.home.join(name);
        // A directory takes the place of an empty one only.
        let make_room = || match kept.is_dir() {
            true => fs::rename(&kept, self.path.join("replaced")),
            false => Ok(()),
        };
        File::open(finished)
            .and_then(|file| file.sync_all())
            .and_then(|()| make_room())
            .and_then(|()| fs::rename(finished, &kept))
            .map_err(|error| failed(&kept, error))?;
        Ok(kept)
    }
}

impl Drop for Workshop<'_> {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next setup. The home stays if anything is
        // kept in it.
        let _ = fs::remove_dir_all(&self.path);
        let _ = fs::remove_dir(&self.home);
    }
}

/// Ends a program and all that it has started.
fn end(child: &mut Child) {
    if let Ok(group) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    // It is gone, or was before.
    let _ = child.wait();
}

/// The line that says most about a failure: the first that speaks of an error, else the last.
fn complaint(said: &str) -> Option<&str> {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_complaint = |line: &&str| {
        ["error", "Error", "ERROR", "fatal", "not found"].iter().any(|word| line.contains(word))
    };
    let line = lines.clone().find(is_complaint).or_else(|| lines.next_back());
    line.map(shortened)
}

fn shortened(line: &str) -> &str {
    line.char_indices().nth(LINE_CHARS).map_or(line, |(at, _)| &line[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// Works in a directory of its own; gives whether the engine's home is there afterwards.
    fn in_workshop(work: impl Fn(&Workshop<'_>, &AtomicBool)) -> bool {
        let directory = tempfile::tempdir().expect("a directory");
        let home = directory.path().join("engine-1");
        let interrupt = AtomicBool::new(false);
        let workshop = Workshop::open(home.clone(), "1", &interrupt, &|_| ()).expect("opens");
        work(&workshop, &interrupt);
        assert!(workshop.path().is_dir());
        drop(workshop);
        assert!(!home.join("setup").exists());
        home.exists()
    }

    #[test]
    fn programs_and_their_complaints() {
        let is_kept = in_workshop(|workshop, _| {
            let run = |script: &str| workshop.run(&mut shell(script), "no shell");
            assert_eq!(run("echo one; echo two >&2").expect("runs"), "one\ntwo\n");
            let error = run("echo one; echo some error here; echo last; exit 3");
            let error = error.expect_err("fails").to_string();
            assert_eq!(error, "sh failed (exit status: 3): some error here");
            let error = run("echo one; echo last; echo; exit 3").expect_err("fails").to_string();
            assert!(error.ends_with(": last"), "{error}");
            let error = run("exit 1").expect_err("fails").to_string();
            assert!(error.ends_with("it gave no reason"), "{error}");
            let error = workshop.run(&mut Command::new("no-such-program"), "get it somewhere");
            assert_eq!(error.expect_err("is missing").to_string(), "get it somewhere");
        });
        assert!(!is_kept);
    }

    #[test]
    fn a_stop_ends_the_program_and_what_it_started() {
        in_workshop(|workshop, interrupt| {
            let started = workshop.path().join("started");
            let child = std::thread::scope(|scope| {
                let stopper = scope.spawn(|| {
                    loop {
                        let child = fs::read_to_string(&started).unwrap_or_default();
                        if child.ends_with('\n') {
                            interrupt.store(true, Ordering::Relaxed);
                            return child.trim().to_owned();
                        }
                        std::thread::sleep(POLL);
                    }
                });
                let script = "sleep 1000 & echo $! > started; wait";
                let error = workshop.run(&mut shell(script), "no shell").expect_err("is stopped");
                assert_eq!(error.to_string(), "stopped; nothing is left behind");
                stopper.join().expect("ends")
            });
            // A process that was ended and not yet waited for has no command line.
            let command_line = PathBuf::from(format!("/proc/{child}/cmdline"));
            while fs::read(&command_line).is_ok_and(|line| !line.is_empty()) {
                std::thread::sleep(POLL);
            }
        });
    }

    #[test]
    fn what_is_finished_is_kept() {
        let is_kept = in_workshop(|workshop, _| {
            let error = workshop.the_file("jar").expect_err("is none").to_string();
            assert!(error.contains("no .jar file"), "{error}");
            let fresh = workshop.path().join("a.jar");
            fs::write(&fresh, "x").expect("is written");
            assert_eq!(workshop.the_file("jar").expect("is there"), fresh);
            let kept = workshop.keep(&fresh, "liba.so").expect("is kept");
            assert!(kept.ends_with("engine-1/liba.so") && kept.is_file());
            for content in ["old", "new"] {
                let fresh = workshop.path().join("fresh");
                fs::create_dir(&fresh).expect("is made");
                fs::write(fresh.join("file"), content).expect("is written");
                let kept = workshop.keep(&fresh, "node").expect("is kept");
                assert_eq!(fs::read_to_string(kept.join("file")).expect("is there"), content);
            }
        });
        assert!(is_kept);
    }
}
