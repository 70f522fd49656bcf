use super::store::{Layout, PageFile};
use super::tree::PageTree;
use super::*;
use crate::meter::space::directory_size;
use crate::run::file_system::Mounted;

fn codec() -> Codec {
    "zstd-1".parse().expect("is known")
}

#[test]
fn contents_fit_a_slot_mostly_and_repeat_with_their_seed() {
    let (mut one, mut other) = (Contents::new(3), Contents::new(3));
    let mut compressor = lithify::codec::Compressor::new(codec().into()).expect("is known");
    let mut too_large = 0;
    for _ in 0..200 {
        let content = one.next().to_vec();
        assert_eq!((content.len(), &content[..]), (PAGE_BYTES, other.next()));
        let mut compressed = Vec::new();
        compressor.compress(&content, &mut compressed).expect("is compressed");
        too_large += usize::from(compressed.len() > PAGE_BYTES / 2);
    }
    assert!((2..60).contains(&too_large), "{too_large} of 200 do not fit");
}

/// Pages come back as they were written last, whatever they were before.
#[test]
fn pages_come_back_in_every_layout() {
    for layout in Layout::ALL {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path();
        let mut pages: Box<dyn Pages> = match layout {
            Layout::Tree => Box::new(PageTree::open(place, codec()).expect("opens")),
            _ => Box::new(PageFile::create(place, layout, codec(), 40).expect("is made")),
        };
        let mut contents = Contents::new(1);
        let mut expected = vec![Vec::new(); 40];
        let mut random = Random::new(5, 5);
        for step in 0..400 {
            let number = if step < 40 { step } else { random.below(40) };
            let content = contents.next();
            match pages.write(number, content) {
                Err(error) if layout == Layout::Hole => {
                    println!("not tried: {error}");
                    return;
                }
                written => written.expect("is written"),
            }
            expected[number as usize] = content.to_vec();
        }
        pages.sync().expect("is synced");
        pages.settle().expect("settles");
        let mut page = Vec::new();
        for (number, content) in expected.iter().enumerate() {
            pages.read(number as u64, &mut page).expect("is read");
            assert!(page == *content, "{layout}, page {number}");
        }
        let size = directory_size(place).allocated_bytes;
        let raw = 40 * PAGE_BYTES as u64;
        if matches!(layout, Layout::Slot | Layout::Hole) {
            assert!(size < raw * 9 / 10, "{layout}: {size} of {raw} bytes");
            assert_eq!(layout == Layout::Slot, pages.pages_in_two_slots() > 0);
        }
        assert!(layout == Layout::Tree || pages.write(40, contents.next()).is_err());
        pages.remove().expect("is removed");
    }
}

/// In every layout on a file system made for it, and what a file system that cannot be made costs.
#[test]
fn a_file_system_that_cannot_be_made_costs_its_rows() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path();
    let plan = PagesPlan::new(PagesSpec {
        file_systems: vec!["ext4".parse().expect("is known")],
        layouts: vec![Layout::Hole, Layout::Plain],
        codec: codec(),
        pages: 64,
        seconds: 0,
        repeats: 2,
        seed: 1,
        build: String::new(),
    });
    let layouts: Vec<Layout> = plan.cells.iter().map(|cell| cell.layout).collect();
    assert_eq!(layouts, [Layout::Hole, Layout::Plain, Layout::Plain, Layout::Hole]);
    let entry = |place: &Place| {
        let request = place.file_system().expect("its own");
        let measured = Mounted::make(&request, data).and_then(|mounted| {
            let own = mounted.file_system();
            measure::measure(place, mounted.directory(), own, &|_| {})
        });
        if let Ok(result) = &measured {
            assert!(place.is_result(result) && result.machine.is_some());
        }
        Entry::new(place, measured.map_err(|why| why.to_string()))
    };
    let cells = plan.cells.iter().map(entry).collect();
    let record = PagesRecord::new(plan, Entries { interrupted: false, cells });
    assert!(record.cells.iter().all(|cell| cell.failure.is_some() != cell.figures.is_some()));
    let text = crate::kind::wide_text::<crate::page_store::kind::Pages>(&record);
    assert!(text.contains("time to drop, hole over plain"), "{text}");
    assert_eq!(report::csv(&record).lines().count(), 5);
    let left = std::fs::read_dir(data).expect("is there").count();
    assert_eq!(left, 0, "something is left");
}
