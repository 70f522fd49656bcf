//! A private server: made, started, watched and ended by this process.
//!
//! Owns: the programs of an installation ([`Installation`]) and one server in a directory of its
//! own ([`Server`]): `data` with everything that it stores, `temporary`, and `server.log`. It
//! listens on a socket in `data` and on no network.
//!
//! Promises: what [`ServerProcess`] does: the server ends with this process at the latest, and an
//! error after it ended by itself quotes the last lines of its log.
//!
//! May be called from any thread.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use lithify_lab::adapter::{EngineError, EngineResult};

use super::connection::{CONNECTION_LOST, Connection};
use super::tally::{Asked, Tally};
use crate::server_process::{
    Guard, POLL, ServerProcess, find_program, last_joined, last_lines, program_directories,
};

/// How long a server may take until it lets a client in; it recovers first.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a server may take to end by itself.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);
/// The socket closes a moment before the process has ended.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// The socket in the data directory. Paths of sockets are short: it is found by the handle of the
/// directory, and the server, which works in it, is told the name alone.
pub(super) const SOCKET: &str = "server.sock";

/// The directory of temporary files, beside that of the data.
const TEMPORARY: &str = "temporary";

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
    guard: Guard,
    plugins: Option<&'static Path>,
}

impl Installation {
    /// Looks for it.
    ///
    /// # Errors
    /// A program is missing: one line that says how to get it.
    pub fn find() -> EngineResult<Installation> {
        Installation::find_in(&directories())
    }

    fn find_in(directories: &[PathBuf]) -> EngineResult<Installation> {
        let program = |names: &[&str]| {
            let found = names.iter().find_map(|name| find_program(directories, name));
            found.ok_or_else(|| missing(names.first().unwrap_or(&"a program")))
        };
        Ok(Installation {
            server: program(&["mariadbd", "mysqld"])?,
            install: program(&["mariadb-install-db", "mysql_install_db"])?,
            guard: Guard::find_in(directories)?,
            plugins: PLUGIN_DIRECTORIES.into_iter().map(Path::new).find(|path| path.is_dir()),
        })
    }

    /// The server.
    pub fn server_program(&self) -> &Path {
        &self.server
    }

    /// The version that the server says it is, such as `10.11.8`.
    ///
    /// # Errors
    /// It does not start, or says none.
    pub fn version(&self) -> EngineResult<String> {
        let output = self.guarded(&self.server).arg("--version").output();
        let output = output.map_err(|error| failed(&self.server, &error))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        version_in(&said).map(str::to_owned).ok_or_else(|| {
            EngineError::fatal(format!("{}: no version in {said:?}", self.server.display()))
        })
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
        let program = find_program(&directories(), name).ok_or_else(|| missing(name))?;
        let output = self.guarded(&program).args(arguments).output();
        let output = output.map_err(|error| failed(&program, &error))?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        Err(EngineError::fatal(format!(
            "{name} failed ({}): {}",
            output.status,
            last_joined(&lines)
        )))
    }

    /// A command that is killed when the thread ends that starts it, and reads no configuration.
    fn guarded(&self, program: &Path) -> Command {
        let mut command = self.guard.command(program);
        command.arg("--no-defaults");
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
fn directories() -> Vec<PathBuf> {
    let mut directories = program_directories();
    directories.extend(PROGRAM_DIRECTORIES.map(PathBuf::from));
    directories
}

/// The version in what a server says of itself: `mariadbd  Ver 10.11.8-MariaDB-... for ...`.
fn version_in(said: &str) -> Option<&str> {
    let mut words = said.split_whitespace().skip_while(|word| *word != "Ver");
    let word = words.nth(1)?;
    word.split('-').next().filter(|version| version.starts_with(|c: char| c.is_ascii_digit()))
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

/// A running server.
#[derive(Debug)]
pub struct Server {
    process: ServerProcess,
    /// The data directory, by which the socket is found.
    data: File,
    tally: Arc<Tally>,
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
        let temporary = directory.join(TEMPORARY);
        fs::create_dir_all(&temporary).map_err(|error| failed(&temporary, &error))?;
        if !data.join("mysql").is_dir() {
            make(installation, &data, &log, made)?;
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
        let (process, _) = ServerProcess::start("the MariaDB server", command, &log)?;
        let server = Server { process, data, tally: Arc::default() };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What its connections have asked for.
    pub fn asked(&self) -> Asked {
        self.tally.now()
    }

    /// A connection to it.
    ///
    /// # Errors
    /// It is not there any more, or lets nobody in.
    pub fn connect(&self) -> EngineResult<Connection> {
        let socket = format!("/proc/self/fd/{}/{SOCKET}", self.data.as_raw_fd());
        Connection::open(Path::new(&socket), Arc::clone(&self.tally))
    }

    /// An error of a connection, with the reason when it is that the server has ended.
    #[cold]
    pub fn explain(&self, error: EngineError) -> EngineError {
        if !error.to_string().starts_with(CONNECTION_LOST) {
            return error;
        }
        self.process.reason(END_PATIENCE).unwrap_or(error)
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// It was not there any more, or had to be killed.
    pub fn stop(self) -> EngineResult<()> {
        let asked = self.connect().and_then(|mut connection| connection.run("SHUTDOWN"));
        asked.map_err(|error| self.explain(error))?;
        self.process.wait(STOP_TIMEOUT)
    }

    fn wait_until_ready(&self) -> EngineResult<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match self.connect() {
                Ok(_) => return Ok(()),
                Err(_) if self.process.status().is_none() && Instant::now() < deadline => {
                    thread::sleep(POLL);
                }
                Err(error) => return Err(self.explain(error)),
            }
        }
    }
}

/// Makes the tables that every server has. It is done from within the directory of the data, and no
/// path is named: the script that does it takes spaces and quotes in one for its own.
fn make(
    installation: &Installation,
    data: &Path,
    log: &Path,
    arguments: &[String],
) -> EngineResult<()> {
    fs::create_dir_all(data).map_err(|error| failed(data, &error))?;
    let output = File::create(log).map_err(|error| failed(log, &error))?;
    let errors = output.try_clone().map_err(|error| failed(log, &error))?;
    let mut command = installation.guarded_server(&installation.install);
    command
        .current_dir(data)
        .args(["--datadir=./", &format!("--tmpdir=../{TEMPORARY}")])
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

/// The last lines in which the programs call something an error, or else the last ones.
fn complaints(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let errors: Vec<&str> = text.lines().filter(|line| line.contains("[ERROR]")).collect();
    if errors.is_empty() { last_lines(log) } else { last_joined(&errors) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_what_the_server_says() {
        let said = "mariadbd  Ver 10.11.8-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64\n";
        assert_eq!(version_in(said), Some("10.11.8"));
        assert_eq!(version_in("/usr/sbin/mysqld  Ver 11.4.2 for Linux"), Some("11.4.2"));
        for none in ["", "Ver", "mariadbd Ver unknown", "mariadbd 10.11.8"] {
            assert_eq!(version_in(none), None, "{none:?}");
        }
    }

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
    fn complaints_go_before_last_lines() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("server.log");
        fs::write(&log, "a\nb\n").expect("is written");
        assert_eq!(complaints(&log), last_lines(&log));
        fs::write(&log, "a\n1 [ERROR] no engine\nask somebody\n").expect("is written");
        assert_eq!(complaints(&log), "1 [ERROR] no engine");
    }
}
