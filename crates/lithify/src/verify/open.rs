//! Verifying a database while it is open and written to.

use super::log::Known;
use super::report::{Structure, Weight};
use super::{Examination, FoundManifest, OnProgress, Pace, Plan, VerifyOptions, VerifyReport};
use super::{find_manifest, go_on, in_use};
use crate::db::{Activity, Db};
use crate::fs::World;
use crate::manifest::{DirectoryListing, ManifestState};
use crate::options::Options;
use crate::stats::Cause;
use crate::wal::SegmentEnd;
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// So often is a manifest that another process writes read again before damage counts.
const ATTEMPTS: usize = 20;

impl Db {
    /// Verifies the database while it is open, and written to if it is: manifest, tables and log as
    /// they are on disk at the time of the call, past all caches. What is written during the call
    /// is not looked at. The tables looked at stay on disk until the call ends.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use lithify::verify::VerifyOptions;
    /// use lithify::{CfOptions, Db, Options};
    /// let db = Db::open(directory.path(), Options::default())?;
    /// db.column_family("rocks", CfOptions::default())?.put(b"basalt", b"igneous")?;
    /// // Beside a live load: at most 50 MB are read in a second.
    /// let options = VerifyOptions { rate_bytes_per_s: 50_000_000, ..Default::default() };
    /// let report = db.verify(&options)?;
    /// assert!(report.is_sound());
    /// assert_eq!(report.examined.log_records, 1);
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] for a column family that there is not; a closed database, also
    /// one that is closed meanwhile; what listing the directory meets. Whatever is wrong with the database is in the report.
    pub fn verify(&self, options: &VerifyOptions) -> Result<VerifyReport> {
        self.verify_with(options, &mut go_on)
    }

    /// [`Db::verify`], and hears how far it has come.
    ///
    /// # Errors
    /// As [`Db::verify`].
    pub fn verify_with(
        &self,
        options: &VerifyOptions,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<VerifyReport> {
        let inner = &self.inner;
        let open = inner.lifecycle.enter_for_long()?;
        let mut on_progress = |progress: &_| open.between_pieces(|| on_progress(progress));
        let mut activity = Activity::begin(inner, Cause::Verification);
        let world = activity.world();
        let (world, directory) = (&world, &inner.path);
        let files = &*world.files;
        let pace = Pace::new(world, options.rate_bytes_per_s, &mut on_progress);
        let mut examination = Examination::new(world, directory, pace);
        // Before the manifest: a segment that is released meanwhile is passed over below.
        let segments = inner.commits.writer().wal.ends();
        let (found, state) = {
            // No edit is made while the manifest is read.
            let manifest = inner.tree.manifest();
            // It holds the tables that are to be read.
            let state = Arc::clone(manifest.state());
            let found = match inner.lifecycle.is_read_only() {
                true => examination.manifest_of_writer()?,
                false => examination.manifest_at_rest(&state)?,
            };
            (found, state)
        };
        examination.check_names(options, &state, true)?;
        let plan = Plan::new(&DirectoryListing::default(), Some(&state), &state, options);
        let log_bytes: u64 = segments.iter().map(|segment| segment.end_offset).sum();
        examination.pace.announce(found.bytes + plan.bytes(files, directory) + log_bytes);
        let ended = examination.run_open(self, &plan, (&found, &segments), &mut activity);
        let report = examination.finish(ended);
        open.check()?;
        report
    }
}

/// Verifies what is on disk beside a writer.
pub(super) fn verify_beside_writer(
    directory: &Path,
    options: &VerifyOptions,
    world: &World,
    on_progress: &mut OnProgress<'_>,
) -> Result<VerifyReport> {
    let db = Db::open_read_only_in(directory, Options::default(), world.clone());
    let db = db.map_err(|error| {
        let what = "a process has the database open, and its state cannot be read beside it: close \
                    it there first";
        in_use(what).in_file(directory).because(error)
    })?;
    db.verify_with(options, on_progress)
}

impl Examination<'_> {
    fn read_manifest(&mut self) -> Result<FoundManifest> {
        let files = &*self.world.files;
        let listing = DirectoryListing::read(files, self.directory)?;
        let report = &mut self.report;
        Ok(find_manifest(files, self.directory, &listing, &mut |weight, part, error| {
            report.add(weight, part, None, error);
        }))
    }

    /// The manifest of another process, which may add to it and replace it while it is read.
    fn manifest_of_writer(&mut self) -> Result<FoundManifest> {
        let mut attempt = 1;
        loop {
            let before = self.report.clone();
            let found = self.read_manifest()?;
            if found.is_whole || attempt == ATTEMPTS {
                return Ok(found);
            }
            self.report = before;
            attempt += 1;
        }
    }

    /// The manifest of this database, which says what the database goes by.
    fn manifest_at_rest(&mut self, state: &ManifestState) -> Result<FoundManifest> {
        let found = self.read_manifest()?;
        self.compare_with_memory(&found, state);
        Ok(found)
    }

    fn compare_with_memory(&mut self, found: &FoundManifest, state: &ManifestState) {
        let tables = |state: &ManifestState| {
            let mut numbers: Vec<_> = state.table_numbers().collect();
            numbers.sort_unstable();
            numbers
        };
        if found.is_whole && tables(&found.state) != tables(state) {
            let what = "the manifest on disk names other tables than the open database has";
            let error = Error::corruption(what).in_file(self.directory);
            self.report.add(Weight::Damage, Structure::Manifest, None, error);
        }
    }

    fn run_open(
        &mut self,
        db: &Db,
        plan: &Plan,
        (found, segments): (&FoundManifest, &[SegmentEnd]),
        activity: &mut Activity,
    ) -> Result<()> {
        self.begin(found)?;
        for table in &plan.tables {
            self.table(table)?;
            activity.book();
        }
        let known = Known { next_id: None, oldest_needed: None };
        let mut last_sequence = 0;
        for segment in segments {
            let before = self.report.clone();
            let Some(mut reader) = self.open_segment(segment.log_number, found.database_id) else {
                self.forgive_released(db, segment, before);
                continue;
            };
            self.segment(&mut reader, Some(segment.end_offset), known, &mut last_sequence)?;
            activity.book();
            self.forgive_released(db, segment, before);
        }
        Ok(())
    }

    /// A segment that is no longer needed may have been removed or written over meanwhile: what was
    /// found in it means nothing.
    fn forgive_released(&mut self, db: &Db, segment: &SegmentEnd, before: VerifyReport) {
        let oldest_needed = db.inner.tree.manifest().state().oldest_log_needed();
        if segment.log_number < oldest_needed {
            self.report = before;
        }
    }
}
