//! Calls and words that do not belong: the system outside of `fs`, unsafe code, panics on results,
//! unfinished and dead code.

use super::Complaint;
use super::source::{Source, is_identifier, words};

const ENGINE: &str = "crates/lithify/src/";

/// The only room of the engine that may touch files, clocks and threads.
const SYSTEM_ROOM: &str = "crates/lithify/src/fs/";

/// Words of code for one system alone. Code for one processor may be in any room.
const SYSTEM_WORDS: &[&str] = &["target_os", "lithify_portable", "std::os", "rustix", "libc"];

/// Files with unsafe code. Each says why at its head, and proves every use.
pub(super) const UNSAFE_FILES: &[&str] = &[
    "bindings/python/src/buffer.rs",
    "bindings/python/src/columns.rs",
    "crates/lithify/src/cache/slab.rs",
    "crates/lithify/src/codec/lz4.rs",
    "crates/lithify/src/codec/lz4_dictionary.rs",
    "crates/lithify/src/codec/training.rs",
    "crates/lithify/src/codec/zlib.rs",
    "crates/lithify/src/codec/zstd.rs",
    "crates/lithify/src/fs/pages.rs",
    "crates/lithify/src/fs/pages/linux.rs",
    "crates/lithify/src/fs/pages/standard.rs",
    "crates/lithify/src/fs/system/linux/forks.rs",
    "crates/lithify/src/fs/system/linux/write_back.rs",
    "crates/lithify/src/fs/system/ticks.rs",
    "crates/lithify/src/table/prefetch.rs",
    "crates/lithify/tests/all/forks.rs",
    "crates/lithify/src/memtable/arena.rs",
    "crates/lithify/src/memtable/cursor.rs",
    "crates/lithify/src/memtable/entry.rs",
    "crates/lithify/src/memtable/node.rs",
    "crates/lithify/src/memtable/position.rs",
    "crates/lithify/src/memtable/sync.rs",
    "crates/lithify/src/memtable/tombstones.rs",
    "crates/lithify/src/memtable/tree.rs",
    "crates/lithify-c/src/batch.rs",
    "crates/lithify-c/src/call.rs",
    "crates/lithify-c/src/copies.rs",
    "crates/lithify-c/src/cursor.rs",
    "crates/lithify-c/src/database.rs",
    "crates/lithify-c/src/family.rs",
    "crates/lithify-c/src/handle.rs",
    "crates/lithify-c/src/ingest.rs",
    "crates/lithify-c/src/options.rs",
    "crates/lithify-c/src/reads.rs",
    "crates/lithify-c/src/statistics.rs",
    "crates/lithify-c/src/transaction.rs",
    "crates/lithify-c/src/writes.rs",
    "crates/lithify-ffi/src/arguments.rs",
    "crates/lithify-ffi/src/memory.rs",
    "crates/lithify-ffi/src/process.rs",
    "crates/lithify-leveldb/src/c/batch.rs",
    "crates/lithify-leveldb/src/c/callbacks.rs",
    "crates/lithify-leveldb/src/c/database.rs",
    "crates/lithify-leveldb/src/c/failures.rs",
    "crates/lithify-leveldb/src/c/iterator.rs",
    "crates/lithify-leveldb/src/c/library.rs",
    "crates/lithify-leveldb/src/c/mod.rs",
    "crates/lithify-leveldb/src/c/options.rs",
    "crates/lithify-leveldb/tests/all/leveldb.rs",
    "crates/lithify-sim/src/fuzz/allocation.rs",
    "crates/lithify-lab/src/meter/process.rs",
    "crates/lithify-lab-engines/src/leveldb/database.rs",
    "crates/lithify-lab-engines/src/leveldb/functions.rs",
    "crates/lithify-lab-engines/src/library/mod.rs",
    "crates/lithify-lab-engines/src/library/objects.rs",
    "crates/lithify-lab-embedded/src/lmdb.rs",
    "crates/lithify-lab-engines/src/rocksdb/database.rs",
    "crates/lithify-lab-engines/src/rocksdb/functions.rs",
    "crates/lithify-lab-engines/src/rocksdb/judge.rs",
    "crates/lithify-lab-engines/src/rocksdb/objects.rs",
    "crates/lithify-lab-engines/src/rocksdb/options.rs",
    "crates/lithify-lab-embedded/examples/programs/rocksdb.rs",
    "crates/lithify-lab-engines/src/rocksdb/read_only.rs",
    "crates/lithify-lab-engines/src/rocksdb/reads.rs",
    "crates/lithify-lab-engines/src/rocksdb/writes.rs",
    "crates/lithify-lab-engines/src/wiredtiger/connection.rs",
    "crates/lithify-lab-engines/src/wiredtiger/cursors.rs",
    "crates/lithify-lab-engines/src/wiredtiger/functions.rs",
];

/// Lines above a use of unsafe code in which its proof is looked for.
const PROOF_LINES: usize = 8;

/// Complains about what does not belong in one file.
pub fn check(source: &Source, complaints: &mut Vec<Complaint>) {
    let mut complain = |line: usize, what: String| {
        complaints.push(Complaint { path: source.path.clone(), line, what });
    };
    let is_engine = source.path.starts_with(ENGINE);
    for (index, code) in source.code.iter().enumerate() {
        let line = index + 1;
        let is_test = source.is_test(line);
        if is_engine && !is_test && !source.path.starts_with(SYSTEM_ROOM) {
            for call in system_calls(code) {
                complain(line, format!("{call} outside of the fs room: go through its traits"));
            }
            for word in SYSTEM_WORDS.iter().filter(|word| words(code, word).next().is_some()) {
                complain(line, format!("{word} outside of the fs room: code for one system"));
            }
        }
        if is_engine && !is_test {
            for call in [".unwrap()", ".expect("] {
                if code.contains(call) && !has_comment_above(source, index, "INVARIANT:") {
                    complain(line, format!("{call} without // INVARIANT: above it"));
                }
            }
        }
        if words(code, "unsafe").next().is_some() {
            if !UNSAFE_FILES.contains(&source.path.as_str()) {
                complain(line, "unsafe code in a file that is not listed for it".to_owned());
            } else if !has_proof(source, index) {
                complain(line, "unsafe code without // SAFETY: above it".to_owned());
            }
        }
        for unfinished in ["todo", "unimplemented", "dbg"] {
            if words(code, unfinished).any(|at| code[at + unfinished.len()..].starts_with('!')) {
                complain(line, format!("{unfinished}! is left over"));
            }
        }
        if is_commented_out(&source.lines[index]) {
            complain(line, "commented-out code: remove it".to_owned());
        }
    }
}

/// Uses of files, clocks and threads in a line. Durations are plain numbers and allowed.
fn system_calls(code: &str) -> Vec<&'static str> {
    let mut calls = Vec::new();
    for (module, path) in [("fs", "std::fs"), ("time", "std::time"), ("thread", "std::thread")] {
        let direct = words(code, path).any(|at| {
            let after = &code[at + path.len()..];
            path != "std::time" || !after.starts_with("::Duration")
        });
        let grouped = code.find("std::{").is_some_and(|at| {
            words(&code[at..], module).any(|found| {
                let before = code[at..at + found].chars().next_back();
                before.is_some_and(|c| c == '{' || c == ' ' || c == ',')
            })
        });
        if direct || grouped {
            calls.push(path);
        }
    }
    calls
}

/// Whether the statement around a line has a comment with `word` above it.
fn has_comment_above(source: &Source, index: usize, word: &str) -> bool {
    if source.lines[index].contains(word) {
        return true;
    }
    for above in (0..index).rev() {
        let line = source.lines[above].trim();
        if line.starts_with("//") {
            if line.contains(word) {
                return true;
            }
            continue;
        }
        if line.is_empty() || source.code[above].trim_end().ends_with([';', '{', '}']) {
            return false;
        }
    }
    false
}

/// Whether a use of unsafe code is proved; a function says what it asks of its caller instead.
fn has_proof(source: &Source, index: usize) -> bool {
    let code = source.code[index].trim();
    // A declaration of foreign functions, or the type of one, uses nothing; their calls are proved.
    // (The words of a string are blanked out in the code.)
    let is_type = |at: usize| code[at..].contains("fn(") && !code[at..].contains('{');
    if code.starts_with("unsafe extern") || code.find("unsafe extern").is_some_and(is_type) {
        return true;
    }
    source.lines[index.saturating_sub(2 * PROOF_LINES)..=index]
        .iter()
        .rev()
        .take(if code.contains("unsafe fn") { 2 * PROOF_LINES } else { PROOF_LINES })
        .any(|line| line.contains("SAFETY:") || line.contains("# Safety"))
}

/// Whether a line is a comment that holds code. Prose may end with a semicolon; a statement has
/// an assignment or a call before it.
fn is_commented_out(line: &str) -> bool {
    let Some(text) = line.trim().strip_prefix("//") else { return false };
    if text.starts_with(['/', '!']) {
        return false;
    }
    let text = text.trim();
    let statement = text.ends_with(';')
        && (text.contains(" = ") || ends_with_call(text) || text.starts_with("use "));
    let opening = text.ends_with(" {")
        && ["if ", "for ", "while ", "fn ", "pub ", "match ", "impl ", "struct ", "loop "]
            .iter()
            .any(|word| text.starts_with(word));
    statement || opening || text == "}" || text.starts_with("#[")
}

/// `name(...);`, and not a parenthesis in prose.
fn ends_with_call(text: &str) -> bool {
    let Some(open) = text.find('(') else { return false };
    let before = text[..open].chars().next_back();
    text.ends_with(");") && before.is_some_and(|c| is_identifier(c) || c == '!')
}
