//! A private node: configured, started, told what to do, and ended by this process.
//!
//! Owns: what an installation consists of ([`Installation`]) and one node in a directory of its own
//! ([`Node`]): what Cassandra stores there, `cassandra.yaml`, `temporary`, `server.log`. It listens
//! on two ports of 127.0.0.1 that were free, and takes orders through a pipe.
//!
//! Promises: what [`ServerProcess`] does; besides, a node ends when the pipe is closed. An error
//! after it ended by itself quotes the last lines of its log.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lithify_lab::adapter::{EngineError, EngineResult};

use super::configuration::{Configuration, LOG_CONFIGURATION, Ports};
use super::protocol::{CONNECTION_LOST, Connection};
use crate::server_process::{Guard, ServerProcess, find_program, last_lines, program_directories};

/// How long a node may take until it lets a client in: a minute and a half where the machine has
/// other things to do.
const START_TIMEOUT: Duration = Duration::from_secs(240);
/// How long an order may take.
const ORDER_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a node may take to end by itself.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);
/// A connection closes a moment before the process has ended.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// A port that was free may be taken before the node has it.
const START_ATTEMPTS: usize = 3;
/// What a node says of a port that is taken.
const PORT_TAKEN: [&str; 2] = ["is in use by another process", "Failed to bind port"];

/// Versions of Java that Cassandra 5.0 runs on.
const JAVA_VERSIONS: [u32; 2] = [11, 17];

/// The class that starts a node and takes orders.
pub const MAIN_CLASS: &str = "LabNode";
/// Its source.
pub const MAIN_SOURCE: &str = include_str!("LabNode.java");

/// In an installation: Cassandra and what it needs, and the class above.
pub const JARS: &str = "jars";
/// See [`JARS`].
pub const CLASSES: &str = "classes";

/// What Cassandra opens of Java itself, module by module.
const OPENED: [&str; 13] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.util",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
];

/// What it calls that Java does not export.
const EXPORTED: [&str; 6] = [
    "java.base/java.lang.ref",
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
];

/// Waits of a cluster that one node alone need not have, and what it may do without a console.
const PROPERTIES: [&str; 6] = [
    "cassandra-foreground=yes",
    "cassandra.skip_wait_for_gossip_to_settle=0",
    "cassandra.ring_delay_ms=0",
    "cassandra.shutdown_announce_in_ms=0",
    "io.netty.tryReflectionSetAccessible=true",
    "java.net.preferIPv4Stack=true",
];

/// An installed Cassandra and a Java.
#[derive(Clone, Debug)]
pub struct Installation {
    java: PathBuf,
    guard: Guard,
    home: PathBuf,
}

impl Installation {
    /// The one whose files are in `home`.
    ///
    /// # Errors
    /// There is no Java, or one that Cassandra does not run on; one line that says how to get it.
    pub fn open(home: &Path) -> EngineResult<Installation> {
        let directories = program_directories();
        let (java, guard) = (find_java()?, Guard::find_in(&directories)?);
        let said = Command::new(&java).arg("-version").stdin(Stdio::null()).output();
        let said = said.map_err(|error| failed(&java, error))?;
        check_java(&java, &String::from_utf8_lossy(&said.stderr))?;
        Ok(Installation { java, guard, home: home.to_owned() })
    }

    /// Names of the packages that Cassandra needs, with their versions.
    pub fn jar(home: &Path, name: &str) -> Option<String> {
        let entries = fs::read_dir(home.join(JARS)).ok()?;
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter_map(|jar| jar.strip_suffix(".jar").map(str::to_owned)).find(|jar| {
            let rest = jar.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
            rest.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
        })
    }

    /// The command of a node with its files in `directory`.
    fn command(&self, directory: &Path, configuration: &Configuration) -> Command {
        let heap = configuration.heap_mib();
        let path = |name: &str| directory.join(name).display().to_string();
        let [jars, classes] =
            [JARS, CLASSES].map(|part| self.home.join(part).display().to_string());
        let mut command = self.guard.command(&self.java);
        command
            .args([format!("-Xms{heap}m"), format!("-Xmx{heap}m")])
            .args(["-XX:+UseG1GC", "-XX:+ExitOnOutOfMemoryError", "-XX:+PerfDisableSharedMem"])
            .arg(format!("-XX:ErrorFile={}", path("java-error.log")))
            .args(OPENED.map(|package| format!("--add-opens={package}=ALL-UNNAMED")))
            .args(EXPORTED.map(|package| format!("--add-exports={package}=ALL-UNNAMED")))
            .args(PROPERTIES.map(|property| format!("-D{property}")))
            .arg(format!("-Dcassandra.storagedir={}", directory.display()))
            .arg(format!("-Dcassandra.config=file://{}", path("cassandra.yaml")))
            .arg(format!("-Dlogback.configurationFile={}", path("logback.xml")))
            .arg(format!("-Djava.io.tmpdir={}", path("temporary")))
            .arg(format!("-Djna.tmpdir={}", path("temporary")));
        if let Some(meter) = Installation::jar(&self.home, "jamm") {
            command.arg(format!("-javaagent:{jars}/{meter}.jar"));
        }
        command.args(["-cp", &format!("{classes}:{jars}/*"), MAIN_CLASS]);
        command
    }
}

/// The program that runs Java.
///
/// # Errors
/// There is none: one line that says how to get it.
pub fn find_java() -> EngineResult<PathBuf> {
    let mut directories = Vec::new();
    if let Some(home) = std::env::var_os("JAVA_HOME").filter(|home| !home.is_empty()) {
        directories.push(PathBuf::from(home).join("bin"));
    }
    directories.extend(program_directories());
    find_program(&directories, "java").ok_or_else(|| {
        EngineError::fatal(
            "Java is not installed; Cassandra needs 11 or 17. With Debian: apt-get install \
             openjdk-17-jre-headless",
        )
    })
}

/// Refuses a Java that says of itself that it is of another version.
fn check_java(java: &Path, said: &str) -> EngineResult<()> {
    let number = said.split('"').nth(1).and_then(|version| version.split(['.', '-', '+']).next());
    let number = number.and_then(|number| number.parse().ok());
    if number.is_some_and(|number| JAVA_VERSIONS.contains(&number)) {
        return Ok(());
    }
    let first = said.lines().next().unwrap_or("nothing");
    Err(EngineError::fatal(format!(
        "{} says \"{}\"; Cassandra 5.0 needs Java 11 or 17: set JAVA_HOME to one",
        java.display(),
        first.replace('"', "")
    )))
}

fn failed(path: &Path, error: impl std::fmt::Display) -> EngineError {
    EngineError::fatal(format!("{}: {error}", path.display()))
}

/// The ends of the pipes: what the node is told, and what it answers.
#[derive(Debug)]
struct Orders {
    input: ChildStdin,
    answers: Receiver<String>,
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    process: ServerProcess,
    orders: Mutex<Orders>,
    port: u16,
    log: PathBuf,
}

impl Node {
    /// Starts a node over what `directory` holds.
    ///
    /// # Errors
    /// It does not start, with the last lines of what it said.
    pub fn start(
        installation: &Installation,
        directory: &Path,
        configuration: &Configuration,
    ) -> EngineResult<Node> {
        let directory = std::path::absolute(directory).map_err(|error| failed(directory, error))?;
        let mut attempt = 1;
        loop {
            let ports = free_ports()?;
            match start(installation, &directory, configuration, ports) {
                Err(error)
                    if attempt < START_ATTEMPTS
                        && PORT_TAKEN.iter().any(|taken| error.to_string().contains(taken)) =>
                {
                    attempt += 1;
                }
                started => return started,
            }
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// A connection to it.
    ///
    /// # Errors
    /// It is not there any more.
    pub fn connect(&self) -> EngineResult<Connection> {
        Connection::open(self.port).map_err(|error| self.explain(error))
    }

    /// An error of a connection, with the reason when it is that the node has ended.
    #[cold]
    pub fn explain(&self, error: EngineError) -> EngineError {
        if !error.to_string().starts_with(CONNECTION_LOST) {
            return error;
        }
        self.process.reason(END_PATIENCE).unwrap_or(error)
    }

    /// Gives an order and waits until it is done.
    ///
    /// # Errors
    /// The node's own, or that it has ended.
    pub fn order(&self, order: &str) -> EngineResult<()> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        // One that cannot be told has ended; the answer that does not come says so.
        let _ = writeln!(orders.input, "{order}").and_then(|()| orders.input.flush());
        match self.answer(&orders.answers, ORDER_TIMEOUT)?.as_str() {
            "done" => Ok(()),
            other => Err(EngineError::fatal(format!("the Cassandra node: {order}: {other}"))),
        }
    }

    fn answer(&self, answers: &Receiver<String>, patience: Duration) -> EngineResult<String> {
        answers.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Disconnected => {
                self.process.reason(END_PATIENCE).unwrap_or_else(|| {
                    EngineError::fatal("the Cassandra node takes no orders any more")
                })
            }
            RecvTimeoutError::Timeout => EngineError::fatal(format!(
                "the Cassandra node did not answer within {} s; {}",
                patience.as_secs(),
                last_lines(&self.log)
            )),
        })
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// It was not there any more, or had to be killed.
    pub fn stop(self) -> EngineResult<()> {
        if let Some(gone) = self.process.reason(Duration::ZERO) {
            return Err(gone);
        }
        let Orders { mut input, answers: _ } =
            self.orders.into_inner().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(input, "stop").and_then(|()| input.flush());
        // The pipe stays open until then: a node ends at once when it is closed.
        self.process.wait(STOP_TIMEOUT)
    }
}

/// Two ports of this machine that nobody listens on.
fn free_ports() -> EngineResult<Ports> {
    let listen = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        listener.map_err(|error| EngineError::fatal(format!("no free port: {error}")))
    };
    // Both at once, so that they differ.
    let both = [listen()?, listen()?];
    let [storage, client] = both.each_ref().map(|listener| {
        let address = listener.local_addr();
        address.map_err(|error| EngineError::fatal(format!("no free port: {error}")))
    });
    Ok(Ports { storage: storage?.port(), client: client?.port() })
}

fn start(
    installation: &Installation,
    directory: &Path,
    configuration: &Configuration,
    ports: Ports,
) -> EngineResult<Node> {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, error))
    };
    let temporary = directory.join("temporary");
    fs::create_dir_all(&temporary).map_err(|error| failed(&temporary, error))?;
    write("cassandra.yaml", &configuration.yaml(directory, ports))?;
    write("logback.xml", LOG_CONFIGURATION)?;
    let log = directory.join("server.log");
    let output = File::create(&log).map_err(|error| failed(&log, error))?;
    let mut command = installation.command(directory, configuration);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(output).current_dir(directory);
    let (process, pipes) = ServerProcess::start("the Cassandra node", command, &log)?;
    let (Some(input), Some(output)) = (pipes.input, pipes.output) else {
        return Err(EngineError::fatal("the Cassandra node has no pipes"));
    };
    let answers = lines_of(output);
    let orders = Mutex::new(Orders { input, answers });
    let node = Node { process, orders, port: ports.client, log };
    let ready = {
        let orders = node.orders.lock().unwrap_or_else(PoisonError::into_inner);
        node.answer(&orders.answers, START_TIMEOUT)?
    };
    if ready == "ready" {
        return Ok(node);
    }
    Err(EngineError::fatal(format!("the Cassandra node says \"{ready}\" instead of \"ready\"")))
}

/// The lines of a pipe, read by a thread of their own, so that nobody waits for one for ever.
fn lines_of(output: ChildStdout) -> Receiver<String> {
    let (lines, received) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    received
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_java_are_told_apart() {
        let java = Path::new("/usr/bin/java");
        for said in [
            "openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime",
            "java version \"11\" 2018-09-25",
            "openjdk version \"17-ea\"",
        ] {
            check_java(java, said).expect("will do");
        }
        let error = check_java(java, "openjdk version \"21.0.2\" 2024-01-16\nmore");
        assert_eq!(
            error.expect_err("is too new").to_string(),
            "/usr/bin/java says \"openjdk version 21.0.2 2024-01-16\"; Cassandra 5.0 needs Java 11 \
             or 17: set JAVA_HOME to one"
        );
        assert!(check_java(java, "java version \"1.8.0_292\"").is_err());
        assert!(check_java(java, "").is_err());
    }

    #[test]
    fn ports_differ_and_jars_are_found_by_name() {
        let ports = free_ports().expect("there are");
        assert_ne!(ports.storage, ports.client);
        let home = tempfile::tempdir().expect("a directory");
        assert_eq!(Installation::jar(home.path(), "lz4-java"), None);
        fs::create_dir(home.path().join(JARS)).expect("is made");
        for name in ["lz4-java-extra-2.jar", "lz4-java-1.8.0.jar", "jamm.txt"] {
            fs::write(home.path().join(JARS).join(name), "").expect("is written");
        }
        let found = Installation::jar(home.path(), "lz4-java");
        assert_eq!(found.as_deref(), Some("lz4-java-1.8.0"));
        assert_eq!(Installation::jar(home.path(), "jamm"), None);
    }
}
