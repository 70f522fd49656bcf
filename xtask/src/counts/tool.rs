//! The programs that count: cargo builds, valgrind runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::run;

/// The function of the bench whose instructions are counted.
const TOGGLE: &str = "--toggle-collect=*instructions_counted_here*";

/// What a stage came to.
pub struct Measured {
    /// Instructions per operation.
    pub count: f64,
    /// The CPU features that the stage saw under valgrind.
    pub features: String,
}

/// The first line that a program prints.
fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}

/// What the counts depend on beside the source and the CPU; `None` without valgrind.
pub fn environment() -> Option<String> {
    let valgrind = first_line("valgrind", &["--version"])?;
    let unknown = || "?".to_owned();
    let rustc = first_line("rustc", &["-V"]).unwrap_or_else(unknown);
    let compiler = first_line("cc", &["--version"]).unwrap_or_else(unknown);
    let library = first_line("getconf", &["GNU_LIBC_VERSION"]).unwrap_or_else(unknown);
    Some(format!("{rustc}; {compiler}; {library}; {valgrind}"))
}

/// Builds the bench and gives its path.
pub fn build(repository: &Path) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["bench", "--locked", "--package", "lithify", "--bench", "stages", "--no-run"];
    let output = Command::new(cargo)
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(repository)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err("the bench does not build".to_owned());
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    executable(&messages).ok_or_else(|| "cargo names no executable of the bench".to_owned())
}

/// The path in cargo's messages; a path with an escape in it is not looked for.
fn executable(messages: &str) -> Option<PathBuf> {
    let of_bench = messages.lines().filter(|line| line.contains("\"name\":\"stages\""));
    let paths = of_bench.filter_map(|line| line.split("\"executable\":\"").nth(1));
    paths.filter_map(|rest| rest.split('"').next()).next_back().map(PathBuf::from)
}

/// The stages that the bench can count.
pub fn stages(program: &Path) -> Result<Vec<String>, String> {
    let output = run(Command::new(program).args(["--count", "list"]))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().map(str::to_owned).collect())
}

/// Counts one stage. What callgrind found stays in `target/counts`, for `callgrind_annotate`.
pub fn count(repository: &Path, program: &Path, stage: &str) -> Result<Measured, String> {
    let directory = repository.join("target/counts");
    std::fs::create_dir_all(&directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    let details = directory.join(format!("{stage}.callgrind"));
    let output = run(Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no", TOGGLE])
        .arg(format!("--callgrind-out-file={}", details.display()))
        .arg(program)
        .args(["--count", stage])
        // The environment lies on the stack and moves what comes after it.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    parse(&text, &report).ok_or_else(|| format!("{stage}: no counts in {report}{text}"))
}

fn parse(text: &str, report: &str) -> Option<Measured> {
    let after = |text: &str, name: &str| {
        let rest = text.lines().find_map(|line| line.split(name).nth(1))?;
        Some(rest.trim().to_owned())
    };
    let instructions: f64 = after(report, "Collected :")?.parse().ok()?;
    let operations: f64 = after(text, "operations ")?.parse().ok()?;
    let is_counted = instructions > 0.0 && operations > 0.0;
    let features = after(text, "features ")?;
    is_counted.then_some(Measured { count: instructions / operations, features })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_bench_is_found_among_cargos_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"lithify"},"executable":null}"#,
            "\n",
            r#"{"target":{"name":"stages"},"executable":"/t/release/deps/stages-1f","fresh":true}"#,
            "\n{\"reason\":\"build-finished\"}\n"
        );
        assert_eq!(executable(messages), Some(PathBuf::from("/t/release/deps/stages-1f")));
        assert_eq!(executable("{}"), None);
    }

    #[test]
    fn counts_are_divided_by_operations_and_nothing_counted_is_no_count() {
        let text = "operations 200\nfeatures x86_64+avx2\n";
        let report = "==7== Events    : Ir\n==7== Collected : 5000\n";
        let measured = parse(text, report).unwrap();
        assert_eq!((measured.count, measured.features.as_str()), (25.0, "x86_64+avx2"));
        assert!(parse(text, "==7== Collected : 0\n").is_none());
        assert!(parse("features x\n", report).is_none());
    }
}
