//! Writes metrics as text for Prometheus (format 0.0.4) or OpenMetrics (1.0.0).
//!
//! It knows of no figure: it is given a metric with its samples, and takes care of names, base
//! units, escapes, and that the lines about a metric are there once, before its samples, and only
//! if it has some.

use std::fmt::Write;

/// Which text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// `text/plain; version=0.0.4`
    Prometheus,
    /// `application/openmetrics-text; version=1.0.0`
    OpenMetrics,
}

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows.
    Counter,
    /// It is what it is.
    Gauge,
    /// Its labels are what it says; the value is 1.
    Info,
}

/// Labels and value of one sample, the latter in the unit of the list.
pub(super) type Sample<'a> = (Vec<(&'static str, &'a str)>, f64);

/// A text in the making.
pub(super) struct Exposition {
    format: Format,
    /// Labels of every sample, written out.
    common: String,
    text: String,
}

impl Exposition {
    pub(super) fn new(format: Format, common: &[(&str, &str)]) -> Self {
        let mut labels = String::new();
        common.iter().for_each(|(name, value)| push_label(&mut labels, name, value));
        Exposition { format, common: labels, text: String::new() }
    }

    /// A metric by its name and unit in the list of names; nothing if it has no samples.
    pub(super) fn metric<'a>(
        &mut self,
        kind: Kind,
        (name, unit, help): (&str, &str, &str),
        samples: impl IntoIterator<Item = Sample<'a>>,
    ) {
        let (family, unit, scale) = in_base_units(name, unit);
        let sample_name = match kind {
            Kind::Counter => format!("{family}_total"),
            Kind::Gauge => family.clone(),
            Kind::Info => format!("{family}_info"),
        };
        let mut has_head = false;
        for (labels, value) in samples {
            if !std::mem::replace(&mut has_head, true) {
                self.head(kind, (&family, &sample_name), unit, help);
            }
            let mut written = self.common.clone();
            labels.iter().for_each(|(name, value)| push_label(&mut written, name, value));
            // Writing to a string cannot fail.
            let _ = match written.is_empty() {
                true => writeln!(self.text, "{sample_name} {}", value / scale),
                false => writeln!(self.text, "{sample_name}{{{written}}} {}", value / scale),
            };
        }
    }

    fn head(
        &mut self,
        kind: Kind,
        (family, sample_name): (&str, &str),
        unit: Option<&str>,
        help: &str,
    ) {
        let (name, kind) = match (self.format, kind) {
            (Format::Prometheus, Kind::Counter) => (sample_name, "counter"),
            (Format::Prometheus, Kind::Gauge | Kind::Info) => (sample_name, "gauge"),
            (Format::OpenMetrics, Kind::Counter) => (family, "counter"),
            (Format::OpenMetrics, Kind::Gauge) => (family, "gauge"),
            (Format::OpenMetrics, Kind::Info) => (family, "info"),
        };
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if let (Format::OpenMetrics, Some(unit)) = (self.format, unit) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let mut escaped = help.replace('\\', "\\\\").replace('\n', "\\n");
        if self.format == Format::OpenMetrics {
            escaped = escaped.replace('"', "\\\"");
        }
        let _ = writeln!(self.text, "# HELP {name} {escaped}");
    }

    /// The text.
    pub(super) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// The name with prefix and base unit, that unit, and how many of the list's make one of it.
fn in_base_units(name: &str, unit: &str) -> (String, Option<&'static str>, f64) {
    let name = name.replace('-', "_");
    let (stem, unit, scale) = match unit {
        "us" => (name.strip_suffix("_us").unwrap_or(&name), Some("seconds"), 1e6),
        "ns" => (name.strip_suffix("_ns").unwrap_or(&name), Some("seconds"), 1e9),
        "bytes" => (name.strip_suffix("_bytes").unwrap_or(&name), Some("bytes"), 1.0),
        _ => (&*name, None, 1.0),
    };
    match unit {
        Some(unit) => (format!("lithify_{stem}_{unit}"), Some(unit), scale),
        None => (format!("lithify_{stem}"), None, scale),
    }
}

fn push_label(labels: &mut String, name: &str, value: &str) {
    let separator = if labels.is_empty() { "" } else { "," };
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let _ = write!(labels, "{separator}{name}=\"{escaped}\"");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_units_and_escapes_are_those_of_the_formats() {
        let write = |format| {
            let mut text = Exposition::new(format, &[("db", "a\"b\\c\nd")]);
            let help = "One \\ two\n\"three\".";
            let samples = [(vec![("part", "x")], 1.5e9), (vec![], 0.0)];
            text.metric(Kind::Counter, ("decompress-cpu", "ns", help), samples);
            text.metric(Kind::Gauge, ("uptime_us", "us", "Up."), [(vec![], 2e6)]);
            text.metric(Kind::Gauge, ("used_bytes", "bytes", "Used."), []);
            text.metric(Kind::Info, ("build", "", "Built."), [(vec![], 1.0)]);
            text.finish()
        };
        let db = r#"db="a\"b\\c\nd""#;
        let prometheus = format!(
            "# TYPE lithify_decompress_cpu_seconds_total counter\n\
             # HELP lithify_decompress_cpu_seconds_total One \\\\ two\\n\"three\".\n\
             lithify_decompress_cpu_seconds_total{{{db},part=\"x\"}} 1.5\n\
             lithify_decompress_cpu_seconds_total{{{db}}} 0\n\
             # TYPE lithify_uptime_seconds gauge\n# HELP lithify_uptime_seconds Up.\n\
             lithify_uptime_seconds{{{db}}} 2\n\
             # TYPE lithify_build_info gauge\n# HELP lithify_build_info Built.\n\
             lithify_build_info{{{db}}} 1\n"
        );
        assert_eq!(write(Format::Prometheus), prometheus);
        let open_metrics = write(Format::OpenMetrics);
        for line in [
            "# TYPE lithify_decompress_cpu_seconds counter\n# UNIT lithify_decompress_cpu_seconds seconds\n",
            "# HELP lithify_decompress_cpu_seconds One \\\\ two\\n\\\"three\\\".\n",
            "# TYPE lithify_build info\n# HELP lithify_build Built.\nlithify_build_info{",
        ] {
            assert!(open_metrics.contains(line), "{line}{open_metrics}");
        }
        assert!(open_metrics.ends_with("# EOF\n"));
    }
}
