//! What LevelDB says about itself, read from its texts.

use std::collections::BTreeMap;

/// A live table file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// Its level.
    pub level: u32,
    /// The number in its name.
    pub number: u64,
    /// Its size, bytes.
    pub size_bytes: u64,
}

/// Reads the list of files: a line names a level, those after it a number, a size and keys of each
/// of its files (`17:123['a' .. 'b']`). Others are passed over.
pub fn parse_tables(text: &str) -> Vec<TableFile> {
    let mut level = 0;
    let mut files = Vec::new();
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("--- level ") {
            let number = number.split(' ').next().and_then(|number| number.parse().ok());
            level = number.unwrap_or(level);
            continue;
        }
        let file = line.trim_start().split_once(':').and_then(|(number, rest)| {
            let (size, _) = rest.split_once('[')?;
            Some(TableFile {
                level,
                number: number.parse().ok()?,
                size_bytes: size.trim().parse().ok()?,
            })
        });
        files.extend(file);
    }
    files
}

/// The work of flushes and compactions into one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelWork {
    /// Wall time, microseconds, in steps of a second.
    pub wall_us: u64,
    /// Bytes read, in steps of 1 MiB.
    pub read_bytes: u64,
    /// Bytes written, in steps of 1 MiB.
    pub written_bytes: u64,
}

/// Reads the table of compactions: level, files, size, seconds, MiB read, MiB written.
pub fn parse_work(text: &str) -> BTreeMap<u32, LevelWork> {
    let of_line = |line: &str| -> Option<(u32, LevelWork)> {
        let words: Vec<u64> =
            line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [level, _files, _size, seconds, read_mib, written_mib] = words[..] else {
            return None;
        };
        let work = LevelWork {
            wall_us: seconds.saturating_mul(1_000_000),
            read_bytes: read_mib.saturating_mul(1 << 20),
            written_bytes: written_mib.saturating_mul(1 << 20),
        };
        Some((u32::try_from(level).ok()?, work))
    };
    text.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_by_level() {
        let text = "--- level 0 ---\n 17:123['a' @ 5 : 1 .. 'b:9[' @ 2 : 1]\n--- level 1 ---\n\
                    --- level 2 ---\n 9:4567['\\x00' @ 1 : 1 .. 'z' @ 3 : 0]\nsomething else\n";
        let file = |level, number, size_bytes| TableFile { level, number, size_bytes };
        assert_eq!(parse_tables(text), [file(0, 17, 123), file(2, 9, 4567)]);
        assert!(parse_tables("").is_empty());
    }

    #[test]
    fn work_by_level() {
        let text = "                               Compactions\n\
                    Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n\
                    --------------------------------------------------\n  \
                    0        2        3         1        0         3\n  \
                    1        5       10         2       20        19\n";
        let work = parse_work(text);
        assert_eq!(work.len(), 2);
        assert_eq!(
            work[&1],
            LevelWork { wall_us: 2_000_000, read_bytes: 20 << 20, written_bytes: 19 << 20 }
        );
        assert_eq!(work[&0].written_bytes, 3 << 20);
    }
}
