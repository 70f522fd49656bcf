//! A Rust file as the rules see it: code without comments and strings, and which lines are tests.
//!
//! 1. Comments, string and character literals are blanked out; newlines and byte offsets stay.
//! 2. An item under `#[cfg(test)]` is a test up to its closing brace; so is a file that is declared
//!    as a module under it, and everything in `tests`, `benches` and `examples` directories.
//!
//! Not a parser: what macros build is not seen.

/// A Rust file.
pub struct Source {
    /// Path in the repository.
    pub path: String,
    /// Lines as they are.
    pub lines: Vec<String>,
    /// Lines without comments, strings and characters; as many, and as long in bytes.
    pub code: Vec<String>,
    /// Per line: belongs to a test.
    pub test: Vec<bool>,
    /// Modules that are declared under `#[cfg(test)]` and have files of their own.
    test_modules: Vec<String>,
}

impl Source {
    /// Parses the text of the file at `path`.
    pub fn parse(path: &str, text: &str) -> Source {
        let blanked = blank(text);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let code: Vec<String> = blanked.lines().map(str::to_owned).collect();
        let whole = path.split('/').any(|part| {
            matches!(part, "tests" | "benches" | "examples" | "fuzz_targets" | "tests.rs")
        });
        let mut source = Source {
            path: path.to_owned(),
            test: vec![whole; lines.len()],
            lines,
            code,
            test_modules: Vec::new(),
        };
        source.mark_test_items(&blanked);
        source
    }

    /// Code of the whole file, for searches across lines.
    pub fn joined(&self) -> String {
        self.code.join("\n")
    }

    /// The line, from 1, of a byte offset in [`Source::joined`].
    pub fn line_at(joined: &str, offset: usize) -> usize {
        joined[..offset].bytes().filter(|byte| *byte == b'\n').count() + 1
    }

    /// Whether the line, from 1, belongs to a test.
    pub fn is_test(&self, line: usize) -> bool {
        self.test.get(line - 1).copied().unwrap_or(false)
    }

    fn mark_test_items(&mut self, blanked: &str) {
        let mut from = 0;
        while let Some(found) = blanked[from..].find("#[cfg(test)]") {
            let start = from + found;
            let after = start + "#[cfg(test)]".len();
            let end = item_end(blanked, after);
            let item = &blanked[after..end];
            if item.trim_end().ends_with(';')
                && let Some(name) = module_name(item)
            {
                self.test_modules.push(name);
            }
            let first = blanked[..start].bytes().filter(|byte| *byte == b'\n').count();
            let last = blanked[..end].bytes().filter(|byte| *byte == b'\n').count();
            for test in self.test.iter_mut().take(last + 1).skip(first) {
                *test = true;
            }
            from = end.max(after);
        }
    }
}

/// Marks the files of modules that are declared under `#[cfg(test)]` in another file.
pub fn mark_test_modules(sources: &mut [Source]) {
    let mut prefixes = Vec::new();
    for source in sources.iter() {
        let (directory, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
        let home = match file {
            "mod.rs" | "lib.rs" | "main.rs" => directory.to_owned(),
            _ => format!("{directory}/{}", file.trim_end_matches(".rs")),
        };
        for name in &source.test_modules {
            prefixes.push((format!("{home}/{name}.rs"), format!("{home}/{name}/")));
        }
    }
    for source in sources.iter_mut() {
        let path = &source.path;
        if prefixes.iter().any(|(file, below)| path == file || path.starts_with(below)) {
            source.test.fill(true);
        }
    }
}

/// The end of the item that begins at `from`: its closing brace, or its semicolon.
fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0usize;
    for (offset, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return offset + 1;
                }
            }
            b';' if depth == 0 => return offset + 1,
            _ => {}
        }
    }
    code.len()
}

/// The name in `mod name;`.
fn module_name(item: &str) -> Option<String> {
    let words: Vec<&str> = item.split(|c: char| !is_identifier(c)).collect();
    let position = words.iter().position(|word| *word == "mod")?;
    words[position + 1..].iter().find(|word| !word.is_empty()).map(|word| (*word).to_owned())
}

/// Whether a character may stand in an identifier.
pub fn is_identifier(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The offsets of `word` as a whole word in `code`.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(offset, _)| offset).filter(move |offset| {
        let before = code[..*offset].chars().next_back();
        let after = code[offset + word.len()..].chars().next();
        !before.is_some_and(is_identifier) && !after.is_some_and(is_identifier)
    })
}

/// Replaces comments and literals by spaces.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        if end == at {
            at += 1;
            continue;
        }
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The end of the comment or literal that begins at `at`; `at` itself when none does.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let word_before = at > 0 && is_identifier(char::from(bytes[at - 1]));
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return block_comment_end(bytes, at);
    }
    if rest[0] == b'"' {
        return string_end(bytes, at);
    }
    if !word_before && let Some(end) = raw_string_end(bytes, at) {
        return end;
    }
    if rest[0] == b'\'' {
        return character_end(bytes, at);
    }
    at
}

fn block_comment_end(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0;
    let mut here = at;
    while here < bytes.len() {
        if bytes[here..].starts_with(b"/*") {
            depth += 1;
            here += 2;
        } else if bytes[here..].starts_with(b"*/") {
            depth -= 1;
            here += 2;
            if depth == 0 {
                return here;
            }
        } else {
            here += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut here = at + 1;
    while here < bytes.len() {
        match bytes[here] {
            b'\\' => here += 2,
            b'"' => return here + 1,
            _ => here += 1,
        }
    }
    bytes.len()
}

/// The end of `r"…"`, `r#"…"#`, `br"…"`, `cr"…"`.
fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut here = at;
    if matches!(bytes.get(here), Some(b'b' | b'c')) {
        here += 1;
    }
    if bytes.get(here) != Some(&b'r') {
        return None;
    }
    here += 1;
    let hashes = bytes[here..].iter().take_while(|byte| **byte == b'#').count();
    here += hashes;
    if bytes.get(here) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let body = &bytes[here + 1..];
    let end = body.windows(close.len()).position(|window| window == close);
    Some(end.map_or(bytes.len(), |end| here + 1 + end + close.len()))
}

/// The end of a character literal; a lifetime is none.
fn character_end(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at + 1) {
        Some(b'\\') => {
            let close = bytes[at + 3..].iter().position(|byte| *byte == b'\'');
            close.map_or(at, |close| at + 3 + close + 1)
        }
        Some(_) => {
            // One character, of up to four bytes, and then the quote.
            let close = bytes[at + 2..].iter().take(4).position(|byte| *byte == b'\'');
            match close {
                Some(close) if close == 0 || !bytes[at + 1].is_ascii() => at + 2 + close + 1,
                _ => at,
            }
        }
        None => at,
    }
}
