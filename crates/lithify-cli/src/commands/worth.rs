//! What resources are worth to the user: `--goal` and `--price`.

use clap::{Args, ValueEnum};
use lithify::{Objective, Prices};

use crate::fault::Fault;

/// Prices, wherever something is priced.
#[derive(Debug, Args)]
pub struct WorthArguments {
    /// What resources are worth to you
    #[arg(long, value_enum, default_value_t = Goal::Balanced)]
    goal: Goal,
    /// Your prices, in millionths of any currency; the others stay the goal's
    ///
    /// cpu: a second. write: a GB written. month: a GB stored for a month. read: a million reads.
    /// memory: a GB for a month.
    #[arg(long, value_name = "NAME=N,…")]
    price: Option<String>,
}

/// Usual prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Goal {
    /// CPU as a cloud rents it, a disk that you own
    Balanced,
    /// CPU is ten times as dear
    Throughput,
    /// Writes are ten times as dear
    Endurance,
    /// Storage as a cloud rents it
    Space,
}

impl Goal {
    fn prices(self) -> Prices {
        let objective = match self {
            Goal::Balanced => Objective::Balanced,
            Goal::Throughput => Objective::Throughput,
            Goal::Endurance => Objective::Endurance,
            Goal::Space => Objective::Space,
        };
        objective.prices()
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl WorthArguments {
    /// The goal's prices, with those that the user names in place of them.
    pub fn prices(&self) -> Result<Prices, Fault> {
        let goal = self.goal;
        let Some(named) = &self.price else { return Ok(goal.prices()) };
        let names: Vec<&str> = named.split(',').filter_map(|pair| pair.split('=').next()).collect();
        let preset = goal.prices().to_string();
        let kept = preset.split(',').filter(|pair| {
            pair.split('=')
                .next()
                .is_none_or(|name| !names.iter().any(|named| named.trim() == name))
        });
        let all: Vec<&str> = kept.chain([named.as_str()]).collect();
        let prices: Prices = all.join(",").parse().map_err(Fault::of_engine)?;
        let asked = [prices.cpu_second, prices.gb_written, prices.gb_month];
        match asked.iter().all(|price| price.value() == 0.0) {
            true => Err(Fault::usage(
                "--price: with CPU, writes and storage free all settings cost the same".to_owned(),
            )),
            false => Ok(prices),
        }
    }

    /// As the prices are called.
    pub fn name(&self) -> String {
        match self.price {
            Some(_) => "your prices".to_owned(),
            None => self.goal.name(),
        }
    }
}
