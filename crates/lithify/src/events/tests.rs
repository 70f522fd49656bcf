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

    /// Writes down events, and spans that are made, entered, completed and closed. One span is open at a time.
    struct Lines {
        lines: Arc<Mutex<Vec<String>>>,
        handles: Mutex<u64>,
    }

    struct Line(String);

    impl Visit for Line {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            self.0.push_str(&format!(" {field}={value:?}"));
        }
    }

    impl Lines {
        fn note(&self, begin: String, record: impl FnOnce(&mut Line)) {
            let mut line = Line(begin);
            record(&mut line);
            lock(&self.lines).push(line.0);
        }
    }

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, span: &Attributes<'_>) -> Id {
            let (level, name) = (span.metadata().level(), span.metadata().name());
            self.note(format!("{level} span {name}:"), |line| span.record(line));
            *lock(&self.handles) += 1;
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, values: &Record<'_>) {
            self.note("span:".to_owned(), |line| values.record(line));
        }
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &::tracing::Event<'_>) {
            let (level, target) = (event.metadata().level(), event.metadata().target());
            self.note(format!("{level} {target}:"), |line| event.record(line));
        }
        fn enter(&self, _: &Id) {
            self.note("in".to_owned(), |_| ());
        }
        fn exit(&self, _: &Id) {
            self.note("out".to_owned(), |_| ());
        }
        fn clone_span(&self, id: &Id) -> Id {
            *lock(&self.handles) += 1;
            id.clone()
        }
        fn try_close(&self, _: Id) -> bool {
            *lock(&self.handles) -= 1;
            let is_closed = *lock(&self.handles) == 0;
            if is_closed {
                self.note("closed".to_owned(), |_| ());
            }
            is_closed
        }
    }

    fn lines_of(tell: impl FnOnce(&Events)) -> Vec<String> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let subscriber = Lines { lines: Arc::clone(&lines), handles: Mutex::new(0) };
        ::tracing::subscriber::with_default(subscriber, || tell(&hub(EventListener::none())));
        lock(&lines).clone()
    }

    #[test]
    fn an_option_that_has_changed_is_an_event() {
        let change = |name, old: &str, new: &str| OptionChange {
            name,
            old: old.to_owned(),
            new: new.to_owned(),
        };
        let changes = vec![change("fanout", "8", "5"), change("table_bytes", "1", "2")];
        let lines = lines_of(|events| events.tell_options("rows", changes));
        assert_eq!(lines.len(), 2, "{lines:?}");
        let expected = "INFO lithify: message=option changed family=\"rows\" option=\"fanout\" \
                        old=\"8\" new=\"5\"";
        assert!(lines[0].starts_with(expected), "{lines:?}");
    }

    #[test]
    fn a_job_is_a_span_with_its_events() {
        let lines = lines_of(|events| {
            let job = TrackedJob::new(flush());
            job.begin(events);
            let record = JobRecord { written_bytes: 100, entries_in: 3, ..JobRecord::default() };
            job.end(events, 1, [&record], JobOutcome::Done);
        });
        let job = "job=1 kind=\"flush\" reason=\"\" family=\"rows\" target_level=0";
        let expected = [
            format!("INFO span job: {job}"),
            "in".into(),
            format!("INFO lithify: message=job began {job} tables_in=2 bytes_in=0 at_us=0"),
            "out".into(),
            "span: bytes_out=100".into(),
            "span: outcome=done".into(),
            "in".into(),
            format!(
                "INFO lithify: message=job ended {job} wall_us=0 cpu_ns=0 tables_in=2 tables_out=1 \
                 bytes_in=0 bytes_out=100 entries_in=3 entries_dropped=0 outcome=done at_us=0"
            ),
            "out".into(),
            "closed".into(),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_job_that_is_told_at_its_end_alone_has_no_span() {
        let lines = lines_of(|events| {
            let outcome = JobOutcome::of_error(&Error::invalid("wrong"));
            events.tell_end(flush(), 1, [], outcome);
        });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(line.starts_with("WARN") && line.contains("outcome=failed: "), "{line}");
    }

    #[test]
    fn writers_that_are_held_back_are_one_span_until_they_are_free() {
        let (cause, at_us) = (DelayCause::Level0, 7);
        let lines = lines_of(|events| {
            events.tell(Event::WritesSlowed { cause, at_us });
            events.tell(Event::WritesStopped { cause, at_us });
            events.tell(Event::WritesFree { at_us });
            events.tell_failure(Error::invalid("torn"));
        });
        let told: Vec<&String> = lines
            .iter()
            .filter(|line| line.contains("lithify:") || line.contains("span"))
            .collect();
        let expected = [
            "WARN span writes held back:",
            "WARN lithify: message=writes slowed cause=\"level0\" at_us=7",
            "WARN lithify: message=writes stopped cause=\"level0\" at_us=7",
            "INFO lithify: message=writes free at_us=7",
        ];
        assert_eq!(told[..4], expected);
        assert!(told[4].starts_with("ERROR") && told[4].contains("torn"), "{told:?}");
        assert_eq!(told.len(), 5);
        let at = |text: &str| lines.iter().position(|line| line.contains(text));
        let (free, closed, failed) = (at("writes free"), at("closed"), at("torn"));
        assert!(free < closed && closed < failed, "closed once they are free: {lines:?}");
    }
}
