//! The figures in a report: numbers by their digits, and how often each is there.
//!
//! - A sign belongs to a number, `−` and `-` alike; a dash between two numbers is a range.
//! - Separators of thousands do not, commas or fixed spaces: 1,000,000 is 1000000. Units and percent signs do not either.
//! - A number that is part of a name (lz4, zstd-1, p99.9) is no figure.
//! - Of a page, what is read: no scripts, no styles, and of a plot the values of its points but not the
//!   labels of its axes, which a drawing of another size chooses anew.

use std::collections::BTreeMap;

/// Most characters of the line that is shown beside a figure.
const CONTEXT: usize = 120;

/// What stands between thousands: a comma, or a space that does not break the line.
const THOUSANDS: [char; 4] = [',', '\u{a0}', '\u{2009}', '\u{202f}'];

/// The figures of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// How often, and a line it is in, by the figure.
    pub counts: BTreeMap<String, (usize, String)>,
}

impl Figures {
    /// Those of a text.
    pub fn of_text(text: &str) -> Figures {
        let mut figures = Figures::default();
        for line in text.lines() {
            let chars: Vec<char> = line.chars().collect();
            for (figure, at) in numbers(&chars, true) {
                figures.add(figure, || context(&chars, at));
            }
        }
        figures
    }

    /// Those of a page.
    pub fn of_page(html: &str) -> Figures {
        Figures::of_text(&readable(html))
    }

    /// Those of lines for programs; the column is shown beside a figure.
    pub fn of_csv(csv: &str) -> Figures {
        let mut figures = Figures::default();
        let mut lines = csv.lines();
        let columns = fields(lines.next().unwrap_or_default());
        for line in lines {
            for (index, field) in fields(line).iter().enumerate() {
                let chars: Vec<char> = field.chars().collect();
                for (figure, _) in numbers(&chars, false) {
                    figures.add(figure, || {
                        let column = columns.get(index).map_or("?", String::as_str);
                        let row: String = line.chars().take(CONTEXT - 40).collect();
                        format!("column {column} of {row}")
                    });
                }
            }
        }
        figures
    }

    fn add(&mut self, figure: String, context: impl FnOnce() -> String) {
        self.counts.entry(figure).or_insert_with(|| (0, context())).0 += 1;
    }

    /// How often a figure is there.
    pub fn count(&self, figure: &str) -> usize {
        self.counts.get(figure).map_or(0, |(count, _)| *count)
    }

    /// How many there are, each as often as it is there.
    pub fn total(&self) -> usize {
        self.counts.values().map(|(count, _)| count).sum()
    }
}

/// The fields of a line; commas in quotes do not end one.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => {
                if let Some(field) = fields.last_mut() {
                    field.push(c);
                }
            }
        }
    }
    fields
}

/// The numbers in a line and where they begin.
fn numbers(line: &[char], has_thousands: bool) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let is_digit = |at: usize| line.get(at).is_some_and(char::is_ascii_digit);
    let mut name_end = None;
    let mut at = 0;
    while at < line.len() {
        if !is_digit(at) {
            at += 1;
            continue;
        }
        let (digits, end) = number(line, at, has_thousands);
        let before = |back: usize| at.checked_sub(back).map(|place| line[place]);
        let is_dash = |c: Option<char>| matches!(c, Some('-' | '−'));
        let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphabetic() || c == '_');
        let is_of_name = is_letter(before(1))
            || (before(1) == Some('-') && is_letter(before(2)))
            || (is_dash(before(1)) && name_end == Some(at - 1));
        if is_of_name {
            name_end = Some(end);
        } else {
            let is_negative = is_dash(before(1))
                && !before(2).is_some_and(|c| c.is_alphanumeric() || matches!(c, ')' | ']' | '%'));
            let sign = if is_negative { "-" } else { "" };
            found.push((format!("{sign}{digits}"), at));
        }
        at = end;
    }
    found
}

/// The number that begins at `from`, without separators of thousands, and where it ends.
fn number(line: &[char], from: usize, has_thousands: bool) -> (String, usize) {
    let is_digit = |at: usize| line.get(at).is_some_and(char::is_ascii_digit);
    let run = |from: usize| (from..).take_while(|at| is_digit(*at)).count();
    let mut end = from + run(from);
    let mut digits: String = line[from..end].iter().collect();
    if has_thousands && digits.len() <= 3 {
        while line.get(end).is_some_and(|c| THOUSANDS.contains(c)) && run(end + 1) == 3 {
            digits.extend(&line[end + 1..end + 4]);
            end += 4;
        }
    }
    while line.get(end) == Some(&'.') && is_digit(end + 1) {
        let part = end + 1 + run(end + 1);
        digits.extend(&line[end..part]);
        end = part;
    }
    if matches!(line.get(end), Some('e' | 'E')) {
        let sign = usize::from(matches!(line.get(end + 1), Some('-' | '+')));
        let part = end + 1 + sign + run(end + 1 + sign);
        let is_exponent =
            is_digit(end + 1 + sign) && !line.get(part).is_some_and(|c| c.is_alphanumeric());
        if is_exponent {
            digits.extend(&line[end..part]);
            end = part;
        }
    }
    (digits, end)
}

/// The line, or its beginning and what is around the figure.
fn context(line: &[char], at: usize) -> String {
    let text = |part: &[char]| {
        let words: String = part.iter().collect();
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let whole = text(line);
    if whole.chars().count() <= CONTEXT {
        return whole;
    }
    let (third, first) = (CONTEXT / 3, at.saturating_sub(CONTEXT / 3));
    let around = text(&line[first..line.len().min(at + third)]);
    match first > third {
        true => format!("{} … {around}", text(&line[..third])),
        false => text(&line[..line.len().min(at + third)]),
    }
}

/// What people read of a page, a line for each row, paragraph or point.
fn readable(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        text.push_str(&rest[..start]);
        let Some(end) = rest[start..].find('>') else { break };
        let tag = &rest[start + 1..start + end];
        rest = &rest[start + end + 1..];
        let name = tag.trim_start_matches('/');
        let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        match name {
            "script" | "style" | "text" if !tag.starts_with('/') => {
                let close = format!("</{name}");
                rest = &rest[rest.find(&close).unwrap_or(rest.len())..];
            }
            "td" | "th" => text.push_str(" | "),
            "span" | "b" | "a" | "em" | "strong" | "small" | "code" | "sup" | "sub" => {
                text.push(' ');
            }
            _ => text.push('\n'),
        }
    }
    text.push_str(rest);
    let entities =
        [("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&nbsp;", "\u{a0}")];
    let text = entities.iter().fold(text, |text, (entity, c)| text.replace(entity, c));
    text.replace("&minus;", "−").replace("&amp;", "&")
}
