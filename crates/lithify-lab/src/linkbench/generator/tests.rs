use super::super::graph::GraphConfig;
use super::super::profile::{OpMix, Profile};
use super::*;

fn with_generator<T>(
    profile: Profile,
    nodes: u64,
    test: impl FnOnce(&Graph, &mut RequestGenerator<'_>) -> T,
) -> T {
    let graph = Graph::new(profile, GraphConfig::with_nodes(nodes)).unwrap();
    let next_node_id = AtomicU64::new(graph.end_id());
    let seat = Seat {
        requester: 1,
        requesters: 4,
        next_node_id: &next_node_id,
        time_source: TimeSource::Logical,
        start_time_ms: 1_000_000,
        separate_targets: false,
    };
    test(&graph, &mut RequestGenerator::new(&graph, seat).unwrap())
}

fn only(operation: Operation) -> Profile {
    Profile { mix: OpMix::only(operation), ..Profile::lb2013() }
}

#[test]
fn multiget_sizes_follow_the_shifted_geometric() {
    with_generator(only(Operation::MultigetLink), 1000, |_, generator| {
        let draws = 200_000;
        let mut sizes = [0u32; MULTIGET_MAX + 1];
        for _ in 0..draws {
            sizes[generator.multiget_size()] += 1;
        }
        let share = |size: usize| f64::from(sizes[size]) / f64::from(draws);
        assert_eq!(sizes[0] + sizes[1], 0, "sizes start at 2");
        // P(k) = p (1-p)^(k-2) with p = 0.382: 0.382, 0.236, 0.146.
        assert!((share(2) - 0.383).abs() < 0.005);
        assert!((share(3) - 0.236).abs() < 0.005);
        assert!((share(4) - 0.146).abs() < 0.005);
        let mean: f64 = (0..sizes.len()).map(|size| size as f64 * share(size)).sum();
        assert!((mean - 3.62).abs() < 0.03, "mean {mean}");
    });
    let repaired = Profile { multiget_smallest: 1, ..only(Operation::MultigetLink) };
    with_generator(repaired, 1000, |_, generator| {
        let mean = (0..50_000).map(|_| generator.multiget_size()).sum::<usize>() as f64 / 5e4;
        assert!((mean - 2.62).abs() < 0.04, "mean {mean}");
    });
}

#[test]
fn multiget_targets_are_distinct_and_start_at_the_source() {
    with_generator(only(Operation::MultigetLink), 10_000, |graph, generator| {
        for _ in 0..20_000 {
            let Request::MultigetLink { id1, link_type } = generator.next_request() else {
                panic!()
            };
            let range = target_range(graph.links_of(id1, link_type - LINK_TYPE_FIRST), 0.5);
            let targets = generator.targets();
            assert!(targets.len() >= 2);
            if range <= targets.len() as u64 {
                assert!(targets.iter().zip(id1..).all(|(target, id2)| *target == id2));
            } else {
                assert!(targets.iter().all(|id2| (id1..id1 + range).contains(id2)));
            }
            let mut sorted = targets.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            // A range barely larger than the size still yields all distinct within 100 draws.
            assert_eq!(sorted.len(), targets.len());
        }
    });
}

#[test]
fn targets_exist_as_often_as_the_rule_says() {
    assert_eq!([0, 1, 2, 3].map(|links| target_range(links, 0.9)), [1, 2, 3, 4]);
    assert_eq!([0, 1, 5].map(|links| target_range(links, 0.5)), [1, 2, 10]);
    assert_eq!(target_range(1, 0.05), 20);
    with_generator(only(Operation::UpdateLink), 100_000, |graph, generator| {
        let (mut tries, mut hits) = (0u32, 0u32);
        for _ in 0..200_000 {
            let Request::PutLink { id1, link_type, id2, operation, .. } = generator.next_request()
            else {
                panic!()
            };
            assert_eq!(operation, Operation::UpdateLink);
            let links = graph.links_of(id1, link_type - LINK_TYPE_FIRST);
            if links == 1 {
                tries += 1;
                hits += u32::from(id2 - id1 < links);
            }
        }
        assert!((f64::from(hits) / f64::from(tries) - 0.5).abs() < 0.01);
    });
    with_generator(Profile::lb2013_clean(), 100_000, |graph, generator| {
        let hits = (0..50_000)
            .filter(|_| {
                let links = graph.links_of(500, 0);
                (500..500 + links).contains(&generator.target(500, 0, Operation::UpdateLink))
            })
            .count();
        assert!((hits as f64 / 50_000.0 - 0.9).abs() < 0.01);
    });
}

/// An exact share exists whatever the list's length; the others lie anywhere; a multi-get may
/// name a target twice.
#[test]
fn targets_of_the_edition_of_2020() {
    for (operation, share) in [
        (Operation::AddLink, 0.05),
        (Operation::UpdateLink, 0.9),
        (Operation::DeleteLink, 0.9),
        (Operation::MultigetLink, 0.5),
    ] {
        let mix = OpMix::only(operation);
        with_generator(Profile { mix, ..Profile::lb2020() }, 100_000, |graph, generator| {
            let (mut tries, mut hits, mut twice) = (0u32, 0u32, 0u32);
            for _ in 0..100_000 {
                let (id1, link_type, targets) = match generator.next_request() {
                    Request::PutLink { id1, link_type, id2, .. }
                    | Request::DeleteLink { id1, link_type, id2, .. } => {
                        (id1, link_type, vec![id2])
                    }
                    Request::MultigetLink { id1, link_type } => {
                        (id1, link_type, generator.targets().to_vec())
                    }
                    other => panic!("{other:?}"),
                };
                let links = graph.links_of(id1, link_type - LINK_TYPE_FIRST);
                assert!(links >= 1);
                let mut distinct = targets.clone();
                distinct.sort_unstable();
                distinct.dedup();
                twice += u32::from(distinct.len() < targets.len());
                tries += targets.len() as u32;
                let exists = |id2: &&u64| (id1..id1 + links).contains(id2);
                hits += targets.iter().filter(exists).count() as u32;
                assert!(targets.iter().all(|id2| *id2 < graph.end_id() + links));
            }
            let found = f64::from(hits) / f64::from(tries);
            assert!((found - share).abs() < 0.01, "{operation:?}: {found}");
            assert_eq!(twice > 0, operation == Operation::MultigetLink);
        });
    }
}

#[test]
fn separate_targets_keep_to_the_requesters_residue() {
    with_generator(only(Operation::AddLink), 1000, |_, generator| {
        generator.seat.separate_targets = true;
        for _ in 0..1000 {
            let Request::PutLink { id2, .. } = generator.next_request() else { panic!() };
            assert_eq!(id2 % 4, 1);
        }
    });
}

#[test]
fn link_writes_use_the_keys_of_the_reads() {
    let quirk = Profile::lb2013();
    assert_eq!(quirk.link_writes_uncorrelated, quirk.link_reads_uncorrelated);
    assert_eq!(quirk.link_writes_uncorrelated_share, 0.995);
    let fixed = Profile::lb2013().with_configured_link_writes();
    assert_eq!(fixed.link_writes_uncorrelated_share, 0.95);
    // The hottest uncorrelated id gets 0.995 of Zipf(0.8)'s hottest share.
    with_generator(only(Operation::AddLink), 1_000_000, |_, generator| {
        let shuffle = super::super::shuffle::Shuffle::new(
            1_000_000,
            super::super::shuffle::Shuffle::SEED_UNCORRELATED,
        );
        let hottest = 1 + shuffle.permute(0);
        let is_hottest =
            |request| matches!(request, Request::PutLink { id1, .. } if id1 == hottest);
        let hits = (0..300_000).filter(|_| is_hottest(generator.next_request())).count();
        assert!((hits as f64 / 300_000.0 - 0.0134 * 0.995).abs() < 0.001, "{hits}");
    });
}

#[test]
fn lists_go_on_from_history() {
    let profile = Profile { list_history_share: 1.0, ..only(Operation::GetLinksList) };
    with_generator(profile, 1000, |_, generator| {
        let Request::GetLinksList { query, from_history: false } = generator.next_request() else {
            panic!("nothing is remembered yet")
        };
        assert_eq!((query.offset, query.limit, query.max_time_ms), (0, 10_000, u64::MAX));
        let full = ListResult { rows: 10_000, last_time_ms: 555 };
        generator.list_was_read(&query, false, full);
        let Request::GetLinksList { query: on, from_history: true } = generator.next_request()
        else {
            panic!("a full list is remembered")
        };
        assert_eq!((on.id1, on.link_type, on.max_time_ms), (query.id1, query.link_type, 555));
        assert_eq!((on.offset, on.limit), (1, 10_000));
        generator.list_was_read(&on, true, ListResult { rows: 9_999, last_time_ms: 3 });
        assert!(matches!(
            generator.next_request(),
            Request::GetLinksList { from_history: false, .. }
        ));
    });
}

#[test]
fn node_ids_stay_in_the_loaded_range_and_new_ones_follow() {
    with_generator(Profile::lb2013(), 1000, |graph, generator| {
        let (mut new_ids, mut times) = (0, generator.time_ms());
        for _ in 0..20_000 {
            match generator.next_request() {
                Request::AddNode { id, .. } => {
                    assert_eq!(id, graph.end_id() + new_ids);
                    new_ids += 1;
                }
                Request::UpdateNode { id, .. }
                | Request::DeleteNode { id }
                | Request::GetNode { id } => assert!((1..graph.end_id()).contains(&id)),
                _ => {}
            }
            assert_eq!(generator.time_ms(), times + 1);
            times += 1;
        }
        assert!(new_ids > 400);
    });
}
