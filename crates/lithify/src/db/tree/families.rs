//! Column families made, changed and dropped: each by one edit, with the writer held.

use crate::db::LEVEL_COUNT;
use crate::db::committing::commit::Writer;
use crate::db::inner::DbInner;
use crate::db::tree::family::Family;
use crate::manifest::{
    Change, FEATURE_DECIDED_COMPRESSION, FEATURE_MERGE, FEATURE_WRITE_TIMES, Manifest,
};
use crate::options::CfOptions;
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;

impl DbInner {
    pub(crate) fn open_family(
        self: &Arc<Self>,
        name: &str,
        options: CfOptions,
    ) -> Result<Arc<Family>> {
        if self.lifecycle.is_read_only()
            && let Some(family) = self.tree.family_named(name)
        {
            let options = family.options_with(options.clone())?;
            family.rows.set_operator(options.merge_operator.clone());
            if *family.options() == options {
                return Ok(family);
            }
        }
        let options = options.resolved();
        let mut writer = self.commits.writer();
        self.lifecycle.check_writable()?;
        let mut manifest = self.tree.manifest();
        if let Some(family) = self.tree.family_named(name) {
            let options = family.options_with(options)?;
            if *family.options() == options {
                // An operator of that name, and now perhaps its code.
                family.rows.set_operator(options.merge_operator.clone());
            } else {
                let changes = options.changes_from(&family.options());
                self.change_options(&family, options, &mut manifest)?;
                drop((manifest, writer));
                self.events.tell_options(name, changes);
                // What the new options leave to do.
                self.schedule_all_compactions();
            }
            return Ok(family);
        }
        self.make_family(&mut writer, &mut manifest, name, options)
    }

    /// The family of that name with the options it has; made with these if there is none.
    pub(crate) fn family_or_new(
        self: &Arc<Self>,
        name: &str,
        options: CfOptions,
    ) -> Result<Arc<Family>> {
        if let Some(family) = self.tree.family_named(name) {
            return Ok(family);
        }
        let mut writer = self.commits.writer();
        self.lifecycle.check_writable()?;
        let mut manifest = self.tree.manifest();
        // Somebody may have made it meanwhile.
        match self.tree.family_named(name) {
            Some(family) => Ok(family),
            None => self.make_family(&mut writer, &mut manifest, name, options.resolved()),
        }
    }

    /// Makes a family that is not there.
    fn make_family(
        self: &Arc<Self>,
        writer: &mut Writer,
        manifest: &mut Manifest,
        name: &str,
        options: CfOptions,
    ) -> Result<Arc<Family>> {
        self.sync_log(writer)?;
        let id = manifest.state().next_family_id;
        let mut changes = needed_features(&options);
        changes.extend([
            Change::CreateFamily {
                id,
                name: name.to_string(),
                level_count: LEVEL_COUNT,
                log_number: self.commits.newest_segment(),
                options: options.stored_text().into_bytes(),
            },
            Change::NextFamilyId(id + 1),
        ]);
        let state = self.append_edit(manifest, changes)?;
        let Some(stored) = state.families.get(&id) else {
            return Err(Error::new(ErrorKind::NotFound, "the new column family is not there"));
        };
        let version = Arc::clone(&stored.version);
        let family = self.tree.new_family(id, name, options, version);
        let mut families = (**self.tree.families()).clone();
        families.insert(id, Arc::clone(&family));
        self.tree.set_families(families);
        self.watch_families();
        Ok(family)
    }

    /// Records new options, and with them which tables are in another codec than these ask for.
    fn change_options(
        &self,
        family: &Family,
        options: CfOptions,
        manifest: &mut Manifest,
    ) -> Result<()> {
        let options_text = options.stored_text().into_bytes();
        let mut changes = needed_features(&options);
        changes.push(Change::SetOptions { id: family.id, options: options_text });
        let formats = family.formats_under(&options);
        changes.extend(family.debt_changes(&*formats));
        let state = self.append_edit(manifest, changes)?;
        family.set_options(options, formats);
        self.watch_families();
        family.take_version(&state, &[]);
        Ok(())
    }

    pub(crate) fn drop_family(self: &Arc<Self>, name: &str) -> Result<()> {
        // No group is being applied while the writer is held.
        let mut writer = self.commits.writer();
        self.lifecycle.check_writable()?;
        let mut manifest = self.tree.manifest();
        let Some(family) = self.tree.family_named(name) else {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("there is no column family {name:?}"),
            ));
        };
        self.sync_log(&mut writer)?;
        let mut changes = vec![Change::DropFamily { id: family.id }];
        if planted!(DroppedFamilyComesBack) {
            changes.clear();
        }
        let state = self.append_edit(&mut manifest, changes)?;
        family.mark_dropped();
        let mut families = (**self.tree.families()).clone();
        families.remove(&family.id);
        self.tree.set_families(families);
        family.forget_tables(&self.tree.chunks);
        writer.active.forget(family.id);
        drop(manifest);
        drop(writer);
        self.jobs.state().hold_garbage();
        self.jobs.notify();
        self.release_segments(state.oldest_log_needed());
        self.collect_garbage();
        Ok(())
    }
}

/// What a reader of these options has to know, so that an older one refuses them and does not take them
/// for damage.
fn needed_features(options: &CfOptions) -> Vec<Change> {
    let mut bits = 0;
    if options.needs_decisions() {
        bits |= FEATURE_DECIDED_COMPRESSION;
    }
    if !options.merge_operator.is_none() {
        bits |= FEATURE_MERGE;
    }
    if options.time_to_live_s > 0 {
        bits |= FEATURE_WRITE_TIMES;
    }
    match bits {
        0 => Vec::new(),
        bits => vec![Change::Features(bits)],
    }
}
