//! The report before it is rendered: an answer, then sections of texts, tables and plots.

mod cell;
mod plot;
mod table;

use serde::{Deserialize, Serialize};

pub use cell::{Bounds, Cell, Claim, Effect, Rounding, Verdict};
pub use plot::{
    Axis, Curve, Curves, Drawing, Group, Line, Lines, Paint, Plot, Point, Row, Rows, Scatter,
    Triangle, Unit,
};
pub use table::{Better, Column, Content, Table};

/// A report of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What was run.
    pub title: String,
    /// One line: kind, scale, machine.
    pub context: String,
    /// What was asked.
    pub question: String,
    /// Where published figures come from; empty without any.
    pub source: String,
    /// What came out.
    pub answer: Answer,
    /// The table that one has to see, if there is one.
    pub headline: Option<Table>,
    /// The parts.
    pub sections: Vec<Section>,
    /// One line at the end: where the figures are.
    pub footer: String,
}

/// What came out of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What was found, the most important first.
    pub found: Vec<Finding>,
    /// What cannot be said, and why.
    pub unknown: Vec<String>,
    /// What to do next.
    pub next: Vec<String>,
}

/// How something came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// As claimed or asked for.
    Met,
    /// Not as claimed or asked for.
    Missed,
    /// Not decided by these figures.
    Undecided,
    /// To be known beside that.
    Note,
}

/// One sentence of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How it came out.
    pub outcome: Outcome,
    /// A word or two for it.
    pub tag: String,
    /// The sentence.
    pub text: String,
}

impl Finding {
    /// A sentence with its word.
    pub fn new(outcome: Outcome, tag: &str, text: impl Into<String>) -> Finding {
        Finding { outcome, tag: tag.to_owned(), text: text.into() }
    }
}

/// Where a section is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detail {
    /// In the terminal too.
    Always,
    /// On the page, and in the terminal with `--full`.
    #[default]
    Full,
}

/// A part of the report under a heading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// Where it is shown.
    pub detail: Detail,
    /// Its content, in order.
    pub blocks: Vec<Block>,
}

impl Section {
    /// An empty one, for the page and `--full`.
    pub fn new(title: &str) -> Section {
        Section { title: title.to_owned(), ..Section::default() }
    }

    /// Shown in the terminal too.
    #[must_use]
    pub fn always(mut self) -> Section {
        self.detail = Detail::Always;
        self
    }

    /// With one more block.
    #[must_use]
    pub fn with(mut self, block: impl Into<Block>) -> Section {
        self.blocks.push(block.into());
        self
    }

    /// With more blocks.
    #[must_use]
    pub fn with_all<B: Into<Block>>(mut self, blocks: impl IntoIterator<Item = B>) -> Section {
        self.blocks.extend(blocks.into_iter().map(Into::into));
        self
    }
}

/// The sections that have something in them.
pub fn filled(sections: impl IntoIterator<Item = Section>) -> Vec<Section> {
    sections.into_iter().filter(|section| !section.blocks.is_empty()).collect()
}

/// Something in a section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Block {
    /// A heading of second order.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Points.
    List(Vec<String>),
    /// Lines to be copied, which no renderer changes on the page.
    Code(Vec<String>),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// A plot with its table.
    Plot(Box<Plot>),
    /// Small plots of one kind, beside each other where there is room.
    Plots(Vec<Plot>),
    /// Runs with their pages.
    Runs(Vec<RunLink>),
}

/// A run in an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLink {
    /// Where its page is, a path of names without escapes.
    pub address: String,
    /// What was run.
    pub title: String,
    /// Name and day.
    pub about: String,
    /// The command that measures it; empty where that is not known.
    pub command: String,
    /// What came out.
    pub verdict: Finding,
}

impl From<Table> for Block {
    fn from(table: Table) -> Block {
        Block::Table(table)
    }
}

impl From<Plot> for Block {
    fn from(plot: Plot) -> Block {
        Block::Plot(Box::new(plot))
    }
}
