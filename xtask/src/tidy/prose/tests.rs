//! Sentences and phrases are found in documents and in help, and nowhere else.

use std::path::Path;

use super::super::{Complaint, File, Tree};
use super::{LONG_SENTENCES, check_with};

fn tree(path: &str, text: &str) -> Tree {
    let bytes = text.as_bytes().to_vec();
    Tree { files: vec![File { path: path.to_owned(), bytes, executable: false }] }
}

fn lines(complaints: &[Complaint]) -> Vec<String> {
    complaints.iter().map(|c| format!("{}: {}", c.line, c.what)).collect()
}

/// Complaints about one document, as `line: what`.
fn prose(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    check_with(&tree(path, text), &[], &mut complaints);
    complaints.sort();
    lines(&complaints)
}

fn sentence(words: usize) -> String {
    format!("{}end.", "word ".repeat(words - 1))
}

#[test]
fn sentences_are_short() {
    let found = |text: &str| prose("docs/page.md", text);
    assert_eq!(found(&sentence(30)), [""; 0]);
    let long = found(&format!("# Title\n\n{}\n", sentence(31)));
    assert_eq!(long.len(), 1);
    assert!(long[0].starts_with("3: a sentence of 31 words; at most 30: \"word "), "{long:?}");
    for path in ["README.md", "ARCHITECTURE.md", "docs/measured/page.md"] {
        assert_eq!(prose(path, &sentence(31)).len(), 1, "{path}");
    }
    assert_eq!(prose("crates/lithify/notes.md", &sentence(31)), [""; 0]);
}

#[test]
fn a_sentence_ends_where_a_reader_stops() {
    let found = |text: String| prose("docs/page.md", &text).len();
    let (half, more) = (sentence(16), sentence(17));
    let open = half.trim_end_matches('.');
    // Two sentences, items and paragraphs; a table, a heading and code have none.
    assert_eq!(found(format!("{open}. B {half}")), 0);
    assert_eq!(found(format!("{open}) B? `c` {half}")), 0);
    assert_eq!(found(format!("{open}.) `c` {half}")), 0);
    assert_eq!(found(format!("- {open}\n- {more}\n1. {more}\n\n{more}")), 0);
    assert_eq!(found(format!("| {open} {more} |\n# {open} {more}\n")), 0);
    assert_eq!(found(format!("```sh\n{open} {more}\n```\n")), 0);
    // One: an abbreviation, a version, lines of a paragraph.
    assert_eq!(found(format!("{open}. b {more}")), 1);
    assert_eq!(found(format!("{open} 1.2 {more}")), 1);
    assert_eq!(found(format!("{open}\n  {more}")), 1);
    // Inline code is a word, a link is its text, a dash is nothing.
    assert_eq!(found(format!("`{open} {more}`")), 0);
    assert_eq!(found(format!("`a b\nc d` {} [x y](z \"{open}\") - *z*.", "w ".repeat(26))), 0);
    assert_eq!(found(format!("`a b` {} [x y](z) - *z*.", "w ".repeat(27))), 1);
}

#[test]
fn phrases_have_better_ones() {
    let found =
        prose("docs/page.md", "First.\n\n- The two are\n  not *told apart* by it. It goes on.\n");
    let expected = ["4: \"goes on\": say continues", "4: \"told apart\": say significant, or n.s."];
    assert_eq!(found, expected);
    let across = prose("docs/page.md", "The engine came to\nrest. Pagoes on. `goes on` it.\n");
    assert_eq!(across, ["1: \"came to rest\": say was steady, settled or idle"]);
}

#[test]
fn recorded_sentences_only_get_fewer() {
    let about = |recorded: usize, long: usize| {
        let mut complaints = Vec::new();
        let text = format!("{}\n\n", sentence(31)).repeat(long);
        check_with(&tree("a.md", &text), &[("a.md", recorded)], &mut complaints);
        complaints.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(about(2, 2), [""; 0]);
    assert_eq!(about(2, 1), ["a.md: 1 long sentences, 2 recorded: record less"]);
    assert_eq!(about(1, 2).len(), 2);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("has a parent");
    for (path, _) in LONG_SENTENCES {
        assert!(root.join(path).is_file(), "{path} is recorded and gone");
    }
}

#[test]
fn help_is_prose_too() {
    let found = |text: String| prose("crates/lithify-cli/src/commands/a.rs", &text);
    let attribute =
        "#[command(long_about = \"\\\nIt goes on.\n\n  It goes on.\",\nafter_help = \"\\\n";
    let both = found(format!("{attribute}{}\n\")]\nstruct A;\n", sentence(31)));
    assert_eq!(both[0], "2: \"goes on\": say continues");
    assert!(both[1].starts_with("6: a sentence of 31 words"), "{both:?}");
    assert_eq!(both.len(), 2);
    let one =
        found("#[command(about = \"Say \\\"a\\\". It goes on.\")]\n// It goes on.\n".to_owned());
    assert_eq!(one, ["1: \"goes on\": say continues"]);
    let comment = found("/// It goes\n/// on.\nfn f() {}\n".to_owned());
    assert_eq!(comment, ["1: \"goes on\": say continues"]);
    assert_eq!(prose("crates/lithify-lab/src/a.rs", "/// It goes on.\nfn f() {}\n"), [""; 0]);
}
