//! The address of a table, and the program that asks its server.

use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::error::{AdviseError, Result};

/// The clients, the first one that is installed.
const PROGRAMS: [&str; 2] = ["mariadb", "mysql"];

/// How an address begins, and what it is the address of.
pub(super) fn scheme(text: &str) -> Option<(&'static str, &str)> {
    let mariadb = text.strip_prefix("mariadb://").map(|rest| ("MariaDB", rest));
    mariadb.or_else(|| text.strip_prefix("mysql://").map(|rest| ("MySQL", rest)))
}

/// `mariadb://user:password@host:port/database/table?socket=path`; all but the database may be left out.
pub(super) struct Address {
    pub(super) kind: &'static str,
    user: Option<String>,
    password: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    socket: Option<String>,
    pub(super) database: String,
    pub(super) table: Option<String>,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.kind.to_lowercase())?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        f.write_str(self.host.as_deref().unwrap_or_default())?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        write!(f, "/{}", self.database)?;
        self.table.iter().try_for_each(|table| write!(f, "/{table}"))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Address {
    pub(super) fn parse(path: &Path) -> Result<Address> {
        let wrong = || {
            let what = "an address is mariadb://[USER[:PASSWORD]@][HOST[:PORT]]/DATABASE[/TABLE]\
                        [?socket=PATH]";
            AdviseError::usage(what)
        };
        let (kind, rest) = path.to_str().and_then(scheme).ok_or_else(wrong)?;
        let (rest, socket) = match rest.split_once('?') {
            Some((rest, option)) => (rest, Some(option.strip_prefix("socket=").ok_or_else(wrong)?)),
            None => (rest, None),
        };
        let (server, names) = rest.split_once('/').ok_or_else(wrong)?;
        let (login, place) = server.rsplit_once('@').map_or((None, server), |(login, place)| {
            (
                Some(
                    login.split_once(':').map_or((login, None), |(user, word)| (user, Some(word))),
                ),
                place,
            )
        });
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse::<u16>().map_err(|_| wrong())?)),
            None => (place, None),
        };
        let (database, table) = match names.trim_end_matches('/').split_once('/') {
            Some((database, table)) => (database, Some(table)),
            None => (names.trim_end_matches('/'), None),
        };
        let is_missing = database.is_empty() || table.is_some_and(|table| table.contains('/'));
        if is_missing {
            return Err(wrong());
        }
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Ok(Address {
            kind,
            user: login.and_then(|(user, _)| text(user)),
            password: login.and_then(|(_, word)| word).map(str::to_owned),
            host: text(host),
            port,
            socket: socket.and_then(text),
            database: database.to_owned(),
            table: table.and_then(text),
        })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let option = |name: &str, value: &str| format!("--{name}={value}");
        command.args(["--batch", "--quick", "--skip-column-names"]);
        command.arg("--default-character-set=utf8mb4");
        command.args(self.user.iter().map(|user| option("user", user)));
        command.args(self.host.iter().map(|host| option("host", host)));
        command.args(self.port.iter().map(|port| option("port", &port.to_string())));
        command.args(self.socket.iter().map(|socket| option("socket", socket)));
        // A name like an option's stays a name.
        command.arg(option("database", &self.database));
        // Arguments can be seen by everyone on the machine, the environment only by its user.
        command.envs(self.password.iter().map(|word| ("MYSQL_PWD", word)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, statement: &str) -> Result<Child> {
        for program in PROGRAMS {
            let started = self.command(program).arg(format!("--execute={statement}")).spawn();
            match started {
                Ok(child) => return Ok(child),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(AdviseError::data(format_args!("{program}: {error}"))),
            }
        }
        let what =
            format!("{self}: neither `mariadb` nor `mysql` is installed, the server's client");
        Err(AdviseError::data(what))
    }

    /// Gives each row of an answer until that has had enough.
    pub(super) fn query(
        &self,
        statement: &str,
        each: &mut dyn FnMut(&Fields) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut child = self.start(statement)?;
        let said = child.stdout.take().map_or(Ok(false), |output| read_rows(output, each));
        if matches!(said, Ok(false)) {
            // It has said everything, or died.
            let mut complaint = String::new();
            if let Some(errors) = child.stderr.as_mut() {
                // What cannot be read is not told.
                let _ = errors.read_to_string(&mut complaint);
            }
            let status = child.wait().map_err(|error| AdviseError::data(error.to_string()))?;
            if !status.success() {
                let first = complaint.lines().find(|line| line.contains("ERROR"));
                let what =
                    first.or(complaint.lines().last()).unwrap_or("the client gave no reason");
                let hint = hint(what);
                return Err(AdviseError::data(format_args!("{self}: {what}{hint}")));
            }
            return Ok(());
        }
        // Nobody wants the rest; that it could not be told so is no loss.
        let _ = child.kill();
        let _ = child.wait();
        said.map(|_| ())
    }
}

/// What to do about an error of the client.
fn hint(complaint: &str) -> &'static str {
    match complaint {
        _ if complaint.contains("ERROR 1045") => {
            "; the client takes a password from its option files or MYSQL_PWD"
        }
        _ if complaint.contains("ERROR 2002") || complaint.contains("ERROR 2003") => {
            "; name HOST:PORT, or ?socket=PATH"
        }
        _ => "",
    }
}

/// True if `each` had enough before the end.
fn read_rows(
    output: ChildStdout,
    each: &mut dyn FnMut(&Fields) -> Result<ControlFlow<()>>,
) -> Result<bool> {
    let mut output = BufReader::with_capacity(256 << 10, output);
    let (mut line, mut fields) = (Vec::new(), Fields::default());
    loop {
        line.clear();
        let read = output.read_until(b'\n', &mut line);
        if read.map_err(|error| AdviseError::data(error.to_string()))? == 0 {
            return Ok(false);
        }
        fields.parse(line.strip_suffix(b"\n").unwrap_or(&line));
        if each(&fields)?.is_break() {
            return Ok(true);
        }
    }
}

/// The fields of a row as the client prints them: tabs between, escapes in them.
#[derive(Debug, Default)]
pub(super) struct Fields {
    bytes: Vec<u8>,
    /// Where each ends, and whether it is null.
    ends: Vec<(usize, bool)>,
}

impl Fields {
    fn parse(&mut self, line: &[u8]) {
        self.bytes.clear();
        self.ends.clear();
        for field in line.split(|byte| *byte == b'\t') {
            let mut rest = field.iter();
            while let Some(byte) = rest.next() {
                let byte = match byte {
                    b'\\' => match rest.next() {
                        Some(b'n') => b'\n',
                        Some(b't') => b'\t',
                        Some(b'0') => 0,
                        Some(other) => *other,
                        None => b'\\',
                    },
                    other => *other,
                };
                self.bytes.push(byte);
            }
            self.ends.push((self.bytes.len(), field == b"NULL"));
        }
    }

    /// A field; `None` if it is null.
    pub(super) fn get(&self, at: usize) -> Option<&[u8]> {
        let (end, is_null) = *self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before].0);
        (!is_null).then(|| &self.bytes[start..end])
    }

    /// A field as text; nothing if it is none.
    pub(super) fn text(&self, at: usize) -> &str {
        self.get(at).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

/// A name as SQL takes any.
pub(super) fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as SQL takes any, whatever the server makes of backslashes.
pub(super) fn quoted_text(text: &str) -> String {
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("CONVERT(x'{hex}' USING utf8mb4)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address> {
        Address::parse(Path::new(text))
    }

    #[test]
    fn addresses_have_a_database_and_hide_passwords() {
        let full = parse("mysql://me:p:w@db.example:3307/shop/orders").expect("is one");
        assert_eq!(full.to_string(), "mysql://me@db.example:3307/shop/orders");
        assert_eq!(full.password.as_deref(), Some("p:w"));
        let short = parse("mariadb:///shop").expect("is one");
        assert_eq!((short.host.as_deref(), short.table.as_deref()), (None, None));
        let local = parse("mariadb:///shop?socket=/run/a b").expect("is one");
        assert_eq!(local.socket.as_deref(), Some("/run/a b"));
        for wrong in [
            "mariadb:///d?host=x",
            "mariadb://host",
            "mariadb:///",
            "mariadb://h:x/db",
            "mariadb:///a/b/c",
        ] {
            assert!(parse(wrong).expect_err(wrong).is_usage(), "{wrong}");
        }
    }

    #[test]
    fn fields_lose_their_escapes() {
        let mut fields = Fields::default();
        fields.parse(b"1\ta\\tb\\nc\\\\\\0\tNULL\t");
        assert_eq!(fields.get(0), Some(&b"1"[..]));
        assert_eq!(fields.get(1), Some(&b"a\tb\nc\\\0"[..]));
        assert_eq!((fields.get(2), fields.get(3)), (None, Some(&b""[..])));
        assert_eq!(fields.get(4), None);
        assert_eq!(quoted_name("a`b"), "`a``b`");
        assert_eq!(quoted_text("'"), "CONVERT(x'27' USING utf8mb4)");
    }
}
