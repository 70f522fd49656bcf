//! The report over all runs of a directory: what was asked, when, on which machine, how the claims
//! came out; then each run with its command.

use std::collections::BTreeSet;

use crate::model::{Answer, Block, Finding, Outcome, Report, RunLink, Section};

/// A run in the index.
#[derive(Clone, Debug)]
pub struct Run {
    /// The second in which it began, where that is known.
    pub began_unix_s: Option<u64>,
    /// Its day, where that is known.
    pub day: Option<String>,
    /// The machine, where that is known.
    pub machine: Option<String>,
    /// Title of the experiment.
    pub title: String,
    /// What was asked.
    pub question: String,
    /// What was found.
    pub found: Vec<Finding>,
    /// Its entry.
    pub link: RunLink,
}

/// The report. `unread` are files that hold no run, with why.
pub fn of_runs(directory: &str, mut runs: Vec<Run>, unread: &[String]) -> Report {
    // The newest first; those that do not say when at the end.
    runs.sort_by(|one, other| {
        let newest = other.began_unix_s.cmp(&one.began_unix_s);
        newest.then(one.link.title.cmp(&other.link.title))
    });
    let titles = titles(&runs);
    let question = format!(
        "{} of {}. Each question has its runs below: what came out, and the command.",
        counted(runs.len(), "run", "runs"),
        counted(titles.len(), "question", "questions")
    );
    let mut found = Vec::from_iter(claims(&runs));
    let unfinished = runs
        .iter()
        .filter(|run| run.found.iter().any(|finding| finding.tag == "Incomplete"))
        .count();
    if unfinished > 0 {
        let text = format!("{} with cells that failed.", counted(unfinished, "run", "runs"));
        found.push(Finding::new(Outcome::Note, "Incomplete", text));
    }
    let mut sections: Vec<Section> = titles.iter().map(|title| section(title, &runs)).collect();
    if !unread.is_empty() {
        sections.push(Section::new("Not read").with(Block::List(unread.to_vec())));
    }
    Report {
        title: format!("Results in {directory}"),
        context: context(&runs),
        question,
        answer: Answer { found, ..Answer::default() },
        sections,
        footer:
            "Commands are rebuilt from the records: what they leave out was at its default, or \
                 chosen by what was on the machine."
                .to_owned(),
        ..Report::default()
    }
}

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// The titles of the runs, each once, in their order.
fn titles(runs: &[Run]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let titles = runs.iter().filter(|run| seen.insert(run.title.as_str()));
    titles.map(|run| run.title.clone()).collect()
}

/// When, and on which machines.
fn context(runs: &[Run]) -> String {
    let days: BTreeSet<&str> = runs.iter().filter_map(|run| run.day.as_deref()).collect();
    let when = match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => Some(format!("{first} to {last}")),
        (first, _) => first.map(|day| (*day).to_owned()),
    };
    let machines: BTreeSet<&str> = runs.iter().filter_map(|run| run.machine.as_deref()).collect();
    when.into_iter().chain(machines.into_iter().map(str::to_owned)).collect::<Vec<_>>().join(" · ")
}

/// How the published claims of all runs came out; nothing without any.
fn claims(runs: &[Run]) -> Option<Finding> {
    let count = |tag: &str| {
        runs.iter().flat_map(|run| &run.found).filter(|finding| finding.tag == tag).count()
    };
    let [confirmed, contradicted, undecided] = CLAIM_TAGS.map(count);
    let all = confirmed + contradicted + undecided;
    let text = format!(
        "Of {all} published claims {confirmed} are confirmed, {contradicted} contradicted, \
         {undecided} not decided. A claim counts once in each run that tests it."
    );
    (all > 0).then(|| Finding::new(Outcome::Note, "Claims", text))
}

/// One question with its runs.
fn section(title: &str, runs: &[Run]) -> Section {
    let runs: Vec<&Run> = runs.iter().filter(|run| run.title == title).collect();
    let question = runs.iter().map(|run| run.question.trim()).find(|text| !text.is_empty());
    let links = runs.iter().map(|run| run.link.clone()).collect();
    Section::new(title)
        .with_all(question.map(|text| Block::Text(text.to_owned())))
        .with(Block::Runs(links))
}

/// Words of findings about published claims: confirmed, contradicted, not decided.
pub const CLAIM_TAGS: [&str; 3] = ["Confirmed", "Contradicted", "Undecided"];

/// Words of findings that tell the outcome of a run, the most telling first.
const VERDICTS: [&str; 5] = ["Broken", "Claims", "Targets", "Incomplete", "Pair"];

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

    fn run(name: &str, title: &str, day: u64, found: Vec<Finding>) -> Run {
        let link = RunLink {
            address: format!("{name}.html"),
            title: name.to_owned(),
            about: String::new(),
            command: String::new(),
            verdict: verdict(&found),
        };
        Run {
            began_unix_s: Some(day),
            day: Some(format!("2026-11-{day}")),
            machine: Some("one machine, 2 CPUs".to_owned()),
            title: title.to_owned(),
            question: "Which is faster?".to_owned(),
            found,
            link,
        }
    }

    #[test]
    fn it_begins_with_what_the_runs_are_about() {
        let claim = |outcome, tag: &str| Finding::new(outcome, tag, "a claim");
        let met = claim(Outcome::Met, "Confirmed");
        let runs = vec![
            run("a-1", "A", 20, vec![met.clone(), claim(Outcome::Missed, "Contradicted")]),
            run("b-1", "B", 21, vec![claim(Outcome::Undecided, "Undecided")]),
            run("a-2", "A", 22, vec![met]),
        ];
        let report = of_runs("results", runs, &[]);
        assert_eq!(report.context, "2026-11-20 to 2026-11-22 · one machine, 2 CPUs");
        assert!(report.question.starts_with("3 runs of 2 questions. "), "{}", report.question);
        let claims = &report.answer.found[0];
        assert_eq!(claims.outcome, Outcome::Note);
        let expected = "Of 4 published claims 2 are confirmed, 1 contradicted, 1 not decided. ";
        assert!(claims.text.starts_with(expected), "{}", claims.text);
        let titles: Vec<&str> = report.sections.iter().map(|s| s.title.as_str()).collect();
        assert_eq!(titles, ["A", "B"]);
        let Block::Runs(links) = &report.sections[0].blocks[1] else { panic!("{report:?}") };
        assert_eq!([&links[0].title, &links[1].title], ["a-2", "a-1"]);
    }

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
