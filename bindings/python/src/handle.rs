//! An open database, and the column families in it, as all Python objects of it share them.
//!
//! Owns: [`Handle`], closed once for all of its users, and [`Target`], a family of it. A database that was
//! opened for reading moves on with `refresh`; its families follow. Every call here may wait: callers are
//! detached from the interpreter.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use lithify::{ColumnFamily, DEFAULT_FAMILY, Db, Error, ErrorKind};

use crate::errors::{Failure, Result};
use crate::forks::{Maker, Native};

/// A database that is open, or was.
pub struct Handle {
    path: PathBuf,
    maker: Maker,
    db: RwLock<Option<Native<Db>>>,
    is_closed: AtomicBool,
    /// How often families that were found may have become others: by a move to another state, or because the
    /// default family was dropped and may be made again.
    generation: AtomicU64,
}

impl Handle {
    /// Shares a database that was just opened.
    pub fn new(db: Db) -> Handle {
        Handle {
            path: db.path().to_owned(),
            maker: Maker::new(),
            db: RwLock::new(Some(Native::new(db))),
            is_closed: AtomicBool::new(false),
            generation: AtomicU64::new(0),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Refuses what is asked of a closed database, or by a child of the process that opened it.
    pub fn check_open(&self) -> Result<()> {
        self.check_process()?;
        if self.is_closed() { Err(Failure::Closed("the database")) } else { Ok(()) }
    }

    /// Refuses what a child of the process asks that opened it.
    pub fn check_process(&self) -> Result<()> {
        self.maker.check()
    }

    /// The database.
    pub fn db(&self) -> Result<Db> {
        self.check_process()?;
        let db = self.db.read().unwrap_or_else(PoisonError::into_inner);
        db.as_ref().ok_or(Failure::Closed("the database"))?.get().cloned()
    }

    /// Closes it; a second call does nothing.
    pub fn close(&self) -> Result<()> {
        self.check_process()?;
        let taken = {
            let mut db = self.db.write().unwrap_or_else(PoisonError::into_inner);
            self.is_closed.store(true, Ordering::Release);
            db.take()
        };
        match taken {
            Some(db) => Ok(db.take()?.close()?),
            None => Ok(()),
        }
    }

    /// Moves a database that was opened for reading on to the state that is on disk now.
    pub fn refresh(&self) -> Result<()> {
        self.check_process()?;
        let mut db = self.db.write().unwrap_or_else(PoisonError::into_inner);
        db.as_mut().ok_or(Failure::Closed("the database"))?.get_mut()?.refresh()?;
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Drops a column family.
    pub fn drop_family(&self, name: &str) -> Result<()> {
        self.db()?.drop_column_family(name)?;
        if name == DEFAULT_FAMILY {
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }
}

/// A column family: the default one by its name, any other one by its id.
pub struct Target {
    handle: Arc<Handle>,
    name: String,
    /// `None` for the default family, which may be dropped and made again.
    id: Option<u32>,
    /// The family as it was found, and in which generation of the database.
    found: RwLock<Option<(u64, Native<ColumnFamily>)>>,
}

impl Target {
    /// The default family.
    pub fn default_of(handle: Arc<Handle>) -> Target {
        Target { handle, name: DEFAULT_FAMILY.to_owned(), id: None, found: RwLock::new(None) }
    }

    /// A family that was found or made.
    pub fn of(handle: Arc<Handle>, family: &ColumnFamily) -> Target {
        let (name, id) = (family.name().to_owned(), Some(family.id()));
        Target { handle, name, id, found: RwLock::new(None) }
    }

    /// The family of a name in a state of the database, where it has to be.
    pub fn named(handle: Arc<Handle>, db: &Db, name: &str) -> Result<Target> {
        if name == DEFAULT_FAMILY {
            return Ok(Target::default_of(handle));
        }
        let family = db.existing_column_family(name)?.ok_or_else(|| no_family(name))?;
        Ok(Target::of(handle, &family))
    }

    /// Of which database.
    pub fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The family in a state of the database; `None` if it is the default family and not there. Another
    /// family that has its name is not it.
    pub fn family_in(&self, db: &Db) -> Result<Option<ColumnFamily>> {
        let found = db.existing_column_family(&self.name)?;
        match (found, self.id) {
            (found, None) => Ok(found),
            (Some(family), Some(id)) if family.id() == id => Ok(Some(family)),
            (_, Some(_)) => {
                let name = &self.name;
                let what = format!("the column family {name:?} was dropped, or is made later");
                Err(Error::new(ErrorKind::Closed, what).into())
            }
        }
    }

    /// The same, to be written to: the default family is made if it is not there.
    pub fn family_for_writing_in(&self, db: &Db) -> Result<ColumnFamily> {
        match self.family_in(db)? {
            Some(family) => Ok(family),
            None => Ok(db.default_family()?),
        }
    }

    /// The family as it is now; `None` if it is the default family and was never written to.
    pub fn existing(&self) -> Result<Option<ColumnFamily>> {
        self.handle.check_open()?;
        // Read first: what is found later may be newer than its generation says, and is found once more then.
        let generation = self.handle.generation.load(Ordering::Acquire);
        if let Some((of, family)) = &*self.found.read().unwrap_or_else(PoisonError::into_inner)
            && *of == generation
        {
            return Ok(Some(family.get()?.clone()));
        }
        let found = self.family_in(&self.handle.db()?)?;
        Ok(found.map(|family| self.keep(generation, family)))
    }

    /// The family as it is now, to be written to.
    pub fn for_writing(&self) -> Result<ColumnFamily> {
        if let Some(family) = self.existing()? {
            return Ok(family);
        }
        let generation = self.handle.generation.load(Ordering::Acquire);
        Ok(self.keep(generation, self.handle.db()?.default_family()?))
    }

    fn keep(&self, generation: u64, family: ColumnFamily) -> ColumnFamily {
        let found = Some((generation, Native::new(family.clone())));
        *self.found.write().unwrap_or_else(PoisonError::into_inner) = found;
        family
    }
}

fn no_family(name: &str) -> Failure {
    let what = format!("the column family {name:?}: column_family({name:?}, create=True) makes it");
    Error::new(ErrorKind::NotFound, what).into()
}
