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

/// What came of a call.
struct Told {
    /// What it saw of the row, where it tells.
    seen: Option<Option<Slice>>,
    is_done: bool,
}

/// Makes the call.
fn call(
    handle: &ColumnFamily,
    key: &Key,
    condition: &Condition,
    own: Option<&[u8]>,
) -> lithify::Result<Told> {
    match condition {
        Condition::Always { value, meanwhile } => {
            let (mut seen, mut disturbed) = (None, Ok(()));
            let new = value.map(Value::bytes);
            let mut ranges = meanwhile.iter();
            handle.update(key, |old| {
                if let Some((start, end)) = ranges.next() {
                    disturbed = handle.delete_range(start, end);
                }
                seen = Some(old);
                new.clone()
            })?;
            disturbed?;
            Ok(Told { seen, is_done: true })
        }
        Condition::IfAbsent(value) => {
            Ok(Told { is_done: handle.put_if_absent(key, value.bytes())?, seen: None })
        }
        Condition::IfEqual { is_own, value } => {
            let named = if *is_own { own.unwrap_or_default() } else { &NO_VALUE };
            let is_done = match value {
                Some(value) => handle.compare_and_put(key, named, value.bytes())?,
                None => handle.compare_and_delete(key, named)?,
            };
            Ok(Told { is_done, seen: None })
        }
    }
}

impl Session<'_> {
    fn value_of(&self, slot: usize, key: &Key) -> Option<Vec<u8>> {
        self.state.family(slot).and_then(|content| content.get(key)).map(<[u8]>::to_vec)
    }

    pub(super) fn write_if(
        &mut self,
        slot: usize,
        key: &Key,
        condition: &Condition,
    ) -> Result<(), String> {
        let Some((handle, incarnation)) = self.handle(slot) else { return Ok(()) };
        let mut own = self.value_of(slot, key);
        let result = call(&handle, key, condition, own.as_deref());
        if self.is_locked(&(incarnation, key.clone()), None) {
            self.tally.count("refusals", 1);
            return expect_kind("a write to a locked row", result, ErrorKind::LockTimeout);
        }
        let Told { seen, is_done } = result.map_err(text)?;
        if let Condition::Always { meanwhile: Some((start, end)), .. } = condition {
            let change = Change::DeleteRange(start.clone(), end.clone());
            self.note_written(&[Write { family: slot, change }]);
            own = self.value_of(slot, key);
        }
        if let Some(seen) = seen {
            same_value(key, seen.as_deref(), own.as_deref())?;
        }
        let (must_be_done, value) = match condition {
            // To remove what is not there is no write.
            Condition::Always { value, .. } => (true, *value),
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
