//! The page over all runs of a directory: what was measured, when, by which command, what came out.

use lithify_report::index::{self, Run};
use lithify_report::{Report, RunLink, page};

use super::AnyRecord;
use super::kinds::{command, report};
use crate::html::parts;

/// The page. `runs` are the addresses of their pages, as seen from this one, with their records;
/// `unread` are files that hold none, with why.
pub fn render(directory: &str, runs: &[(String, AnyRecord)], unread: &[String]) -> String {
    page::render(&of_runs(directory, runs, unread))
}

fn of_runs(directory: &str, runs: &[(String, AnyRecord)], unread: &[String]) -> Report {
    let runs = runs.iter().map(|(address, record)| run(address, record)).collect();
    index::of_runs(directory, runs, unread)
}

fn run(address: &str, record: &AnyRecord) -> Run {
    let report = report(record);
    let name = address.strip_suffix(".html").unwrap_or(address);
    let link = RunLink {
        address: address.to_owned(),
        title: name.to_owned(),
        about: report.context.clone(),
        command: command(record).unwrap_or_default(),
        verdict: index::verdict(&report.answer.found),
    };
    // Every kind names the machine last in the line over its title.
    let machine = report.context.split(" · ").last().filter(|part| part.ends_with(" CPUs"));
    Run {
        began_unix_s: record.started_unix_s(),
        day: record.started_unix_s().map(parts::day),
        machine: machine.map(str::to_owned),
        title: report.title,
        question: report.question,
        found: report.answer.found,
        link,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::EngineName;
    use crate::linkbench::kind::LinkBench;
    use crate::linkbench::sample;

    #[test]
    fn every_run_has_its_line() {
        let record = sample::record(&sample::plan(&EngineName::lithify(), 3));
        let runs = [("zlib & co.html".to_owned(), AnyRecord::of::<LinkBench>(record))];
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
