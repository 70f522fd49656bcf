//! What resources are worth, and the names of usual answers.

use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A price in millionths of a currency unit, exact to a thousandth of that.
///
/// ```
/// use lithify::Price;
/// let price: Price = "0.5".parse()?;
/// assert_eq!((price.value(), price.to_string()), (0.5, "0.5".to_string()));
/// # Ok::<(), lithify::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Price(u64);

/// Ten thousand units for a second of CPU are a price nobody asks for.
const PRICE_MAX: u64 = 10_000_000_000_000_000;

impl Price {
    /// So many millionths.
    pub const fn of(millionths: u64) -> Self {
        Price(millionths * 1_000)
    }

    /// The price in millionths.
    pub fn value(self) -> f64 {
        self.0 as f64 / 1_000.0
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

impl FromStr for Price {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let thousandths = number.map(|number| (number * 1_000.0).round());
        match thousandths.filter(|price| (0.0..=PRICE_MAX as f64).contains(price)) {
            Some(price) => Ok(Price(price as u64)),
            None => Err(Error::invalid("price").expected("a number from 0 to 1e13", text)),
        }
    }
}

/// What resources are worth, in millionths of any currency (the presets: of a dollar).
///
/// The text form names what it sets: `cpu=11,write=150,month=3300,read=5`. The four have to be
/// named; `memory`, `call_us` and `horizon_s` have a default.
///
/// ```
/// use lithify::Prices;
/// let prices: Prices = "cpu=11,write=150,month=80000,read=1900".parse()?;
/// assert_eq!(prices.gb_month.value(), 80_000.0);
/// assert!("cpu=11".parse::<Prices>().is_err());
/// # Ok::<(), lithify::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prices {
    /// `cpu`: of a second of CPU.
    pub cpu_second: Price,
    /// `write`: of a GB (10^9 bytes) written.
    pub gb_written: Price,
    /// `month`: of a GB stored for a month.
    pub gb_month: Price,
    /// `read`: of a million reads of the device.
    pub million_reads: Price,
    /// `memory`: of a GB of memory for a month.
    pub memory_gb_month: Price,
    /// `call_us`: no call of a codec is to take longer, in microseconds: it is what a step of
    /// background work cannot be cut into.
    pub call_us_max: u32,
    /// `horizon_s`: no byte is expected to live longer, in seconds. Default a month: what is stored
    /// for longer is seldom left to itself.
    pub horizon_s: u32,
}

impl Prices {
    /// A CPU of a cloud's list price, flash of one's own (0.20 a GB, 1 drive write a day) over five
    /// years, memory at 10 a GB likewise.
    pub const BALANCED: Prices = Prices {
        cpu_second: Price::of(11),
        gb_written: Price::of(150),
        gb_month: Price::of(3_300),
        million_reads: Price::of(5),
        memory_gb_month: Price::of(170_000),
        call_us_max: 1_000,
        horizon_s: 730 * 3_600,
    };

    /// No byte is expected to live longer, in hours.
    pub(crate) fn horizon_h(&self) -> f64 {
        f64::from(self.horizon_s) / 3_600.0
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let price = match name {
            "cpu" => &mut self.cpu_second,
            "write" => &mut self.gb_written,
            "month" => &mut self.gb_month,
            "read" => &mut self.million_reads,
            "memory" => &mut self.memory_gb_month,
            "call_us" => return set_limit(&mut self.call_us_max, name, value),
            "horizon_s" => return set_limit(&mut self.horizon_s, name, value),
            _ => {
                let names = "cpu, write, month, read, memory, call_us or horizon_s";
                return Err(Error::invalid("name of a price").expected(names, name));
            }
        };
        *price = value.parse()?;
        Ok(())
    }
}

fn set_limit(limit: &mut u32, name: &str, value: &str) -> Result<()> {
    *limit = value.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| {
        Error::invalid(format!("the price {name}")).expected("a whole number from 1", value)
    })?;
    Ok(())
}

impl fmt::Display for Prices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu={},write={}", self.cpu_second, self.gb_written)?;
        write!(f, ",month={},read={}", self.gb_month, self.million_reads)?;
        write!(f, ",memory={},call_us={}", self.memory_gb_month, self.call_us_max)?;
        write!(f, ",horizon_s={}", self.horizon_s)
    }
}

impl FromStr for Prices {
    type Err = Error;

    /// Parses what `Display` writes, in any order. Every failure is
    /// [`crate::ErrorKind::InvalidArgument`].
    fn from_str(text: &str) -> Result<Self> {
        let mut prices = Prices::BALANCED;
        let mut named: Vec<&str> = Vec::new();
        for pair in text.split(',').map(str::trim) {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(Error::invalid("price").expected("name=number", pair));
            };
            if named.contains(&name) {
                return Err(Error::invalid(format!("the price {name} is named twice")));
            }
            prices.set(name, value)?;
            named.push(name);
        }
        let all = [
            prices.cpu_second,
            prices.gb_written,
            prices.gb_month,
            prices.million_reads,
            prices.memory_gb_month,
        ];
        if all.iter().all(|price| *price == Price::default()) {
            return Err(Error::invalid("prices").expected("one that is not 0", text));
        }
        match ["cpu", "write", "month", "read"].iter().find(|name| !named.contains(name)) {
            None => Ok(prices),
            Some(missing) => Err(Error::invalid("prices")
                .expected("cpu, write, month and read", format_args!("no {missing} in '{text}'"))),
        }
    }
}

/// What a user wants of compression: a name for usual prices, or prices.
///
/// ```
/// use lithify::Objective;
/// assert_eq!("auto:space".parse::<Objective>()?, Objective::Space);
/// assert_eq!(Objective::Balanced.to_string(), "auto");
/// let own: Objective = "prices:cpu=11,write=150,month=3300,read=5".parse()?;
/// assert_eq!(own.prices(), Objective::Balanced.prices());
/// # Ok::<(), lithify::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Objective {
    /// `auto`: [`Prices::BALANCED`].
    Balanced,
    /// `auto:throughput`: balanced, CPU at ten times the price.
    Throughput,
    /// `auto:endurance`: balanced, writes at ten times the price.
    Endurance,
    /// `auto:space`: storage, reads and memory as a cloud rents them.
    Space,
    /// `prices:…`: of the user.
    Prices(Prices),
}

impl Objective {
    /// The objectives that have names.
    pub const NAMED: [(Objective, &'static str); 4] = [
        (Objective::Balanced, "auto"),
        (Objective::Throughput, "auto:throughput"),
        (Objective::Endurance, "auto:endurance"),
        (Objective::Space, "auto:space"),
    ];

    /// What it stands for.
    pub fn prices(self) -> Prices {
        let balanced = Prices::BALANCED;
        match self {
            Objective::Balanced => balanced,
            Objective::Throughput => Prices { cpu_second: Price::of(110), ..balanced },
            Objective::Endurance => Prices { gb_written: Price::of(1_500), ..balanced },
            Objective::Space => Prices {
                gb_month: Price::of(80_000),
                million_reads: Price::of(1_900),
                memory_gb_month: Price::of(2_300_000),
                ..balanced
            },
            Objective::Prices(prices) => prices,
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, Objective::NAMED.iter().find(|(named, _)| named == self)) {
            (_, Some((_, name))) => f.write_str(name),
            (Objective::Prices(prices), None) => write!(f, "prices:{prices}"),
            // Every other one has a name.
            (_, None) => Ok(()),
        }
    }
}

impl FromStr for Objective {
    type Err = Error;

    /// Parses what `Display` writes, and `auto:balanced` for `auto`. Every failure is
    /// [`crate::ErrorKind::InvalidArgument`].
    fn from_str(text: &str) -> Result<Self> {
        if let Some(prices) = text.strip_prefix("prices:") {
            return prices.parse().map(Objective::Prices);
        }
        // Reports name the prices of `auto` so.
        let text = if text == "auto:balanced" { "auto" } else { text };
        let named = Objective::NAMED.iter().find(|(_, name)| *name == text);
        named.map(|(objective, _)| *objective).ok_or_else(|| {
            let names = "auto, auto:throughput, auto:endurance, auto:space or prices:cpu=…";
            Error::invalid("objective of compression").expected(names, text)
        })
    }
}
