//! Writes by themselves that depend on what is there.

use super::session::{Session, expect_kind, same_value, text};
use crate::operation::{Change, Condition, Key, Value, Write};
use lithify::{ColumnFamily, ErrorKind, Slice};

/// A value that no row has: no recipe makes one that is as long.
static NO_VALUE: [u8; 1 << 16] = [7; 1 << 16];

/// What becomes of the row.
fn change_to(key: &Key, value: Option<Value>) -> Change {
    match value {
        Some(value) => Change::Put(key.clone(), value),
        None => Change::Delete(key.clone()),
    }
}

/// Makes the call; gives what it saw of the row, where it tells, and whether it wrote.
fn call(
    handle: &ColumnFamily,
    key: &Key,
    condition: &Condition,
    own: Option<&[u8]>,
) -> lithify::Result<(Option<Option<Slice>>, bool)> {
    match condition {
        Condition::Always(value) => {
            let mut seen = None;
            let new = value.map(Value::bytes);
            handle.update(key, |old| {
                seen = Some(old);
                new.clone()
            })?;
            Ok((seen, true))
        }
        Condition::IfAbsent(value) => Ok((None, handle.put_if_absent(key, value.bytes())?)),
        Condition::IfEqual { is_own, value } => {
            let named = own.filter(|_| *is_own).unwrap_or(&NO_VALUE);
            let is_done = match value {
                Some(value) => handle.compare_and_put(key, named, value.bytes())?,
                None => handle.compare_and_delete(key, named)?,
            };
            Ok((None, is_done))
        }
    }
}

impl Session<'_> {
    pub(super) fn write_if(
        &mut self,
        slot: usize,
        key: &Key,
        condition: &Condition,
    ) -> Result<(), String> {
        let Some((handle, incarnation)) = self.handle(slot) else { return Ok(()) };
        let own = self.state.family(slot).and_then(|content| content.get(key)).map(<[u8]>::to_vec);
        let result = call(&handle, key, condition, own.as_deref());
        if self.is_locked(&(incarnation, key.clone()), None) {
            self.tally.count("refusals", 1);
            return expect_kind("a write to a locked row", result, ErrorKind::LockTimeout);
        }
        let (seen, is_done) = result.map_err(text)?;
        if let Some(seen) = seen {
            same_value(key, seen.as_deref(), own.as_deref())?;
        }
        let (must_be_done, value) = match condition {
            // To remove what is not there is no write.
            Condition::Always(value) => (true, *value),
            Condition::IfAbsent(value) => (own.is_none(), Some(*value)),
            Condition::IfEqual { is_own, value } => (*is_own && own.is_some(), *value),
        };
        self.rows_compared += 1;
        if is_done != must_be_done {
            return Err(format!("{condition:?} was done: {is_done}, where the row is {own:?}"));
        }
        if is_done && (value.is_some() || own.is_some()) {
            self.note_written(&[Write { family: slot, change: change_to(key, value) }]);
        }
        Ok(())
    }
}
