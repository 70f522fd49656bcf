//! An open database, and the column families in it, as all Python objects of it share them.
//!
//! Owns: [`Handle`], closed once for all of its users, and [`Target`], a family by its name. A database that
//! was opened for reading moves on with `refresh`; its families follow. Every call here may wait: callers
//! are detached from the interpreter.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use lithify::{CfOptions, ColumnFamily, DEFAULT_FAMILY, Db, Error, ErrorKind};

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

/// A column family by its name.
pub struct Target {
    handle: Arc<Handle>,
    name: String,
    /// The family as it was found, and in which generation of the database.
    found: RwLock<Option<(u64, Native<ColumnFamily>)>>,
}

impl Target {
    /// The default family.
    pub fn default_of(handle: Arc<Handle>) -> Target {
        Target { handle, name: DEFAULT_FAMILY.to_owned(), found: RwLock::new(None) }
    }

    /// A family of another name; without options it has to be there.
    pub fn open(handle: Arc<Handle>, name: &str, options: Option<CfOptions>) -> Result<Target> {
        let db = handle.db()?;
        let existing = db.existing_column_family(name)?;
        let family = match (existing, options) {
            (Some(family), None) => family,
            (_, Some(options)) => db.column_family(name, options)?,
            (None, None) => return Err(no_family(name)),
        };
        let found = (handle.generation.load(Ordering::Acquire), Native::new(family));
        Ok(Target { handle, name: name.to_owned(), found: RwLock::new(Some(found)) })
    }

    /// Of which database.
    pub fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The family; `None` if it is the default family and was never written to.
    pub fn existing(&self) -> Result<Option<ColumnFamily>> {
        self.handle.check_open()?;
        let generation = self.handle.generation.load(Ordering::Acquire);
        if let Some((of, family)) = &*self.found.read().unwrap_or_else(PoisonError::into_inner)
            && *of == generation
        {
            return Ok(Some(family.get()?.clone()));
        }
        let found = self.handle.db()?.existing_column_family(&self.name)?;
        match found {
            Some(family) => Ok(Some(self.keep(generation, family))),
            None if self.name == DEFAULT_FAMILY => Ok(None),
            None => Err(no_family(&self.name)),
        }
    }

    /// The family to be written to: the default one is made if it is not there.
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

    /// The family for a transaction, which has to note that it read a row that is not there.
    pub fn for_transaction(&self) -> Result<Option<ColumnFamily>> {
        match self.handle.db()?.is_read_only() {
            true => self.existing(),
            false => self.for_writing().map(Some),
        }
    }
}

fn no_family(name: &str) -> Failure {
    let what = format!("the column family {name:?}: column_family({name:?}, create=True) makes it");
    Error::new(ErrorKind::NotFound, what).into()
}
