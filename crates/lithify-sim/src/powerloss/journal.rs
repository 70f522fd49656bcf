//! What happened on the journaling file system, in order: changes, syncs, and reports of the
//! worker, each with the stamps at which it began and ended.
//!
//! Owns: the entries, their text form in which a journal is kept, and the stamps. A stamp is a
//! number of one counter: two stamps are never equal, and the order of stamps is the order of
//! time in this process.

use std::fmt::Write as _;
use std::sync::Arc;

/// The number of a file or directory, never used twice.
pub(super) type Inode = u64;

/// The directory that everything is in.
pub(super) const ROOT: Inode = 1;

/// One change of names or bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// A new file or directory under a new name.
    Make { parent: Inode, name: String, inode: Inode, is_directory: bool },
    /// One more name of a file.
    Link { parent: Inode, name: String, inode: Inode },
    /// A name moves, over whatever had the new one.
    Rename { from: (Inode, String), to: (Inode, String) },
    /// A name of a file, or an empty directory, goes.
    Remove { parent: Inode, name: String },
    /// Bytes of a file.
    Write { inode: Inode, offset: u64, bytes: Arc<[u8]> },
    /// A new length.
    Resize { inode: Inode, length: u64 },
}

/// What a worker says, in words of eight bytes: a kind and its arguments.
pub(super) type Report = Vec<u64>;

/// What an entry is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    /// A change; it is seen from its beginning on.
    Change(Change),
    /// A sync of a file or directory that succeeded.
    Sync(Inode),
    /// The worker reports.
    Report(Report),
    /// The worker is dead: killed, or ended by itself.
    End,
}

/// An event with its time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) event: Event,
    pub(super) began: u64,
    /// [`UNDER_WAY`] until it has ended.
    pub(super) ended: u64,
}

/// The end of what has not ended.
pub(super) const UNDER_WAY: u64 = u64::MAX;

/// All entries, in the order of their beginnings.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Journal {
    pub(super) entries: Vec<Entry>,
    next_stamp: u64,
}

impl Journal {
    /// Entries, and the last stamp that was given.
    pub(super) fn of(entries: Vec<Entry>, last_stamp: u64) -> Journal {
        Journal { entries, next_stamp: last_stamp }
    }

    pub(super) fn stamp(&mut self) -> u64 {
        self.next_stamp += 1;
        self.next_stamp
    }

    /// Notes that something begins; gives its place for [`Journal::end`].
    pub(super) fn begin(&mut self, event: Event) -> usize {
        let began = self.stamp();
        self.entries.push(Entry { event, began, ended: UNDER_WAY });
        self.entries.len() - 1
    }

    pub(super) fn end(&mut self, place: usize) {
        self.entries[place].ended = self.stamp();
    }

    /// The last stamp so far.
    pub(super) fn now(&self) -> u64 {
        self.next_stamp
    }

    /// One line for each entry.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for Entry { event, began, ended } in &self.entries {
            let ended = if *ended == UNDER_WAY { "-".to_string() } else { ended.to_string() };
            // Writing to a string does not fail.
            let _ = write!(text, "{began} {ended} ");
            let _ = match event {
                Event::Change(Change::Make { parent, name, inode, is_directory }) => {
                    let kind = if *is_directory { "mkdir" } else { "create" };
                    writeln!(text, "{kind} {parent} {inode} {name}")
                }
                Event::Change(Change::Link { parent, name, inode }) => {
                    writeln!(text, "link {parent} {inode} {name}")
                }
                Event::Change(Change::Rename { from, to }) => {
                    writeln!(text, "rename {} {} {}/{}", from.0, to.0, from.1, to.1)
                }
                Event::Change(Change::Remove { parent, name }) => {
                    writeln!(text, "remove {parent} {name}")
                }
                Event::Change(Change::Write { inode, offset, bytes }) => {
                    writeln!(text, "write {inode} {offset} {}", hex(bytes))
                }
                Event::Change(Change::Resize { inode, length }) => {
                    writeln!(text, "resize {inode} {length}")
                }
                Event::Sync(inode) => writeln!(text, "sync {inode}"),
                Event::Report(words) => {
                    let words: Vec<String> = words.iter().map(u64::to_string).collect();
                    writeln!(text, "report {}", words.join(" "))
                }
                Event::End => writeln!(text, "end"),
            };
        }
        text
    }

    /// The journal that [`Journal::to_text`] wrote.
    pub(super) fn parse(text: &str) -> Result<Journal, String> {
        let mut journal = Journal::default();
        for (index, line) in text.lines().enumerate() {
            let entry = parse_entry(line)
                .ok_or_else(|| format!("line {} is no entry of a journal", index + 1))?;
            let last = if entry.ended == UNDER_WAY { entry.began } else { entry.ended };
            journal.next_stamp = journal.next_stamp.max(last);
            journal.entries.push(entry);
        }
        Ok(journal)
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn parse_hex(text: &str) -> Option<Arc<[u8]>> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect::<Option<Vec<u8>>>().map(Arc::from)
}

fn parse_entry(line: &str) -> Option<Entry> {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |place: usize| words.get(place)?.parse::<u64>().ok();
    let name = |place: usize| words.get(place).map(|name| name.to_string());
    let event = match *words.get(2)? {
        kind @ ("create" | "mkdir") => Event::Change(Change::Make {
            parent: number(3)?,
            inode: number(4)?,
            name: name(5)?,
            is_directory: kind == "mkdir",
        }),
        "link" => {
            Event::Change(Change::Link { parent: number(3)?, inode: number(4)?, name: name(5)? })
        }
        "rename" => {
            let (from, to) = words.get(5)?.split_once('/')?;
            let (from, to) = ((number(3)?, from.to_string()), (number(4)?, to.to_string()));
            Event::Change(Change::Rename { from, to })
        }
        "remove" => Event::Change(Change::Remove { parent: number(3)?, name: name(4)? }),
        "write" => Event::Change(Change::Write {
            inode: number(3)?,
            offset: number(4)?,
            bytes: parse_hex(words.get(5)?)?,
        }),
        "resize" => Event::Change(Change::Resize { inode: number(3)?, length: number(4)? }),
        "sync" => Event::Sync(number(3)?),
        "report" => {
            let report = words[3..].iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
            Event::Report(report)
        }
        "end" => Event::End,
        _ => return None,
    };
    let ended = if words[1] == "-" { UNDER_WAY } else { number(1)? };
    Some(Entry { event, began: number(0)?, ended })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_was_kept_is_the_same() {
        let mut journal = Journal::default();
        let name = || "a".to_string();
        let make =
            |is_directory| Change::Make { parent: ROOT, name: name(), inode: 2, is_directory };
        let changes = [
            make(true),
            make(false),
            Change::Link { parent: 2, name: name(), inode: 3 },
            Change::Rename { from: (2, name()), to: (1, "b".to_string()) },
            Change::Remove { parent: 1, name: name() },
            Change::Write { inode: 3, offset: 7, bytes: Arc::from(&[0, 255, 16][..]) },
            Change::Resize { inode: 3, length: 0 },
        ];
        for change in changes {
            let place = journal.begin(Event::Change(change));
            journal.end(place);
        }
        for event in [Event::Sync(3), Event::Report(vec![1, 2]), Event::Report(vec![]), Event::End]
        {
            journal.begin(event);
        }
        journal.entries.pop();
        journal.entries.pop();
        journal.begin(Event::End);
        let text = journal.to_text();
        let again = Journal::parse(&text).unwrap();
        assert_eq!(again.entries, journal.entries);
        assert_eq!(again.now(), journal.now());
        assert!(Journal::parse("1 2 dance").unwrap_err().contains("line 1"));
    }
}
