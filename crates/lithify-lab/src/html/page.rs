//! The page around the model: landmarks, headings, tables, and one file with everything in it.

use std::fmt::Write as _;

use super::escape;
use super::model::{Block, Finding, Outcome, ReportModel, RunLink, Section, Table};
use super::plot;
use crate::report::tables::{Align, Grid};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Columns from which on paper lets the words of a table break.
const BROAD_COLUMNS: usize = 12;

/// The page as a file.
pub fn render(model: &ReportModel) -> String {
    let mut html = String::with_capacity(128 << 10);
    // Writing to a String cannot fail.
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">To the figures</a>\n<div class=\"page\">\n",
        escape(&model.title)
    );
    let _ = write!(
        html,
        "<header>\n<p class=\"kicker\">{}</p>\n<h1>{}</h1>\n<p class=\"lede\">{}</p>\n",
        escape(&grouped(&model.kicker)),
        escape(&model.title),
        escape(model.question.trim())
    );
    if !model.source.is_empty() {
        let _ = writeln!(html, "<p class=\"source\">{}</p>", escape(&model.source));
    }
    html.push_str("</header>\n");
    html.push_str(&contents(model));
    html.push_str("<main id=\"main\">\n");
    if !model.summary.is_empty() {
        html.push_str("<section aria-labelledby=\"summary\">\n<h2 id=\"summary\">Summary</h2>\n");
        html.push_str(&findings(&model.summary));
        html.push_str("</section>\n");
    }
    for (index, part) in model.sections.iter().enumerate() {
        html.push_str(&section(part, index + 1));
    }
    let _ = write!(
        html,
        "</main>\n<footer>{}</footer>\n</div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        escape(&model.footer)
    );
    html
}

/// The list of the sections.
fn contents(model: &ReportModel) -> String {
    let mut html = "<nav aria-label=\"Sections\"><ul>".to_owned();
    if !model.summary.is_empty() {
        html.push_str("<li><a href=\"#summary\">Summary</a></li>");
    }
    for (index, part) in model.sections.iter().enumerate() {
        let _ = write!(html, "<li><a href=\"#s{}\">{}</a></li>", index + 1, escape(&part.title));
    }
    html.push_str("</ul></nav>\n");
    html
}

fn findings(findings: &[Finding]) -> String {
    let mut html = "<ul class=\"findings\">\n".to_owned();
    for one in findings {
        let _ = writeln!(html, "<li>{}</li>", finding(one));
    }
    html.push_str("</ul>\n");
    html
}

/// A sentence with its word.
fn finding(Finding { outcome, tag, text }: &Finding) -> String {
    let class = match outcome {
        Outcome::Held => "good",
        Outcome::Missed => "bad",
        Outcome::Undecided => "even",
        Outcome::Note => "note",
    };
    let (tag, text) = (escape(tag), escape(&grouped(text)));
    format!("<span class=\"tag {class}\">{tag}</span> <span>{text}</span>")
}

/// Runs with links to their pages.
fn runs(links: &[RunLink]) -> String {
    let mut html = "<ul class=\"runs\">\n".to_owned();
    for RunLink { address, title, about, command, verdict } in links {
        let _ = write!(
            html,
            "<li><h3><a href=\"{}\">{}</a></h3><p class=\"about\">{}</p><p>{}</p>",
            encoded(address),
            escape(title),
            escape(about),
            finding(verdict)
        );
        if !command.is_empty() {
            // A line must not end between the two hyphens of a flag.
            let words = command.split(' ').map(|word| match word.starts_with("--") {
                true => format!("<span class=\"flag\">{}</span>", escape(word)),
                false => escape(word),
            });
            let _ = write!(html, "<p><code>{}</code></p>", words.collect::<Vec<_>>().join(" "));
        }
        html.push_str("</li>\n");
    }
    html.push_str("</ul>\n");
    html
}

/// A path as it may stand in an address.
fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => text.push(char::from(byte)),
            letter if letter.is_ascii_alphanumeric() => text.push(char::from(letter)),
            other => {
                let _ = write!(text, "%{other:02X}");
            }
        }
    }
    text
}

fn section(part: &Section, number: usize) -> String {
    let mut html = format!(
        "<section aria-labelledby=\"s{number}\">\n<h2 id=\"s{number}\">{}</h2>\n",
        escape(&part.title)
    );
    for (index, block) in part.blocks.iter().enumerate() {
        let id = format!("b{number}-{}", index + 1);
        match block {
            Block::Heading(text) => {
                let _ = write!(html, "<h3>{}</h3>", escape(text));
            }
            Block::Text(text) => {
                let _ = write!(html, "<p>{}</p>", escape(&grouped(text)));
            }
            Block::List(points) => {
                html.push_str("<ul>");
                points.iter().for_each(|point| {
                    let _ = write!(html, "<li>{}</li>", escape(&grouped(point)));
                });
                html.push_str("</ul>");
            }
            Block::Facts(facts) => {
                html.push_str("<dl class=\"facts\">");
                facts.iter().for_each(|(name, value)| {
                    let _ = write!(
                        html,
                        "<dt>{}</dt><dd>{}</dd>",
                        escape(name),
                        escape(&grouped(value))
                    );
                });
                html.push_str("</dl>");
            }
            Block::Table(part) => html.push_str(&table(part, &id)),
            Block::Plot(part) => html.push_str(&plot::figure(part, &id)),
            Block::Runs(links) => html.push_str(&runs(links)),
            Block::Plots(parts) => {
                html.push_str("<div class=\"multiples\">");
                for (number, part) in parts.iter().enumerate() {
                    html.push_str(&plot::figure(part, &format!("{id}-{}", number + 1)));
                }
                html.push_str("</div>");
            }
        }
        html.push('\n');
    }
    html.push_str("</section>\n");
    html
}

/// A table that can be scrolled by itself; one that is folded under a line that unfolds it. `id` is
/// unique in the page.
pub(super) fn table(part: &Table, id: &str) -> String {
    let caption = escape(&part.caption);
    let mut html = String::new();
    if part.folded {
        html.push_str("<details><summary>Figures as a table</summary>");
    }
    let grid = with_header_first(&part.grid);
    let class = if grid.columns.len() >= BROAD_COLUMNS { " class=\"broad\"" } else { "" };
    let _ = write!(
        html,
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"{id}-c\">\
         <table id=\"{id}\"{class}><caption id=\"{id}-c\"><span>{caption}</span></caption><thead><tr>"
    );
    for (name, align) in &grid.columns {
        let _ = write!(html, "<th scope=\"col\"{}>{}</th>", class_of(*align), escape(name));
    }
    html.push_str("</tr></thead><tbody>");
    for (number, row) in grid.rows.iter().enumerate() {
        html.push_str("<tr>");
        for (index, (text, (_, align))) in row.iter().zip(&grid.columns).enumerate() {
            let text = escape(&grouped(text));
            let shade = part.shades.get(number).and_then(|row| *row.get(index.checked_sub(1)?)?);
            // Most cells are figures: they need no class.
            let _ = match (index, align) {
                (_, Align::Right) if shade.is_some() => {
                    let shade = shade.unwrap_or(0);
                    write!(html, "<td class=\"heat\" style=\"--heat:{shade}%\">{text}</td>")
                }
                (0, align) => write!(html, "<th scope=\"row\"{}>{text}</th>", class_of(*align)),
                (_, Align::Left) => write!(html, "<td class=\"l\">{text}</td>"),
                (_, Align::Right) => write!(html, "<td>{text}</td>"),
            };
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    if part.folded {
        html.push_str("</details>");
    }
    html
}

fn class_of(align: Align) -> &'static str {
    match align {
        Align::Left => "",
        Align::Right => " class=\"r\"",
    }
}

/// A row begins with what it is of. Tables of the terminal that begin with figures have that at
/// their end.
fn with_header_first(grid: &Grid) -> Grid {
    let begins_with_figures = grid.columns.first().is_some_and(|(_, align)| *align == Align::Right);
    let last_words = grid.columns.iter().rposition(|(_, align)| *align == Align::Left);
    let Some(header) = last_words.filter(|_| begins_with_figures && !is_time(grid)) else {
        return grid.clone();
    };
    let mut turned = grid.clone();
    turned.columns[..=header].rotate_right(1);
    for row in turned.rows.iter_mut().filter(|row| row.len() > header) {
        row[..=header].rotate_right(1);
    }
    turned
}

/// True for a table over time, whose first column is its header though it is of numbers.
fn is_time(grid: &Grid) -> bool {
    grid.columns.first().is_some_and(|(name, _)| name == super::parts::SECOND)
}

/// Long whole numbers in groups of three, by spaces that do not break.
fn grouped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let before = rest[..start].chars().last();
        let digits =
            rest[start..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - start);
        let number = &rest[start..start + digits];
        out.push_str(&rest[..start]);
        let is_part = before.is_some_and(|c| c.is_alphanumeric() || ".-_".contains(c));
        if number.len() < 5 || is_part {
            out.push_str(number);
        } else {
            for (index, digit) in number.chars().enumerate() {
                if index > 0 && (number.len() - index).is_multiple_of(3) {
                    out.push('\u{202f}');
                }
                out.push(digit);
            }
        }
        rest = &rest[start + digits..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped() {
        assert_eq!(grouped("142101 [62493, 999]"), "142\u{202f}101 [62\u{202f}493, 999]");
        assert_eq!(grouped("lz4-123456 0.123456 b958e94"), "lz4-123456 0.123456 b958e94");
        assert_eq!(grouped("-"), "-");
    }

    #[test]
    fn rows_begin_with_what_they_are_of() {
        let columns = [("ips", Align::Right), ("engine", Align::Left)];
        let grid = Grid::new(&columns, vec![vec!["1".to_owned(), "lz4".to_owned()]]);
        let turned = with_header_first(&grid);
        assert_eq!(turned.columns[0].0, "engine");
        assert_eq!(turned.rows[0], ["lz4", "1"]);
        let time = [(super::super::parts::SECOND, Align::Right), ("note", Align::Left)];
        let grid = Grid::new(&time, Vec::new());
        assert_eq!(with_header_first(&grid), grid);
    }
}
