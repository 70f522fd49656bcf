//! What a page says, before it is drawn: the model of [`lithify_report`], and the form in which
//! kinds of runs fill it until each is a function to a report.

pub use lithify_report::*;

/// A page.
#[derive(Clone, Debug, Default)]
pub struct ReportModel {
    /// What was run.
    pub title: String,
    /// One line over the title: kind, scale, machine.
    pub kicker: String,
    /// What was asked.
    pub question: String,
    /// Where published figures come from; empty without any.
    pub source: String,
    /// What came out, in words.
    pub summary: Vec<Finding>,
    /// What cannot be said, and why.
    pub unknown: Vec<String>,
    /// What to do next.
    pub next: Vec<String>,
    /// The table that one has to see, if there is one.
    pub headline: Option<Table>,
    /// The parts of the page.
    pub sections: Vec<Section>,
    /// One line at the end: where the figures are.
    pub footer: String,
}

impl ReportModel {
    /// The page as one file.
    pub fn page(self) -> String {
        page::render(&self.into())
    }
}

impl From<ReportModel> for Report {
    fn from(model: ReportModel) -> Report {
        // What is to be doubted is no finding.
        let (doubts, found): (Vec<Finding>, Vec<Finding>) =
            model.summary.into_iter().partition(|finding| finding.tag == "Doubt");
        let doubts = doubts.into_iter().map(|finding| finding.text);
        let unknown = model.unknown.into_iter().chain(doubts).collect();
        Report {
            title: model.title,
            context: model.kicker,
            question: model.question,
            source: model.source,
            answer: Answer { found, unknown, next: model.next },
            headline: model.headline,
            sections: model.sections,
            footer: model.footer,
        }
    }
}
