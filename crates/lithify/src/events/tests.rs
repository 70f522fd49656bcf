//! The hub under a clock that the test moves: what is told, kept and survived.

use super::*;
use crate::base::{Clock, lock};
use crate::fs::MemoryEnvironment;
use crate::stats::JobKind;
use std::sync::Mutex;

fn hub(listener: EventListener) -> Events {
    let environment: Arc<dyn Environment> = Arc::new(MemoryEnvironment::new(1));
    let ledger = Ledger::new(&*environment as &dyn Clock);
    Events::new(listener, ledger, environment)
}

fn flush() -> JobInfo {
    JobInfo { target_level: Some(0), tables_in: 2, ..JobInfo::planned(JobKind::Flush, "rows") }
}

/// A listener that writes down what it hears.
fn recorder() -> (EventListener, Arc<Mutex<Vec<Event>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    (EventListener::new(move |event| lock(&sink).push(event.clone())), heard)
}

#[test]
fn a_job_of_several_parts_is_told_once() {
    let (listener, heard) = recorder();
    let events = hub(listener);
    let job = TrackedJob::new(flush());
    job.begin(&events);
    job.begin(&events);
    let record = JobRecord { cpu_ns: 7, written_bytes: 100, entries_in: 3, ..JobRecord::default() };
    job.end(&events, 1, [&record, &record], JobOutcome::Done);
    let heard = lock(&heard).clone();
    let [Event::JobBegan(began), Event::JobEnded(end)] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!(began, &end.job);
    assert_eq!((began.number, began.tables_in, end.cpu_ns, end.bytes_out), (1, 2, 14, 200));
    assert_eq!(events.ledger.latest_jobs(), std::slice::from_ref(end));
}

#[test]
fn a_job_that_never_began_is_not_told() {
    let (listener, heard) = recorder();
    let events = hub(listener);
    TrackedJob::new(flush()).end(&events, 0, [], JobOutcome::Aborted);
    assert!(lock(&heard).is_empty() && events.ledger.latest_jobs().is_empty());
}

#[test]
fn the_log_keeps_the_latest_jobs_only() {
    let events = hub(EventListener::none());
    for _ in 0..1_000 {
        events.tell_end(flush(), 1, [], JobOutcome::Done);
    }
    let numbers: Vec<_> = events.ledger.latest_jobs().iter().map(|end| end.job.number).collect();
    assert_eq!(numbers, (937..=1_000).collect::<Vec<_>>());
}

#[test]
fn a_listener_that_panics_is_counted() {
    let events = hub(EventListener::new(|_| std::panic::panic_any("listener")));
    events.tell_end(flush(), 1, [], JobOutcome::Done);
    events.tell_failure(Error::invalid("first"));
    events.tell_failure(Error::invalid("second"));
    assert_eq!(events.ledger.counter(Counter::ListenerPanics), 2, "a failure is told once");
    assert_eq!(events.ledger.latest_jobs().len(), 1);
}

#[test]
fn of_a_job_that_failed_no_table_is_left() {
    let failed = JobOutcome::of_error(&Error::new(crate::ErrorKind::NoSpace, "full"));
    let record = JobRecord { written_bytes: 100, entries_in: 3, ..JobRecord::default() };
    let end = JobEnd::new(flush(), 5, 2, [&record], failed);
    assert_eq!((end.tables_out, end.bytes_out, end.entries_in, end.wall_us()), (0, 0, 3, 5));
    assert!(end.outcome.to_string().starts_with("failed: no space"), "{}", end.outcome);
}

#[test]
fn listeners_are_equal_if_they_are_clones() {
    let one = EventListener::new(|_| ());
    assert_eq!(one, one.clone());
    assert_ne!(one, EventListener::new(|_| ()));
    assert_ne!(one, EventListener::none());
    assert_eq!(EventListener::none(), EventListener::default());
    assert!(EventListener::none().is_none() && !one.is_none());
}

/// A subscriber that writes down the fields of what it hears.
#[cfg(feature = "tracing")]
mod bridge {
    use super::*;
    use ::tracing::field::{Field, Visit};
    use ::tracing::span::{Attributes, Id, Record};
    use ::tracing::{Metadata, Subscriber};

    struct Lines(Arc<Mutex<Vec<String>>>);

    struct Line(String);

    impl Visit for Line {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            self.0.push_str(&format!(" {field}={value:?}"));
        }
    }

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &::tracing::Event<'_>) {
            let mut line =
                Line(format!("{} {}:", event.metadata().level(), event.metadata().target()));
            event.record(&mut line);
            lock(&self.0).push(line.0);
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn every_event_is_one_of_tracing() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        ::tracing::subscriber::with_default(Lines(Arc::clone(&lines)), || {
            let events = hub(EventListener::none());
            let job = TrackedJob::new(flush());
            job.begin(&events);
            let record = JobRecord { written_bytes: 100, entries_in: 3, ..JobRecord::default() };
            job.end(&events, 1, [&record], JobOutcome::Done);
            job.end(&events, 1, [], JobOutcome::of_error(&Error::invalid("wrong")));
            let (cause, at_us) = (DelayCause::Level0, 7);
            events.tell(Event::WritesSlowed { cause, at_us });
            events.tell(Event::WritesStopped { cause, at_us });
            events.tell(Event::WritesFree { at_us });
            events.tell_failure(Error::invalid("torn"));
        });
        let lines = lock(&lines).clone();
        let expected = [
            "INFO lithify: message=job began job=1 kind=\"flush\" reason=\"\" family=\"rows\" \
             target_level=0 tables_in=2 bytes_in=0 at_us=0",
            "INFO lithify: message=job ended job=1 kind=\"flush\" reason=\"\" family=\"rows\" \
             target_level=0 wall_us=0 cpu_ns=0 tables_in=2 tables_out=1 bytes_in=0 bytes_out=100 \
             entries_in=3 entries_dropped=0 outcome=done at_us=0",
        ];
        assert_eq!(lines[..2], expected);
        assert!(lines[2].starts_with("WARN") && lines[2].contains("outcome=failed: "), "{lines:?}");
        let rest = [
            "WARN lithify: message=writes slowed cause=\"level0\" at_us=7",
            "WARN lithify: message=writes stopped cause=\"level0\" at_us=7",
            "INFO lithify: message=writes free at_us=7",
        ];
        assert_eq!(lines[3..6], rest);
        assert!(lines[6].starts_with("ERROR") && lines[6].contains("torn"), "{lines:?}");
        assert_eq!(lines.len(), 7);
    }
}
