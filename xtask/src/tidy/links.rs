//! Links between documents lead somewhere: to a file of the repository, and to a heading in it.
//!
//! Addresses of the web are not asked for. Code blocks are skipped.

use std::collections::BTreeSet;

use super::{Complaint, Tree};

/// Complains about links of Markdown documents to files or headings that are not there.
pub fn check(tree: &Tree, complaints: &mut Vec<Complaint>) {
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        let text = String::from_utf8_lossy(&file.bytes);
        for (line, target) in links(&text) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { file.path.clone() } else { resolved(&file.path, path) };
            let what = match has(tree, &path) {
                false => format!("a link to {path}, which is not there"),
                true if has_heading(tree, &path, anchor) => continue,
                true => format!("a link to #{anchor}, which is no heading of {path}"),
            };
            complaints.push(Complaint { path: file.path.clone(), line, what });
        }
    }
}

/// The targets of links within the repository, each with its line.
fn links(document: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, text) in prose_lines(document) {
        for (at, _) in text.match_indices("](") {
            let rest = &text[at + 2..];
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            if !target.contains(':') {
                found.push((line, target));
            }
        }
    }
    found
}

/// Lines outside of code blocks, with their numbers.
fn prose_lines(document: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    document.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

/// The path of `target`, seen from the document at `from`.
fn resolved(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Whether a file or directory is there.
fn has(tree: &Tree, path: &str) -> bool {
    let directory = format!("{path}/");
    tree.files.iter().any(|file| file.path == path || file.path.starts_with(&directory))
}

/// Whether the document at `path` has the heading of `anchor`; anything has the empty one.
fn has_heading(tree: &Tree, path: &str, anchor: &str) -> bool {
    if anchor.is_empty() {
        return true;
    }
    let file = tree.files.iter().find(|file| file.path == path);
    file.is_some_and(|file| anchors(&String::from_utf8_lossy(&file.bytes)).contains(anchor))
}

/// The anchors of a document's headings: small letters, hyphens for spaces, no other signs.
fn anchors(document: &str) -> BTreeSet<String> {
    let headings = prose_lines(document).filter(|(_, line)| line.starts_with('#'));
    headings
        .map(|(_, line)| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            bytes: text.as_bytes().to_vec(),
            executable: false,
        };
        let other = "# A title\n## Its `own`, second: 1.5 part\n```\n# no heading\n```\n";
        let files = vec![file("docs/other.md", other), file("docs/in/page.md", text)];
        let mut complaints = Vec::new();
        check(&Tree { files }, &mut complaints);
        complaints.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_lead_somewhere() {
        let none: [&str; 0] = [];
        assert_eq!(found("[a](../other.md) and [b](../../docs/in) [c](#here)\n\n# Here\n"), none);
        assert_eq!(found("[a](../other.md#its-own-second-15-part) ![b](page.md#c)\n# C\n"), none);
        assert_eq!(found("[a](https://example.org/b) \n```\n[c](d)\n```\n"), none);
        let gone = ["docs/in/page.md:2: a link to docs/in/other.md, which is not there"];
        assert_eq!(found("First.\n[a](other.md)"), gone);
        let heading =
            "docs/in/page.md:1: a link to #no-heading, which is no heading of docs/other.md";
        assert_eq!(found("[a](../other.md#no-heading)"), [heading]);
    }
}
