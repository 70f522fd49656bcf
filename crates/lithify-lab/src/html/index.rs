//! The page over all runs of a directory: what was measured, when, by which command, what came out.

use super::model::{Block, Finding, Outcome, ReportModel, RunLink, Section};
use super::{page, parts};
use crate::records::AnyRecord;
use crate::records::kinds::{command, model};

/// The page. `runs` are the addresses of their pages, as seen from this one, with their records;
/// `unread` are files that hold none, with why.
pub fn render(directory: &str, runs: &[(String, AnyRecord)], unread: &[String]) -> String {
    page::render(&of_runs(directory, runs, unread))
}

pub(super) fn of_runs(
    directory: &str,
    runs: &[(String, AnyRecord)],
    unread: &[String],
) -> ReportModel {
    let mut links: Vec<(Option<u64>, RunLink)> = runs
        .iter()
        .map(|(address, record)| (record.started_unix_s(), link(address, record)))
        .collect();
    // The newest first; those that do not say when at the end.
    links.sort_by(|(one, a), (other, b)| other.cmp(one).then(a.title.cmp(&b.title)));
    let count = |wanted| links.iter().filter(|(_, link)| link.verdict.outcome == wanted).count();
    let text = format!(
        "{} runs. Of their verdicts {} are good throughout, {} name something that was missed or did \
         not hold.",
        links.len(),
        count(Outcome::Held),
        count(Outcome::Missed)
    );
    let mut sections = vec![
        Section::new("Runs").with(Block::Runs(links.into_iter().map(|(_, link)| link).collect())),
    ];
    if !unread.is_empty() {
        sections.push(Section::new("Not read").with(Block::List(unread.to_vec())));
    }
    ReportModel {
        title: format!("Results in {directory}"),
        kicker: "Index".to_owned(),
        question: "What was measured, when, by which command, and what came out.".to_owned(),
        source: String::new(),
        summary: vec![Finding::new(Outcome::Note, "Runs", text)],
        sections,
        footer:
            "Commands are rebuilt from the records: what they leave out was at its default, or \
                 chosen by what was on the machine."
                .to_owned(),
    }
}

fn link(address: &str, record: &AnyRecord) -> RunLink {
    let model = model(record);
    let when = record.started_unix_s().map(parts::day);
    let name = address.strip_suffix(".html").unwrap_or(address);
    RunLink {
        address: address.to_owned(),
        title: model.title.clone(),
        about: [Some(name.to_owned()), when].into_iter().flatten().collect::<Vec<_>>().join(" · "),
        command: command(record).unwrap_or_default(),
        verdict: verdict(&model),
    }
}

/// Words of findings that tell the outcome of a run, the most telling first.
const VERDICTS: [&str; 5] = ["Broken", "Floors", "Claims", "Incomplete", "Pair"];

/// The one finding that says what came out; how it came out is the worst of all that say so.
pub(super) fn verdict(model: &ReportModel) -> Finding {
    let of_tag = |tag: &&str| model.summary.iter().find(|finding| finding.tag == **tag);
    let found = VERDICTS.iter().find_map(of_tag).or(model.summary.first());
    let has = |wanted| model.summary.iter().any(|finding| finding.outcome == wanted);
    let worst = [Outcome::Missed, Outcome::Held].into_iter().find(|outcome| has(*outcome));
    let outcome = worst.unwrap_or(Outcome::Note);
    let text = found.map_or_else(|| "Nothing was measured.".to_owned(), |f| f.text.clone());
    let tag = found.map_or("Nothing", |finding| finding.tag.as_str());
    Finding::new(outcome, tag, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::EngineName;
    use crate::linkbench::sample;

    #[test]
    fn every_run_has_its_line() {
        let record = sample::record(&sample::plan(&EngineName::lithify(), 3));
        let runs = [("zlib & co.html".to_owned(), AnyRecord::LinkBench(Box::new(record)))];
        let html = render("results", &runs, &["x.json: <odd>".to_owned()]);
        for part in [
            "<a href=\"zlib%20%26%20co.html\">zlib against zstd for the bottom level",
            "zlib &amp; co · 2023-11-14",
            "<code>lithify bench run zlib-vs-zstd <span class=\"flag\">--scale</span> smoke",
            "<span class=\"tag bad\">Claims</span>",
            "Of 10 published claims 7 are confirmed here",
            "x.json: &lt;odd&gt;",
        ] {
            assert!(html.contains(part), "{part} is missing in {html}");
        }
    }

    #[test]
    fn the_worst_finding_decides() {
        let finding = |outcome, tag: &str| Finding::new(outcome, tag, tag);
        let of = |summary| verdict(&ReportModel { summary, ..ReportModel::default() });
        let mixed = of(vec![finding(Outcome::Held, "Held"), finding(Outcome::Note, "Claims")]);
        assert_eq!((mixed.outcome, mixed.tag.as_str()), (Outcome::Held, "Claims"));
        let missed = of(vec![finding(Outcome::Held, "Held"), finding(Outcome::Missed, "Missed")]);
        assert_eq!((missed.outcome, missed.tag.as_str()), (Outcome::Missed, "Held"));
        assert_eq!(of(Vec::new()).text, "Nothing was measured.");
    }
}
