//! What the operating system sees of background threads.

use lithify::{CfOptions, Db, Options};

/// The nice levels of this process's threads, by their names.
fn nice_levels() -> Vec<(String, i32)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread may end while it is looked at.
    let statuses =
        tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).ok());
    statuses
        .map(|status| {
            let (head, fields) = status.rsplit_once(") ").unwrap();
            let name = head.split_once('(').unwrap().1.to_string();
            // The nineteenth field; the first two stand before the name's end.
            (name, fields.split(' ').nth(16).unwrap().parse().unwrap())
        })
        .collect()
}

#[test]
fn background_threads_are_behind_by_what_the_option_says() {
    let mine = rustix::process::getpriority_process(None).unwrap();
    let workers_behind_by = |background_nice: u32| {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { background_threads: 1, background_nice, ..Options::default() };
        let db = Db::open(directory.path(), options).unwrap();
        let rocks = db.column_family("rocks", CfOptions::default()).unwrap();
        rocks.put(b"basalt", b"igneous").unwrap();
        // Its worker has begun once it has flushed.
        rocks.flush().unwrap();
        let level = (mine + background_nice as i32).min(19);
        let is_worker = |(name, nice): &(String, i32)| name == "lithify-0" && *nice == level;
        nice_levels().iter().filter(|thread| is_worker(thread)).count()
    };
    // Other tests of this process have workers, too, but of other levels.
    assert_eq!(workers_behind_by(11), 1);
    assert_eq!(workers_behind_by(13), 1);
    assert_eq!(rustix::process::getpriority_process(None).unwrap(), mine);
}
