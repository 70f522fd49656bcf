//! The figures of a run in one form: subjects, tests, figures, values by repeat.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::days;
use crate::report::figures::Spread;
use crate::report::paired::{Better, Reading, Sides};
use crate::statistics::verdicts::Scale;

/// The figures of a run.
#[derive(Clone, Debug, Default)]
pub struct ResultSet {
    /// What was run, for headings.
    pub title: String,
    /// What has to be the same about the machine.
    pub machine: BTreeMap<String, String>,
    /// What was measured.
    pub subjects: Vec<Subject>,
    /// Its figures.
    pub series: Vec<Series>,
    /// When the repeats of each subject began; empty where that was not kept.
    pub starts: BTreeMap<String, Vec<(u64, u64)>>,
}

/// An arm, or an engine with its codecs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// By which it is found in another run.
    pub name: String,
    /// The name without the engine, by which it is found where each run has one engine alone; empty
    /// where the name has no engine in it.
    pub arm: String,
    /// Name and version of the engine, as it says.
    pub engine: String,
    /// Workload, scale and settings, by name: what has to be the same to be compared.
    pub settings: BTreeMap<String, String>,
    /// What tells it from other arms, by name: codecs and options. It may differ.
    pub of_arm: BTreeMap<String, String>,
}

/// One figure over the repeats.
#[derive(Clone, Debug)]
pub struct Series {
    /// Of which subject.
    pub subject: String,
    /// In which phase, step or test.
    pub test: String,
    /// Name and unit.
    pub figure: String,
    /// Which direction is good.
    pub better: Better,
    /// How it is compared.
    pub scale: Scale,
    /// Values with their repeats.
    pub values: Vec<(u64, f64)>,
    /// The same once more, where the run has a control.
    pub again: Vec<(u64, f64)>,
}

impl Subject {
    /// Leaves out settings that belong to the name or the test.
    pub fn without(&mut self, settings: &[&str]) {
        settings.iter().for_each(|name| drop(self.settings.remove(*name)));
    }
}

impl ResultSet {
    /// The names of the subjects.
    pub fn names(&self) -> Vec<String> {
        self.subjects.iter().map(|subject| subject.name.clone()).collect()
    }

    /// What has to be the same about the machine of a cell; one on a file system of its own says
    /// that in its settings.
    pub fn measured_on(&mut self, mut facts: BTreeMap<String, String>, own_file_system: bool) {
        if own_file_system {
            facts.remove("file system");
        }
        self.machine.extend(facts);
    }

    /// Adds a subject unless it is there.
    pub fn subject(&mut self, subject: Subject) {
        if self.subjects.iter().all(|known| known.name != subject.name) {
            self.subjects.push(subject);
        }
    }

    /// Adds a value of a figure, or of its control.
    pub fn add(
        &mut self,
        [subject, test, figure]: [&str; 3],
        reading: impl Into<Reading>,
        (repeat, value): (u64, f64),
        is_control: bool,
    ) {
        let Reading { better, scale } = reading.into();
        let same = |s: &&mut Series| s.subject == subject && s.test == test && s.figure == figure;
        let found = self.series.iter_mut().find(same);
        let series = match found {
            Some(series) => series,
            None => {
                self.series.push(Series {
                    subject: subject.to_owned(),
                    test: test.to_owned(),
                    figure: figure.to_owned(),
                    better,
                    scale,
                    values: Vec::new(),
                    again: Vec::new(),
                });
                let last = self.series.len() - 1;
                &mut self.series[last]
            }
        };
        let values = if is_control { &mut series.again } else { &mut series.values };
        values.push((repeat, value));
    }

    /// A figure of a subject in a test.
    pub fn find(&self, subject: &str, test: &str, figure: &str) -> Option<&Series> {
        let mut series = self.series.iter();
        series.find(|s| s.subject == subject && s.test == test && s.figure == figure)
    }

    /// A figure of a subject in a test over its repeats.
    pub fn spread(&self, subject: &str, test: &str, figure: &str) -> Option<Spread> {
        let values = &self.find(subject, test, figure)?.values;
        Spread::of(values.iter().map(|(_, value)| *value).collect())
    }

    /// Two subjects in one figure of one test, repeat by repeat, with their A/A controls.
    pub fn paired(&self, [one, other]: [&str; 2], test: &str, figure: &str) -> Option<Sides> {
        let other_day = days::apart(self.began(one), self.began(other));
        let [one, other] = [self.find(one, test, figure)?, self.find(other, test, figure)?];
        Some(Sides {
            kind: figure.to_owned(),
            scale: one.scale,
            values: [one.values.clone(), other.values.clone()],
            again: [one.again.clone(), other.again.clone()],
            other_day,
        })
    }

    /// Notes when a repeat of a subject began.
    pub fn note_start(&mut self, subject: &str, repeat: u64, unix_s: u64) {
        self.starts.entry(subject.to_owned()).or_default().push((repeat, unix_s));
    }

    fn began(&self, subject: &str) -> &[(u64, u64)] {
        self.starts.get(subject).map_or(&[], Vec::as_slice)
    }

    /// Whether this run and another were measured on different days; unknown moments are not.
    pub fn is_apart(&self, other: &ResultSet) -> bool {
        let moments = |set: &ResultSet| -> Vec<u64> {
            set.starts.values().flatten().map(|(_, at)| *at).collect()
        };
        days::far(&moments(self), &moments(other))
    }

    /// The days of its measurements, each once; nothing where they were not kept.
    pub fn days(&self) -> Vec<String> {
        let moments = self.starts.values().flatten().map(|(_, at)| days::day(*at));
        moments.collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// The tests in the order in which they were found.
    pub fn tests(&self) -> Vec<&str> {
        let mut tests: Vec<&str> = Vec::new();
        for series in &self.series {
            if !tests.contains(&series.test.as_str()) {
                tests.push(&series.test);
            }
        }
        tests
    }

    /// The figures of a test in the order in which they were found, with their directions.
    pub fn figures(&self, test: &str) -> Vec<(&str, Better)> {
        let mut figures: Vec<(&str, Better)> = Vec::new();
        for series in self.series.iter().filter(|series| series.test == test) {
            if figures.iter().all(|(name, _)| *name != series.figure) {
                figures.push((&series.figure, series.better));
            }
        }
        figures
    }
}
