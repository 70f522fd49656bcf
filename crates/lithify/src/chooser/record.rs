//! A decision as text: what it was made from, so that it can be made again.
//!
//! One fact a line: a word, then `name=value`. Lines that begin with `#` are comments.
//!
//! ```text
//! prices cpu=11,write=150,month=3300,read=5
//! blocks from=16384                     sizes are chosen; fixed=16384: they are not
//! sample level=all codec=lz4 block=8192 ratio=0.52 comp_ns=1.6 decomp_ns=0.4 specimens=40 error=0.01
//! sample level=6 codec=zstd-1 block=8192 ratio=0.36 specimens=12 error=0.01
//! had level=6 codec=zstd-1 block=8192   what the level has
//! choose level=6 lifetime_h=700 points_per_mib_h=0.2 scans_per_h=0 device=0 cpu_factor=1
//! choose level=5 lifetime_h=9 ratio_now=0.5 merged=4 pushed_onto=6 next_ns=7 next_ratio=0.36
//! ```
//!
//! The ratio of zstd-1 at a size has to be named, for all levels, before those of other codecs. `error` is
//! the share by which a ratio may be off, `comp_error` and `decomp_error` those of times; without them it is
//! `error` too. A level below 32 is one that a tree may have; others are refused.

use super::candidate::{Choice, METHODS, REFERENCE, Sizes};
use super::cost::{Conditions, Rewriting, Shape};
use super::decision::Chooser;
use super::estimate::Estimate;
use super::knowledge::Cell;
use super::prices::Prices;
use crate::base::{LEVEL_COUNT_MAX, Level};
use crate::{Error, Result};
use std::fmt::{self, Write as _};
use std::str::FromStr;

/// The knowledge of a chooser, and what it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// With its knowledge, prices, sizes and what levels have.
    pub chooser: Chooser,
    /// The levels to choose for.
    pub asked: Vec<(Level, Conditions)>,
}

impl Record {
    /// What a chooser knows, and the conditions it is asked under.
    pub fn of(chooser: &Chooser, asked: &[(Level, Conditions)]) -> Self {
        Record { chooser: chooser.clone(), asked: asked.to_vec() }
    }

    fn read_line(&mut self, word: &str, fields: &Fields<'_>) -> Result<()> {
        match word {
            "sample" => self.read_sample(fields),
            "had" => {
                let choice = fields.choice()?;
                self.chooser.set_standing(fields.level("level")?, choice);
                Ok(())
            }
            "choose" => {
                let usual = Conditions::default();
                let conditions = Conditions {
                    lifetime_h: fields.number("lifetime_h")?,
                    points_per_mib_h: match fields.get("points_per_mib_h") {
                        Some(points) => number(points)?,
                        None => fields.number_or("unseen_per_mib_h", 0.0)?,
                    },
                    scans_per_h: fields.number_or("scans_per_h", 0.0)?,
                    reads_known: fields.get("points_per_mib_h").is_some(),
                    device_share: fields.number_or("device", 0.0)?,
                    cpu_factor: fields.number_or("cpu_factor", usual.cpu_factor)?,
                    index_entry_bytes: fields.number_or("index", usual.index_entry_bytes)?,
                    table_raw_bytes: fields.number_or("table", usual.table_raw_bytes)?.max(1.0),
                    block_bytes_min: fields.number_or("block_min", usual.block_bytes_min)?,
                    shape: fields.shape()?,
                };
                self.asked.push((fields.level("level")?, conditions));
                Ok(())
            }
            _ => Err(Error::invalid("word of a record")
                .expected("prices, blocks, sample, had or choose", word)),
        }
    }

    fn read_sample(&mut self, fields: &Fields<'_>) -> Result<()> {
        let choice = fields.choice()?;
        let (size, ratio) = (choice.block_size_bytes, fields.number("ratio")?);
        let specimens = fields.number("specimens")? as u64;
        let error = fields.number_or("error", 0.01)?;
        let known = &mut self.chooser.knowledge;
        let Some(method) = METHODS.iter().position(|method| *method == choice.method) else {
            // A method of another version: its measurements are of no use here.
            return Ok(());
        };
        if fields.get("level").is_some_and(|level| level != "all") {
            let level = fields.level("level")?;
            if method == REFERENCE {
                let estimate = Estimate::recorded(ratio, error * ratio, specimens);
                known.level_ratio.insert((level, size), estimate);
            }
            return Ok(());
        }
        if method == REFERENCE {
            let estimate = Estimate::recorded(ratio, error * ratio, specimens);
            known.shared_ratio.insert(size, estimate);
        }
        let Some(reference) = known.shared_ratio.get(&size).and_then(Estimate::mean) else {
            return Err(Error::invalid(format!("no ratio of zstd-1 at {size} bytes came before")));
        };
        let time = |name: &str, name_of_error: &str| -> Result<Estimate> {
            let mean = fields.number(name)?;
            // Records of older versions have one error for all.
            let error = fields.number_or(name_of_error, error)?;
            Ok(Estimate::recorded(mean, error * mean, specimens))
        };
        let quotient = (ratio / reference).max(1e-9).ln();
        let quotient_error = if method == REFERENCE { 0.0 } else { error };
        let log_quotient = Estimate::recorded(quotient, quotient_error, specimens);
        self.chooser.has_dictionary |= choice.method.has_dictionary;
        let known = &mut self.chooser.knowledge;
        let (compress_ns, decompress_ns) =
            (time("comp_ns", "comp_error")?, time("decomp_ns", "decomp_error")?);
        known.cells.insert((method, size), Cell { log_quotient, compress_ns, decompress_ns });
        Ok(())
    }
}

/// The pairs of a line.
struct Fields<'a>(Vec<(&'a str, &'a str)>);

fn number(text: &str) -> Result<f64> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| Error::invalid("number of a record").expected("0 or more", text))
}

impl<'a> Fields<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        let pair = |pair: &'a str| {
            pair.split_once('=')
                .ok_or_else(|| Error::invalid("field of a record").expected("name=value", pair))
        };
        text.split_ascii_whitespace().map(pair).collect::<Result<_>>().map(Fields)
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn number(&self, name: &str) -> Result<f64> {
        match self.get(name) {
            Some(text) => number(text),
            None => Err(Error::invalid(format!("the line lacks {name}="))),
        }
    }

    fn number_or(&self, name: &str, otherwise: f64) -> Result<f64> {
        self.get(name).map_or(Ok(otherwise), number)
    }

    /// A level that a tree may have: tables of its number are made.
    fn level(&self, name: &str) -> Result<Level> {
        let level = self.number(name)?;
        let is_one = level < LEVEL_COUNT_MAX as f64;
        is_one.then_some(level as Level).ok_or_else(|| {
            Error::invalid("level of a record")
                .expected(format_args!("below {LEVEL_COUNT_MAX}"), level)
        })
    }

    fn shape(&self) -> Result<Shape> {
        Ok(Shape {
            ratio_now: self.number_or("ratio_now", 0.0)?,
            merged: self.number_or("merged", 0.0)?,
            pushed_onto: self.number_or("pushed_onto", 0.0)?,
            next: Rewriting {
                cpu_ns: self.number_or("next_ns", 0.0)?,
                stored_bytes: self.number_or("next_ratio", 0.0)?,
            },
            through: self.number_or("through", 0.0)?,
        })
    }

    fn choice(&self) -> Result<Choice> {
        let text = self.get("codec").unwrap_or_default();
        let (codec, dictionary) = match text.strip_suffix("+dictionary") {
            Some(codec) => (codec, true),
            None => (text, false),
        };
        let method =
            super::candidate::Method { compression: codec.parse()?, has_dictionary: dictionary };
        Ok(Choice { method, block_size_bytes: self.number("block")? as usize })
    }
}

impl FromStr for Record {
    type Err = Error;

    /// Reads what `Display` writes. Every failure is [`crate::ErrorKind::InvalidArgument`] and names
    /// the line.
    fn from_str(text: &str) -> Result<Self> {
        let sizes = Sizes::Chosen { start_bytes: 16 << 10 };
        let mut record =
            Record { chooser: Chooser::new(Prices::BALANCED, sizes), asked: Vec::new() };
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let read = match word {
                "" => Ok(()),
                _ if word.starts_with('#') => Ok(()),
                "prices" => rest.trim().parse().map(|prices| record.chooser.prices = prices),
                "blocks" => read_sizes(rest).map(|sizes| record.chooser.sizes = sizes),
                _ => Fields::parse(rest).and_then(|fields| record.read_line(word, &fields)),
            };
            read.map_err(|error| {
                Error::invalid(format!("line {} of a decision's record", index + 1)).because(error)
            })?;
        }
        Ok(record)
    }
}

fn read_sizes(text: &str) -> Result<Sizes> {
    match text.trim().split_once('=') {
        Some(("fixed", size)) => Ok(Sizes::Fixed(number(size)? as usize)),
        Some(("from", size)) => Ok(Sizes::Chosen { start_bytes: number(size)? as usize }),
        _ => Err(Error::invalid("sizes of blocks").expected("fixed=bytes or from=bytes", text)),
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chooser = &self.chooser;
        writeln!(f, "prices {}", chooser.prices)?;
        match chooser.sizes {
            Sizes::Fixed(size) => writeln!(f, "blocks fixed={size}")?,
            Sizes::Chosen { start_bytes } => writeln!(f, "blocks from={start_bytes}")?,
        }
        write_samples(chooser, f)?;
        for (level, _) in &self.asked {
            if let Some(choice) = chooser.standing(*level) {
                let (method, size) = (choice.method, choice.block_size_bytes);
                writeln!(f, "had level={level} codec={method} block={size}")?;
            }
        }
        for (level, conditions) in &self.asked {
            let c = conditions;
            write!(f, "choose level={level} lifetime_h={}", short(c.lifetime_h))?;
            if c.reads_known {
                write!(f, " points_per_mib_h={}", short(c.points_per_mib_h))?;
                write!(
                    f,
                    " scans_per_h={} device={}",
                    short(c.scans_per_h),
                    short(c.device_share)
                )?;
            }
            if !c.reads_known && c.points_per_mib_h > 0.0 {
                write!(f, " unseen_per_mib_h={}", short(c.points_per_mib_h))?;
            }
            write!(f, " cpu_factor={}", short(c.cpu_factor))?;
            write!(f, " index={} table={}", short(c.index_entry_bytes), c.table_raw_bytes)?;
            write!(f, " block_min={}", short(c.block_bytes_min))?;
            write_shape(&c.shape, f)?;
            writeln!(f)?;
        }
        Ok(())
    }
}

fn write_shape(shape: &Shape, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if *shape == Shape::default() {
        return Ok(());
    }
    write!(f, " ratio_now={} merged={}", short(shape.ratio_now), short(shape.merged))?;
    write!(f, " pushed_onto={}", short(shape.pushed_onto))?;
    let next = shape.next;
    write!(f, " next_ns={} next_ratio={}", short(next.cpu_ns), short(next.stored_bytes))?;
    write!(f, " through={}", short(shape.through))
}

fn write_samples(chooser: &Chooser, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let known = &chooser.knowledge;
    // By method, so the reference comes before all others.
    for ((method, size), cell) in &known.cells {
        let (Some(method), Some(shared)) = (METHODS.get(*method), known.shared_ratio.get(size))
        else {
            continue;
        };
        let (Some(shared_ratio), Some(quotient), Some(compress_ns), Some(decompress_ns)) = (
            shared.mean(),
            cell.log_quotient.mean(),
            cell.compress_ns.mean(),
            cell.decompress_ns.mean(),
        ) else {
            continue;
        };
        let is_reference = *method == METHODS[REFERENCE];
        let error = match is_reference {
            true => shared.standard_error() / shared_ratio,
            false => cell.log_quotient.standard_error(),
        };
        write!(f, "sample level=all codec={method} block={size}")?;
        write!(f, " ratio={}", short(shared_ratio * quotient.exp()))?;
        write!(f, " comp_ns={} decomp_ns={}", short(compress_ns), short(decompress_ns))?;
        let specimens = cell.log_quotient.samples();
        write!(f, " specimens={specimens} error={}", short(error.min(1.0)))?;
        let share =
            |of: &Estimate, mean: f64| short((of.standard_error() / mean.max(1e-9)).min(1.0));
        write!(f, " comp_error={}", share(&cell.compress_ns, compress_ns))?;
        writeln!(f, " decomp_error={}", share(&cell.decompress_ns, decompress_ns))?;
    }
    for ((level, size), estimate) in &known.level_ratio {
        let Some(ratio) = estimate.mean() else { continue };
        let error = (estimate.standard_error() / ratio).min(1.0);
        write!(f, "sample level={level} codec={} block={size}", METHODS[REFERENCE])?;
        write!(f, " ratio={} specimens={}", short(ratio), estimate.samples())?;
        writeln!(f, " error={}", short(error))?;
    }
    Ok(())
}

/// A number with four significant digits.
pub(super) fn short(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return "0".to_owned();
    }
    let digits = (3 - number.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(text, "{number:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
