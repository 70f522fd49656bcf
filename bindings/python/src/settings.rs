//! Options as they come from Python: the engine's text form, keywords, or both.
//!
//! Owns: which keyword is an option of a database and which one of a column family. A keyword wins over the
//! text. Values are checked by the engine, which names the option and its range.

use lithify::{CfOptions, DATABASE_OPTIONS, Durability, FAMILY_OPTIONS, OptionInfo, Options};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};

use crate::errors::Result;

/// Options of a database, and of its default column family where some were given.
pub struct Settings {
    /// Of the database.
    pub database: Options,
    /// Of the default family.
    pub family: Option<FamilyOptions>,
}

impl Settings {
    /// Reads both.
    pub fn new(text: &str, keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Settings> {
        let (mut database, mut family) = (String::new(), String::new());
        for pair in text.split_ascii_whitespace() {
            let name = pair.split_once('=').map_or(pair, |(name, _)| name);
            let target = if is_in(FAMILY_OPTIONS, name) { &mut family } else { &mut database };
            push(target, pair);
        }
        for (name, value) in keywords.into_iter().flatten() {
            let name: String = name.extract()?;
            let target = match is_in(DATABASE_OPTIONS, &name) {
                true => &mut database,
                false if is_in(FAMILY_OPTIONS, &name) => &mut family,
                false => return Err(unknown(&name, &[DATABASE_OPTIONS, FAMILY_OPTIONS])),
            };
            push(target, &format!("{name}={}", text_of(&name, &value)?));
        }
        let read = || -> Result<Settings> {
            Ok(Settings { database: database.parse()?, family: FamilyOptions::new(family)? })
        };
        Ok(read()?)
    }
}

/// Options of a column family that were named.
pub struct FamilyOptions(String);

impl FamilyOptions {
    /// `None` where none were named. Names and values are checked; whether they agree with those that the
    /// family has is found out by [`FamilyOptions::over`].
    fn new(text: String) -> Result<Option<FamilyOptions>> {
        for pair in text.split_ascii_whitespace() {
            pair.parse::<CfOptions>()?;
        }
        Ok((!text.trim().is_empty()).then_some(FamilyOptions(text)))
    }

    /// All options of a family that has `present` ones: those that were not named stay.
    pub fn over(&self, present: &CfOptions) -> Result<CfOptions> {
        Ok(format!("{present} {}", self.0).parse()?)
    }
}

/// Options of a column family; `None` where none were given.
pub fn family_options(
    text: &str,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<FamilyOptions>> {
    let mut all = text.to_owned();
    for (name, value) in keywords.into_iter().flatten() {
        let name: String = name.extract()?;
        if !is_in(FAMILY_OPTIONS, &name) {
            return Err(unknown(&name, &[FAMILY_OPTIONS]));
        }
        push(&mut all, &format!("{name}={}", text_of(&name, &value)?));
    }
    Ok(FamilyOptions::new(all)?)
}

/// The durability of one commit.
pub fn durability(text: Option<&str>) -> PyResult<Option<Durability>> {
    let read = || -> Result<Option<Durability>> { Ok(text.map(str::parse).transpose()?) };
    Ok(read()?)
}

/// A table of options for Python: what each is, by its name.
pub fn table<'py>(py: Python<'py>, options: &[OptionInfo]) -> PyResult<Bound<'py, PyDict>> {
    let table = PyDict::new(py);
    for option in options {
        let row = PyDict::new(py);
        row.set_item("default", (option.default)())?;
        row.set_item("unit", option.unit)?;
        row.set_item("minimum", option.minimum)?;
        row.set_item("maximum", option.maximum)?;
        row.set_item("meaning", option.meaning)?;
        table.set_item(option.name, row)?;
    }
    Ok(table)
}

fn is_in(options: &[OptionInfo], name: &str) -> bool {
    options.iter().any(|option| option.name == name)
}

fn push(text: &mut String, pair: &str) {
    text.push(' ');
    text.push_str(pair);
}

/// As the engine writes it. `None` is no value: the engine's own default is had by leaving it out.
fn text_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(is_on) = value.cast::<PyBool>() {
        return Ok(is_on.is_true().to_string());
    }
    let is_one_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyString>() {
        let text = value.str()?.to_string();
        if is_one_word(&text) {
            return Ok(text);
        }
    }
    let what = value.repr()?;
    Err(PyTypeError::new_err(format!(
        "the option {name} is a bool, an int or one word, not {what}"
    )))
}

fn unknown(name: &str, tables: &[&[OptionInfo]]) -> PyErr {
    let names: Vec<&str> = tables.concat().iter().map(|option| option.name).collect();
    PyTypeError::new_err(format!("there is no option {name:?}; there are: {}", names.join(", ")))
}
