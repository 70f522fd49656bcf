//! File systems by name, `ext4`, `xfs`, `btrfs:zstd-3`, `zfs:gzip-6:16k`: which one, and how it
//! compresses. `crate::run::file_system` makes and mounts them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which file system, and how it compresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FileSystemSpec {
    /// No compression.
    Ext4,
    /// No compression.
    Xfs,
    /// With the value of `compress-force`, if it compresses.
    Btrfs(Option<String>),
    /// With the value of `compression` and the size of a record, KiB.
    Zfs {
        /// `off`, `lzjb`, `zle`, `gzip-1` to `gzip-9`.
        compression: String,
        /// A power of two up to 128.
        record_kib: u32,
    },
}

/// The usual record of ZFS.
const ZFS_RECORD_KIB: u32 = 128;

const NAMES: &str = "ext4, xfs, btrfs, btrfs:zlib-1 to zlib-9, btrfs:lzo, btrfs:zstd-1 to zstd-15, \
                     zfs:off, zfs:lzjb, zfs:zle, zfs:gzip-1 to gzip-9, each of zfs with a record \
                     size behind it (zfs:lzjb:16k)";

fn effort(text: &str, codec: &str, most: u32) -> bool {
    let digits = text.strip_prefix(codec).and_then(|rest| rest.strip_prefix('-'));
    digits.and_then(|digits| digits.parse().ok()).is_some_and(|n: u32| (1..=most).contains(&n))
}

impl FromStr for FileSystemSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("there is no file system \"{text}\"; there are: {NAMES}");
        let mut parts = text.split(':');
        let (kind, compression, record) = (parts.next(), parts.next(), parts.next());
        if parts.next().is_some() {
            return Err(unknown());
        }
        let record_kib = |text: &str| {
            let kib = text.strip_suffix('k').and_then(|digits| digits.parse::<u32>().ok());
            kib.filter(|kib| kib.is_power_of_two() && *kib <= ZFS_RECORD_KIB)
        };
        match (kind, compression, record) {
            (Some("ext4"), None, None) => Ok(FileSystemSpec::Ext4),
            (Some("xfs"), None, None) => Ok(FileSystemSpec::Xfs),
            (Some("btrfs"), None, None) => Ok(FileSystemSpec::Btrfs(None)),
            (Some("btrfs"), Some(codec), None)
                if codec == "lzo" || effort(codec, "zlib", 9) || effort(codec, "zstd", 15) =>
            {
                Ok(FileSystemSpec::Btrfs(Some(codec.to_owned())))
            }
            (Some("zfs"), Some(codec), record)
                if matches!(codec, "off" | "lzjb" | "zle") || effort(codec, "gzip", 9) =>
            {
                let record_kib = match record {
                    None => ZFS_RECORD_KIB,
                    Some(record) => record_kib(record).ok_or_else(unknown)?,
                };
                Ok(FileSystemSpec::Zfs { compression: codec.to_owned(), record_kib })
            }
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for FileSystemSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileSystemSpec::Ext4 => f.write_str("ext4"),
            FileSystemSpec::Xfs => f.write_str("xfs"),
            FileSystemSpec::Btrfs(None) => f.write_str("btrfs"),
            FileSystemSpec::Btrfs(Some(codec)) => write!(f, "btrfs:{codec}"),
            FileSystemSpec::Zfs { compression, record_kib: ZFS_RECORD_KIB } => {
                write!(f, "zfs:{compression}")
            }
            FileSystemSpec::Zfs { compression, record_kib } => {
                write!(f, "zfs:{compression}:{record_kib}k")
            }
        }
    }
}

impl From<FileSystemSpec> for String {
    fn from(spec: FileSystemSpec) -> Self {
        spec.to_string()
    }
}

impl TryFrom<String> for FileSystemSpec {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_they_say() {
        for text in
            ["ext4", "xfs", "btrfs", "btrfs:lzo", "btrfs:zstd-15", "zfs:gzip-6", "zfs:lzjb:16k"]
        {
            let spec: FileSystemSpec = text.parse().expect("is known");
            assert_eq!(spec.to_string(), text);
        }
        for text in [
            "",
            "ext3",
            "ext4:lzo",
            "btrfs:zstd-16",
            "btrfs:zlib",
            "btrfs:lzo:16k",
            "zfs",
            "zfs:gzip-10",
            "zfs:lzjb:17k",
            "zfs:lzjb:256k",
            "zfs:lzjb:16",
            "zfs:lzjb:16k:1",
        ] {
            let error = text.parse::<FileSystemSpec>().expect_err("is unknown");
            assert!(error.contains("btrfs:zstd-1 to zstd-15"), "{error}");
        }
    }
}
