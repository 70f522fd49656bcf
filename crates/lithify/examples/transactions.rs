//! Moves money between accounts from several threads, in transactions that are tried again after
//! a lock timeout or a conflict. The sum stays what it was.

use lithify::{CfOptions, ColumnFamily, Db, Error, Options};

const ACCOUNTS: u64 = 8;
const START: u64 = 1000;

fn balance(value: Option<lithify::Slice>) -> u64 {
    value.and_then(|bytes| bytes.first_chunk().copied()).map_or(0, u64::from_le_bytes)
}

/// Moves an amount if there is enough. Both rows are locked before either is read, and dropping
/// the transaction on the way out of an error gives the locks back.
fn transfer(
    db: &Db,
    accounts: &ColumnFamily,
    from: u64,
    to: u64,
    amount: u64,
) -> Result<bool, Error> {
    let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
    let mut transaction = db.transaction();
    let source = balance(transaction.get_for_update(accounts, &from)?);
    let target = balance(transaction.get_for_update(accounts, &to)?);
    if source < amount {
        return Ok(false);
    }
    transaction.put(accounts, &from, &(source - amount).to_le_bytes())?;
    transaction.put(accounts, &to, &(target + amount).to_le_bytes())?;
    transaction.commit()?;
    Ok(true)
}

fn work(db: &Db, accounts: &ColumnFamily, worker: u64) -> Result<(u64, u64), Error> {
    let (mut done, mut retries) = (0, 0);
    for round in 0..200u64 {
        let (from, to) = ((worker + round) % ACCOUNTS, (worker * 3 + round * 5 + 1) % ACCOUNTS);
        if from == to {
            continue;
        }
        loop {
            match transfer(db, accounts, from, to, round % 50) {
                Ok(moved) => {
                    done += u64::from(moved);
                    break;
                }
                // Two that wait for each other's rows: one gives up, and tries again.
                Err(error) if error.kind().is_retryable() => retries += 1,
                Err(error) => return Err(error),
            }
        }
    }
    Ok((done, retries))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let options = Options { row_lock_timeout_ms: 5, ..Options::default() };
    let db = Db::open(directory.path().join("bank.db"), options)?;
    let accounts = db.column_family("accounts", CfOptions::default())?;
    for account in 0..ACCOUNTS {
        accounts.put(&account.to_be_bytes(), &START.to_le_bytes())?;
    }
    let results = std::thread::scope(|scope| {
        let (db, accounts) = (&db, &accounts);
        let spawn = |worker| scope.spawn(move || work(db, accounts, worker));
        let workers: Vec<_> = (0..4).map(spawn).collect();
        workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let (mut done, mut retries) = (0, 0);
    for result in results {
        let (moved, again) = result.map_err(|_| "a worker panicked")??;
        (done, retries) = (done + moved, retries + again);
    }
    let mut sum = 0;
    let mut rows = accounts.cursor(..)?;
    for row in rows.iter() {
        sum += balance(Some(row?.1));
    }
    println!("{done} transfers, {retries} tried again, {sum} in all accounts");
    if sum != ACCOUNTS * START {
        return Err(format!("{sum} instead of {}", ACCOUNTS * START).into());
    }
    Ok(())
}
