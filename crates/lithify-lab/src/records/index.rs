//! The page over all runs of a directory: what was measured, when, by which command, what came out.

use lithify_report::{Report, RunLink, index, page};

use super::AnyRecord;
use super::kinds::{command, report};
use crate::html::parts;

/// The page. `runs` are the addresses of their pages, as seen from this one, with their records;
/// `unread` are files that hold none, with why.
pub fn render(directory: &str, runs: &[(String, AnyRecord)], unread: &[String]) -> String {
    page::render(&of_runs(directory, runs, unread))
}

fn of_runs(directory: &str, runs: &[(String, AnyRecord)], unread: &[String]) -> Report {
    let link =
        |(address, record): &(String, AnyRecord)| (record.started_unix_s(), link(address, record));
    index::of_runs(directory, runs.iter().map(link).collect(), unread)
}

fn link(address: &str, record: &AnyRecord) -> RunLink {
    let report = report(record);
    let when = record.started_unix_s().map(parts::day);
    let name = address.strip_suffix(".html").unwrap_or(address);
    RunLink {
        address: address.to_owned(),
        title: report.title.clone(),
        about: [Some(name.to_owned()), when].into_iter().flatten().collect::<Vec<_>>().join(" · "),
        command: command(record).unwrap_or_default(),
        verdict: index::verdict(&report.answer.found),
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
}
