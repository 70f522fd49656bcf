//! The consistency oracle: proves that the three views of every list agree.
//!
//! For every source and type it compares, in one merge of full scans:
//!
//! 1. the count row with the number of visible links in the secondary index, both ways (no row
//!    means 0);
//! 2. the links under primary keys with those in the secondary index, one to one, in visibility,
//!    version, time and data.
//!
//! It holds one list in memory at a time, and chunks of rows. The engine must be idle. A run
//! whose oracle fails is void. What the data should be tells [`Expected`], which
//! [`check_expected`] compares with; the content hashes let two engines that ran the same
//! requests be compared.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::control::Control;
use super::expected::Expected;
use super::ledger::{Comparison, Ledger};
use crate::adapter::graph::schema::{
    COUNT, CountRow, LINK, LINK_SECONDARY, Link, NODE, NodeRow, VISIBILITY_DEFAULT,
    decode_count_key, decode_node_key, link_type_prefix,
};
use crate::adapter::graph::{GraphEngine, GraphRows};
use crate::adapter::{EngineResult, SpaceId};

/// Differences that are described; the rest are only counted.
const DESCRIBED_MAX: usize = 20;

/// What the oracle found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OracleReport {
    /// Rows of nodes.
    pub nodes: u64,
    /// Rows of links by primary key.
    pub links: u64,
    /// Rows of the secondary index.
    pub secondary_rows: u64,
    /// Of them visible.
    pub visible_links: u64,
    /// Count rows.
    pub counts: u64,
    /// Sum over the count rows.
    pub counted_links: u64,
    /// Largest node id; 0 without nodes.
    pub largest_node_id: u64,
    /// Bytes of all keys and values: the logical live bytes.
    pub live_bytes: u64,
    /// Hash over all rows of each space, in the order node, link, secondary, count.
    pub content_hashes: [u64; 4],
    /// Disagreements and malformed rows.
    pub differences: u64,
    /// The first of them, in words.
    pub described: Vec<String>,
    /// True when the caller stopped it: nothing is proved.
    pub cancelled: bool,
}

impl OracleReport {
    /// True when the whole graph was read and agrees.
    pub fn passed(&self) -> bool {
        self.differences == 0 && !self.cancelled
    }

    /// Compares how much was found with how much must be there.
    pub fn expect(&mut self, expected: &Expected) {
        if !self.cancelled {
            expected.differences(self).into_iter().for_each(|what| self.differ(|| what));
        }
    }

    #[cold]
    fn differ(&mut self, describe: impl FnOnce() -> String) {
        self.differences += 1;
        if self.described.len() < DESCRIBED_MAX {
            self.described.push(describe());
        }
    }

    fn saw(&mut self, space: SpaceId, key: &[u8], value: &[u8]) {
        self.live_bytes += (key.len() + value.len()) as u64;
        if let Some(hash) = self.content_hashes.get_mut(space.index()) {
            *hash = XxHash3_64::oneshot_with_seed(*hash, key);
            *hash = XxHash3_64::oneshot_with_seed(*hash, value);
        }
    }
}

/// Reads the whole graph in `engine` and compares its parts with each other, but not with what must
/// be there.
///
/// # Errors
/// The engine's own.
pub fn check(engine: &dyn GraphEngine, control: &Control<'_>) -> EngineResult<OracleReport> {
    compare_views(engine, control, &Ledger::default())
}

/// Reads the whole graph in `engine` and compares its parts with each other and with what must be
/// there.
///
/// # Errors
/// The engine's own.
pub fn check_expected(
    engine: &dyn GraphEngine,
    control: &Control<'_>,
    expected: &Expected,
) -> EngineResult<OracleReport> {
    let mut report = compare_views(engine, control, expected.ledger())?;
    report.expect(expected);
    Ok(report)
}

fn compare_views(
    engine: &dyn GraphEngine,
    control: &Control<'_>,
    ledger: &Ledger,
) -> EngineResult<OracleReport> {
    let mut report = OracleReport::default();
    let mut written = Comparison::new(ledger);
    check_nodes(engine, control, &mut written, &mut report)?;
    let types = link_types(engine, &mut report)?;
    let mut merge = Merge {
        primary: types
            .into_iter()
            .map(|link_type| {
                Source::new(engine, LINK, &link_type_prefix(link_type), |key, value| {
                    Link::decode(key, value).map(|link| (link.id1, link.link_type))
                })
            })
            .collect::<EngineResult<_>>()?,
        secondary: Source::new(engine, LINK_SECONDARY, &[], |key, value| {
            Link::decode_secondary(key, value).map(|link| (link.id1, link.link_type))
        })?,
        counts: Source::new(engine, COUNT, &[], |key, value| {
            CountRow::decode(value).and_then(|_| decode_count_key(key))
        })?,
        primary_rows: Vec::new(),
        secondary_rows: Vec::new(),
        written,
    };
    while !control.is_cancelled() && merge.compare_next_list(&mut report)? {}
    report.cancelled = control.is_cancelled();
    if !report.cancelled {
        merge.written.missing().into_iter().for_each(|what| report.differ(|| what));
    }
    Ok(report)
}

fn check_nodes(
    engine: &dyn GraphEngine,
    control: &Control<'_>,
    written: &mut Comparison<'_>,
    report: &mut OracleReport,
) -> EngineResult<()> {
    let mut reader = engine.rows(NODE, &[])?;
    while let Some((key, value)) = reader.peek()? {
        report.saw(NODE, key, value);
        report.nodes += 1;
        match (decode_node_key(key), NodeRow::decode(value)) {
            (Some(id), Some(row)) => {
                report.largest_node_id = report.largest_node_id.max(id);
                written.node(id, &row).into_iter().for_each(|what| report.differ(|| what));
            }
            _ => report.differ(|| format!("malformed node row at {}", hex(key))),
        }
        reader.advance();
        if control.is_cancelled() {
            break;
        }
    }
    Ok(())
}

/// The types that have links, by jumping from one to the next.
fn link_types(engine: &dyn GraphEngine, report: &mut OracleReport) -> EngineResult<Vec<u64>> {
    let mut types = Vec::new();
    let mut reader = engine.rows(LINK, &[])?;
    loop {
        let Some((key, value)) = reader.peek()? else { return Ok(types) };
        let Some(link) = Link::decode(key, value) else {
            report.differ(|| format!("malformed link row at {}", hex(key)));
            reader.advance();
            continue;
        };
        types.push(link.link_type);
        let Some(next) = link.link_type.checked_add(1) else { return Ok(types) };
        reader.seek(&link_type_prefix(next))?;
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Source id and type of a list.
type List = (u64, u64);

/// Rows of one index in the order of lists.
struct Source<'a> {
    space: SpaceId,
    reader: Box<dyn GraphRows + 'a>,
    list_of: fn(&[u8], &[u8]) -> Option<List>,
}

impl<'a> Source<'a> {
    fn new(
        engine: &'a dyn GraphEngine,
        space: SpaceId,
        prefix: &[u8],
        list_of: fn(&[u8], &[u8]) -> Option<List>,
    ) -> EngineResult<Self> {
        Ok(Source { space, reader: engine.rows(space, prefix)?, list_of })
    }

    /// The list of the next well-formed row; malformed ones are reported and passed over.
    fn next_list(&mut self, report: &mut OracleReport) -> EngineResult<Option<List>> {
        while let Some((key, value)) = self.reader.peek()? {
            if let Some(list) = (self.list_of)(key, value) {
                return Ok(Some(list));
            }
            report.differ(|| format!("malformed row in space {} at {}", self.space.0, hex(key)));
            self.reader.advance();
        }
        Ok(None)
    }

    /// Calls `row` for each row of `list`, which is the next one if it has any.
    fn take_list(
        &mut self,
        list: List,
        report: &mut OracleReport,
        mut row: impl FnMut(&[u8], &[u8], &mut OracleReport),
    ) -> EngineResult<()> {
        while self.next_list(report)? == Some(list) {
            if let Some((key, value)) = self.reader.peek()? {
                report.saw(self.space, key, value);
                row(key, value, report);
            }
            self.reader.advance();
        }
        Ok(())
    }
}

/// A link of a list, its data as length and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    id2: u64,
    visibility: u8,
    version: u32,
    time_ms: u64,
    data_bytes: usize,
    data_hash: u64,
}

impl Row {
    fn new(link: &Link<'_>) -> Self {
        Row {
            id2: link.id2,
            visibility: link.visibility,
            version: link.version,
            time_ms: link.time_ms,
            data_bytes: link.data.len(),
            data_hash: XxHash3_64::oneshot(link.data),
        }
    }
}

struct Merge<'a> {
    /// One per type: within a type, primary keys are in the order of lists.
    primary: Vec<Source<'a>>,
    secondary: Source<'a>,
    counts: Source<'a>,
    primary_rows: Vec<Row>,
    secondary_rows: Vec<Row>,
    /// What requests wrote last.
    written: Comparison<'a>,
}

impl Merge<'_> {
    /// Compares the lowest list that any index knows; false when there is none left.
    fn compare_next_list(&mut self, report: &mut OracleReport) -> EngineResult<bool> {
        let mut lowest: Option<List> = None;
        let sources = self.primary.iter_mut().chain([&mut self.secondary, &mut self.counts]);
        for source in sources {
            if let Some(list) = source.next_list(report)? {
                lowest = Some(lowest.map_or(list, |lowest| lowest.min(list)));
            }
        }
        let Some(list) = lowest else { return Ok(false) };
        self.primary_rows.clear();
        for source in &mut self.primary {
            let (rows, written) = (&mut self.primary_rows, &mut self.written);
            source.take_list(list, report, |key, value, report| {
                if let Some(link) = Link::decode(key, value) {
                    written.link(&link).into_iter().for_each(|what| report.differ(|| what));
                    rows.push(Row::new(&link));
                }
            })?;
        }
        self.secondary_rows.clear();
        let rows = &mut self.secondary_rows;
        self.secondary.take_list(list, report, |key, value, _| {
            rows.extend(Link::decode_secondary(key, value).map(|link| Row::new(&link)));
        })?;
        let mut counted = None;
        self.counts.take_list(list, report, |_, value, report| {
            counted = CountRow::decode(value).map(|row| row.count);
            report.counts += 1;
            report.counted_links += u64::from(counted.unwrap_or(0));
        })?;
        self.compare(list, counted, report);
        Ok(true)
    }

    fn compare(&mut self, (id1, link_type): List, counted: Option<u32>, report: &mut OracleReport) {
        let visible =
            self.secondary_rows.iter().filter(|row| row.visibility == VISIBILITY_DEFAULT).count();
        report.links += self.primary_rows.len() as u64;
        report.secondary_rows += self.secondary_rows.len() as u64;
        report.visible_links += visible as u64;
        if u64::from(counted.unwrap_or(0)) != visible as u64 {
            report.differ(|| match counted {
                Some(count) => {
                    format!("list ({id1}, {link_type}): count {count}, but {visible} visible links")
                }
                None => {
                    format!("list ({id1}, {link_type}): no count, but {visible} visible links")
                }
            });
        }
        // Equal rows leave as pairs; what remains has no partner that agrees in everything.
        self.primary_rows.sort_unstable();
        self.secondary_rows.sort_unstable();
        let mut primary = self.primary_rows.iter().peekable();
        let mut secondary = self.secondary_rows.iter().peekable();
        while let Some(order) = match (primary.peek(), secondary.peek()) {
            (Some(left), Some(right)) => Some(left.cmp(right)),
            (Some(_), None) => Some(Ordering::Less),
            (None, Some(_)) => Some(Ordering::Greater),
            (None, None) => None,
        } {
            let left = if order.is_le() { primary.next() } else { None };
            let right = if order.is_ge() { secondary.next() } else { None };
            match (left, right) {
                (Some(row), None) => report.differ(|| {
                    format!("link ({id1}, {link_type}) {row:?}: not so in the secondary index")
                }),
                (None, Some(row)) => report.differ(|| {
                    format!("secondary ({id1}, {link_type}) {row:?}: not so in the link")
                }),
                _ => {}
            }
        }
    }
}
