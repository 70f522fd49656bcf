//! What changes with the number of clients: rates with the fitted curves through them.

use crate::experiment::Phase;
use crate::linkbench::record::LinkBenchRecord;
use crate::linkbench::report::clients::{EFFICIENCY_HEADING, SCALABILITY_HEADING, Sweep};
use crate::linkbench::report::figures::Figures;
use crate::report::figures::{Spread, figure, figure_or_dash};
use crate::report::tables::{Align, Grid};
use crate::scalability::report::{Series, fits, grid, residuals, unlimited};
use crate::scalability::{Fit, fit};
use lithify_report::{
    Axis, Block, Curve, Curves, Drawing, Finding, Outcome, Plot, Section, Table, Unit,
};

/// Places along a fitted curve.
const STEPS: u64 = 60;

/// A peak up to so many times the most clients is drawn.
const PEAK_TIMES: f64 = 1.5;

/// The section; without anything for a run with one number of clients.
pub(super) fn section(record: &LinkBenchRecord, figures: &Figures<'_>) -> Section {
    let mut section = Section::new("By number of clients");
    let Some(sweep) = Sweep::of(record, figures) else { return section };
    let all = sweep.series();
    for phase in [Phase::Load, Phase::Query] {
        let what = phase.to_string();
        section = section.with_all(plot(&sweep.heading(phase), &of_what(&all, &what)));
        let published = of_what(&all, &format!("{phase}, published"));
        let title = format!("As published: {what} by clients");
        section = section.with_all(plot(&title, &published));
        let (rates, notes) = sweep.rates(phase);
        let caption = format!("{} with the ratios of pairs", sweep.heading(phase));
        section = section.with(Table::new(caption, rates));
        if !notes.is_empty() {
            section = section.with(Block::List(notes));
        }
    }
    let fits = fits(&all);
    if !fits.is_empty() {
        section = section.with(Table::new(SCALABILITY_HEADING, grid(&fits)));
        let about = "Measured above (+) or below (-) the curve, percent of it, by clients";
        section = section.with(Block::Heading(about.to_owned()));
        section = section.with(Block::List(residuals(&fits)));
    }
    section = section.with(Table::folded(EFFICIENCY_HEADING, sweep.efficiency()));
    if let Some(clients) = sweep.queries.last() {
        let caption = format!("Latency by operation with {clients} clients, ms");
        section = section.with(Table::folded(caption, sweep.latencies(*clients)));
    }
    section
}

/// A sentence for each curve through whole loads and queries.
pub(super) fn findings(record: &LinkBenchRecord, figures: &Figures<'_>) -> Vec<Finding> {
    let Some(sweep) = Sweep::of(record, figures) else { return Vec::new() };
    let all = sweep.series();
    let mut findings = Vec::new();
    for what in ["load", "query"] {
        for series in of_what(&all, what) {
            let text = match fit(&series.points) {
                Ok(fit) => told(series, &fit, sweep.cpus),
                Err(why) if counts(series) > 1 => {
                    format!("{}, {what}: no curve: {why}.", series.name)
                }
                Err(_) => continue,
            };
            findings.push(Finding::new(Outcome::Note, "Clients", text));
        }
    }
    findings
}

/// A curve that explains less of the variance says little.
const R_SQUARED_MIN: f64 = 0.5;

/// A curve in words.
fn told(series: &Series, fit: &Fit, cpus: Option<usize>) -> String {
    let curve = &fit.curve;
    let head = format!(
        "{}, {}: contention {:.3}, coherency {:.4}, R² {:.2}",
        series.name, series.what, curve.sigma, curve.kappa, fit.r_squared
    );
    // Equal rates have no variance to explain.
    if fit.r_squared.is_nan() || fit.r_squared < R_SQUARED_MIN {
        return format!(
            "{head}; the curve explains too little of the rates to say where they peak."
        );
    }
    let on = cpus.map_or_else(String::new, |cpus| format!(" on {cpus} CPUs"));
    let most = series.points.iter().map(|(clients, _)| *clients).max().unwrap_or(0);
    match curve.peak_clients() {
        None => format!(
            "{head}; it has no peak, and comes near to {} per second{on}.",
            unlimited(curve.most())
        ),
        Some(clients) if clients < 1.0 => {
            format!("{head}; rates fall from the first client on.")
        }
        Some(clients) => {
            let [low, high] = fit.ranges.peak_clients.map(unlimited);
            let beyond = match clients > most as f64 {
                true => ", which is beyond what was measured and not to be relied on",
                false => "",
            };
            format!(
                "{head}; its peak lies at {} clients [{low}, {high}] with {} operations per \
                 second{on}{beyond}.",
                figure(clients),
                unlimited(curve.most())
            )
        }
    }
}

fn of_what<'a>(all: &'a [Series], what: &str) -> Vec<&'a Series> {
    all.iter().filter(|series| series.what == what && !series.points.is_empty()).collect()
}

/// How many numbers of clients a series has.
fn counts(series: &Series) -> usize {
    measured(series).len()
}

/// The rates of a series by number of clients, ascending, over the repeats.
fn measured(series: &Series) -> Vec<(u64, Spread)> {
    let mut clients: Vec<u64> = series.points.iter().map(|(clients, _)| *clients).collect();
    clients.sort_unstable();
    clients.dedup();
    let rates = |count: u64| {
        let of_count = series.points.iter().filter(|(clients, _)| *clients == count);
        Spread::of(of_count.map(|(_, rate)| *rate).collect())
    };
    clients.into_iter().filter_map(|count| Some((count, rates(count)?))).collect()
}

/// Rates over clients with fitted curves; `None` without any.
fn plot(title: &str, all: &[&Series]) -> Option<Plot> {
    let mut columns = vec![("clients", Align::Right)];
    columns.extend(all.iter().map(|series| (series.name.as_str(), Align::Right)));
    let points: Vec<Vec<(u64, Spread)>> = all.iter().map(|series| measured(series)).collect();
    let mut clients: Vec<u64> = points.iter().flatten().map(|(count, _)| *count).collect();
    clients.sort_unstable();
    clients.dedup();
    let most = clients.last().copied()?;
    let row = |count: &u64| {
        let rate = |points: &Vec<(u64, Spread)>| {
            let found = points.iter().find(|(clients, _)| clients == count);
            found.map_or_else(|| figure_or_dash(None), |(_, rate)| rate.with_range())
        };
        std::iter::once(count.to_string()).chain(points.iter().map(rate)).collect()
    };
    let grid = Grid::new(&columns, clients.iter().map(row).collect());
    let curves: Vec<Curve> = all
        .iter()
        .zip(&points)
        .enumerate()
        .map(|(number, (series, points))| drawn(number, series, points, most))
        .collect();
    let has_fits = curves.iter().any(|curve| !curve.fitted.is_empty());
    let about = match has_fits {
        true => {
            "Marks are medians over the repeats with their range, lines the fitted law of \
             scalability; an upright stroke is its peak."
        }
        false => "Marks are medians over the repeats with their range; too few for a fit.",
    };
    Some(Plot {
        title: title.to_owned(),
        about: about.to_owned(),
        series: all.iter().map(|series| series.name.clone()).collect(),
        drawing: Drawing::Curves(Curves {
            x: Axis { name: "clients".to_owned(), unit: Unit::Number },
            y: Axis { name: "operations per second".to_owned(), unit: Unit::Number },
            series: curves,
        }),
        table: Table::folded(title, grid),
    })
}

/// A series as it is drawn: its curve reaches to the peak where that is near.
fn drawn(number: usize, series: &Series, points: &[(u64, Spread)], most: u64) -> Curve {
    let point =
        |(clients, rate): &(u64, Spread)| (*clients as f64, [rate.median, rate.min, rate.max]);
    let mut curve =
        Curve { series: number, points: points.iter().map(point).collect(), ..Curve::default() };
    let Ok(Fit { curve: law, .. }) = fit(&series.points) else { return curve };
    let peak = law.peak_clients().filter(|clients| *clients <= most as f64 * PEAK_TIMES);
    let last = peak.unwrap_or(0.0).max(most as f64);
    let step = |index: u64| {
        let clients = 1.0 + (last - 1.0) * index as f64 / STEPS as f64;
        (clients, law.rate(clients))
    };
    curve.fitted = (0..=STEPS).map(step).collect();
    curve.peak = peak.filter(|clients| *clients >= 1.0).map(|clients| (clients, law.rate(clients)));
    curve
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalability::Curve as Law;

    fn series(counts: &[u64]) -> Series {
        let law = Law { lambda: 1000.0, sigma: 0.1, kappa: 0.01 };
        Series {
            name: "an arm".to_owned(),
            what: "query".to_owned(),
            points: counts.iter().map(|n| (*n, law.rate(*n as f64))).collect(),
            cpus: Some(2),
        }
    }

    #[test]
    fn curves_reach_their_peak_and_are_told_with_it() {
        let all = series(&[1, 2, 3, 4, 6, 8]);
        let plot = plot("t", &[&all]).expect("has points");
        let Drawing::Curves(curves) = &plot.drawing else { panic!("curves") };
        let peak = curves.series[0].peak.expect("is near");
        assert!((peak.0 - 9.49).abs() < 0.05, "{peak:?}");
        let last = curves.series[0].fitted.last().expect("a curve").0;
        assert!((last - peak.0).abs() < 1e-9, "{last}");
        assert_eq!(plot.table.rows.len(), 6);
        let fit = fit(&all.points).expect("fits");
        let text = told(&all, &fit, Some(2));
        assert!(text.contains("its peak lies at 9.49 clients"), "{text}");
        assert!(
            text.ends_with("on 2 CPUs, which is beyond what was measured and not to be relied on.")
        );
    }

    #[test]
    fn few_counts_are_points_without_a_curve() {
        let few = series(&[1, 4]);
        let plot = plot("t", &[&few]).expect("has points");
        let Drawing::Curves(curves) = &plot.drawing else { panic!("curves") };
        assert!(curves.series[0].fitted.is_empty() && curves.series[0].points.len() == 2);
        assert!(plot.about.ends_with("too few for a fit."));
        let falling = Law { lambda: 1000.0, sigma: 0.9, kappa: 0.5 };
        let points = [1, 2, 3, 4, 6, 8].map(|n| (n, falling.rate(n as f64)));
        let falling = Series { points: points.into(), ..series(&[]) };
        let text = told(&falling, &fit(&falling.points).expect("fits"), None);
        assert!(text.ends_with("rates fall from the first client on."), "{text}");
        assert!(super::plot("t", &[]).is_none());
    }
}
