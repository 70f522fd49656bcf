//! The report for a terminal: the answer and the headline table, or all of it; never wider than
//! asked for.

mod brief;
mod chart;
mod layout;
mod table;

use crate::model::{
    Answer, Block, Cell, Detail, Drawing, Finding, Outcome, Plot, Report, RunLink, Section, Table,
};
use layout::{hang, wrap};

/// The narrowest terminal that is written for.
pub const WIDTH_MIN: usize = 60;

/// Lines of a screen: a short report ends within them where it can.
const SCREEN_LINES: usize = 40;

/// Lines that an answer may take, unless all is asked for.
const ANSWER_LINES: usize = 12;

/// Lines of that for what to do next.
const NEXT_LINES: usize = 3;

/// Lines of that for what is not known.
const UNKNOWN_LINES: usize = 5;

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Columns; fewer than [`WIDTH_MIN`] count as that.
    pub width: usize,
    /// All sections, and not the answer and the headline table alone.
    pub full: bool,
    /// Words of outcomes in colour.
    pub color: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { width: 80, full: false, color: false }
    }
}

/// The report as text.
pub fn render(report: &Report, options: Options) -> String {
    let options = Options { width: options.width.max(WIDTH_MIN), ..options };
    let mut writer = Writer { options, lines: Vec::new() };
    writer.head(report);
    writer.answer(&report.answer);
    let headline = match options.full {
        true => report.headline.clone(),
        false => brief::headline(report),
    };
    if let Some(headline) = &headline {
        writer.gap();
        match options.full {
            true => writer.table(headline),
            false => writer.brief(headline, &report.footer),
        }
    }
    let shown = |section: &&Section| options.full || section.detail == Detail::Always;
    report.sections.iter().filter(shown).for_each(|section| writer.section(section));
    if !report.footer.is_empty() {
        writer.gap();
        writer.paragraph(&report.footer);
    }
    let mut text = String::new();
    for line in &writer.lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A table alone, in a width as those of a report, without a rule below its headings.
pub fn table(table: &Table, width: usize) -> String {
    let lines = table::plain(table, width.max(WIDTH_MIN));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

struct Writer {
    options: Options,
    lines: Vec<String>,
}

impl Writer {
    /// An empty line, unless there is one.
    fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(String::new());
        }
    }

    fn paragraph(&mut self, text: &str) {
        self.lines.extend(wrap(text, self.options.width));
    }

    /// A text behind something that only its first line has.
    fn hanging(&mut self, first: &str, text: &str) {
        self.lines.extend(hang(first, text, self.options.width));
    }

    fn head(&mut self, report: &Report) {
        self.paragraph(&report.title);
        let source = if self.options.full { report.source.as_str() } else { "" };
        for text in [report.context.as_str(), report.question.as_str(), source] {
            if !text.trim().is_empty() {
                self.paragraph(text.trim());
            }
        }
        self.gap();
    }

    /// What was found, what is not known, what to do next. On a screen these take so many lines at
    /// most; what does not fit is counted.
    fn answer(&mut self, answer: &Answer) {
        let width = self.options.width;
        let [found, unknown, next]: [Vec<Sentence>; 3] = [
            answer.found.iter().map(|of| (is_decided(of), self.finding(of))).collect(),
            answer.unknown.iter().map(|of| (true, hang("? Not known: ", of, width))).collect(),
            answer.next.iter().map(|of| (true, hang("→ Next: ", of, width))).collect(),
        ];
        let all = found.iter().chain(&unknown).chain(&next).map(|(_, lines)| lines.len());
        let is_whole = self.options.full || all.sum::<usize>() <= ANSWER_LINES;
        let mut room = if is_whole { usize::MAX } else { ANSWER_LINES - 1 };
        let mut left_out = 0;
        let mut take = |part: Vec<Sentence>, most: usize| {
            let most = if is_whole { usize::MAX } else { most.min(room) };
            let (lines, out) = fitting(part, most);
            room = room.saturating_sub(lines.len());
            left_out += out;
            lines
        };
        let next = take(next, NEXT_LINES);
        let unknown = take(unknown, UNKNOWN_LINES);
        let found = take(found, ANSWER_LINES);
        self.lines.extend(found.into_iter().chain(unknown).chain(next));
        if left_out > 0 {
            let what = if left_out == 1 { "sentence" } else { "sentences" };
            self.lines.push(format!("  {left_out} more {what} with --full and on the page."));
        }
    }

    /// A sentence with its mark and its word.
    fn finding(&self, Finding { outcome, tag, text }: &Finding) -> Vec<String> {
        let first = format!("{} {tag}: ", mark(*outcome));
        let mut lines = hang(&first, text, self.options.width);
        let word = first.trim_end();
        let rest = lines.first().and_then(|line| line.strip_prefix(word));
        if let Some(rest) = rest.filter(|_| self.options.color) {
            lines[0] = format!("{}{rest}", painted(*outcome, word));
        }
        lines
    }

    fn section(&mut self, section: &Section) {
        self.gap();
        if !section.title.is_empty() {
            self.paragraph(&section.title);
            self.lines.push("─".repeat(layout::width(&section.title).min(self.options.width)));
        }
        section.blocks.iter().for_each(|block| self.block(block));
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(text) => {
                self.gap();
                self.paragraph(text);
            }
            Block::Text(text) => self.paragraph(text),
            Block::List(points) => points.iter().for_each(|point| self.hanging("- ", point)),
            Block::Code(lines) => lines.iter().for_each(|line| self.hanging("  ", line)),
            Block::Facts(facts) => self.facts(facts),
            Block::Table(table) => {
                self.gap();
                self.table(table);
                self.gap();
            }
            Block::Plot(plot) => self.plot(plot),
            Block::Plots(plots) => plots.iter().for_each(|plot| self.plot(plot)),
            Block::Runs(links) => links.iter().for_each(|link| self.run(link)),
        }
    }

    /// Names in one column, values behind them.
    fn facts(&mut self, facts: &[(String, String)]) {
        let widest = facts.iter().map(|(name, _)| layout::width(name)).max().unwrap_or(0);
        let column = widest.min(self.options.width / 3);
        for (name, value) in facts {
            let space = column.saturating_sub(layout::width(name));
            self.hanging(&format!("{name}{}  ", " ".repeat(space)), value);
        }
    }

    fn table(&mut self, table: &Table) {
        self.caption(table);
        let color = self.options.color;
        let paint = |cell: &Cell, text: &str| painted_cell(color, cell, text);
        self.lines.extend(table::lines(table, self.options.width, paint));
    }

    /// A table in what is left of a screen.
    fn brief(&mut self, table: &Table, footer: &str) {
        self.caption(table);
        let Options { width, color, .. } = self.options;
        // What was left out takes up to three lines, and the footer has an empty one before it.
        let behind = 4 + if footer.is_empty() { 0 } else { wrap(footer, width).len() };
        let room = SCREEN_LINES.saturating_sub(self.lines.len() + behind);
        let paint = |cell: &Cell, text: &str| painted_cell(color, cell, text);
        let (lines, left_out) = brief::lines(table, width, room, paint);
        self.lines.extend(lines);
        left_out.iter().for_each(|text| self.paragraph(text));
    }

    fn caption(&mut self, table: &Table) {
        if !table.caption.is_empty() {
            self.paragraph(&table.caption);
        }
    }

    /// A chart where there is one for a terminal, and the figures; of a course over time the chart
    /// alone, since its figures are one per second.
    fn plot(&mut self, plot: &Plot) {
        self.gap();
        match chart::lines(plot, self.options.width) {
            Some(lines) => {
                self.paragraph(&plot.title);
                self.lines.extend(lines);
                let is_course = matches!(plot.drawing, Drawing::Lines(_));
                if !is_course && !plot.table.rows.is_empty() {
                    self.gap();
                    self.table(&plot.table);
                }
            }
            None => self.table(&plot.table),
        }
        self.gap();
    }

    fn run(&mut self, link: &RunLink) {
        self.gap();
        self.paragraph(&format!("{} ({})", link.title, link.about));
        let verdict = self.finding(&link.verdict);
        self.lines.extend(verdict);
        self.hanging("  ", &link.command);
    }
}

/// The lines of a sentence of the answer, and whether it is said before others.
type Sentence = (bool, Vec<String>);

/// False for what was not decided: its number is said by itself, and its sentences are many.
fn is_decided(finding: &Finding) -> bool {
    finding.outcome != Outcome::Undecided
}

/// The sentences that fit into so many lines, in their order, and how many do not. Others than those
/// that are said before them have a place only without these. The first has one whatever it takes.
fn fitting(part: Vec<Sentence>, most: usize) -> (Vec<String>, usize) {
    let mut room = most;
    let mut fits = vec![false; part.len()];
    for wanted in [true, false] {
        if fits.contains(&true) && most < usize::MAX {
            break;
        }
        for (place, (is_first, lines)) in part.iter().enumerate() {
            let is_only = most > 0 && room == most;
            if *is_first == wanted && (lines.len() <= room || is_only) {
                room = room.saturating_sub(lines.len());
                fits[place] = true;
            }
        }
    }
    let left_out = fits.iter().filter(|fits| !**fits).count();
    let kept = part.into_iter().zip(fits).filter(|(_, fits)| *fits);
    (kept.flat_map(|((_, lines), _)| lines).collect(), left_out)
}

/// The mark of an outcome: as on the page.
fn mark(outcome: Outcome) -> char {
    match outcome {
        Outcome::Met => '✓',
        Outcome::Missed => '✕',
        Outcome::Undecided => '≈',
        Outcome::Note => '·',
    }
}

/// A piece of a cell, coloured by how it came out.
fn painted_cell(color: bool, cell: &Cell, text: &str) -> String {
    match cell.outcome() {
        Some(outcome) if color => painted(outcome, text),
        _ => text.to_owned(),
    }
}

fn painted(outcome: Outcome, text: &str) -> String {
    let code = match outcome {
        Outcome::Met => "32",
        Outcome::Missed => "31",
        Outcome::Undecided => "33",
        Outcome::Note => "2",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}
