//! The page over all runs of a directory: what was measured, when, by which command, what came out.

use lithify_report::index::{self, Run};
use lithify_report::{Report, RunLink, page};

use super::parts;
use crate::records::AnyRecord;
use crate::records::kinds::{command, model};

/// The page. `runs` are the addresses of their pages, as seen from this one, with their records;
/// `unread` are files that hold none, with why.
pub fn render(directory: &str, runs: &[(String, AnyRecord)], unread: &[String]) -> String {
    page::render(&of_runs(directory, runs, unread))
}

pub(super) fn of_runs(directory: &str, runs: &[(String, AnyRecord)], unread: &[String]) -> Report {
    let runs = runs.iter().map(|(address, record)| run(address, record)).collect();
    index::of_runs(directory, runs, unread)
}

fn run(address: &str, record: &AnyRecord) -> Run {
    let model = model(record);
    let name = address.strip_suffix(".html").unwrap_or(address);
    let link = RunLink {
        address: address.to_owned(),
        title: name.to_owned(),
        about: model.kicker.clone(),
        command: command(record).unwrap_or_default(),
        verdict: index::verdict(&model.summary),
    };
    // Every kind names the machine last in the line over its title.
    let machine = model.kicker.split(" · ").last().filter(|part| part.ends_with(" CPUs"));
    Run {
        began_unix_s: record.started_unix_s(),
        day: record.started_unix_s().map(parts::day),
        machine: machine.map(str::to_owned),
        title: model.title,
        question: model.question,
        found: model.summary,
        link,
    }
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
            "zlib against zstd for the bottom level under LinkBench</h2>",
            "1 run of 1 question",
            "<a href=\"zlib%20%26%20co.html\">zlib &amp; co</a>",
            "LinkBench · scale smoke · 3 repeats · 2023-11-14",
            "<code>lithify bench run zlib-vs-zstd <span class=\"flag\">--scale</span> smoke",
            "<span class=\"tag bad\">Claims</span>",
            "Of 10 published claims 7 are confirmed here",
            "x.json: &lt;odd&gt;",
        ] {
            assert!(html.contains(part), "{part} is missing in {html}");
        }
    }
}
