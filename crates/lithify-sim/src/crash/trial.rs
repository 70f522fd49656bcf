//! Tries what crashes leave: opens it, finds it in the history, and crashes again meanwhile.

use super::choice::{self, Choice};
use super::figures;
use super::history::{CrashKind, Found, History, Moment};
use super::record::{Point, Recorder, Which};
use super::recover::{self, Recovered, read_all, recover};
use crate::check::Tally;
use crate::model::Rows;
use crate::operation::lifetimes;
use lithify::Options;
use lithify::fs::MemoryFileSystem;
use std::collections::HashMap;
use std::sync::Arc;

/// One in so many images is read key by key, and worked with after it was looked at.
const WORKED_ON_PART: u64 = 16;

/// The crashes of one recorded history.
pub struct Trial<'a> {
    /// The history.
    pub history: &'a History,
    /// Where it is counted.
    pub tally: &'a mut Tally,
    /// What passes between a crash and the opening after it, in microseconds.
    pub downtime_us: u64,
    /// What images show that were opened before, by their fingerprint and by how many halves of the time to live
    /// had passed then.
    known: HashMap<(u64, u32), Found>,
    /// The rows that were found in the family with a filter, by their digest: many images have the same.
    rows: HashMap<u64, Arc<Rows>>,
}

/// What a crash left, looked at.
pub struct Left {
    /// What it shows.
    pub found: Found,
    /// How many events survived.
    pub survived: usize,
}

impl<'a> Trial<'a> {
    /// No crash yet.
    pub fn new(history: &'a History, tally: &'a mut Tally) -> Self {
        Trial { history, tally, downtime_us: 0, known: HashMap::new(), rows: HashMap::new() }
    }

    /// Crashes at a point in one way.
    ///
    /// # Errors
    /// What must not be left by a crash, and how it came about.
    pub fn crash(&mut self, point: &Point, choice: &Choice) -> Result<Left, String> {
        let options = point.options.clone().unwrap_or_default();
        let image = choice.image(&point.files);
        let kind = choice.kind();
        let moment = self.opened_at(point);
        let left = self.look(&image, &options, &moment, kind).and_then(|found| {
            let allowed = moment.may_survive(kind);
            let survived = self.history.find(&moment, allowed, &found);
            survived.map(|survived| Left { found, survived }).map_err(|wrong| wrong.to_string())
        });
        let left = left.map_err(|wrong| {
            format!(
                "durability {:?}, crash before {}, of {:?} survives {choice:?}: {wrong}",
                options.durability,
                point.call,
                point.files.unsynced()
            )
        })?;
        figures::count_crash(self.tally, options.durability, kind, &moment, left.survived);
        Ok(left)
    }

    /// How far the history had come at a point, at the time at which what a crash left there is opened.
    pub fn opened_at(&self, point: &Point) -> Moment {
        point.moment.later(self.downtime_us)
    }

    /// What an image shows; opened if none with the same bytes was before.
    fn look(
        &mut self,
        image: &MemoryFileSystem,
        options: &Options,
        moment: &Moment,
        kind: CrashKind,
    ) -> Result<Found, String> {
        let fingerprint = image.fingerprint();
        self.tally.distinct(figures::DISTINCT_IMAGES, fingerprint);
        let key = (fingerprint, lifetimes::half_lives(moment.now_us));
        if let Some(found) = self.known.get(&key) {
            return Ok(found.clone());
        }
        let filter = self.history.filter();
        let Recovered { db, mut found, calls, disk_us } =
            recover(image, options, filter, moment.now_us)?;
        if let Some((slot, rows)) = &mut found.filtered {
            let digest = found.digests[*slot].unwrap_or_default();
            rows.clone_from(self.rows.entry(digest).or_insert(Arc::clone(rows)));
        }
        figures::count_recovery(self.tally, options.durability, kind, calls, disk_us);
        if fingerprint.is_multiple_of(WORKED_ON_PART)
            && let Ok(survived) = self.history.find(moment, 0..=moment.begun, &found)
        {
            let state = self.history.survivor(moment, survived, &found);
            let history = History::new(state, filter).at(moment.now_us);
            recover::work_on(image, options, db, history)?;
        }
        self.known.insert(key, found.clone());
        Ok(found)
    }

    /// Crashes at a point, and again at points of the recovery.
    ///
    /// # Errors
    /// As [`Trial::crash`].
    pub fn crash_twice(
        &mut self,
        point: &Point,
        first: &Choice,
        which: Which,
        second: &dyn Fn(&MemoryFileSystem) -> Vec<Choice>,
    ) -> Result<(), String> {
        let left = self.crash(point, first)?;
        let options = point.options.clone().unwrap_or_default();
        let image = first.image(&point.files);
        let recorder = Recorder::start(&image, None, which);
        let environment = recover::watched_environment(1, self.opened_at(point).now_us);
        let opened = super::actor::open(&image, &environment, &options);
        let is_open = !recorder.is_over();
        let points = recorder.finish();
        if is_open {
            let db = opened.map_err(|error| format!("it opened once, and then: {error}"))?;
            let filter = self.history.filter();
            let found = read_all(&db, filter).map_err(|error| error.to_string())?;
            if found != left.found {
                return Err("it was opened twice and showed two things".to_string());
            }
        }
        let last = points.len().saturating_sub(1);
        for (index, again) in points.iter().enumerate() {
            let is_durable = is_open && index == last;
            for choice in second(&again.files) {
                let found = self.crash_again(point, (first, &left), (again, is_durable), &choice);
                found.map_err(|wrong| {
                    format!(
                        "durability {:?}, crash before {}, {first:?} survives; then while it \
                         opens, before {}, {choice:?}: {wrong}",
                        options.durability, point.call, again.call
                    )
                })?;
            }
        }
        Ok(())
    }

    /// A second crash. What the first one left durable, and what an opened database shows, may
    /// not change any more; an end of the process leaves the rest as unsure as it was.
    fn crash_again(
        &mut self,
        point: &Point,
        (first, left): (&Choice, &Left),
        (again, is_durable): (&Point, bool),
        choice: &Choice,
    ) -> Result<(), String> {
        let options = point.options.clone().unwrap_or_default();
        let image = choice.image(&again.files);
        let kind = choice.kind();
        let moment = self.opened_at(point);
        let found = self.look(&image, &options, &moment, kind)?;
        self.tally.count(figures::SECOND_CRASHES, 1);
        let stays = is_durable
            || first.kind() == CrashKind::PowerCut
            || choice.kind() == CrashKind::ProcessEnd;
        if stays && found != left.found {
            return Err(format!(
                "{} events were there, and then {:?} instead of {:?}",
                left.survived, found.digests, left.found.digests
            ));
        }
        // One power cut is enough for what only an end of the process keeps.
        let worst = kind.min(first.kind());
        let allowed = *moment.may_survive(worst).start()..=left.survived;
        let survived = self.history.find(&moment, allowed, &found);
        let survived = survived.map_err(|wrong| wrong.to_string())?;
        figures::count_crash(self.tally, options.durability, worst, &moment, survived);
        Ok(())
    }

    /// Tries every enumerated choice at a point.
    ///
    /// # Errors
    /// As [`Trial::crash`].
    pub fn crash_every_way(&mut self, point: &Point) -> Result<(), String> {
        choice::enumerated(&point.files)
            .iter()
            .try_for_each(|choice| self.crash(point, choice).map(drop))
    }
}
