//! The border that no panic crosses: unwinding into C is undefined.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a call from C. A panic becomes its text.
///
/// What a panic leaves behind may be half done, but not unsound: every object of an interface is either
/// behind the engine's own locks, or belongs to one thread that now sees a failure.
///
/// # Errors
/// The text of the panic.
///
/// ```
/// assert_eq!(lithify_ffi::guard::guarded(|| 7), Ok(7));
/// ```
pub fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| text_of(&*panic))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a defect of the library: {}", text.unwrap_or("a panic without a text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_text() {
        assert_eq!(guarded(|| 1), Ok(1));
        let text = guarded(|| -> u32 { panic!("number {}", 7) }).unwrap_err();
        assert_eq!(text, "a defect of the library: number 7");
        let text = guarded(|| -> u32 { panic!("plain") }).unwrap_err();
        assert!(text.ends_with("plain"));
    }
}
