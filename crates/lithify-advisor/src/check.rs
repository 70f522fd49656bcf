//! What is there once advice was taken, beside what was predicted.

use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use lithify_report::figure::bytes;

use crate::answer::Advice;
use crate::error::{AdviseError, Result};
use crate::screen::signed_percent;
use crate::targets::Target;

/// How the files of a target's rows are called: the end of their names, and a start that is not theirs.
const FILES: &[(&str, &[&str], &str)] = &[
    ("lithify", &[".sst"], "\0"),
    ("rocksdb", &[".sst"], "\0"),
    ("myrocks", &[".sst"], "\0"),
    ("innodb", &[".ibd"], "\0"),
    ("innodb-compressed", &[".ibd"], "\0"),
    ("wiredtiger", &[".wt"], "WiredTiger"),
    ("mongodb", &[".wt"], "WiredTiger"),
    ("cassandra", &["-Data.db"], "\0"),
    ("scylla", &["-Data.db"], "\0"),
];

/// The files of a target below a directory: how many, and the bytes that they take.
///
/// # Errors
/// Its files do not tell, or there is none.
pub fn stored_bytes(target: &Target, path: &Path) -> Result<(u64, u64)> {
    let title = target.title;
    let Some((_, ends, other)) = FILES.iter().find(|(name, ..)| *name == target.name) else {
        let what = format!(
            "{title} shows no sizes after compression in its files: use compsize, or zfs get"
        );
        return Err(AdviseError::usage(what));
    };
    let (mut files, mut stored) = (0_u64, 0_u64);
    sum(path, &mut |name, allocated| {
        if ends.iter().any(|end| name.ends_with(end)) && !name.starts_with(other) {
            files += 1;
            stored += allocated;
        }
    })?;
    if files == 0 {
        let (path, ends) = (path.display(), ends.join(", "));
        let what = format!("{path} has no file of {title} ({ends})");
        return Err(AdviseError::usage(what));
    }
    Ok((files, stored))
}

/// Compares the files below a path with the prediction for the one target of an advice.
///
/// # Errors
/// There are several targets, one whose files are not known, or no file of it.
pub fn compare(advice: &Advice, path: &Path) -> Result<String> {
    let [target] = advice.targets.as_slice() else {
        return Err(AdviseError::usage("--check takes one target: --for NAME"));
    };
    let title = target.target.title;
    let (files, stored) = stored_bytes(&target.target, path)?;
    let best = target.best();
    let predicted = best.ratio.value * advice.data.basis.data_bytes;
    let off = stored as f64 / predicted.max(1.0) - 1.0;
    let mut said = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        said,
        "{title}: {} are there in {files} file{}. Predicted for {}: {} ±{:.1} %. Off by {}.",
        bytes(stored),
        if files == 1 { "" } else { "s" },
        best.name(),
        bytes(predicted as u64),
        best.ratio.relative() * 100.0,
        signed_percent(off),
    );
    if off < -0.2 {
        said.push_str("So much less suggests other data, or only a part of them.\n");
    }
    said.push_str(
        "The prediction is for these data alone and a settled tree: indexes of a table, other tables, \
         obsolete rows and files that wait for a rewrite come on top.\n",
    );
    Ok(said)
}

/// Calls `each` with the name and the allocated bytes of every file below a path, or of the file.
fn sum(path: &Path, each: &mut dyn FnMut(&str, u64)) -> Result<()> {
    let of = |error: std::io::Error| AdviseError::of_file(path, &error);
    let metadata = std::fs::metadata(path).map_err(of)?;
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).map_err(of)? {
            let entry = entry.map_err(of)?.path();
            // A link to nothing has no bytes, and a running database removes files.
            if entry.exists() {
                sum(&entry, each)?;
            }
        }
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Holes are no bytes; a file that was only made longer has some that are not used yet.
    each(&name, (metadata.blocks() * 512).min(metadata.len()));
    Ok(())
}
