//! A private server: made, started, watched and ended by this process.
//!
//! Owns: the programs of an installation ([`Installation`]) and one server in a directory of its
//! own ([`Server`]): `data` with everything that it stores, `temporary`, and `server.log`. It
//! listens on a socket in `data` and on no network.
//!
//! Promises: the server ends with the thread that keeps it, hence with this process, whichever way
//! that ends: the kernel kills it. Dropping a [`Server`] kills it, too. An error after it ended by
//! itself quotes the last lines of its log.
//!
//! May be called from any thread.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lithify_lab::adapter::{EngineError, EngineResult};

use super::connection::{CONNECTION_LOST, Connection};

/// How long a server may take until it lets a client in; it recovers first.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a server may take to end by itself.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);
/// Time between two looks.
const POLL: Duration = Duration::from_millis(20);

/// Lines of the log that an error quotes.
const LAST_LINES: usize = 4;
/// Bytes at the end of the log in which they are looked for.
const LOG_TAIL_BYTES: usize = 16 << 10;

/// The socket in the data directory. Paths of sockets are short: it is found by the handle of the
/// directory, and the server, which works in it, is told the name alone.
const SOCKET: &str = "server.sock";

/// Where programs are looked for behind those of the environment.
const PROGRAM_DIRECTORIES: [&str; 5] =
    ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/usr/libexec"];

/// Where the server's plugins are.
const PLUGIN_DIRECTORIES: [&str; 4] = [
    "/usr/lib/mysql/plugin",
    "/usr/lib64/mysql/plugin",
    "/usr/lib64/mariadb/plugin",
    "/usr/lib/mariadb/plugin",
];

/// The programs of an installed MariaDB.
#[derive(Clone, Debug)]
pub struct Installation {
    server: PathBuf,
    install: PathBuf,
    /// Ends what it starts with whoever started it.
    guard: PathBuf,
    plugins: Option<&'static Path>,
}

impl Installation {
    /// Looks for it.
    ///
    /// # Errors
    /// A program is missing: one line that says how to get it.
    pub fn find() -> EngineResult<Installation> {
        Installation::find_in(&program_directories())
    }

    fn find_in(directories: &[PathBuf]) -> EngineResult<Installation> {
        let find_program = |name: &str| program_in(directories, name);
        let program = |names: &[&str]| {
            let found = names.iter().find_map(|name| find_program(name));
            found.ok_or_else(|| missing(names.first().unwrap_or(&"a program")))
        };
        Ok(Installation {
            server: program(&["mariadbd", "mysqld"])?,
            install: program(&["mariadb-install-db", "mysql_install_db"])?,
            guard: find_program("setpriv").ok_or_else(|| {
                EngineError::fatal("setpriv is not installed; it is a part of util-linux")
            })?,
            plugins: PLUGIN_DIRECTORIES.into_iter().map(Path::new).find(|path| path.is_dir()),
        })
    }

    /// The server.
    pub fn server_program(&self) -> &Path {
        &self.server
    }

    /// The file of a plugin.
    ///
    /// # Errors
    /// It is not installed: one line that says how to get it.
    pub fn plugin(&self, name: &str) -> EngineResult<PathBuf> {
        let file = self.plugins.map(|plugins| plugins.join(format!("{name}.so")));
        file.filter(|file| file.is_file()).ok_or_else(|| {
            EngineError::fatal(format!(
                "MariaDB's plugin {name} is not installed; get it with: lithify bench setup mariadb"
            ))
        })
    }

    /// Calls a program of the installation that works on the files of a table, and waits for it.
    ///
    /// # Errors
    /// It is missing, or what it said.
    pub fn call(&self, name: &str, arguments: &[&OsStr]) -> EngineResult<()> {
        let program = program_in(&program_directories(), name).ok_or_else(|| missing(name))?;
        let output = self.guarded(&program).args(arguments).output();
        let output = output.map_err(|error| failed(&program, &error))?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        Err(EngineError::fatal(format!("{name} failed ({}): {}", output.status, joined(&lines))))
    }

    /// A command that is killed when the thread ends that starts it, and reads no configuration.
    fn guarded(&self, program: &Path) -> Command {
        let mut command = Command::new(&self.guard);
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).arg("--no-defaults");
        command.stdin(Stdio::null());
        command
    }

    /// As [`Installation::guarded`], of a program that refuses to be root's without being told.
    fn guarded_server(&self, program: &Path) -> Command {
        let mut command = self.guarded(program);
        if nix::unistd::geteuid().is_root() {
            command.arg("--user=root");
        }
        command
    }
}

/// Where programs are looked for.
fn program_directories() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(PROGRAM_DIRECTORIES.map(PathBuf::from)).collect()
}

fn program_in(directories: &[PathBuf], name: &str) -> Option<PathBuf> {
    let mut programs = directories.iter().map(|directory| directory.join(name));
    programs.find(|program| program.is_file())
}

#[cold]
fn missing(what: &str) -> EngineError {
    EngineError::fatal(format!(
        "MariaDB is not installed ({what} is missing); get it with: lithify bench setup mariadb"
    ))
}

fn failed(path: &Path, error: &io::Error) -> EngineError {
    EngineError::fatal(format!("{}: {error}", path.display()))
}

/// What the thread that keeps the server is asked.
enum Order {
    /// How it ended, if it has.
    Status(Sender<Option<ExitStatus>>),
    /// To wait until it has ended; false when it had to be killed.
    Wait(Sender<bool>),
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    pid: u32,
    log: PathBuf,
    /// The data directory, by which the socket is found.
    data: File,
    orders: Option<Sender<Order>>,
    keeper: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server over what `directory` holds; what an empty one needs is made first. `made`
    /// are arguments for both, `started` those of the running server alone.
    ///
    /// # Errors
    /// The programs' own, with the last lines of what they said.
    pub fn start(
        installation: &Installation,
        directory: &Path,
        made: &[String],
        started: &[String],
    ) -> EngineResult<Server> {
        let directory =
            std::path::absolute(directory).map_err(|error| failed(directory, &error))?;
        let (data, log) = (directory.join("data"), directory.join("server.log"));
        let temporary = directory.join("temporary");
        fs::create_dir_all(&temporary).map_err(|error| failed(&temporary, &error))?;
        if !data.join("mysql").is_dir() {
            make(installation, &data, &temporary, &log, made)?;
        }
        let output = File::options().create(true).append(true).open(&log);
        let output = output.map_err(|error| failed(&log, &error))?;
        let mut command = installation.guarded_server(&installation.server);
        command
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--tmpdir={}", temporary.display()))
            .arg(format!("--socket={SOCKET}"))
            .arg("--pid-file=server.pid")
            .arg("--skip-networking")
            .arg("--skip-name-resolve");
        if let Some(plugins) = installation.plugins {
            command.arg(format!("--plugin-dir={}", plugins.display()));
        }
        let errors = output.try_clone().map_err(|error| failed(&log, &error))?;
        command.args(made).args(started).stdout(output).stderr(errors).current_dir(&data);
        let data = File::open(&data).map_err(|error| failed(&data, &error))?;
        let (orders, keeper, pid) = keep(command)?;
        let server = Server { pid, log, data, orders: Some(orders), keeper: Some(keeper) };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// A connection to it.
    ///
    /// # Errors
    /// It is not there any more, or lets nobody in.
    pub fn connect(&self) -> EngineResult<Connection> {
        let socket = format!("/proc/self/fd/{}/{SOCKET}", self.data.as_raw_fd());
        Connection::open(Path::new(&socket))
    }

    /// An error of a connection, with the reason when it is that the server has ended.
    #[cold]
    pub fn explain(&self, error: EngineError) -> EngineError {
        if !error.to_string().starts_with(CONNECTION_LOST) {
            return error;
        }
        // The socket closes a moment before the process has ended.
        let deadline = Instant::now() + Duration::from_secs(1);
        while Instant::now() < deadline {
            if let Some(status) = self.status() {
                return EngineError::fatal(format!(
                    "the MariaDB server ended ({status}); {}",
                    last_lines(&self.log)
                ));
            }
            thread::sleep(POLL);
        }
        error
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// It was not there any more, or had to be killed.
    pub fn stop(mut self) -> EngineResult<()> {
        let asked = self.connect().and_then(|mut connection| connection.run("SHUTDOWN"));
        asked.map_err(|error| self.explain(error))?;
        let ended = self.ask(Order::Wait);
        self.let_go();
        if ended == Some(true) {
            return Ok(());
        }
        Err(EngineError::fatal(format!(
            "the MariaDB server did not end within {} s; {}",
            STOP_TIMEOUT.as_secs(),
            last_lines(&self.log)
        )))
    }

    fn ask<T>(&self, order: impl FnOnce(Sender<T>) -> Order) -> Option<T> {
        let (reply, answer) = channel();
        self.orders.as_ref()?.send(order(reply)).ok()?;
        answer.recv().ok()
    }

    fn status(&self) -> Option<ExitStatus> {
        self.ask(Order::Status).flatten()
    }

    fn wait_until_ready(&self) -> EngineResult<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match self.connect() {
                Ok(_) => return Ok(()),
                Err(_) if self.status().is_none() && Instant::now() < deadline => {
                    thread::sleep(POLL);
                }
                Err(error) => return Err(self.explain(error)),
            }
        }
    }

    /// Ends the thread that keeps the server, which kills it.
    fn let_go(&mut self) {
        drop(self.orders.take());
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Makes the tables that every server has.
fn make(
    installation: &Installation,
    data: &Path,
    temporary: &Path,
    log: &Path,
    arguments: &[String],
) -> EngineResult<()> {
    let output = File::create(log).map_err(|error| failed(log, &error))?;
    let errors = output.try_clone().map_err(|error| failed(log, &error))?;
    let mut command = installation.guarded_server(&installation.install);
    command
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--tmpdir={}", temporary.display()))
        .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
        .args(arguments)
        .stdout(output)
        .stderr(errors);
    let status = command.status().map_err(|error| failed(&installation.install, &error))?;
    if status.success() {
        return Ok(());
    }
    Err(EngineError::fatal(format!(
        "{} failed ({status}); {}",
        installation.install.display(),
        complaints(log)
    )))
}

/// Starts a command on a thread of its own, which ends it when nobody can give it orders any more.
fn keep(mut command: Command) -> EngineResult<(Sender<Order>, JoinHandle<()>, u32)> {
    let (orders, received) = channel();
    let (reply, answer) = channel();
    let keeper = thread::spawn(move || match command.spawn() {
        Ok(child) => {
            let _ = reply.send(Ok(child.id()));
            keep_child(child, &received);
        }
        Err(error) => {
            let _ = reply.send(Err(error.to_string()));
        }
    });
    let started = answer.recv().unwrap_or_else(|error| Err(error.to_string()));
    let pid = started.map_err(|error| {
        EngineError::fatal(format!("the MariaDB server cannot be started: {error}"))
    })?;
    Ok((orders, keeper, pid))
}

fn keep_child(mut child: Child, orders: &Receiver<Order>) {
    for order in orders {
        // Nobody may wait for the answer any more, which is no reason to end.
        let _ = match order {
            Order::Status(reply) => reply.send(child.try_wait().ok().flatten()).is_ok(),
            Order::Wait(reply) => reply.send(wait(&mut child)).is_ok(),
        };
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Waits until the child has ended; false when it takes too long.
fn wait(child: &mut Child) -> bool {
    let deadline = Instant::now() + STOP_TIMEOUT;
    while Instant::now() < deadline {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            return true;
        }
        thread::sleep(POLL);
    }
    false
}

/// The end of the log in one line.
fn last_lines(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let tail = &bytes[bytes.len().saturating_sub(LOG_TAIL_BYTES)..];
    let text = String::from_utf8_lossy(tail);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return "its log is empty".to_owned();
    }
    format!("the last lines of its log: {}", joined(&lines))
}

/// The last lines in which the programs call something an error, or else the last ones.
fn complaints(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let errors: Vec<&str> = text.lines().filter(|line| line.contains("[ERROR]")).collect();
    if errors.is_empty() { last_lines(log) } else { joined(&errors) }
}

fn joined(lines: &[&str]) -> String {
    lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_in_one_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let find =
            || Installation::find_in(&[directory.path().to_owned()]).map(|found| found.server);
        assert_eq!(
            find().expect_err("is empty").to_string(),
            "MariaDB is not installed (mariadbd is missing); get it with: lithify bench setup mariadb"
        );
        for program in ["mysqld", "mariadb-install-db", "setpriv"] {
            fs::write(directory.path().join(program), "").expect("is written");
        }
        assert_eq!(find().expect("is there"), directory.path().join("mysqld"));
        let found = Installation::find_in(&[directory.path().to_owned()]).expect("is there");
        assert_eq!(
            found.plugin("provider_of_nothing").expect_err("is none").to_string(),
            "MariaDB's plugin provider_of_nothing is not installed; get it with: lithify bench \
             setup mariadb"
        );
        let error = found.call("myisampack-of-nothing", &[]).expect_err("is none").to_string();
        assert!(error.contains("(myisampack-of-nothing is missing)"), "{error}");
    }

    #[test]
    fn the_end_of_a_log_is_one_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("server.log");
        assert_eq!(last_lines(&log), "its log is empty");
        fs::write(&log, "a\nb\n\nc\nd\ne\n").expect("is written");
        assert_eq!(last_lines(&log), "the last lines of its log: b | c | d | e");
        assert_eq!(complaints(&log), last_lines(&log));
        fs::write(&log, "a\n1 [ERROR] no engine\nask somebody\n").expect("is written");
        assert_eq!(complaints(&log), "1 [ERROR] no engine");
    }
}
