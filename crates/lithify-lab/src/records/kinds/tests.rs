//! The structure of pages: what a browser, a reader that listens, and paper rely on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::*;
use crate::adapter::EngineName;
use crate::linkbench::sample;
use crate::{chunks, dbbench, linkbench, loop_experiment, tables};
use lithify_report::{Block, Plot};

/// A tag as it is written: name, attributes, whether it closes.
struct Tag<'a> {
    name: &'a str,
    attributes: BTreeMap<&'a str, &'a str>,
    closes: bool,
}

/// Elements that hold nothing and are not closed.
const VOID: [&str; 3] = ["meta", "link", "br"];

/// The tags of a page and the texts behind them; what stands in style and script is left out.
fn tags(html: &str) -> Vec<(Tag<'_>, &str)> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("a tag ends");
        let (inside, mut behind) = (&rest[start + 1..end], &rest[end + 1..]);
        let closes = inside.starts_with('/');
        let whole = inside.trim_start_matches('/').trim_end_matches('/');
        let (name, list) = whole.split_once(' ').unwrap_or((whole, ""));
        let mut attributes = BTreeMap::new();
        for part in list.split("\" ") {
            if let Some((key, value)) = part.split_once("=\"") {
                let known = attributes.insert(key.trim(), value.trim_end_matches('"'));
                assert!(known.is_none(), "{key} twice in <{inside}>");
            }
        }
        if !closes && (name == "style" || name == "script") {
            behind = &behind[behind.find("</").expect("it ends")..];
        }
        let text = &behind[..behind.find('<').unwrap_or(behind.len())];
        found.push((Tag { name, attributes, closes }, text));
        rest = behind;
    }
    found
}

/// What has to hold for every page.
fn check(name: &str, html: &str) {
    assert!(html.starts_with("<!doctype html>\n<html lang=\"en\">"), "{name}");
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!html.contains(outside), "{name} refers to something with {outside}");
    }
    let tags = tags(html);
    let mut open: Vec<&str> = Vec::new();
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    let mut levels: Vec<u32> = Vec::new();
    for (tag, _) in tags.iter().filter(|(tag, _)| !tag.name.starts_with('!')) {
        if tag.closes {
            assert_eq!(open.pop(), Some(tag.name), "{name}: nesting");
            continue;
        }
        if let Some(id) = tag.attributes.get("id") {
            assert!(ids.insert(id), "{name}: id {id} twice");
        }
        if let Some(level) = tag.name.strip_prefix('h').and_then(|level| level.parse().ok()) {
            levels.push(level);
        }
        let is_shape = ["line", "rect", "path", "circle"].contains(&tag.name);
        if !VOID.contains(&tag.name) && !is_shape {
            open.push(tag.name);
        }
    }
    assert!(open.is_empty(), "{name}: not closed: {open:?}");
    assert_eq!(levels.first(), Some(&1), "{name}: begins with the title");
    assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{name}: one title");
    assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{name}: headings: {levels:?}");
    check_names(name, &tags, &ids);
    check_tables(name, html, &tags);
    let landmarks = ["header", "nav", "main", "footer"];
    for landmark in landmarks {
        let count = tags.iter().filter(|(tag, _)| tag.name == landmark && !tag.closes).count();
        assert_eq!(count, 1, "{name}: {landmark}");
    }
}

/// Everything that names another element names one that is there, and marks say what they are.
fn check_names(name: &str, tags: &[(Tag<'_>, &str)], ids: &BTreeSet<&str>) {
    let mut is_narrow = false;
    for (index, (tag, _)) in tags.iter().enumerate().filter(|(_, (tag, _))| !tag.closes) {
        let labels = tag.attributes.get("aria-labelledby").into_iter().flat_map(|l| l.split(' '));
        let links = tag.attributes.get("href").and_then(|href| href.strip_prefix('#'));
        let table = tag.attributes.get("data-table").copied();
        for id in labels.chain(links).chain(table) {
            assert!(ids.contains(id), "{name}: there is no #{id}");
        }
        let class = tag.attributes.get("class").copied().unwrap_or_default();
        if tag.name == "svg" {
            is_narrow = class == "plot narrow";
        }
        if class.starts_with("mark") && !is_narrow {
            let (title, text) = &tags[index + 1];
            assert!(title.name == "title" && !text.is_empty(), "{name}: a mark without words");
        }
        if tag.name == "svg" && tag.attributes.contains_key("class") {
            let named = tag.attributes.contains_key("aria-labelledby");
            let hidden = tag.attributes.contains_key("aria-hidden");
            assert!(named || hidden, "{name}: a drawing without a name");
        }
    }
}

/// Tables have captions, column and row headers, rows as wide as their head; plots have tables.
fn check_tables(name: &str, html: &str, tags: &[(Tag<'_>, &str)]) {
    let count = |wanted: &str| tags.iter().filter(|(t, _)| t.name == wanted && !t.closes).count();
    assert_eq!(count("table"), count("caption"), "{name}: captions");
    for table in html.split("<table").skip(1).map(|part| part.split("</table>").next()) {
        let table = table.expect("has a start");
        let columns = table.matches("scope=\"col\"").count();
        assert!(columns > 0, "{name}: a table without columns");
        for row in table.split("<tbody>").nth(1).expect("a body").split("<tr>").skip(1) {
            assert_eq!(row.matches("scope=\"row\"").count(), 1, "{name}: {row}");
            assert_eq!(row.matches("<td").count() + 1, columns, "{name}: {row}");
        }
    }
    let figures: Vec<&str> = html.split("<figure ").skip(1).collect();
    assert!(!figures.is_empty(), "{name}: no plot");
    for figure in figures {
        let figure = figure.split("</figure>").next().expect("has a start");
        assert!(figure.contains("<figcaption"), "{name}: a plot without a caption");
        assert!(figure.contains("<svg class=\"plot"), "{name}: a plot without a drawing");
        assert_eq!(figure.matches("<table").count(), 1, "{name}: a plot without its table");
        assert!(!figure.contains("NaN") && !figure.contains("inf\""), "{name}: {figure}");
    }
}

#[test]
fn pages_of_sample_records_are_well_formed() {
    let record = sample::record(&sample::plan(&EngineName::lithify(), 3));
    check("linkbench", &lithify_report::page::render(&linkbench::report::page::report(&record)));
    let one = sample::record(&sample::plan(&EngineName::lithify(), 1));
    check("one repeat", &lithify_report::page::render(&linkbench::report::page::report(&one)));
    let loops = loop_experiment::sample::record(&loop_experiment::sample::plan(3));
    check("loops", &lithify_report::page::render(&loop_experiment::page::report(&loops)));
    check("db", &lithify_report::page::render(&dbbench::page::report(&loops.run)));
    let run = crate::tables::sample::run(&crate::tables::sample::small_plan());
    check("tables", &lithify_report::page::render(&tables::page::report(&run)));
    let arms = ["none", "lz4", "zstd-1", "zstd-9", "zlib-6", "snappy"];
    let run = crate::chunks::sample::run(&crate::chunks::sample::plan(&arms));
    check("chunks", &lithify_report::page::render(&chunks::page::report(&run)));
}

/// Records of kinds of which no large one is kept, measured once at the smallest sizes.
fn small_records() -> Vec<(String, AnyRecord)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    let files = crate::records::file::files_in(&directory).expect("the small records");
    let read = |(name, path): (String, std::path::PathBuf)| {
        (name, AnyRecord::read(&path).expect("is a record"))
    };
    files.into_iter().map(read).collect()
}

#[test]
fn pages_of_small_records_are_well_formed_and_as_known() {
    let records = small_records();
    assert!(records.len() >= 4, "{} records", records.len());
    for (name, record) in records {
        let html = page(&record);
        check(&name, &html);
        assert!(html.len() < PAGE_BYTES_MAX, "{name}: {} bytes", html.len());
        let outline = outline(&report(&record));
        let file = format!("{}/tests/records/{name}.outline.txt", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("LITHIFY_REWRITE").is_some_and(|set| set == "1") {
            std::fs::write(&file, format!("{outline}\n")).expect("writes");
        }
        let known = std::fs::read_to_string(&file).expect("a known outline");
        assert_eq!(outline, known.trim_end(), "{name}");
    }
}

#[test]
fn runs_with_several_numbers_of_clients_have_curves() {
    let mut plan = sample::plan(&EngineName::lithify(), 2);
    for cell in plan.cells.iter_mut().filter(|cell| cell.arm != "driver") {
        cell.clients = vec![1, 2, 3, 4, 6, 8];
        cell.requesters = 8;
    }
    let model = linkbench::report::page::report(&sample::record(&plan));
    let text = outline(&model);
    for part in [
        "Clients: zlib-1, query: contention 0.000, coherency 0.0000, R² ",
        "# By number of clients",
        "plot: queries by clients: QPS, medians of 2 repeats (6 rows)",
        "table: scalability: X(N) = ",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    check("clients", &lithify_report::page::render(&model));
}

/// Bytes that a page of a committed result may have: ten engines side by side take three quarters.
const PAGE_BYTES_MAX: usize = 1 << 20;

#[test]
fn pages_of_committed_results_are_well_formed_and_small() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
    let mut pages = 0;
    for entry in std::fs::read_dir(&results).expect("the committed results") {
        let path = entry.expect("an entry").path();
        let Some(record) = AnyRecord::read(&path).ok().filter(|_| path.is_file()) else { continue };
        let html = page(&record);
        let name = path.display().to_string();
        check(&name, &html);
        assert!(html.len() < PAGE_BYTES_MAX, "{name}: {} bytes", html.len());
        assert_eq!(html, page(&record), "{name}: the same record, the same page");
        // LITHIFY_PAGES=DIR keeps the pages, to be compared with those of another state.
        if let (Some(kept), Some(stem)) = (std::env::var_os("LITHIFY_PAGES"), path.file_stem()) {
            let file = Path::new(&kept).join(stem).with_extension("html");
            std::fs::write(file, &html).expect("writes the page");
        }
        pages += 1;
    }
    assert!(pages >= 5, "only {pages} results have pages");
}

#[test]
fn nothing_measured_is_a_page_too() {
    let mut record = sample::record(&sample::plan(&EngineName::lithify(), 1));
    record.cells.iter_mut().for_each(|cell| cell.result = None);
    let html = lithify_report::page::render(&linkbench::report::page::report(&record));
    assert!(html.contains("0 of 4 cells were measured"), "{html}");
}

#[test]
fn hostile_names_stay_texts() {
    const HOSTILE: &str = "</title><script>alert(1)</script>\" onload='x' & \u{1}";
    let mut record = sample::record(&sample::plan(&EngineName::lithify(), 3));
    record.plan.experiment.title = HOSTILE.to_owned();
    record.plan.arms[0] = HOSTILE.to_owned();
    for cell in record.cells.iter_mut().filter(|cell| cell.spec.arm == "zlib-1") {
        cell.spec.arm = HOSTILE.to_owned();
        let result = cell.result.as_mut().expect("a result");
        result.spec.arm = HOSTILE.to_owned();
        result.query.latencies[0].op = HOSTILE.to_owned();
    }
    let html = lithify_report::page::render(&linkbench::report::page::report(&record));
    check("hostile", &html);
    assert_eq!(html.matches("<script").count(), 1, "the page's own");
    assert!(html.contains("&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload="));
    assert!(!html.contains('\u{1}') && html.contains('\u{fffd}'));
}

/// Headings, findings, plots and tables of a page, line by line.
fn outline(model: &Report) -> String {
    let mut lines = vec![model.context.clone(), model.title.clone()];
    let findings = model.answer.found.iter();
    lines.extend(findings.map(|finding| format!("{}: {}", finding.tag, finding.text)));
    lines.extend(model.answer.unknown.iter().map(|text| format!("Not known: {text}")));
    lines.extend(model.answer.next.iter().map(|text| format!("Next: {text}")));
    let headline = model.headline.iter();
    lines.extend(
        headline.map(|table| format!("headline: {} ({} rows)", table.caption, table.rows.len())),
    );
    for section in &model.sections {
        lines.push(format!("# {}", section.title));
        for block in &section.blocks {
            let of_plot =
                |plot: &Plot| format!("plot: {} ({} rows)", plot.title, plot.table.rows.len());
            match block {
                Block::Plot(plot) => lines.push(of_plot(plot)),
                Block::Plots(plots) => lines.extend(plots.iter().map(of_plot)),
                Block::Table(table) => {
                    let rows = table.rows.len();
                    lines.push(format!("table: {} ({rows} rows)", table.caption));
                }
                _ => {}
            }
        }
    }
    lines.join("\n")
}

#[test]
fn the_page_of_a_known_record() {
    let record = sample::record(&sample::plan(&EngineName::lithify(), 3));
    let model = linkbench::report::page::report(&record);
    if std::env::var_os("LITHIFY_REWRITE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/records/kinds/sample_outline.txt");
        std::fs::write(path, format!("{}\n", outline(&model))).expect("writes");
        return;
    }
    assert_eq!(outline(&model), include_str!("sample_outline.txt").trim_end());
}
