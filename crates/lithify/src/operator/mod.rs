//! Floor 1: merge operators, how operands that were written blindly fold into values.
//!
//! Owns [`MergeOperator`], those that come with the engine, and [`Operands`], a stack of operands on
//! its way to be folded. Pure: it knows no rows, files or threads. A fold that panics is one that
//! failed, for it is the user's code and runs in background jobs.

mod operands;
#[cfg(test)]
mod tests;

pub(crate) use operands::Operands;

use crate::base::VALUE_SIZE_MAX;
use crate::{Error, ErrorKind, Result};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::Arc;

/// The longest name, in bytes.
const NAME_SIZE_MAX: usize = 64;

/// The text of an option that names no operator.
const NO_NAME: &str = "none";

/// Key, value if there is one, operands oldest first.
type Fold = dyn Fn(&[u8], Option<&[u8]>, &[&[u8]]) -> Option<Vec<u8>> + Send + Sync;

/// Key, older, newer.
type Combine = dyn Fn(&[u8], &[u8], &[u8]) -> Option<Vec<u8>> + Send + Sync;

enum Rule {
    Full(Box<Fold>),
    Associative(Box<Combine>),
}

struct Named {
    name: Box<str>,
    /// How long an operand is, where one of another length could never be folded.
    operand_bytes: Option<usize>,
    /// `None` if the operator is known by name only: its code was not given yet.
    rule: Option<Rule>,
}

/// How the operands of [`crate::ColumnFamily::merge`] become a value: a setting of a column family,
/// kept in the database by its name. Code does not fit into a database, so an operator of one's own
/// is given at each opening; until then nothing that needs it is read, and nothing is lost.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// use lithify::{CfOptions, Db, MergeOperator, Options};
/// let longest = MergeOperator::associative("longest", |_key, older, newer| {
///     Some(if newer.len() > older.len() { newer } else { older }.to_vec())
/// });
/// let db = Db::open(directory.path(), Options::default())?;
/// let options = CfOptions { merge_operator: longest, ..CfOptions::default() };
/// let words = db.column_family("words", options)?;
/// words.merge("b", "basalt")?;
/// words.merge("b", "breccia")?;
/// words.merge("b", "borax")?;
/// assert_eq!(words.get("b")?.unwrap(), "breccia");
/// # Ok::<(), lithify::Error>(())
/// ```
///
/// An operator must give the same value for the same operands, whenever it is asked and in whatever
/// parts: flushes and compactions fold as well as reads.
#[derive(Clone, Default)]
pub struct MergeOperator(Option<Arc<Named>>);

impl MergeOperator {
    /// No operator: a merge is refused.
    pub const fn none() -> Self {
        MergeOperator(None)
    }

    /// The sum of integers of 8 bytes, little-endian, signed or not; it wraps around. A merge of an
    /// operand of another length is refused.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # use lithify::{CfOptions, Db, MergeOperator, Options};
    /// # let db = Db::open(directory.path(), Options::default())?;
    /// let options = CfOptions { merge_operator: MergeOperator::add(), ..CfOptions::default() };
    /// let visits = db.column_family("visits", options)?;
    /// visits.merge("/", 2_i64.to_le_bytes())?;
    /// visits.merge("/", (-1_i64).to_le_bytes())?;
    /// assert_eq!(visits.get("/")?.unwrap(), 1_i64.to_le_bytes());
    /// # Ok::<(), lithify::Error>(())
    /// ```
    pub fn add() -> Self {
        let add = |_: &[u8], older: &[u8], newer: &[u8]| {
            let (older, newer) = (older.try_into().ok()?, newer.try_into().ok()?);
            let sum = u64::from_le_bytes(older).wrapping_add(u64::from_le_bytes(newer));
            Some(sum.to_le_bytes().to_vec())
        };
        MergeOperator(Some(Arc::new(Named {
            name: "add".into(),
            operand_bytes: Some(size_of::<u64>()),
            rule: Some(Rule::Associative(Box::new(add))),
        })))
    }

    /// The bytes of all operands, one behind the other.
    pub fn append() -> Self {
        MergeOperator::associative("append", |_, older, newer| Some([older, newer].concat()))
    }

    /// The largest by the order of bytes.
    pub fn max() -> Self {
        MergeOperator::associative("max", |_, older, newer| Some(older.max(newer).to_vec()))
    }

    /// An operator whose operands are of another form than its values. `fold` is given the key, the
    /// value below the operands if there is one, and the operands, oldest first, at least one. `None`
    /// says that they are wrong: reads of the key then give an error, and all operands stay.
    pub fn new(
        name: &str,
        fold: impl Fn(&[u8], Option<&[u8]>, &[&[u8]]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        MergeOperator::named(name, Some(Rule::Full(Box::new(fold))))
    }

    /// An operator whose operands are values, and of which it does not matter which two are combined
    /// first. `combine` is given the key, the older and the newer; `None` as in
    /// [`MergeOperator::new`]. Operands take less room than those of others: any two that all readers
    /// see alike become one.
    pub fn associative(
        name: &str,
        combine: impl Fn(&[u8], &[u8], &[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        MergeOperator::named(name, Some(Rule::Associative(Box::new(combine))))
    }

    fn named(name: &str, rule: Option<Rule>) -> Self {
        MergeOperator(Some(Arc::new(Named { name: name.into(), operand_bytes: None, rule })))
    }

    /// One that comes with the engine.
    fn built_in(name: &str) -> Option<Self> {
        match name {
            "add" => Some(MergeOperator::add()),
            "append" => Some(MergeOperator::append()),
            "max" => Some(MergeOperator::max()),
            _ => None,
        }
    }

    /// The name, unless it is [`MergeOperator::none`].
    pub fn name(&self) -> Option<&str> {
        self.0.as_ref().map(|named| &*named.name)
    }

    /// Whether it is [`MergeOperator::none`].
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Whether its code is there.
    pub(crate) fn is_given(&self) -> bool {
        self.0.as_ref().is_some_and(|named| named.rule.is_some())
    }

    /// Whether any two operands can be combined without the value below them.
    pub(crate) fn is_associative(&self) -> bool {
        matches!(self.rule(), Some(Rule::Associative(_)))
    }

    /// Refuses an operand that could never be folded, as far as the engine knows.
    ///
    /// # Errors
    /// `InvalidArgument`.
    #[inline]
    pub(crate) fn check_operand(&self, operand: &[u8]) -> Result<()> {
        match self.0.as_ref().and_then(|named| named.operand_bytes) {
            Some(length) if length != operand.len() => Err(self.unfit(length, operand)),
            _ => Ok(()),
        }
    }

    #[cold]
    fn unfit(&self, length: usize, operand: &[u8]) -> Error {
        Error::invalid(format!(
            "the merge operator {:?} folds no value of this length",
            self.to_string()
        ))
        .expected(format_args!("{length} bytes"), operand.len())
    }

    /// Whether it folds values of one length alone.
    pub(crate) fn has_fixed_length(&self) -> bool {
        self.0.as_ref().is_some_and(|named| named.operand_bytes.is_some())
    }

    fn rule(&self) -> Option<&Rule> {
        self.0.as_ref()?.rule.as_ref()
    }

    /// Checks the name.
    pub(crate) fn validate(&self) -> Result<()> {
        let Some(name) = self.name() else { return Ok(()) };
        let is_fit = |byte: u8| byte.is_ascii_graphic() && byte != b'=';
        if name == NO_NAME
            || name.is_empty()
            || name.len() > NAME_SIZE_MAX
            || !name.bytes().all(is_fit)
        {
            let allowed = format!("1 to {NAME_SIZE_MAX} visible ASCII characters but =");
            return Err(Error::invalid("the name of a merge operator").expected(allowed, name));
        }
        Ok(())
    }

    /// What a family that had `stored` has when it is opened with this one.
    ///
    /// # Errors
    /// `InvalidArgument` for another name: the operands that are there were not written for it.
    pub(crate) fn over(&self, stored: &MergeOperator) -> Result<Self> {
        match (stored.name(), self.name()) {
            (Some(kept), Some(given)) if kept != given => {
                Err(Error::invalid("merge operator of the column family").expected(kept, given))
            }
            (_, Some(_)) if self.is_given() || stored.is_none() => Ok(self.clone()),
            _ => Ok(stored.clone()),
        }
    }

    /// The value of operands, oldest first, over `base`.
    ///
    /// # Errors
    /// [`ErrorKind::Merge`] if the operator refuses them, panics, or is not there.
    pub(crate) fn fold(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operands: &Operands,
    ) -> Result<Vec<u8>> {
        let rule = self.rule().ok_or_else(|| self.not_given())?;
        let folded = catch_unwind(AssertUnwindSafe(|| match rule {
            Rule::Full(fold) => {
                let operands: Vec<&[u8]> = operands.oldest_first().collect();
                fold(key, base, &operands)
            }
            Rule::Associative(combine) => {
                let mut parts = base.into_iter().chain(operands.oldest_first());
                let first = parts.next().map(<[u8]>::to_vec);
                parts.fold(first, |older, newer| combine(key, &older?, newer))
            }
        }));
        let value = match folded {
            Ok(value) => value.ok_or_else(|| self.failed("refuses the operands of a key", key))?,
            Err(_) => return Err(self.failed("panicked over a key", key)),
        };
        match value.len() <= VALUE_SIZE_MAX {
            true => Ok(value),
            false => Err(self.failed("gave a value that is too long to a key", key)),
        }
    }

    #[cold]
    fn failed(&self, what: &str, key: &[u8]) -> Error {
        let name = self.name().unwrap_or(NO_NAME);
        let key = key.escape_ascii();
        Error::new(ErrorKind::Merge, format!("the merge operator {name:?} {what}, \"{key}\""))
    }

    #[cold]
    fn not_given(&self) -> Error {
        let what = match self.name() {
            Some(name) => format!(
                "merge operator {name:?} is a program's own: only a program that gives it in \
                 CfOptions::merge_operator can read rows that have operands"
            ),
            None => "a row has merge operands, and its column family no merge operator".to_string(),
        };
        Error::new(ErrorKind::Merge, what)
    }
}

/// By name: that is what a database keeps.
impl PartialEq for MergeOperator {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for MergeOperator {}

impl fmt::Display for MergeOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or(NO_NAME))
    }
}

impl fmt::Debug for MergeOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MergeOperator({self})")
    }
}

impl FromStr for MergeOperator {
    type Err = Error;

    /// Reads a name. Those of the engine come with their code; any other one is only a name, until the
    /// family is opened with its code.
    fn from_str(text: &str) -> Result<Self> {
        if text == NO_NAME {
            return Ok(MergeOperator::none());
        }
        let operator = MergeOperator::built_in(text);
        let operator = operator.unwrap_or_else(|| MergeOperator::named(text, None));
        operator.validate()?;
        Ok(operator)
    }
}
