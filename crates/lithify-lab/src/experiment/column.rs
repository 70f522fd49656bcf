//! The figures that are published, under the names and in the order of the publications.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The graph is written.
    Load,
    /// The mix of requests runs.
    Query,
}

impl Phase {
    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Load => "load",
            Phase::Query => "query",
        }
    }

    /// The columns of its table, in the published order.
    pub fn columns(self) -> &'static [Column] {
        use Column::*;
        match self {
            Phase::Load => {
                &[Ips, ReadsPerInsert, ReadKbPerInsert, WriteKbPerInsert, McpuPerInsert, Size, Rss]
            }
            Phase::Query => &[
                Tps,
                ReadsPerTransaction,
                ReadKbPerTransaction,
                WriteKbPerTransaction,
                McpuPerTransaction,
                Size,
                Rss,
                UpdateNode,
                GetNode,
                UpdateLink,
                GetLinksList,
            ],
        }
    }
}

impl Phase {
    /// The column of its rate.
    pub fn rate(self) -> Column {
        match self {
            Phase::Load => Column::Ips,
            Phase::Query => Column::Tps,
        }
    }

    /// Whether figures of `column` are published of it: those of its table, and context switches.
    pub fn publishes(self, column: Column) -> bool {
        let switches = match self {
            Phase::Load => Column::SwitchesPerInsert,
            Phase::Query => Column::SwitchesPerTransaction,
        };
        column == switches || self.columns().contains(&column)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A published figure. Load columns are per insert (a link), query columns per transaction (an
/// operation).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Column {
    /// Links inserted per second.
    #[serde(rename = "ips")]
    Ips,
    /// Operations per second.
    #[serde(rename = "tps")]
    Tps,
    /// Device reads per insert.
    #[serde(rename = "r/i")]
    ReadsPerInsert,
    /// Device KB read per insert.
    #[serde(rename = "rKB/i")]
    ReadKbPerInsert,
    /// Device KB written per insert.
    #[serde(rename = "wKB/i")]
    WriteKbPerInsert,
    /// Busy percent of the whole machine, divided by inserts per second, times 10^6.
    #[serde(rename = "Mcpu/i")]
    McpuPerInsert,
    /// Device reads per transaction.
    #[serde(rename = "r/t")]
    ReadsPerTransaction,
    /// Device KB read per transaction.
    #[serde(rename = "rKB/t")]
    ReadKbPerTransaction,
    /// Device KB written per transaction.
    #[serde(rename = "wKB/t")]
    WriteKbPerTransaction,
    /// Busy percent of the whole machine, divided by transactions per second, times 10^6.
    #[serde(rename = "Mcpu/t")]
    McpuPerTransaction,
    /// Context switches of the whole machine per insert.
    #[serde(rename = "cs/i")]
    SwitchesPerInsert,
    /// Context switches of the whole machine per transaction.
    #[serde(rename = "cs/t")]
    SwitchesPerTransaction,
    /// Allocated bytes of the data directory at the end of the phase, GB (10^9).
    #[serde(rename = "size")]
    Size,
    /// Resident memory at the end of the phase, GB (10^9).
    #[serde(rename = "rss")]
    Rss,
    /// 99th percentile of UPDATE_NODE, ms.
    #[serde(rename = "un")]
    UpdateNode,
    /// 99th percentile of GET_NODE, ms.
    #[serde(rename = "gn")]
    GetNode,
    /// 99th percentile of UPDATE_LINK, ms.
    #[serde(rename = "ul")]
    UpdateLink,
    /// 99th percentile of GET_LINKS_LIST, ms.
    #[serde(rename = "gl")]
    GetLinksList,
}

impl Column {
    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Column::Ips => "ips",
            Column::Tps => "tps",
            Column::ReadsPerInsert => "r/i",
            Column::ReadKbPerInsert => "rKB/i",
            Column::WriteKbPerInsert => "wKB/i",
            Column::McpuPerInsert => "Mcpu/i",
            Column::ReadsPerTransaction => "r/t",
            Column::ReadKbPerTransaction => "rKB/t",
            Column::WriteKbPerTransaction => "wKB/t",
            Column::McpuPerTransaction => "Mcpu/t",
            Column::SwitchesPerInsert => "cs/i",
            Column::SwitchesPerTransaction => "cs/t",
            Column::Size => "size",
            Column::Rss => "rss",
            Column::UpdateNode => "un",
            Column::GetNode => "gn",
            Column::UpdateLink => "ul",
            Column::GetLinksList => "gl",
        }
    }

    /// What it is, in a word: for tables of ratios, which have no units. The phase says whether an
    /// operation is an insert or a transaction.
    pub fn word(self) -> &'static str {
        match self {
            Column::Ips | Column::Tps => "ops/s",
            Column::ReadsPerInsert | Column::ReadsPerTransaction => "reads",
            Column::ReadKbPerInsert | Column::ReadKbPerTransaction => "KB read",
            Column::WriteKbPerInsert | Column::WriteKbPerTransaction => "KB written",
            Column::McpuPerInsert | Column::McpuPerTransaction => "all CPU",
            Column::SwitchesPerInsert | Column::SwitchesPerTransaction => "switches",
            Column::Size => "size",
            Column::Rss => "memory",
            Column::UpdateNode => "p99 UPDATE_NODE",
            Column::GetNode => "p99 GET_NODE",
            Column::UpdateLink => "p99 UPDATE_LINK",
            Column::GetLinksList => "p99 GET_LINKS_LIST",
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
