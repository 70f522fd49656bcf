//! What was published: tables, rates by the number of clients, and the ratios that ours are held
//! against.

use serde::{Deserialize, Serialize};

use super::{Claim, Column, Experiment, Phase};

/// The published figures of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    /// Load or query.
    pub phase: Phase,
    /// Of scales that claim this; of all when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claim>,
    /// What the values of a row are.
    pub columns: Vec<Column>,
    /// One row per published arm.
    pub rows: Vec<PublishedRow>,
}

/// One row of a published table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRow {
    /// The arm of this experiment that stands for it.
    pub arm: String,
    /// One value per column.
    pub values: Vec<f64>,
}

/// A published ratio between two arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    /// Load or query.
    pub phase: Phase,
    /// Of scales that claim this; of all when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claim>,
    /// Of which figure.
    pub column: Column,
    /// With how many clients; with the most when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u64>,
    /// Above the line.
    pub arm: String,
    /// Below the line.
    pub base: String,
    /// The published ratio.
    pub published: f64,
    /// What it says, in words.
    pub claim: String,
}

/// Published rates by the number of clients: inserts or operations per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSeries {
    /// Load or query.
    pub phase: Phase,
    /// Of scales that claim this; of all when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claim>,
    /// The numbers of clients, ascending.
    pub clients: Vec<u64>,
    /// One row per published arm: a rate per number of clients.
    pub rows: Vec<PublishedRow>,
}

/// Published figures by turnover.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedAgeing {
    /// The rate of the queries, or the size.
    pub column: Column,
    /// Of scales that claim this; of all when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claim>,
    /// Write operations per loaded node, ascending.
    pub turnovers: Vec<f64>,
    /// One row per published arm: a figure per turnover.
    pub rows: Vec<PublishedRow>,
}

impl PublishedAgeing {
    /// The last figure of an arm over its first one.
    pub fn late_to_early(&self, arm: &str) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.arm == arm)?;
        Some(row.values.last()? / row.values.first()?)
    }
}

/// A published ratio between the times that two databases took to be dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedDrop {
    /// Above the line.
    pub arm: String,
    /// Below the line.
    pub base: String,
    /// The published ratio.
    pub published: f64,
    /// What it says, in words.
    pub claim: String,
}

impl PublishedSeries {
    /// The published rates of an arm with the numbers of clients.
    pub fn of_arm(&self, arm: &str) -> Option<Vec<(u64, f64)>> {
        let row = self.rows.iter().find(|row| row.arm == arm)?;
        Some(self.clients.iter().copied().zip(row.values.iter().copied()).collect())
    }
}

/// True when what was published under one claim stands beside what is measured under another.
pub(crate) fn applies(published: Option<Claim>, measured: Option<Claim>) -> bool {
    published.is_none() || published == measured
}

impl Experiment {
    /// The published value of `arm` in a phase and column, at scales that claim `claims`.
    pub fn published_value(
        &self,
        phase: Phase,
        column: Column,
        arm: &str,
        claims: Option<Claim>,
    ) -> Option<f64> {
        self.published_tables(phase, claims).find_map(|table| {
            let index = table.columns.iter().position(|candidate| *candidate == column)?;
            let row = table.rows.iter().find(|row| row.arm == arm)?;
            row.values.get(index).copied()
        })
    }

    /// The published tables of a phase that stand beside figures of scales that claim `claims`.
    pub fn published_tables(
        &self,
        phase: Phase,
        claims: Option<Claim>,
    ) -> impl Iterator<Item = &PublishedTable> {
        let of_phase = self.published.iter().filter(move |table| table.phase == phase);
        of_phase.filter(move |table| applies(table.claims, claims))
    }

    /// The published rates of an arm in a phase by the number of clients.
    pub fn published_series(
        &self,
        phase: Phase,
        arm: &str,
        claims: Option<Claim>,
    ) -> Option<Vec<(u64, f64)>> {
        let of_phase = self.series.iter().filter(|series| series.phase == phase);
        of_phase
            .filter(|series| applies(series.claims, claims))
            .find_map(|series| series.of_arm(arm))
    }

    /// The published value that a headline compares, for one of its arms.
    pub(super) fn headline_value(&self, headline: &Headline, arm: &str) -> Option<f64> {
        let Headline { phase, column, claims, .. } = *headline;
        let Some(clients) = headline.clients else {
            return self.published_value(phase, column, arm, claims);
        };
        if column != phase.rate() {
            return None;
        }
        let series = self.published_series(phase, arm, claims)?;
        series.into_iter().find(|(count, _)| *count == clients).map(|(_, rate)| rate)
    }
}
