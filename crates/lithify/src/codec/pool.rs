//! Reused codec contexts, handed to any thread and charged to the memory budget.
//!
//! Idle contexts lie on one stack per kind behind a mutex: a checkout takes the newest that
//! fits, whose memory is the likeliest to be in the CPU's caches. Idle contexts are bounded in
//! number and in bytes; the oldest goes first. A context is charged as [`MemoryUse::Codec`] from
//! its making to its end, in use or idle.

use super::{CodecId, Compression, Compressor, Decompressor, Dictionary};
use crate::Result;
use crate::base::{Charge, MemoryBudget, MemoryUse, lock};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, Weak};

/// The most idle contexts of each of the two kinds.
const IDLE_COUNT_MAX: usize = 16;

/// The share of the budget that idle contexts of each kind may hold, and the least they may.
const IDLE_BUDGET_DIVISOR: usize = 32;
const IDLE_BYTES_MIN: usize = 1 << 20;

/// A pool of [`Compressor`]s and [`Decompressor`]s. Any thread may call it.
pub struct ContextPool {
    budget: Arc<MemoryBudget>,
    fast_zlib: bool,
    compressors: Mutex<Vec<Charged<Compressor>>>,
    decompressors: Mutex<Vec<Charged<Decompressor>>>,
    dictionaries: Mutex<Vec<Weak<HeldDictionary>>>,
}

/// A [`Dictionary`] that is charged to a budget, once for all that hold it: its content, and the
/// digests that they asked for. Those that other pools of the process have it make are theirs, so that
/// what a database has room for does not depend on who else is in the process.
pub struct HeldDictionary {
    dictionary: Arc<Dictionary>,
    asked_for: Mutex<AskedFor>,
}

/// The digests that holders of a dictionary asked for, and what is charged for them.
struct AskedFor {
    compressions: Vec<Compression>,
    decodes_zstd: bool,
    charge: Charge,
}

impl AskedFor {
    fn recharge(&mut self, dictionary: &Dictionary) {
        self.charge.resize(dictionary.memory_bytes(&self.compressions, self.decodes_zstd));
    }
}

impl HeldDictionary {
    /// [`Dictionary::prepare_encoding`], charged.
    ///
    /// # Errors
    /// As [`Dictionary::prepare_encoding`].
    pub fn prepare_encoding(&self, compression: Compression) -> Result<()> {
        self.dictionary.prepare_encoding(compression)?;
        let mut asked_for = lock(&self.asked_for);
        if !asked_for.compressions.contains(&compression) {
            asked_for.compressions.push(compression);
            asked_for.recharge(&self.dictionary);
        }
        Ok(())
    }

    /// [`Dictionary::prepare_decoding`], charged.
    pub fn prepare_decoding(&self, codec: CodecId) {
        self.dictionary.prepare_decoding(codec);
        if codec == CodecId::Zstd {
            let mut asked_for = lock(&self.asked_for);
            asked_for.decodes_zstd = true;
            asked_for.recharge(&self.dictionary);
        }
    }
}

impl Deref for HeldDictionary {
    type Target = Dictionary;
    fn deref(&self) -> &Dictionary {
        &self.dictionary
    }
}

/// A context and what is charged for it.
struct Charged<T> {
    context: T,
    charge: Charge,
}

impl<T: Context> Charged<T> {
    fn new(context: T, budget: &Arc<MemoryBudget>) -> Self {
        let charge = budget.charge(MemoryUse::Codec, context.memory_bytes());
        Charged { context, charge }
    }

    /// Makes the charge follow the context's memory.
    fn recharge(&mut self) {
        let bytes = self.context.memory_bytes();
        if bytes != self.charge.bytes() {
            self.charge.resize(bytes);
        }
    }
}

/// What the pool needs to know of a context.
trait Context: Sized {
    fn memory_bytes(&self) -> usize;
    fn idle(pool: &ContextPool) -> &Mutex<Vec<Charged<Self>>>;
}

impl Context for Compressor {
    fn memory_bytes(&self) -> usize {
        Compressor::memory_bytes(self)
    }

    fn idle(pool: &ContextPool) -> &Mutex<Vec<Charged<Self>>> {
        &pool.compressors
    }
}

impl Context for Decompressor {
    fn memory_bytes(&self) -> usize {
        Decompressor::memory_bytes(self)
    }

    fn idle(pool: &ContextPool) -> &Mutex<Vec<Charged<Self>>> {
        &pool.decompressors
    }
}

impl ContextPool {
    /// A pool whose decompressors use the reference implementations.
    pub fn new(budget: Arc<MemoryBudget>) -> Arc<Self> {
        ContextPool::with_fast_zlib(budget, false)
    }

    /// A pool whose decompressors are made by [`Decompressor::with_fast_zlib`].
    pub fn with_fast_zlib(budget: Arc<MemoryBudget>, fast_zlib: bool) -> Arc<Self> {
        Arc::new(ContextPool {
            budget,
            fast_zlib,
            compressors: Mutex::default(),
            decompressors: Mutex::default(),
            dictionaries: Mutex::default(),
        })
    }

    /// A compressor for as long as the guard lives. Fails like [`Compressor::new`].
    pub fn compressor(self: &Arc<Self>, compression: Compression) -> Result<PooledCompressor> {
        self.check_out(compression, true)
    }

    /// The same for once: a context that is made for it does not lie idle afterwards.
    pub fn compressor_for_once(
        self: &Arc<Self>,
        compression: Compression,
    ) -> Result<PooledCompressor> {
        self.check_out(compression, false)
    }

    fn check_out(
        self: &Arc<Self>,
        compression: Compression,
        keeps_new: bool,
    ) -> Result<PooledCompressor> {
        let reused = {
            let mut idle = lock(&self.compressors);
            let found = idle.iter().rposition(|c| c.context.compression() == compression);
            found.map(|index| idle.remove(index))
        };
        let goes_back = keeps_new || reused.is_some();
        let context = match reused {
            Some(context) => context,
            None => Charged::new(Compressor::new(compression)?, &self.budget),
        };
        let pool = Arc::clone(self);
        Ok(PooledCompressor(Checkout { pool, context: Some(context), goes_back }))
    }

    /// The dictionary, charged as [`MemoryUse::Codec`] for as long as somebody holds it.
    pub fn hold(&self, dictionary: &Arc<Dictionary>) -> Arc<HeldDictionary> {
        let mut known = lock(&self.dictionaries);
        let is_it = |held: &Arc<HeldDictionary>| Arc::ptr_eq(&held.dictionary, dictionary);
        if let Some(held) = known.iter().filter_map(Weak::upgrade).find(is_it) {
            return held;
        }
        known.retain(|held| held.strong_count() > 0);
        let charge = self.budget.charge(MemoryUse::Codec, dictionary.memory_bytes(&[], false));
        let asked_for = AskedFor { compressions: Vec::new(), decodes_zstd: false, charge };
        let dictionary = Arc::clone(dictionary);
        let held = Arc::new(HeldDictionary { dictionary, asked_for: Mutex::new(asked_for) });
        known.push(Arc::downgrade(&held));
        held
    }

    /// A decompressor for as long as the guard lives.
    pub fn decompressor(self: &Arc<Self>) -> PooledDecompressor {
        let reused = lock(&self.decompressors).pop();
        let context = reused.unwrap_or_else(|| {
            Charged::new(Decompressor::with_fast_zlib(self.fast_zlib), &self.budget)
        });
        let pool = Arc::clone(self);
        PooledDecompressor(Checkout { pool, context: Some(context), goes_back: true })
    }

    /// Frees all idle contexts.
    pub fn clear(&self) {
        drop(std::mem::take(&mut *lock(&self.compressors)));
        drop(std::mem::take(&mut *lock(&self.decompressors)));
    }

    fn idle_bytes_max(&self) -> usize {
        (self.budget.limit_bytes() / IDLE_BUDGET_DIVISOR).max(IDLE_BYTES_MIN)
    }

    fn give_back<T: Context>(&self, mut context: Charged<T>) {
        context.recharge();
        let bytes_max = self.idle_bytes_max();
        let mut idle = lock(T::idle(self));
        let mut idle_bytes: usize = idle.iter().map(|c| c.charge.bytes()).sum();
        idle_bytes += context.charge.bytes();
        idle.push(context);
        let mut surplus = 0;
        while idle_bytes > bytes_max || idle.len() - surplus > IDLE_COUNT_MAX {
            idle_bytes -= idle[surplus].charge.bytes();
            surplus += 1;
        }
        if surplus > 0 {
            let freed: Vec<_> = idle.drain(..surplus).collect();
            drop(idle);
            drop(freed);
        }
    }
}

/// What both guards are. `context` is `None` only while the guard is dropped.
struct Checkout<T: Context> {
    pool: Arc<ContextPool>,
    context: Option<Charged<T>>,
    goes_back: bool,
}

impl<T: Context> Checkout<T> {
    fn get(&self) -> &T {
        // INVARIANT: only `drop` takes the context out.
        &self.context.as_ref().expect("a guard holds its context until it is dropped").context
    }

    /// Also charges what the context has grown by since the last time.
    fn get_mut(&mut self) -> &mut T {
        // INVARIANT: only `drop` takes the context out.
        let held = self.context.as_mut().expect("a guard holds its context until it is dropped");
        held.recharge();
        &mut held.context
    }
}

impl<T: Context> Drop for Checkout<T> {
    fn drop(&mut self) {
        if let Some(context) = self.context.take()
            && self.goes_back
        {
            self.pool.give_back(context);
        }
    }
}

/// A [`Compressor`] out of a [`ContextPool`]; goes back when dropped.
pub struct PooledCompressor(Checkout<Compressor>);

impl Deref for PooledCompressor {
    type Target = Compressor;
    fn deref(&self) -> &Compressor {
        self.0.get()
    }
}

impl DerefMut for PooledCompressor {
    fn deref_mut(&mut self) -> &mut Compressor {
        self.0.get_mut()
    }
}

/// A [`Decompressor`] out of a [`ContextPool`]; goes back when dropped.
pub struct PooledDecompressor(Checkout<Decompressor>);

impl Deref for PooledDecompressor {
    type Target = Decompressor;
    fn deref(&self) -> &Decompressor {
        self.0.get()
    }
}

impl DerefMut for PooledDecompressor {
    fn deref_mut(&mut self) -> &mut Decompressor {
        self.0.get_mut()
    }
}
