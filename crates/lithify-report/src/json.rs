//! The report as data.

use crate::model::Report;

/// The report as JSON. Numbers have all of their digits.
///
/// # Errors
///
/// When a plot has a number that JSON cannot hold.
pub fn render(report: &Report) -> serde_json::Result<String> {
    serde_json::to_string_pretty(report)
}

/// The report that [`render`] wrote.
///
/// # Errors
///
/// When the text is no report.
pub fn read(text: &str) -> serde_json::Result<Report> {
    serde_json::from_str(text)
}
