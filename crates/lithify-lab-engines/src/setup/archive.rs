//! Files out of archives.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use lithify_lab::adapter::EngineResult;

use super::failed;

/// A library is smaller than this.
const LIBRARY_BYTES_MAX: u64 = 256 << 20;

/// Unpacks one file of a ZIP archive, as which Java packages come.
pub fn extract(archive: &Path, name: &str, target: &Path) -> EngineResult<()> {
    let file = File::open(archive).map_err(|error| failed(archive, error))?;
    let mut zip = zip::ZipArchive::new(file).map_err(|error| failed(archive, error))?;
    let entry = zip
        .by_name(name)
        .map_err(|error| failed(archive, format_args!("{name} in it: {error}")))?;
    let mut output = File::create(target).map_err(|error| failed(target, error))?;
    let copied = io::copy(&mut entry.take(LIBRARY_BYTES_MAX), &mut output)
        .map_err(|error| failed(target, error))?;
    if copied >= LIBRARY_BYTES_MAX {
        return Err(failed(archive, format_args!("{name} in it is larger than a library")));
    }
    output.sync_all().map_err(|error| failed(target, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_archive_is_an_error_that_names_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("a.jar"), "no archive").expect("is written");
        let error = extract(&path("a.jar"), "x", &path("x")).expect_err("is none");
        assert!(error.to_string().contains("a.jar"), "{error}");
    }
}
