//! The README's picture: bars of size and CPU by arm, from the CSV of an experiment.
//!
//! `cargo run -p xtask -- picture results/zlib-vs-zstd-cached.csv docs/zlib-vs-zstd.svg`

use std::collections::BTreeMap;
use std::fmt::Write as _;

const LABEL_WIDTH: usize = 70;
const PANEL_WIDTH: usize = 210;
const BAR_WIDTH: f64 = 140.0;
const ROW_HEIGHT: usize = 22;
const HEAD_HEIGHT: usize = 34;

/// A panel: title, phase, column of the CSV, factor to the unit shown.
const PANELS: [(&str, &str, &str, f64); 3] = [
    ("load: CPU µs per link", "load", "cpu_us_o", 1.0),
    ("queries: CPU µs per transaction", "query", "cpu_us_o", 1.0),
    ("size after the queries, MB", "query", "size_bytes", 1e-6),
];

/// Medians by (phase, column, arm), and the arms in the order of the file.
struct Medians {
    values: BTreeMap<(String, String, String), f64>,
    arms: Vec<String>,
}

/// Reads the measured rows of a CSV; an error names the line.
fn medians(csv: &str) -> Result<Medians, String> {
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().ok_or("the CSV is empty")?.split(',').collect();
    let column =
        |name: &str| head.iter().position(|cell| *cell == name).ok_or(format!("no column {name}"));
    let (arm_at, phase_at, valid_at) = (column("arm")?, column("phase")?, column("valid")?);
    let mut samples: BTreeMap<(String, String, String), Vec<f64>> = BTreeMap::new();
    let mut arms: Vec<String> = Vec::new();
    for (index, line) in lines.enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        if cells.len() != head.len() {
            return Err(format!(
                "line {}: {} cells, {} expected",
                index + 2,
                cells.len(),
                head.len()
            ));
        }
        if cells[arm_at] == "driver" || cells[valid_at] != "true" {
            continue;
        }
        if !arms.iter().any(|arm| arm == cells[arm_at]) {
            arms.push(cells[arm_at].to_owned());
        }
        for (_, phase, name, _) in PANELS.iter().filter(|panel| panel.1 == cells[phase_at]) {
            let text = cells[column(name)?];
            let value = text.parse().map_err(|_| format!("line {}: {name} {text}", index + 2))?;
            let key = ((*phase).to_owned(), (*name).to_owned(), cells[arm_at].to_owned());
            samples.entry(key).or_default().push(value);
        }
    }
    let values = samples.into_iter().map(|(key, values)| (key, median(values))).collect();
    Ok(Medians { values, arms })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// The picture as SVG text.
pub fn draw(csv: &str) -> Result<String, String> {
    let medians = medians(csv)?;
    let width = LABEL_WIDTH + PANELS.len() * PANEL_WIDTH;
    let height = HEAD_HEIGHT + medians.arms.len() * ROW_HEIGHT + 10;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>CPU and size by codec of the bottom \
         level</title>\n<style>text{{fill:#24292f}}.bar{{fill:#4078c0}}\
         @media(prefers-color-scheme:dark){{text{{fill:#d0d7de}}.bar{{fill:#6ea8fe}}}}</style>\n"
    );
    for (row, arm) in medians.arms.iter().enumerate() {
        let y = HEAD_HEIGHT + row * ROW_HEIGHT + 14;
        let _ = writeln!(svg, "<text x=\"4\" y=\"{y}\">{arm}</text>");
    }
    for (panel, (title, phase, name, factor)) in PANELS.iter().enumerate() {
        let left = LABEL_WIDTH + panel * PANEL_WIDTH;
        let _ = writeln!(svg, "<text x=\"{left}\" y=\"18\" font-weight=\"bold\">{title}</text>");
        let value = |arm: &String| {
            let key = ((*phase).to_owned(), (*name).to_owned(), arm.clone());
            medians.values.get(&key).copied()
        };
        let largest = medians.arms.iter().filter_map(value).fold(f64::MIN_POSITIVE, f64::max);
        for (row, arm) in medians.arms.iter().enumerate() {
            let Some(value) = value(arm) else { continue };
            let y = HEAD_HEIGHT + row * ROW_HEIGHT;
            let bar = value / largest * BAR_WIDTH;
            let (text_x, text_y) = (left as f64 + bar + 6.0, y + 14);
            let shown = value * factor;
            let digits = if shown < 100.0 { 2 } else { 0 };
            let _ = writeln!(
                svg,
                "<rect class=\"bar\" x=\"{left}\" y=\"{y}\" width=\"{bar:.1}\" height=\"16\" \
                 rx=\"2\"/><text x=\"{text_x:.1}\" y=\"{text_y}\">{shown:.digits$}</text>"
            );
        }
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "arm,phase,valid,cpu_us_o,size_bytes\n\
        driver,load,true,9,9\na,load,true,1,5\na,load,true,3,5\na,query,true,4,2000000\n\
        b,load,false,100,5\nb,query,true,8,1000000\n";

    #[test]
    fn bars_are_medians_of_valid_rows() {
        let svg = draw(CSV).unwrap();
        assert!(svg.contains(">2.00</text>"), "the median of 1 and 3: {svg}");
        assert!(!svg.contains("100") && !svg.contains("driver"), "{svg}");
        assert!(svg.contains("width=\"70.0\""), "a takes half of what b takes: {svg}");
    }

    #[test]
    fn a_broken_file_names_the_line() {
        let error = draw("arm,phase,valid,cpu_us_o,size_bytes\na,load,true,x,5\n").unwrap_err();
        assert!(error.contains("line 2") && error.contains("cpu_us_o"), "{error}");
        assert!(draw("arm,phase\n").unwrap_err().contains("valid"));
        assert!(draw("").is_err());
    }
}
