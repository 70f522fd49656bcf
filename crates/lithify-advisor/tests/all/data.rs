//! Files for tests.

use std::path::PathBuf;
use std::time::Duration;

use lithify_advisor::{Advice, AdviseError, Request, Silent, advise, target};
use tempfile::TempDir;

/// A file of a name with a content, gone with the directory.
pub fn file(name: &str, content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(name);
    std::fs::write(&path, content).expect("is written");
    (directory, path)
}

/// Numbers that follow from each other (xorshift64*), for rows that do not repeat.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// A table whose rows of one customer are alike; they come shuffled, or sorted by customer.
pub fn orders(rows: usize, is_sorted: bool) -> String {
    let mut numbers = Numbers(42);
    let mut lines: Vec<((u64, usize), String)> = (0..rows)
        .map(|row| {
            let customer = numbers.next() % (rows as u64 / 20);
            let mut of_customer = Numbers(customer + 1);
            let (street, town) = (of_customer.next(), of_customer.next());
            let line =
                format!("{customer},{street:016x} street {town:016x},{row},\"paid\nin cash\"");
            ((customer, row), line)
        })
        .collect();
    if is_sorted {
        lines.sort();
    }
    let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
    format!("customer,address,order,note\n{}\n", lines.join("\n"))
}

/// A request that takes a few seconds at most.
pub fn request(path: impl Into<PathBuf>, targets: &[&str], key: &[&str]) -> Request {
    Request {
        targets: targets.iter().map(|name| target(name).expect("is there")).collect(),
        key: key.iter().map(|name| (*name).to_owned()).collect(),
        time: Duration::from_secs(30),
        ..Request::new(path)
    }
}

pub fn advice(request: &Request) -> Advice {
    advise(request, &Silent).expect("advice")
}

pub fn refusal(request: &Request) -> AdviseError {
    advise(request, &Silent).expect_err("no advice")
}
