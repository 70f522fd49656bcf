//! Flow control against a model of a database: one writer that never rests, a flush and a
//! compaction that work at fixed rates in steps, all under a virtual clock.

use crate::compaction::flow::*;
use crate::stats::DelayCause;

const MIB: f64 = (1 << 20) as f64;
const WINDOW_US: u64 = 100_000;

/// How fast the parts of the model are, in bytes per second.
struct Speeds {
    writer: f64,
    flush: f64,
    compaction: f64,
}

/// A job of the model: `left` of `total` bytes to go.
#[derive(Clone, Copy)]
struct Work {
    total: f64,
    left: f64,
    runs: usize,
}

struct Model {
    speeds: Speeds,
    memtable_max: f64,
    flow: FlowController,
    now_us: u64,
    active: f64,
    immutable: Vec<f64>,
    runs: usize,
    flush: Option<Work>,
    compaction: Option<Work>,
    /// Bytes written in each window of 100 ms.
    windows: Vec<f64>,
    delayed_us: u64,
    stops: u32,
    last_write_us: u64,
    longest_gap_us: u64,
    causes: Vec<DelayCause>,
}

const TRIGGER: usize = 4;
const STEP_US: u64 = 250;

impl Model {
    fn new(speeds: Speeds) -> Self {
        let memtable_max = 4.0 * MIB;
        let options = FlowOptions::new(memtable_max as u64, u64::MAX, TRIGGER, 0.3);
        Model {
            speeds,
            memtable_max,
            flow: FlowController::new(options, 0),
            now_us: 0,
            active: 0.0,
            immutable: Vec::new(),
            runs: 0,
            flush: None,
            compaction: None,
            windows: Vec::new(),
            delayed_us: 0,
            stops: 0,
            last_write_us: 0,
            longest_gap_us: 0,
            causes: Vec::new(),
        }
    }

    fn debt(&self) -> Debt {
        let level0_bytes = (self.runs as f64 * self.memtable_max) as u64;
        Debt {
            memtable_bytes: (self.active + self.immutable.iter().sum::<f64>()) as u64,
            level0_runs: self.runs,
            level0_bytes,
            pending_compaction_bytes: level0_bytes,
            work_per_flushed_byte: 1.0,
            flushed_per_written_byte: 1.0,
            ..Debt::default()
        }
    }

    /// Background work of one step's time.
    fn background(&mut self) {
        if self.flush.is_none()
            && let Some(total) = self.immutable.first().copied()
        {
            self.flush = Some(Work { total, left: total, runs: 1 });
            self.flow.drain_begins(Drain::Flush, self.now_us);
        }
        if self.compaction.is_none() && self.runs >= TRIGGER {
            let total = self.runs as f64 * self.memtable_max;
            self.compaction = Some(Work { total, left: total, runs: self.runs });
            for drain in [Drain::Level0, Drain::Compaction] {
                self.flow.drain_begins(drain, self.now_us);
            }
        }
        let seconds = STEP_US as f64 / 1e6;
        if let Some(work) = &mut self.flush {
            let bytes = work.left.min(self.speeds.flush * seconds);
            work.left -= bytes;
            self.flow.drained(Drain::Flush, bytes as u64, self.now_us);
        }
        if let Some(work) = &mut self.compaction {
            let bytes = work.left.min(self.speeds.compaction * seconds);
            work.left -= bytes;
            for drain in [Drain::Level0, Drain::Compaction] {
                self.flow.drained(drain, bytes as u64, self.now_us);
            }
        }
        if let Some(work) = self.flush.take_if(|work| work.left <= 0.0) {
            self.immutable.remove(0);
            self.runs += 1;
            self.flow.drain_ends(Drain::Flush, work.total as u64, self.debt(), self.now_us);
        }
        if let Some(work) = self.compaction.take_if(|work| work.left <= 0.0) {
            self.runs -= work.runs;
            for drain in [Drain::Level0, Drain::Compaction] {
                self.flow.drain_ends(drain, work.total as u64, self.debt(), self.now_us);
            }
        }
    }

    /// The background keeps step with the clock.
    fn pass(&mut self, us: u64) {
        let steps = (self.now_us + us) / STEP_US - self.now_us / STEP_US;
        self.now_us += us;
        (0..steps).for_each(|_| self.background());
    }

    fn run(&mut self, seconds: u64, batch: f64) {
        let end_us = self.now_us + seconds * 1_000_000;
        while self.now_us < end_us {
            match self.flow.admit(batch as u64, self.now_us) {
                Admission::Go => {
                    let window = (self.now_us / WINDOW_US) as usize;
                    self.windows.resize(window + 1, 0.0);
                    self.windows[window] += batch;
                    let gap_us = self.now_us - self.last_write_us;
                    self.longest_gap_us = gap_us.max(self.longest_gap_us);
                    self.last_write_us = self.now_us;
                    self.active += batch;
                    if self.active >= self.memtable_max {
                        self.immutable.push(std::mem::take(&mut self.active));
                        self.flow.update(self.debt(), self.now_us);
                    }
                    self.pass((batch / self.speeds.writer * 1e6) as u64 + 1);
                }
                Admission::Delay { us, cause } => {
                    assert!((1..=DELAY_US_MAX).contains(&us));
                    if self.causes.last() != Some(&cause) {
                        self.causes.push(cause);
                    }
                    self.delayed_us += us;
                    self.pass(us);
                }
                Admission::Stop(_) => {
                    self.stops += 1;
                    self.pass(1_000);
                }
            }
        }
    }

    /// Mean bytes per second and coefficient of variation of the windows from a second on.
    fn evenness(&self, from_second: usize) -> (f64, f64) {
        let windows = &self.windows[from_second * 10..self.windows.len() - 1];
        let count = windows.len() as f64;
        let mean = windows.iter().sum::<f64>() / count;
        let variance = windows.iter().map(|bytes| (bytes - mean).powi(2)).sum::<f64>() / count;
        (mean * 10.0, variance.sqrt() / mean)
    }
}

#[test]
fn a_writer_that_the_flush_keeps_up_with_is_never_slowed() {
    let speeds = Speeds { writer: 20.0 * MIB, flush: 40.0 * MIB, compaction: 60.0 * MIB };
    let mut model = Model::new(speeds);
    model.run(20, 10_000.0);
    assert_eq!((model.delayed_us, model.stops), (0, 0));
    assert!(model.evenness(1).0 > 19.0 * MIB);
}

#[test]
fn an_overloaded_flush_gives_an_even_rate() {
    for (flush, batch) in [(10.0, 10_000.0), (10.0, 200.0), (3.0, 50_000.0), (60.0, 300_000.0)] {
        let speeds = Speeds { writer: 200.0 * MIB, flush: flush * MIB, compaction: 1_000.0 * MIB };
        let mut model = Model::new(speeds);
        model.run(30, batch);
        let (rate, variation) = model.evenness(10);
        assert!((rate / (flush * MIB) - 1.0).abs() < 0.05, "{flush}: {}", rate / MIB);
        assert!(variation < 0.1, "{flush}: {variation}");
        assert!(model.longest_gap_us < 40_000, "{flush}: {}", model.longest_gap_us);
        assert_eq!(model.stops, 0, "{flush}");
        assert!(model.causes.contains(&DelayCause::Memtable));
    }
}

#[test]
fn an_overloaded_compaction_gives_an_even_rate() {
    for compaction in [5.0, 20.0] {
        let speeds =
            Speeds { writer: 200.0 * MIB, flush: 100.0 * MIB, compaction: compaction * MIB };
        let mut model = Model::new(speeds);
        model.run(120, 10_000.0);
        let (rate, variation) = model.evenness(60);
        assert!((rate / (compaction * MIB) - 1.0).abs() < 0.1, "{compaction}: {}", rate / MIB);
        assert!(variation < 0.25, "{compaction}: {variation}");
        assert!(model.longest_gap_us < 40_000, "{compaction}: {}", model.longest_gap_us);
        assert_eq!(model.stops, 0);
        assert!(model.causes.contains(&DelayCause::Level0));
    }
}

fn controller() -> FlowController {
    FlowController::new(FlowOptions::new(1 << 20, 4 << 20, TRIGGER, 0.3), 0)
}

#[test]
fn the_delay_grows_with_the_debt_without_jumps() {
    let mut last_rate = f64::INFINITY;
    for runs in 5..20 {
        // Memtables so large that they never press.
        let flow = FlowController::new(FlowOptions::new(1 << 40, 1 << 50, TRIGGER, 0.3), 0);
        let debt = Debt { level0_runs: runs, level0_bytes: 1, ..Debt::default() };
        flow.update(debt, 0);
        flow.update(debt, 10_000_000);
        // How much gets through in a second, in batches of a kilobyte.
        let (mut now_us, mut bytes) = (10_000_000, 0.0);
        while now_us < 11_000_000 && bytes < 1e9 {
            match flow.admit(1_024, now_us) {
                Admission::Go => bytes += 1_024.0,
                Admission::Delay { us, cause } => {
                    assert_eq!(cause, DelayCause::Level0);
                    now_us += us;
                }
                Admission::Stop(cause) => panic!("stopped by {cause:?} at {runs} runs"),
            }
        }
        assert!(bytes < last_rate, "{runs} runs: {bytes} after {last_rate}");
        if (6..18).contains(&runs) {
            assert!(bytes > last_rate * 0.4, "{runs} runs: {bytes} after {last_rate}");
        }
        last_rate = bytes;
    }
}

#[test]
fn each_debt_stops_writers_at_its_hard_limit_and_lets_them_go_below() {
    let debts = [
        (Debt { memtable_bytes: 4 << 20, ..Debt::default() }, DelayCause::Memtable),
        (Debt { level0_runs: 20, ..Debt::default() }, DelayCause::Level0),
        (
            Debt {
                pending_compaction_bytes: 320 << 20,
                work_per_flushed_byte: 10.0,
                ..Debt::default()
            },
            DelayCause::PendingCompaction,
        ),
    ];
    for (debt, cause) in debts {
        let flow = controller();
        flow.update(debt, 0);
        assert_eq!(flow.admit(1, 1), Admission::Stop(cause));
        flow.update(Debt::default(), 2);
        assert_eq!(flow.admit(1, 3), Admission::Go);
    }
}

#[test]
fn bytes_written_between_updates_count() {
    let flow = controller();
    let mut written = 0;
    while flow.admit(64 << 10, 1) == Admission::Go {
        written += 64 << 10;
        assert!(written <= 4 << 20);
    }
    // No time has passed, so nothing pressed; the hard limit still holds.
    assert_eq!(written, 4 << 20);
    assert_eq!(flow.admit(1, 1), Admission::Stop(DelayCause::Memtable));
}

#[test]
fn a_large_batch_is_paid_for_by_the_next() {
    let flow = controller();
    let debt = Debt { level0_runs: 12, level0_bytes: 1, ..Debt::default() };
    flow.update(debt, 0);
    flow.update(debt, 60_000_000);
    let start_us = 60_000_000;
    // At half pressure the rate is that of the drain: 16 MiB/s as nothing was measured yet, and
    // a little less every moment that nothing drains.
    assert_eq!(flow.admit(2 << 20, start_us), Admission::Go);
    let mut now_us = start_us;
    while let Admission::Delay { us, .. } = flow.admit(1, now_us) {
        now_us += us;
    }
    let waited_us = now_us - start_us;
    assert!((155_000..=171_000).contains(&waited_us), "{waited_us}");
}

#[test]
fn a_failed_job_leaves_the_debt_as_it_was() {
    let flow = controller();
    let debt = Debt { level0_runs: 20, level0_bytes: 20 << 20, ..Debt::default() };
    flow.update(debt, 0);
    flow.drain_begins(Drain::Level0, 0);
    flow.drained(Drain::Level0, 15 << 20, 1_000);
    assert_eq!(flow.admit(1, 1_000), Admission::Go, "most of level 0 is as good as gone");
    flow.drain_ends(Drain::Level0, 15 << 20, debt, 2_000);
    assert_eq!(flow.admit(1, 2_000), Admission::Stop(DelayCause::Level0));
}

#[test]
fn space_slows_writers_and_never_stops_them() {
    let flow = controller();
    // Of the space only what older entries take for nothing counts.
    let excess_bytes = 1 << 30;
    let new = Debt { excess_bytes, settled_bytes: 1 << 20, ..Debt::default() };
    flow.update(new, 0);
    flow.update(new, 60_000_000);
    assert_eq!(flow.admit(1 << 10, 60_000_000), Admission::Go);
    let overwritten = Debt { obsolete_share: 1.0, ..new };
    flow.update(overwritten, 60_000_000);
    flow.update(overwritten, 120_000_000);
    let (mut now_us, mut written) = (120_000_000, 0);
    while now_us < 121_000_000 {
        match flow.admit(1 << 10, now_us) {
            Admission::Go => written += 1 << 10,
            Admission::Delay { us, cause } => {
                assert_eq!(cause, DelayCause::Space);
                now_us += us;
            }
            Admission::Stop(cause) => panic!("stopped by {cause:?}"),
        }
    }
    assert!((1 << 18..4 << 20).contains(&written), "{written}");
}

#[test]
fn few_writes_wait_and_none_for_long() {
    // Writes of 512 bytes take 2 us, and the debt lets through about two thirds of them.
    let delays_of = |write_bytes: u64, write_us: u64| {
        let flow = FlowController::new(FlowOptions::new(1 << 40, 1 << 50, TRIGGER, 0.3), 0);
        let debt = Debt { level0_runs: 10, level0_bytes: 1 << 30, ..Debt::default() };
        flow.update(debt, 0);
        flow.drain_begins(Drain::Level0, 0);
        let (mut now_us, mut delays, mut writes) = (60_000_000, Vec::new(), 0_u64);
        flow.drained(Drain::Level0, 5 << 28, now_us);
        flow.drain_ends(Drain::Level0, 5 << 28, debt, now_us);
        let end_us = now_us + 1_000_000;
        while now_us < end_us {
            match flow.admit(write_bytes, now_us) {
                Admission::Go => {
                    writes += 1;
                    now_us += write_us;
                }
                Admission::Delay { us, .. } => {
                    delays.push(us);
                    now_us += us;
                }
                Admission::Stop(cause) => panic!("stopped by {cause:?}"),
            }
        }
        (writes, delays)
    };
    let (writes, delays) = delays_of(512, 2);
    assert!(writes > 50_000 && !delays.is_empty(), "{writes} {delays:?}");
    assert!(delays.len() as u64 <= writes / 1_000, "{} of {writes}", delays.len());
    assert!(delays.iter().all(|us| *us <= DELAY_US_MAX), "{delays:?}");
    // Few large ones do not wait until there were many of them.
    let (writes, delays) = delays_of(1 << 20, 500);
    assert!(delays.len() as u64 > writes / 10, "{} of {writes}", delays.len());
}

#[test]
fn a_drain_that_waits_for_its_turn_is_slow() {
    let written_in_a_second = |share: u64| {
        let flow = FlowController::new(FlowOptions::new(1 << 40, 1 << 50, TRIGGER, 0.3), 0);
        let debt = Debt { level0_runs: 12, level0_bytes: 1 << 30, ..Debt::default() };
        flow.update(debt, 0);
        // A compaction of level 0 runs for so many tenths of each second, as fast every time.
        for tenth in 0..600 {
            let now_us = tenth * 100_000;
            if tenth % 10 < share {
                flow.drain_begins(Drain::Level0, now_us);
                flow.drained(Drain::Level0, 1 << 20, now_us + 100_000);
                flow.drain_ends(Drain::Level0, 1 << 20, debt, now_us + 100_000);
            } else {
                flow.update(debt, now_us + 100_000);
            }
        }
        let (mut now_us, mut written) = (60_000_000, 0_u64);
        while now_us < 61_000_000 {
            match flow.admit(1 << 10, now_us) {
                Admission::Go => written += 1 << 10,
                Admission::Delay { us, .. } => now_us += us,
                Admission::Stop(cause) => panic!("stopped by {cause:?}"),
            }
        }
        written as f64
    };
    let (always, seldom) = (written_in_a_second(10), written_in_a_second(2));
    assert!((0.15..0.27).contains(&(seldom / always)), "{seldom} {always}");
}

#[test]
fn debts_of_compaction_below_the_floor_slow_nobody() {
    const FLOOR: u64 = 256 << 20;
    let options = FlowOptions::new(16 << 20, 128 << 20, TRIGGER, 0.3);
    let first_of = |debt: Debt, floor: u64| {
        let flow = FlowController::new(options.with_floor(floor), 0);
        flow.update(debt, 0);
        flow.update(debt, 60_000_000);
        // Behind what a writer that kept still may catch up on.
        (0..1_000).map(|_| flow.admit(1 << 16, 60_000_000)).find(|one| *one != Admission::Go)
    };
    let rewritten = Debt { pending_compaction_bytes: FLOOR, ..Debt::default() };
    let debts = [
        Debt { level0_runs: 12, level0_bytes: 12 << 24, ..Debt::default() },
        Debt { work_per_flushed_byte: 1.0, ..rewritten },
        Debt { work_per_flushed_byte: 8.0, ..rewritten },
        // A quarter of the settled size.
        Debt {
            excess_bytes: FLOOR,
            settled_bytes: 4 * FLOOR,
            obsolete_share: 1.0,
            ..Debt::default()
        },
    ];
    for debt in debts {
        let found = first_of(debt, FLOOR);
        let memory = Some(Admission::Stop(DelayCause::Memtable));
        assert!(found.is_none() || found == memory, "{debt:?}: {found:?}");
        let twice = Debt {
            level0_runs: debt.level0_runs * 3 / 2,
            pending_compaction_bytes: debt.pending_compaction_bytes * 3,
            excess_bytes: debt.excess_bytes * 3 / 2,
            ..debt
        };
        if debt.work_per_flushed_byte < 8.0 {
            let found = first_of(twice, FLOOR);
            assert!(matches!(found, Some(Admission::Delay { .. })), "{twice:?}: {found:?}");
        }
    }
}

#[test]
fn a_small_budget_allows_few_runs_and_no_budget_allows_hundreds() {
    let soft_and_hard = |memtable: u64, floor: u64| {
        let options = FlowOptions::new(memtable, floor / 2, TRIGGER, 0.3).with_floor(floor);
        (options.level0_runs.soft, options.level0_runs.hard)
    };
    assert_eq!(soft_and_hard(16 << 20, 256 << 20), (12.0, 28.0));
    assert_eq!(soft_and_hard(64 << 10, 64 << 30), (12.0, 28.0));
    assert_eq!(soft_and_hard(16 << 20, 64 << 20), (4.0, 20.0));
    assert_eq!(soft_and_hard(16 << 20, 32 << 20), (4.0, 20.0));
}
