//! The report over all runs of a directory: what was measured, when, by which command, what came
//! out.

use crate::model::{Answer, Block, Finding, Outcome, Report, RunLink, Section};

/// The report. `links` come with the second in which their run began, where it is known; `unread`
/// are files that hold no run, with why.
pub fn of_runs(
    directory: &str,
    mut links: Vec<(Option<u64>, RunLink)>,
    unread: &[String],
) -> Report {
    // The newest first; those that do not say when at the end.
    links.sort_by(|(one, a), (other, b)| other.cmp(one).then(a.title.cmp(&b.title)));
    let count = |wanted| links.iter().filter(|(_, link)| link.verdict.outcome == wanted).count();
    let text = format!(
        "{} runs. Of their verdicts {} are good throughout, {} name something that was missed or did \
         not hold.",
        links.len(),
        count(Outcome::Met),
        count(Outcome::Missed)
    );
    let mut sections = vec![
        Section::new("Runs").with(Block::Runs(links.into_iter().map(|(_, link)| link).collect())),
    ];
    if !unread.is_empty() {
        sections.push(Section::new("Not read").with(Block::List(unread.to_vec())));
    }
    Report {
        title: format!("Results in {directory}"),
        context: "Index".to_owned(),
        question: "What was measured, when, by which command, and what came out.".to_owned(),
        answer: Answer {
            found: vec![Finding::new(Outcome::Note, "Runs", text)],
            ..Answer::default()
        },
        sections,
        footer:
            "Commands are rebuilt from the records: what they leave out was at its default, or \
                 chosen by what was on the machine."
                .to_owned(),
        ..Report::default()
    }
}

/// Words of findings that tell the outcome of a run, the most telling first.
const VERDICTS: [&str; 5] = ["Broken", "Floors", "Claims", "Incomplete", "Pair"];

/// The one finding that says what came out; how it came out is the worst of all that say so.
pub fn verdict(found: &[Finding]) -> Finding {
    let of_tag = |tag: &&str| found.iter().find(|finding| finding.tag == **tag);
    let told = VERDICTS.iter().find_map(of_tag).or(found.first());
    let has = |wanted| found.iter().any(|finding| finding.outcome == wanted);
    let worst = [Outcome::Missed, Outcome::Met].into_iter().find(|outcome| has(*outcome));
    let outcome = worst.unwrap_or(Outcome::Note);
    let text = told.map_or_else(|| "Nothing was measured.".to_owned(), |f| f.text.clone());
    let tag = told.map_or("Nothing", |finding| finding.tag.as_str());
    Finding::new(outcome, tag, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_decides() {
        let finding = |outcome, tag: &str| Finding::new(outcome, tag, tag);
        let mixed = verdict(&[finding(Outcome::Met, "Met"), finding(Outcome::Note, "Claims")]);
        assert_eq!((mixed.outcome, mixed.tag.as_str()), (Outcome::Met, "Claims"));
        let missed = verdict(&[finding(Outcome::Met, "Met"), finding(Outcome::Missed, "Missed")]);
        assert_eq!((missed.outcome, missed.tag.as_str()), (Outcome::Missed, "Met"));
        assert_eq!(verdict(&[]).text, "Nothing was measured.");
    }
}
