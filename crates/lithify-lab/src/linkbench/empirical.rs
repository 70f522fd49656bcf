//! The measured distributions of a production graph, carried in the crate.
//!
//! The data file's header names its source and licence. Does not: sample; [`super::degree`] does.

/// One point of a step function: `fraction` of all ids have at most `value`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The value, for example the number of links of a node.
    pub value: u64,
    /// Cumulative share of ids, in (0, 1]; ascending, the last is 1.
    pub fraction: f64,
}

/// Which measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Edition {
    /// Published with the benchmark in 2013.
    #[serde(rename = "2013")]
    Y2013,
    /// Measured again in 2017.
    #[serde(rename = "2017")]
    Y2017,
}

const DATA: &str = include_str!("../../data/linkbench-distribution.tsv");

/// The distribution of links per node.
pub fn links_per_node(edition: Edition) -> Vec<Point> {
    let edition = match edition {
        Edition::Y2013 => "2013",
        Edition::Y2017 => "2017",
    };
    let point = |line: &str| {
        let mut fields = line.split('\t');
        if fields.next()? != edition || fields.next()? != "nlinks" {
            return None;
        }
        let value = fields.next()?.parse().ok()?;
        let percent: f64 = fields.next()?.parse().ok()?;
        Some(Point { value, fraction: percent / 100.0 })
    };
    DATA.lines().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_are_complete_and_ascending() {
        for (edition, points, largest, mean) in
            [(Edition::Y2013, 372, 961_963, 4.097), (Edition::Y2017, 420, 4_181_357, 3.852)]
        {
            let data = links_per_node(edition);
            assert_eq!(data.len(), points);
            assert!(data.is_sorted_by(|a, b| a.value < b.value && a.fraction < b.fraction));
            let last = data[data.len() - 1];
            assert_eq!((last.value, last.fraction), (largest, 1.0));
            let mut below = 0.0;
            let mut found = 0.0;
            for point in data {
                found += (point.fraction - below) * point.value as f64;
                below = point.fraction;
            }
            assert!((found - mean).abs() < 0.001, "mean {found}");
        }
    }
}
