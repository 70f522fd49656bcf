//! Options by name and as text.

#![expect(unsafe_code, reason = "the border to C")]

use crate::call::{Failure, OK};
use crate::handle::{Handle, borrow, borrow_mut, free_function, new, place};
use libc::c_char;
use lithify_ffi::arguments::text;
use lithify_ffi::memory;

/// `lithify_options`.
pub type Options = Handle<lithify::Options>;
/// `lithify_family_options`.
pub type FamilyOptions = Handle<lithify::CfOptions>;

/// Settings that have names.
trait Settings: Clone {
    fn set(&mut self, name: &str, value: &str) -> lithify::Result<()>;
}

impl Settings for lithify::Options {
    fn set(&mut self, name: &str, value: &str) -> lithify::Result<()> {
        self.set(name, value)
    }
}

impl Settings for lithify::CfOptions {
    fn set(&mut self, name: &str, value: &str) -> lithify::Result<()> {
        self.set(name, value)
    }
}

/// Sets all pairs of a text, or none.
fn parse(settings: &mut impl Settings, text: &str) -> Result<(), Failure> {
    let mut changed = settings.clone();
    for pair in text.split_ascii_whitespace() {
        let Some((name, value)) = pair.split_once('=') else {
            let text = format!("invalid argument: {pair:?} is no option: write name=value");
            return Err(Failure::invalid(text));
        };
        changed.set(name, value)?;
    }
    *settings = changed;
    Ok(())
}

/// New options of a database, with their defaults.
// SAFETY: the name belongs to the header, and nothing else has it.
#[unsafe(no_mangle)]
pub extern "C" fn lithify_options_new() -> *mut Options {
    new(lithify::Options::default())
}

/// New options of a family, with their defaults.
// SAFETY: the name belongs to the header, and nothing else has it.
#[unsafe(no_mangle)]
pub extern "C" fn lithify_family_options_new() -> *mut FamilyOptions {
    new(lithify::CfOptions::default())
}

free_function!(lithify_options_free, lithify::Options);
free_function!(lithify_family_options_free, lithify::CfOptions);

c_functions! {
    /// Sets one option of a database.
    fn lithify_options_set(options: *mut Options, name: *const c_char, value: *const c_char) {
        borrow_mut(options)?.set(text(name)?, text(value)?)?;
        Ok(OK)
    }

    /// Sets several.
    fn lithify_options_parse(options: *mut Options, pairs: *const c_char) {
        parse(borrow_mut(options)?, text(pairs)?)?;
        Ok(OK)
    }

    /// All of them, as text.
    fn lithify_options_text(options: *const Options, answer: *mut *mut c_char) {
        let answer = place(answer)?;
        answer.set(memory::copy_text(&borrow(options)?.to_string()));
        Ok(OK)
    }

    /// Sets one option of a family.
    fn lithify_family_options_set(
        options: *mut FamilyOptions,
        name: *const c_char,
        value: *const c_char,
    ) {
        borrow_mut(options)?.set(text(name)?, text(value)?)?;
        Ok(OK)
    }

    /// Sets several.
    fn lithify_family_options_parse(options: *mut FamilyOptions, pairs: *const c_char) {
        parse(borrow_mut(options)?, text(pairs)?)?;
        Ok(OK)
    }

    /// All of them, as text.
    fn lithify_family_options_text(options: *const FamilyOptions, answer: *mut *mut c_char) {
        let answer = place(answer)?;
        answer.set(memory::copy_text(&borrow(options)?.to_string()));
        Ok(OK)
    }
}
