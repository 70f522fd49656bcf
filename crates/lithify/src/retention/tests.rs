use super::*;

#[test]
fn a_row_is_over_when_it_is_older_than_it_may_become() {
    let over = |written_s, now_s| Expiry::at(now_s, 60).is_expired(written_s);
    assert!(!over(1000, 1000) && !over(1000, 1060) && over(1000, 1061) && over(1000, 5000));
    // A clock that went back, one that stands before 1970, and what is not committed.
    assert!(!over(1000, 900) && !over(0, 30) && !over(PENDING, u64::from(u32::MAX) + 100));
    assert!(!Expiry::at(0, u64::from(u32::MAX)).is_expired(0));
}

#[test]
fn a_value_carries_its_write_time() {
    for value in [&b""[..], b"granite"] {
        let stored = stamped(value, 77);
        assert_eq!(split(&stored).unwrap(), (value, 77));
        assert_eq!(Expiry::at(101, 24).shown(&stored).unwrap(), Some(value));
        assert_eq!(Expiry::at(102, 24).shown(&stored).unwrap(), None);
    }
    let error = split(b"abc").unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Corruption);
    assert_eq!(write_time(u64::MAX), PENDING - 1);
}

#[test]
fn times_of_a_table_are_those_of_its_oldest_and_newest_put() {
    let times = WriteTimes::of(50).and(90).and(70);
    assert_eq!(times, WriteTimes { oldest_s: 50, newest_s: 90 });
    assert!(times.are_expired(Expiry::at(101, 10)) && !times.are_expired(Expiry::at(100, 10)));
    assert!(
        times.are_half_expired(Expiry::at(81, 10)) && !times.are_half_expired(Expiry::at(80, 10))
    );
}

#[test]
fn a_filter_that_fails_names_itself_and_the_key() {
    let row = FilteredRow { key: b"k", value: b"v", level: 3, age_s: 0 };
    let filters = [
        CompactionFilter::new("strict", |_| Err("no such schema".into())),
        CompactionFilter::new("strict", |_| panic!("at once")),
        CompactionFilter::new("strict", |_| Ok(FilterDecision::Change(vec![0; 5]))),
    ];
    for filter in filters {
        let error = filter.decide(&row, 4).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::CompactionFilter);
        let text = error.to_string();
        assert!(text.contains("strict") && text.contains("\"k\""), "{text}");
    }
}
