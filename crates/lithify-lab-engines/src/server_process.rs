//! A server of one's own: a process that this one starts, watches and ends.
//!
//! Owns: the thread that keeps the process, its end, and what its log says of it. Which programs
//! there are and how to talk to them is for the adapters that have one.
//!
//! Promises: a [`ServerProcess`] ends with the thread that keeps it, hence with this process,
//! whichever way that ends: the kernel kills it. Dropping one kills it, too. An error after it
//! ended by itself quotes the last lines of its log.
//!
//! May be called from any thread.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lithify_lab::adapter::{EngineError, EngineResult};

/// Time between two looks.
pub const POLL: Duration = Duration::from_millis(20);

/// Lines of the log that an error quotes.
const LAST_LINES: usize = 4;
/// Bytes at the end of the log in which they are looked for.
const LOG_TAIL_BYTES: usize = 16 << 10;

/// The first of `directories` with a file of that name, which is a program there.
pub fn find_program(directories: &[PathBuf], name: &str) -> Option<PathBuf> {
    directories.iter().map(|directory| directory.join(name)).find(|program| program.is_file())
}

/// Where the environment has its programs.
pub fn program_directories() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

/// The program that has the kernel kill what it starts, with the thread that started it.
#[derive(Clone, Debug)]
pub struct Guard(PathBuf);

impl Guard {
    /// Looks for it.
    ///
    /// # Errors
    /// It is not installed.
    pub fn find_in(directories: &[PathBuf]) -> EngineResult<Guard> {
        find_program(directories, "setpriv").map(Guard).ok_or_else(|| {
            EngineError::fatal("setpriv is not installed; it is a part of util-linux")
        })
    }

    /// A command that is killed when the thread ends that starts it.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(&self.0);
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command
    }
}

/// What the thread that keeps the process is asked.
enum Order {
    /// How it ended, if it has.
    Status(Sender<Option<ExitStatus>>),
    /// To wait so long until it has ended; whether it has.
    Wait(Duration, Sender<bool>),
}

/// Ends of the pipes to a process, of those that its command asked for.
#[derive(Debug)]
pub struct Pipes {
    /// What it reads.
    pub input: Option<ChildStdin>,
    /// What it says.
    pub output: Option<ChildStdout>,
}

/// A running server.
#[derive(Debug)]
pub struct ServerProcess {
    title: &'static str,
    pid: u32,
    log: PathBuf,
    orders: Option<Sender<Order>>,
    keeper: Option<JoinHandle<()>>,
}

impl ServerProcess {
    /// Starts a command of a [`Guard`], which writes its words into `log`. `title` names it in
    /// errors.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        title: &'static str,
        mut command: Command,
        log: &Path,
    ) -> EngineResult<(ServerProcess, Pipes)> {
        let (orders, received) = channel();
        let (reply, answer) = channel();
        let keeper = thread::spawn(move || match command.spawn() {
            Ok(mut child) => {
                let pipes = Pipes { input: child.stdin.take(), output: child.stdout.take() };
                let _ = reply.send(Ok((child.id(), pipes)));
                keep(child, &received);
            }
            Err(error) => {
                let _ = reply.send(Err(error.to_string()));
            }
        });
        let started = answer.recv().unwrap_or_else(|error| Err(error.to_string()));
        let (pid, pipes) = started
            .map_err(|error| EngineError::fatal(format!("{title} cannot be started: {error}")))?;
        let (orders, keeper) = (Some(orders), Some(keeper));
        Ok((ServerProcess { title, pid, log: log.to_owned(), orders, keeper }, pipes))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How it ended; `None` while it runs.
    pub fn status(&self) -> Option<ExitStatus> {
        self.ask(Order::Status).flatten()
    }

    /// Why nothing is heard of it: that it has ended, or does within `patience`, with the last
    /// lines of its log; `None` when it still runs.
    #[cold]
    pub fn reason(&self, patience: Duration) -> Option<EngineError> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.status() {
                let (title, said) = (self.title, last_lines(&self.log));
                return Some(EngineError::fatal(format!("{title} ended ({status}); {said}")));
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(POLL);
        }
    }

    /// Waits until it has ended, which it was told to.
    ///
    /// # Errors
    /// It takes longer than `patience`, and is killed.
    pub fn wait(mut self, patience: Duration) -> EngineResult<()> {
        let ended = self.ask(|reply| Order::Wait(patience, reply));
        self.let_go();
        if ended == Some(true) {
            return Ok(());
        }
        Err(EngineError::fatal(format!(
            "{} did not end within {} s; {}",
            self.title,
            patience.as_secs(),
            last_lines(&self.log)
        )))
    }

    fn ask<T>(&self, order: impl FnOnce(Sender<T>) -> Order) -> Option<T> {
        let (reply, answer) = channel();
        self.orders.as_ref()?.send(order(reply)).ok()?;
        answer.recv().ok()
    }

    /// Ends the thread that keeps the process, which kills it.
    fn let_go(&mut self) {
        drop(self.orders.take());
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Answers until nobody can ask any more; then the process ends.
fn keep(mut child: Child, orders: &Receiver<Order>) {
    for order in orders {
        // Nobody may wait for the answer any more, which is no reason to end.
        let _ = match order {
            Order::Status(reply) => reply.send(child.try_wait().ok().flatten()).is_ok(),
            Order::Wait(patience, reply) => reply.send(wait(&mut child, patience)).is_ok(),
        };
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Waits until the child has ended; false when it takes too long.
fn wait(child: &mut Child, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            return true;
        }
        thread::sleep(POLL);
    }
    false
}

/// The end of a log in one line.
pub fn last_lines(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let tail = &bytes[bytes.len().saturating_sub(LOG_TAIL_BYTES)..];
    let text = String::from_utf8_lossy(tail);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return "its log is empty".to_owned();
    }
    format!("the last lines of its log: {}", last_joined(&lines))
}

/// The last of `lines` as one.
pub fn last_joined(lines: &[&str]) -> String {
    lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str, log: &Path) -> (ServerProcess, Pipes) {
        let guard = Guard::find_in(&program_directories()).expect("is installed");
        let mut command = guard.command(Path::new("sh"));
        let output = fs::File::create(log).expect("is made");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(output);
        ServerProcess::start("the shell", command, log).expect("starts")
    }

    #[test]
    fn the_end_of_a_log_is_one_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("server.log");
        assert_eq!(last_lines(&log), "its log is empty");
        fs::write(&log, "a\nb\n\nc\nd\ne\n").expect("is written");
        assert_eq!(last_lines(&log), "the last lines of its log: b | c | d | e");
    }

    #[test]
    fn one_that_ended_says_why_and_one_that_was_dropped_is_gone() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("server.log");
        let (server, pipes) = shell("read line; echo oh no >&2; exit 3", &log);
        assert!(server.status().is_none() && server.reason(Duration::ZERO).is_none());
        drop(pipes);
        let reason = server.reason(Duration::from_secs(60)).expect("has ended").to_string();
        let expected = "the shell ended (exit status: 3); the last lines of its log: oh no";
        assert_eq!(reason, expected);
        server.wait(Duration::from_secs(60)).expect("has ended");
        let (server, _pipes) = shell("exec sleep 1000", &log);
        let place = PathBuf::from(format!("/proc/{}", server.pid()));
        assert!(place.exists());
        let error = server.wait(Duration::ZERO).expect_err("does not end").to_string();
        assert!(error.starts_with("the shell did not end within 0 s; its log"), "{error}");
        assert!(!place.exists(), "it was killed and waited for");
    }
}
