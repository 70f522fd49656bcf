//! Reading every byte of backups and comparing it with what was written.

use super::meta::BackupMeta;
use super::names::StoreName;
use super::{BackupId, BackupStore};
use crate::fs::{File, OpenMode, Pieces, Transfer, TransferOptions};
use crate::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// What was found of one backup.
#[derive(Clone, Debug)]
pub struct BackupVerdict {
    /// Its number.
    pub id: BackupId,
    /// Files that it needs; 0 if its description cannot be read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is wrong: of each damaged or missing file the first thing, with file and offset.
    pub damage: Vec<Error>,
}

impl BackupVerdict {
    /// Whether it can be restored.
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty()
    }
}

/// What was found of the backups of a store.
#[derive(Clone, Debug, Default)]
pub struct StoreVerification {
    /// One verdict for each backup that was looked at, oldest first.
    pub backups: Vec<BackupVerdict>,
    /// Files that were read; a shared one is read once.
    pub read_files: u64,
    /// Their bytes.
    pub read_bytes: u64,
}

impl StoreVerification {
    /// Whether all of them can be restored.
    pub fn is_whole(&self) -> bool {
        self.backups.iter().all(BackupVerdict::is_whole)
    }

    /// The numbers of those that can be restored.
    pub fn whole(&self) -> Vec<BackupId> {
        self.backups.iter().filter(|backup| backup.is_whole()).map(|backup| backup.id).collect()
    }
}

impl BackupStore {
    /// Reads every byte of one backup, or of all, and compares it with what was written.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a backup that is not there; [`ErrorKind::Cancelled`]. Damage,
    /// and files that cannot be read, are in the verdicts.
    pub fn verify(
        &self,
        id: Option<BackupId>,
        options: &TransferOptions<'_>,
    ) -> Result<StoreVerification> {
        match id {
            Some(id) => {
                self.check_there(id)?;
                self.verify_each(&[id], options)
            }
            None => self.verify_each(&self.ids(), options),
        }
    }

    pub(super) fn verify_each(
        &self,
        ids: &[BackupId],
        options: &TransferOptions<'_>,
    ) -> Result<StoreVerification> {
        let mut found = StoreVerification::default();
        let mut transfer = Transfer::new(&*self.world.environment, *options);
        // How much there is to read, shared files once.
        let mut sizes: HashMap<StoreName, u64> = HashMap::new();
        for id in ids {
            if let Ok(meta) = self.meta(*id) {
                let files = meta.files();
                sizes.extend(files.iter().map(|file| (file.name, file.pieces.size_bytes)));
            }
        }
        transfer.announce(sizes.len() as u64, sizes.values().sum());
        let mut checked: HashMap<StoreName, Option<Error>> = HashMap::new();
        for id in ids {
            let verdict = match self.meta(*id) {
                Ok(meta) => self.verify_one(&meta, &mut transfer, &mut checked, &mut found)?,
                Err(error) => BackupVerdict { id: *id, files: 0, bytes: 0, damage: vec![error] },
            };
            found.backups.push(verdict);
        }
        Ok(found)
    }

    fn verify_one(
        &self,
        meta: &BackupMeta,
        transfer: &mut Transfer<'_>,
        checked: &mut HashMap<StoreName, Option<Error>>,
        found: &mut StoreVerification,
    ) -> Result<BackupVerdict> {
        let mut verdict = BackupVerdict { id: meta.backup, files: 0, bytes: 0, damage: Vec::new() };
        for file in meta.files() {
            verdict.files += 1;
            verdict.bytes += file.pieces.size_bytes;
            if let Entry::Vacant(place) = checked.entry(file.name) {
                found.read_files += 1;
                found.read_bytes += file.pieces.size_bytes;
                let damage = match self.verify_file(file.name, file.pieces, transfer) {
                    Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
                    result => result.err(),
                };
                place.insert(damage);
            }
            verdict.damage.extend(checked.get(&file.name).cloned().flatten());
        }
        Ok(verdict)
    }

    fn verify_file(
        &self,
        name: StoreName,
        pieces: &Pieces,
        transfer: &mut Transfer<'_>,
    ) -> Result<()> {
        let file = self.open_stored(name)?;
        transfer.check(&*file, pieces)
    }

    /// Opens a file that a backup needs; a missing one is damage.
    pub(super) fn open_stored(&self, name: StoreName) -> Result<Arc<dyn File>> {
        let path = name.path(&self.path);
        self.world.files.open(&path, OpenMode::Read).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                Error::corruption("a file of the backup is missing").at(&path, 0).because(error)
            }
            _ => error,
        })
    }
}
