//! Models of threads, and the defects that they have to notice.
//!
//! A defect is in force in the whole process, so a model that is tried with one runs alone; without
//! one they run beside each other, as tests do.

use std::sync::{PoisonError, RwLock};

static RUNNING: RwLock<()> = RwLock::new(());

/// Runs a model as it is.
pub(crate) fn run(model: impl FnOnce()) {
    let _beside_others = RUNNING.read().unwrap_or_else(PoisonError::into_inner);
    model();
}

/// Whether a model fails with a defect in force. What the failure would print is left out.
#[cfg(feature = "planted-defects")]
pub(crate) fn fails_with(defect: super::Defect, model: impl FnOnce()) -> bool {
    let _alone = RUNNING.write().unwrap_or_else(PoisonError::into_inner);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    super::select(Some(defect));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(model));
    super::select(None);
    std::panic::set_hook(hook);
    outcome.is_err()
}
