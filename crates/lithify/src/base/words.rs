//! Words in lines of a width.

/// Words in lines of at most so many columns. `first` begins the first line and stays whole; the lines
/// behind it begin with so many spaces. A word that is longer than a line stays whole, too.
pub fn wrapped<'a>(
    first: &str,
    words: impl IntoIterator<Item = &'a str>,
    indent: usize,
    columns: usize,
) -> String {
    let mut text = first.to_owned();
    let mut used = first.chars().count();
    let mut is_behind_word = false;
    for word in words {
        let length = word.chars().count();
        let gap = usize::from(is_behind_word);
        if used > indent && used + gap + length > columns {
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            used = indent;
        } else if is_behind_word {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += length;
        is_behind_word = true;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_between_words() {
        let cut = |first, text: &'static str, indent, columns| {
            wrapped(first, text.split(' '), indent, columns)
        };
        assert_eq!(cut("", "error: one two three", 7, 13), "error: one\n       two\n       three");
        assert_eq!(cut("", "error: one two", 7, 14), "error: one two");
        assert_eq!(cut("- ", "one two", 2, 5), "- one\n  two");
        assert_eq!(cut("", "a-word-beyond-the-line it", 2, 6), "a-word-beyond-the-line\n  it");
    }

    #[test]
    fn what_begins_a_line_stays_whole_and_may_be_alone_on_it() {
        let row = |indent, columns| wrapped("L6  lz4   ", ["zstd-1", "+2 %"], indent, columns);
        assert_eq!(row(10, 80), "L6  lz4   zstd-1 +2 %");
        assert_eq!(row(10, 16), "L6  lz4   zstd-1\n          +2 %");
        assert_eq!(row(4, 12), "L6  lz4\n    zstd-1\n    +2 %");
        // Nothing begins further to the left than the words.
        assert_eq!(row(10, 8), "L6  lz4   zstd-1\n          +2 %");
    }
}
