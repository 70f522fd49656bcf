//! Money moved between accounts by threads that meet: row locks, savepoints, and what to do when a
//! transaction is refused.
//!
//! `cargo run --release -p lithify --example transactions`

use lithify::{CfOptions, ColumnFamily, Db, Options, Result};

const ACCOUNTS: u64 = 10;
const THREADS: u64 = 4;
const TRANSFERS: u64 = 2_000;

fn name(account: u64) -> [u8; 8] {
    account.to_be_bytes()
}

fn amount(value: Option<lithify::Slice>) -> i64 {
    value.map_or(0, |bytes| i64::from_le_bytes(bytes[..].try_into().expect("eight bytes")))
}

/// Moves `sum` from one account to the other, unless that would leave too little.
fn transfer(db: &Db, accounts: &ColumnFamily, from: u64, to: u64, sum: i64) -> Result<bool> {
    let mut transaction = db.transaction();
    // Locks the row until the transaction ends, so that nobody changes it in between.
    let available = amount(transaction.get_for_update(accounts, name(from))?);
    transaction.set_savepoint();
    transaction.put(accounts, name(from), (available - sum).to_le_bytes())?;
    let other = amount(transaction.get_for_update(accounts, name(to))?);
    transaction.put(accounts, name(to), (other + sum).to_le_bytes())?;
    if available < sum {
        transaction.rollback_to_savepoint()?; // both writes are undone, the first lock is kept
        return Ok(false);
    }
    transaction.commit()?;
    Ok(true)
}

/// Repeats a transfer that lost against others: a deadlock or a lock that was not granted in time.
fn transfer_retrying(db: &Db, accounts: &ColumnFamily, hop: u64) -> Result<u64> {
    let (from, to) = (hop % ACCOUNTS, (hop * 7 + 1) % ACCOUNTS);
    let mut retries = 0;
    loop {
        match transfer(db, accounts, from, to, 1 + (hop % 5) as i64) {
            Err(error) if error.kind().is_retryable() => retries += 1,
            result => return result.map(|_| retries),
        }
    }
}

fn main() -> Result<()> {
    let directory =
        std::env::temp_dir().join(format!("lithify-transactions-{}", std::process::id()));
    let db = Db::open(&directory, Options::default())?;
    let accounts = db.column_family("accounts", CfOptions::default())?;
    for account in 0..ACCOUNTS {
        accounts.put(name(account), 1_000i64.to_le_bytes())?;
    }
    let retries: u64 = std::thread::scope(|scope| {
        let work = |thread: u64| {
            let (db, accounts) = (&db, &accounts);
            move || -> Result<u64> {
                let hops = (0..TRANSFERS).map(|hop| hop * THREADS + thread);
                hops.map(|hop| transfer_retrying(db, accounts, hop)).sum()
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum::<Result<u64>>()
    })?;
    let mut sum = 0;
    for account in 0..ACCOUNTS {
        sum += amount(accounts.get(name(account))?);
    }
    println!("{} transfers, {retries} retries, {sum} in all accounts", THREADS * TRANSFERS);
    assert_eq!(sum, 1_000 * ACCOUNTS as i64);
    db.close()?;
    std::fs::remove_dir_all(&directory).expect("the directory is ours");
    Ok(())
}
