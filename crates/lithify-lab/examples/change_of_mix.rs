//! How soon a family that decides by cost follows a change of the mix, and whether it flaps.
//!
//! `cargo run --release -p lithify-lab --example change_of_mix -- DATA PRICES PHASES [MONTH_SECONDS]`,
//! as in `grid-load balanced load:60,points:120,scans:120,points:120 600`. DATA is a data set
//! (`lithify bench data`) or a file of lines; PRICES a preset; a phase is `load`, `points`, `scans` or
//! `idle` with its seconds. A month is scaled to MONTH_SECONDS, as `lithify bench policies` does it;
//! without them prices are those of a real month.
//!
//! The family is asked every second what it has chosen; a level's first choice counts as a turn. The
//! choice has followed a phase with the last turn. Four levels fill; the block cache has a sixth of the
//! rows at most.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use lithify::{CfOptions, ColumnFamily, Db, Options, ScanRange};
use lithify_lab::meter::Meter;
use lithify_lab::policies::prices::{PRESETS, Preset};
use lithify_lab::policies::rows::{DataSet, key};
use lithify_lab::random::Random;

/// Bytes of rows that are read of a data set.
const BYTES: u64 = 48_000_000;
/// Memtables and tables, the base level, and all memory.
const TABLE_BYTES: u64 = 2 << 20;
const BASE_LEVEL_BYTES: u64 = 5 << 19;
const MEMORY_BYTES: usize = 12 << 20;
/// Writers take turns with reads of this many rows, so that a phase ends when it should.
const ROUND: u64 = 500;
/// Rows that are written in a second: a load that does not saturate the CPU.
const WRITES_PER_SECOND: u64 = 20_000;
const SCANNED_ROWS: usize = 100;
const SECONDS_PER_MONTH: f64 = 730.0 * 3_600.0;

#[derive(Clone, Copy, Debug)]
enum Mix {
    Load,
    Points,
    Scans,
    Idle,
}

struct Phase {
    mix: Mix,
    seconds: u64,
}

/// A level's choice as it changed.
struct Turn {
    second: f64,
    level: usize,
    to: String,
}

fn phases(text: &str) -> Result<Vec<Phase>, Box<dyn Error>> {
    let phase = |text: &str| -> Result<Phase, Box<dyn Error>> {
        let (name, seconds) = text.split_once(':').ok_or("a phase is written NAME:SECONDS")?;
        let mix = match name {
            "load" => Mix::Load,
            "points" => Mix::Points,
            "scans" => Mix::Scans,
            "idle" => Mix::Idle,
            other => return Err(format!("no phase {other}: load, points, scans, idle").into()),
        };
        Ok(Phase { mix, seconds: seconds.parse()? })
    };
    text.split(',').map(phase).collect()
}

fn compression(prices: &str, month_seconds: Option<f64>) -> Result<String, Box<dyn Error>> {
    let preset = PRESETS.into_iter().find(|preset| preset.name() == prices);
    let preset: Preset = preset.ok_or("prices: balanced, throughput, endurance or space")?;
    Ok(match (month_seconds, preset) {
        (Some(seconds), _) => {
            format!("prices:{}", preset.prices().scaled(SECONDS_PER_MONTH / seconds, seconds))
        }
        (None, Preset::Balanced) => "auto".to_owned(),
        (None, _) => format!("auto:{}", preset.name()),
    })
}

struct Driver<'a> {
    family: &'a ColumnFamily,
    rows: &'a [Vec<u8>],
    random: Random,
    written: u64,
}

impl Driver<'_> {
    /// The first pass puts every row once, in an order that is scattered; later ones overwrite.
    fn load(&mut self, until: Instant, began: Instant) -> lithify::Result<()> {
        let mut count = 0;
        while Instant::now() < until {
            for _ in 0..ROUND {
                let number = self.written % self.rows.len() as u64;
                let shifted = (self.written / self.rows.len() as u64 * 7 + number) as usize;
                self.family.put(key(number), &self.rows[shifted % self.rows.len()])?;
                self.written += 1;
            }
            count += ROUND;
            let due = Duration::from_secs_f64(count as f64 / WRITES_PER_SECOND as f64);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
        }
        Ok(())
    }

    fn point(&mut self) -> lithify::Result<()> {
        let wanted = key(self.random.below(self.rows.len() as u64));
        self.family.get(wanted).map(|_| ())
    }

    fn scan(&mut self) -> lithify::Result<()> {
        let mut cursor = self.family.cursor(ScanRange::default())?;
        cursor.seek(key(self.random.below(self.rows.len() as u64)))?;
        for _ in 0..SCANNED_ROWS {
            if !cursor.valid() {
                break;
            }
            cursor.next()?;
        }
        Ok(())
    }

    /// One second of a phase.
    fn second(&mut self, mix: Mix) -> lithify::Result<()> {
        let began = Instant::now();
        let until = began + Duration::from_secs(1);
        match mix {
            Mix::Load => return self.load(until, began),
            Mix::Idle => std::thread::sleep(Duration::from_secs(1)),
            Mix::Points | Mix::Scans => {
                while Instant::now() < until {
                    match mix {
                        Mix::Points => self.point()?,
                        _ => self.scan()?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// What is chosen for each level.
fn choices(family: &ColumnFamily) -> Vec<(usize, String)> {
    family.explain().levels.into_iter().map(|level| (level.level, level.chosen)).collect()
}

fn run(arguments: &[String], directory: &Path) -> Result<(), Box<dyn Error>> {
    let [data, prices, plan, more @ ..] = arguments else {
        return Err("DATA PRICES PHASES [MONTH_SECONDS]".into());
    };
    let month_seconds = more.first().map(|text| text.parse()).transpose()?;
    let rows = data.parse::<DataSet>()?.rows(BYTES).map_err(|error| error.to_string())?;
    if rows.is_empty() {
        return Err(format!("{data} has no rows").into());
    }
    let options = CfOptions {
        table_bytes: TABLE_BYTES,
        base_level_bytes_max: BASE_LEVEL_BYTES,
        fanout: 4,
        compression: compression(prices, month_seconds)?.parse()?,
        ..CfOptions::default()
    };
    let db = Db::open(
        directory.join("db"),
        Options {
            memory_budget_bytes: MEMORY_BYTES,
            memtable_bytes: TABLE_BYTES as usize,
            ..Options::default()
        },
    )?;
    let family = db.column_family("rows", options)?;
    let mut driver = Driver { family: &family, rows: &rows, random: Random::new(1, 0), written: 0 };
    let meter = Meter::new(directory);
    let mut known = Vec::new();
    println!("phase    seconds  turns  first  last  CPU s  MB written  MB stored");
    for phase in phases(plan)? {
        let (began, before) = (Instant::now(), meter.read());
        let mut turns: Vec<Turn> = Vec::new();
        for _ in 0..phase.seconds {
            driver.second(phase.mix)?;
            let now = choices(&family);
            let second = began.elapsed().as_secs_f64();
            for (level, to) in now.iter().filter(|choice| !known.contains(*choice)) {
                turns.push(Turn { second, level: *level, to: to.clone() });
            }
            known = now;
        }
        let usage = meter.usage(&before, &meter.read());
        let at = |turn: Option<&Turn>| turn.map_or("-".to_owned(), |t| format!("{:.0}", t.second));
        let cpu_us = usage.process_cpu.user_us + usage.process_cpu.system_us;
        println!(
            "{:<8} {:>7}  {:>5}  {:>5}  {:>4}  {:>5.1}  {:>10.1}  {:>9.1}",
            format!("{:?}", phase.mix).to_lowercase(),
            phase.seconds,
            turns.len(),
            at(turns.first()),
            at(turns.last()),
            cpu_us as f64 / 1e6,
            usage.process_io.written_syscall_bytes as f64 / 1e6,
            meter.sizes().0.allocated_bytes as f64 / 1e6,
        );
        for turn in &turns {
            println!("  {:>5.0} s  L{}  {}", turn.second, turn.level, turn.to);
        }
    }
    println!("{}", family.explain());
    drop(family);
    Ok(db.close()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let directory = std::env::temp_dir().join(format!("change-of-mix-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let result = run(&arguments, &directory);
    std::fs::remove_dir_all(&directory)?;
    result
}
