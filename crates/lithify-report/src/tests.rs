//! The renderings of one report: golden texts, widths of random reports, hostile texts, JSON.

use crate::text::{Options, WIDTH_MIN};
use crate::*;

/// A report with every kind of block and cell.
fn sample() -> Report {
    Report {
        title: "zlib and zstd at the bottom level".to_owned(),
        context: "scale cached · 3 repeats · 2 CPUs".to_owned(),
        question: "Is zstd-1 as small as zlib, and faster?".to_owned(),
        source: "Published: A. Author, A post, 2016: one machine.".to_owned(),
        answer: Answer {
            found: vec![
                Finding::new(
                    Outcome::Missed,
                    "Contradicted",
                    "zstd-1 stores 12 % more than zlib-1 here; published: 2 % less. The interval \
                     of the ratio is 1.10 to 1.14.",
                ),
                Finding::new(Outcome::Met, "Confirmed", "zstd-1 loads 1.31× as fast."),
            ],
            unknown: vec!["Cold reads: the data fits in memory.".to_owned()],
            next: vec!["lithify bench run zlib-vs-zstd --scale out-of-memory".to_owned()],
        },
        headline: Some(headline()),
        sections: vec![
            Section::new("Published and measured").always().with(ratios()),
            Section::new("Over time").with_all(charts::over_time(
                "Throughput",
                "inserts per second",
                Unit::Number,
                &[charts::Course { name: "zstd-1".to_owned(), repeats: vec![vec![1.0, 4.0, 8.0]] }],
            )),
            Section::new("Machine")
                .with(Block::Facts(vec![
                    ("memory".to_owned(), "8 GiB".to_owned()),
                    ("data on".to_owned(), "ext4 on a disk that the host throttles now and then, so that its figures vary".to_owned()),
                ]))
                .with(Block::Heading("To be read with".to_owned()))
                .with(Block::List(vec!["Absolute figures belong to this machine.".to_owned()])),
        ],
        footer: "All figures: zlib-vs-zstd.csv.".to_owned(),
    }
}

fn headline() -> Table {
    let columns = [
        Column::new("arm"),
        Column::new("inserts").unit("1/s").higher(),
        Column::new("size").lower(),
        Column::new("compaction").lower(),
        Column::new("jobs"),
        Column::new("size by zlib-1"),
        Column::new("verdict"),
        Column::new("claim"),
    ];
    Table::new("Load, medians [ranges] of 3 repeats", columns)
        .row([
            "zstd-1".into(),
            Spread { median: 131_000.0, min: 128_000.0, max: 133_000.0, count: 3 }.into(),
            Cell::Bytes(3 << 29),
            Cell::duration(75.0),
            412_u64.into(),
            Cell::ratio(1.12, Bounds::Interval(1.1, 1.14)),
            Verdict::Worse.into(),
            Claim::Contradicted.into(),
        ])
        .row([
            "zlib-1".into(),
            Spread { median: 100_000.0, min: 99_000.0, max: 102_000.0, count: 3 }.into(),
            Cell::Bytes(11 << 27),
            Cell::Missing,
            398_u64.into(),
            Cell::Missing,
            Cell::Missing,
            Cell::Missing,
        ])
}

fn ratios() -> Plot {
    let row = |name: &str, ratio: f64, published: f64| Row {
        name: name.to_owned(),
        paint: Paint::Even,
        band: None,
        span: Some((ratio * 0.95, ratio * 1.05)),
        marks: vec![ratio],
        published: Some(published),
        note: format!("{}×", figure::figure(ratio)),
        words: String::new(),
    };
    let rows = vec![row("size", 1.12, 0.98), row("inserts", 1.31, 1.5)];
    Plot {
        title: "zstd-1 : zlib-1".to_owned(),
        about: String::new(),
        series: Vec::new(),
        drawing: Drawing::Rows(Rows {
            x: Axis { name: "ratio".to_owned(), unit: Unit::Times },
            bars: false,
            reference: Some(1.0),
            groups: vec![Group { name: "load".to_owned(), rows }],
        }),
        table: Table::folded("Ratios", ["figure", "ratio"]),
    }
}

fn text_at(report: &Report, width: usize, full: bool) -> String {
    text::render(report, Options { width, full, color: false })
}

#[test]
fn golden_texts() {
    for (width, known) in [
        (60, include_str!("golden/60.txt")),
        (80, include_str!("golden/80.txt")),
        (120, include_str!("golden/120.txt")),
    ] {
        let text = text_at(&sample(), width, true);
        if std::env::var_os("LITHIFY_REWRITE").is_some_and(|set| set == "1") {
            let path = format!("{}/src/golden/{width}.txt", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(path, &text).expect("writes");
            continue;
        }
        assert_eq!(text, known, "{width} columns");
    }
}

#[test]
fn a_short_report_has_the_answer_and_what_is_always_shown() {
    let text = text_at(&sample(), 80, false);
    for part in ["✕ Contradicted: ", "? Not known: Cold", "→ Next: lithify", "Load, medians"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(text.contains("Published and measured") && !text.contains("Machine"), "{text}");
}

#[test]
fn a_short_table_has_what_was_measured_as_far_as_the_screen_goes() {
    let columns = ["engine", "arm", "rate", "nothing"].into_iter().map(Column::new);
    let names = (0..20).map(|number| format!("column-with-a-long-name-{number}"));
    let columns = columns.chain(names.map(Column::new)).collect::<Vec<_>>();
    let mut table = Table::new("Rates", columns.clone()).keyed_by(2);
    for number in 0..60_u64 {
        let mut row = vec![Cell::Missing; columns.len()];
        row[0] = "lithify".into();
        row[1] = format!("arm-{number}").into();
        if number >= 3 {
            row[2] = number.into();
            row[4..].fill(number.into());
        }
        table.push(row);
    }
    let report = Report { title: "t".to_owned(), headline: Some(table), ..Report::default() };
    let text = text_at(&report, 80, false);
    assert!(text.lines().count() <= 40, "{text}");
    assert!(!text.contains("arm-0 ") && text.contains("arm-3 ") && !text.contains("nothing"));
    for part in ["Not measured: 3 rows (lithify arm-0, lithify arm-1, lithify arm-2)", " columns."]
    {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(text_at(&report, 80, true).contains("arm-0 "), "--full has all");
}

#[test]
fn an_answer_has_twelve_lines_at_most() {
    let found = (0..40).map(|n| Finding::new(Outcome::Note, "Note", format!("finding {n}")));
    let answer = Answer {
        found: found.collect(),
        unknown: vec!["why".to_owned()],
        next: vec!["more repeats".to_owned()],
    };
    let report = Report { title: "t".to_owned(), answer, ..Report::default() };
    let text = text_at(&report, 80, false);
    let lines: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(lines.len(), 12, "{text}");
    assert!(text.contains("Not known: why") && text.contains("Next: more repeats"), "{text}");
    assert!(text.contains("31 more sentences with --full"), "{text}");
}

#[test]
fn colours_come_from_cells() {
    let options = Options { width: 120, full: true, color: true };
    let text = text::render(&sample(), options);
    assert!(text.contains("\u{1b}[31mworse\u{1b}[0m"), "{text}");
    assert!(text.contains("\u{1b}[31m✕ Contradicted:\u{1b}[0m zstd-1"), "{text}");
    let page = page::render(&sample());
    assert!(page.contains("<td class=\"l\"><span class=\"tag bad\">worse</span></td>"), "{page}");
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % most
    }

    /// Words, some of them long, wide, empty, or nothing that a terminal shows.
    fn text(&mut self) -> String {
        const WORDS: [&str; 9] = [
            "a",
            "compaction",
            "zstd-1",
            "größer",
            "圧縮データ",
            "\u{1b}[31m",
            "tab\there",
            "an-identifier-that-is-longer-than-any-column-of-a-narrow-terminal-would-ever-be",
            "",
        ];
        let words: Vec<&str> = (0..self.below(12)).map(|_| WORDS[self.below(9)]).collect();
        words.join(" ")
    }

    /// A number that survives JSON to the last bit.
    fn number(&mut self) -> f64 {
        (self.below(1 << 20) as f64 - 1000.0) / 8.0
    }

    fn cell(&mut self) -> Cell {
        match self.below(9) {
            0 => Cell::Missing,
            1 => Cell::Text(self.text()),
            2 => Cell::Integer(self.below(1 << 30) as i64),
            3 => Cell::number(self.number()),
            4 => Cell::Bytes(self.below(1 << 30) as u64),
            5 => Cell::duration(self.number()),
            6 => Spread::of(vec![self.number(), self.number()]).into(),
            7 => Cell::ratio(self.number(), Bounds::Interval(self.number(), self.number())),
            _ => Claim::ConfirmedAndByMore.into(),
        }
    }

    fn table(&mut self) -> Table {
        let count = 1 + self.below(14);
        let columns: Vec<Column> =
            (0..count).map(|_| Column::new(self.text()).unit(&self.text()).higher()).collect();
        let mut table = Table::new(self.text(), columns).keyed_by(self.below(4));
        for _ in 0..self.below(6) {
            let cells: Vec<Cell> = (0..count).map(|_| self.cell()).collect();
            table.push(cells);
        }
        table
    }

    fn bars(&mut self) -> Option<Plot> {
        let bar = |dice: &mut Dice| {
            let value = Spread::of(vec![dice.number().abs()])?;
            Some(charts::Bar { group: dice.text(), name: dice.text(), series: 0, value })
        };
        let bars: Vec<charts::Bar> = (0..self.below(6)).filter_map(|_| bar(self)).collect();
        charts::bars(&self.text(), "", ["figure", "unit"], &bars)
    }

    fn report(&mut self) -> Report {
        let mut report = sample();
        report.title = self.text();
        report.headline = Some(self.table());
        report.answer.found.push(Finding::new(Outcome::Note, &self.text(), self.text()));
        report.answer.next.push(self.text());
        let facts = (0..self.below(4)).map(|_| (self.text(), self.text())).collect();
        let course = charts::Course {
            name: self.text(),
            repeats: vec![(0..self.below(300)).map(|_| self.number()).collect()],
        };
        let verdict = Finding::new(Outcome::Undecided, &self.text(), self.text());
        let link = RunLink {
            address: self.text(),
            title: self.text(),
            about: self.text(),
            command: self.text(),
            verdict,
        };
        let section = Section::new(&self.text())
            .with(Block::Text(self.text()))
            .with(Block::List(vec![self.text()]))
            .with(Block::Facts(facts))
            .with(self.table())
            .with_all(self.bars())
            .with_all(charts::over_time(&self.text(), &self.text(), Unit::Number, &[course]))
            .with(Block::Runs(vec![link]));
        report.sections.push(section);
        report
    }
}

#[test]
fn no_line_of_random_reports_is_too_wide() {
    let mut dice = Dice(7);
    for number in 0..300 {
        let report = dice.report();
        let width = WIDTH_MIN + dice.below(80);
        let texts = [true, false].map(|full| text_at(&report, width, full));
        for line in texts.iter().flat_map(|text| text.lines()) {
            let wide = unicode_width::UnicodeWidthStr::width(line);
            assert!(wide <= width, "report {number}, {width} columns: {wide} of {line:?}");
            assert!(!line.contains('\u{1b}'), "{line:?}");
        }
    }
}

#[test]
fn random_reports_survive_json() {
    let mut dice = Dice(11);
    for _ in 0..50 {
        let report = dice.report();
        let text = json::render(&report).expect("finite");
        assert_eq!(json::read(&text).expect("a report"), report);
    }
}

#[test]
fn hostile_texts_stay_texts() {
    const HOSTILE: &str = "</title><script>alert(1)</script>\" onload='x' & \u{1}";
    let mut report = sample();
    report.title = HOSTILE.to_owned();
    report.answer.next.push(HOSTILE.to_owned());
    let table = Table::new(HOSTILE, [HOSTILE]).row([HOSTILE.into()]);
    let verdict = Finding::new(Outcome::Note, HOSTILE, HOSTILE);
    let link = RunLink {
        address: HOSTILE.to_owned(),
        title: HOSTILE.to_owned(),
        about: HOSTILE.to_owned(),
        command: format!("run --{HOSTILE}"),
        verdict,
    };
    let mut plot = ratios();
    plot.title = HOSTILE.to_owned();
    report.sections.push(
        Section::new(HOSTILE)
            .with(Block::Text(HOSTILE.to_owned()))
            .with(Block::Facts(vec![(HOSTILE.to_owned(), HOSTILE.to_owned())]))
            .with(Block::Code(vec![HOSTILE.to_owned()]))
            .with(table.clone())
            .with(plot)
            .with(Block::Runs(vec![link])),
    );
    let page = page::render(&report);
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
    assert!(page.contains("&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload="));
    assert!(!page.contains("' &") && !page.contains('\u{1}') && page.contains('\u{fffd}'));
    let csv = csv::table(&table);
    assert_eq!(csv, format!("{0}\n{0}\n", format!("\"{}\"", HOSTILE.replace('"', "\"\""))));
}

#[test]
fn lines_to_copy_stay_as_they_are() {
    let code = Block::Code(vec!["block_size=65536;".to_owned(), "  level=9 < 10".to_owned()]);
    let report = Report {
        sections: vec![Section::new("To paste").always().with(code)],
        ..Report::default()
    };
    let page = page::render(&report);
    assert!(
        page.contains("<pre><code>block_size=65536;\n  level=9 &lt; 10</code></pre>"),
        "{page}"
    );
    let shown = text::render(&report, text::Options { width: 80, full: false, color: false });
    assert!(shown.contains("  block_size=65536;"), "{shown}");
}

#[test]
fn csv_has_every_digit() {
    let csv = csv::table(&headline());
    assert_eq!(
        csv.lines().nth(1),
        Some("zstd-1,131000,128000,133000,1610612736,75,412,1.12,1.1,1.14,worse,contradicted")
    );
    assert_eq!(csv.lines().nth(2), Some("zlib-1,100000,99000,102000,1476395008,,398,,,,,"));
}
