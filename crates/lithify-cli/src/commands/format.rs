//! `--format`, and `--json` as its short name: the same two flags wherever something is printed as a table.
//!
//! Each command names the forms that it has. Another one is refused by the parser, which lists them.

use clap::{Args, ValueEnum};

/// Forms of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Text for people
    Table,
    /// JSON with every figure
    Json,
    /// A header, and a line for each row of the table
    Csv,
}

/// The form that is asked for, if any.
#[derive(Debug, Args)]
pub struct FormatArguments<F: ValueEnum + Send + Sync + 'static> {
    /// As what
    #[arg(long, value_enum)]
    format: Option<F>,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl<F: ValueEnum + Send + Sync + 'static> FormatArguments<F> {
    /// The form; `None` where the command chooses.
    pub fn format(&self) -> Option<F> {
        match self.json {
            // Every command with these flags has this form.
            true => F::from_str("json", false).ok(),
            false => self.format.clone(),
        }
    }
}

impl FormatArguments<ReportFormat> {
    /// The form of a report: a table where none is asked for.
    pub fn of_report(&self) -> ReportFormat {
        self.format().unwrap_or(ReportFormat::Table)
    }
}
