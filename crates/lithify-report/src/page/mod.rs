//! The report as a page: landmarks, headings, tables and plots in one file that needs nothing else.
//!
//! Promises: no external resource; all figures are readable without scripts, which add tooltips
//! only; every plot has its figures as a table; light, dark and paper by the reader's own setting;
//! headings, landmarks, captions and names for readers that listen. Every text is escaped.

mod escape;
mod plot;

use maud::{Markup, PreEscaped, html};

pub(crate) use escape::escape;
use escape::{Grouped, Plain};

use crate::grid::Align;
use crate::model::{Answer, Block, Cell, Finding, Outcome, Report, RunLink, Section, Table};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Columns from which on paper lets the words of a table break.
const BROAD_COLUMNS: usize = 12;

/// A line's end between two elements.
const LINE: PreEscaped<&str> = PreEscaped("\n");

/// The page as a file.
pub fn render(report: &Report) -> String {
    let page = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" { (LINE)
            head { (LINE)
                meta charset="utf-8"; (LINE)
                meta name="viewport" content="width=device-width, initial-scale=1"; (LINE)
                meta name="color-scheme" content="light dark"; (LINE)
                title { (Plain(&report.title)) } (LINE)
                link rel="icon" href="data:,"; (LINE)
                style { (LINE) (PreEscaped(STYLE)) } (LINE)
            } (LINE)
            body { (LINE)
                a.skip href="#main" { "To the figures" } (LINE)
                div.page { (LINE)
                    (head(report)) (contents(report))
                    main id="main" { (LINE)
                        (answer(report))
                        @for (index, part) in report.sections.iter().enumerate() {
                            (section(part, index + 1))
                        }
                    } (LINE)
                    footer { (Plain(&report.footer)) } (LINE)
                } (LINE)
                script { (LINE) (PreEscaped(SCRIPT)) } (LINE)
            } (LINE)
        } (LINE)
    };
    page.into_string()
}

fn head(report: &Report) -> Markup {
    html! {
        header { (LINE)
            p.kicker { (Grouped(&report.context)) } (LINE)
            h1 { (Plain(&report.title)) } (LINE)
            p.lede { (Plain(report.question.trim())) } (LINE)
            @if !report.source.is_empty() { p.source { (Plain(&report.source)) } (LINE) }
        } (LINE)
    }
}

/// Whether anything stands before the sections.
fn has_answer(report: &Report) -> bool {
    let Answer { found, unknown, next } = &report.answer;
    !(found.is_empty() && unknown.is_empty() && next.is_empty()) || report.headline.is_some()
}

/// The list of the sections.
fn contents(report: &Report) -> Markup {
    html! {
        nav aria-label="Sections" { ul {
            @if has_answer(report) { li { a href="#summary" { "Summary" } } }
            @for (index, part) in report.sections.iter().enumerate() {
                li { a href={ "#s" (index + 1) } { (Plain(&part.title)) } }
            }
        } } (LINE)
    }
}

/// What came out.
fn answer(report: &Report) -> Markup {
    let Answer { found, unknown, next } = &report.answer;
    html! {
        @if has_answer(report) {
            section aria-labelledby="summary" { (LINE)
                h2 id="summary" { "Summary" } (LINE)
                @if !found.is_empty() {
                    ul.findings { (LINE) @for one in found { li { (finding(one)) } (LINE) } } (LINE)
                }
                @for (title, lines) in [("Not known", unknown), ("Next", next)] {
                    @if !lines.is_empty() {
                        h3 { (title) }
                        ul { @for line in lines { li { (Grouped(line)) } } } (LINE)
                    }
                }
                @if let Some(headline) = &report.headline { (table(headline, "headline")) (LINE) }
            } (LINE)
        }
    }
}

fn class_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Met => "good",
        Outcome::Missed => "bad",
        Outcome::Undecided => "even",
        Outcome::Note => "note",
    }
}

/// A sentence with its word.
fn finding(Finding { outcome, tag, text }: &Finding) -> Markup {
    html! {
        span class={ "tag " (class_of(*outcome)) } { (Plain(tag)) } " " span { (Grouped(text)) }
    }
}

/// Runs with links to their pages.
fn runs(links: &[RunLink]) -> Markup {
    html! {
        ul.runs { (LINE)
            @for RunLink { address, title, about, command, verdict } in links {
                li {
                    h3 { a href=(PreEscaped(encoded(address))) { (Plain(title)) } }
                    p.about { (Plain(about)) }
                    p { (finding(verdict)) }
                    @if !command.is_empty() { p { code { (flags(command)) } } }
                } (LINE)
            }
        } (LINE)
    }
}

/// A command whose lines do not end between the two hyphens of a flag.
fn flags(command: &str) -> Markup {
    html! {
        @for (index, word) in command.split(' ').enumerate() {
            @if index > 0 { " " }
            @if word.starts_with("--") { span.flag { (Plain(word)) } } @else { (Plain(word)) }
        }
    }
}

/// A path as it may stand in an address.
fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => text.push(char::from(byte)),
            letter if letter.is_ascii_alphanumeric() => text.push(char::from(letter)),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

fn section(part: &Section, number: usize) -> Markup {
    html! {
        section aria-labelledby={ "s" (number) } { (LINE)
            h2 id={ "s" (number) } { (Plain(&part.title)) } (LINE)
            @for (index, part) in part.blocks.iter().enumerate() {
                (block(part, &format!("b{number}-{}", index + 1))) (LINE)
            }
        } (LINE)
    }
}

/// `id` is unique in the page.
fn block(part: &Block, id: &str) -> Markup {
    match part {
        Block::Heading(text) => html! { h3 { (Plain(text)) } },
        Block::Text(text) => html! { p { (Grouped(text)) } },
        Block::List(points) => html! { ul { @for point in points { li { (Grouped(point)) } } } },
        Block::Code(lines) => html! { pre { code { (Plain(&lines.join("\n"))) } } },
        Block::Facts(facts) => html! {
            dl.facts {
                @for (name, value) in facts { dt { (Plain(name)) } dd { (Grouped(value)) } }
            }
        },
        Block::Table(part) => table(part, id),
        Block::Plot(part) => PreEscaped(plot::figure(part, id)),
        Block::Plots(parts) => html! {
            div.multiples {
                @for (number, part) in parts.iter().enumerate() {
                    (PreEscaped(plot::figure(part, &format!("{id}-{}", number + 1))))
                }
            }
        },
        Block::Runs(links) => runs(links),
    }
}

/// A table that can be scrolled by itself; one that is folded under a line that unfolds it. `id` is
/// unique in the page.
fn table(part: &Table, id: &str) -> Markup {
    let caption = format!("{id}-c");
    let broad = (part.columns.len() >= BROAD_COLUMNS).then_some("broad");
    let aligns: Vec<Align> = (0..part.columns.len()).map(|column| part.align(column)).collect();
    let right = |align: &Align| (*align == Align::Right).then_some("r");
    let shown = html! {
        div.scroll role="region" tabindex="0" aria-labelledby=(caption) {
            table id=(id) class=[broad] {
                caption id=(caption) { span { (Plain(&part.caption)) } }
                thead { tr {
                    @for (column, align) in part.columns.iter().zip(&aligns) {
                        th scope="col" class=[right(align)] { (Plain(&column.heading())) }
                    }
                } }
                tbody {
                    @for (number, row) in part.rows.iter().enumerate() {
                        tr {
                            @for (index, (value, align)) in row.iter().zip(&aligns).enumerate() {
                                @if index == 0 {
                                    th scope="row" class=[right(align)] { (Grouped(&value.text())) }
                                } @else {
                                    (cell(value, *align, shade(part, number, index)))
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        @if part.folded { details { summary { "Figures as a table" } (shown) } } @else { (shown) }
    }
}

fn shade(part: &Table, row: usize, column: usize) -> Option<u8> {
    *part.shades.get(row)?.get(column.checked_sub(1)?)?
}

/// A cell. Most are figures: they need no class.
fn cell(value: &Cell, align: Align, shade: Option<u8>) -> Markup {
    let text = value.text();
    match (value.outcome(), align, shade) {
        (Some(outcome), ..) => html! {
            td.l { span class={ "tag " (class_of(outcome)) } { (Plain(&text)) } }
        },
        (None, Align::Right, Some(shade)) => html! {
            td.heat style={ "--heat:" (shade) "%" } { (Grouped(&text)) }
        },
        (None, Align::Left, _) => html! { td.l { (Grouped(&text)) } },
        (None, Align::Right, None) => html! { td { (Grouped(&text)) } },
    }
}
