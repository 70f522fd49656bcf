//! The inputs of a flush or compaction, merged.
//!
//! Every input stands on an entry or waits for a read. The heap orders inputs by the first eight
//! bytes of their key, kept beside the index, and looks at the keys only when those are equal
//! (17 ns a row for ten runs where comparing keys takes 57). Nothing is allocated per row.

use super::picker::SubRange;
use crate::Result;
use crate::base::{Clock, Trailer, compare_internal};
use crate::fs::Ticket;
use crate::manifest::TableFile;
use crate::memtable::MemCursor;
use crate::stats::WorkMeter;
use crate::table::{ScanPoll, TableScanner};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

/// Tables of one sorted run, read one after the other.
pub(crate) struct TableRun {
    tables: VecDeque<Arc<TableFile>>,
    range: SubRange,
    scanner: Option<TableScanner>,
}

impl TableRun {
    /// `tables` in key order; only keys within `range` are read.
    pub(crate) fn new(tables: Vec<Arc<TableFile>>, range: SubRange) -> Self {
        TableRun { tables: tables.into(), range, scanner: None }
    }

    fn poll(&mut self, meter: &mut WorkMeter, clock: &dyn Clock) -> Result<ScanPoll> {
        loop {
            if let Some(scanner) = &mut self.scanner {
                match scanner.poll(meter, clock)? {
                    ScanPoll::End => self.scanner = None,
                    other => return Ok(other),
                }
            }
            match self.tables.pop_front() {
                Some(table) => {
                    let (start, end) = (self.range.start.as_deref(), self.range.end.as_deref());
                    self.scanner = Some(table.reader()?.scanner(start, end));
                }
                None => return Ok(ScanPoll::End),
            }
        }
    }
}

/// One ordered input.
pub(crate) enum Input {
    /// A memtable.
    Memory(MemCursor),
    /// Tables.
    Tables(TableRun),
}

impl Input {
    fn poll(&mut self, meter: &mut WorkMeter, clock: &dyn Clock) -> Result<ScanPoll> {
        match self {
            Input::Memory(cursor) => {
                Ok(if cursor.valid() { ScanPoll::Ready } else { ScanPoll::End })
            }
            Input::Tables(run) => run.poll(meter, clock),
        }
    }

    fn key(&self) -> &[u8] {
        match self {
            Input::Memory(cursor) => cursor.key(),
            Input::Tables(run) => run.scanner.as_ref().map_or(&[], TableScanner::key),
        }
    }

    fn trailer(&self) -> Trailer {
        match self {
            Input::Memory(cursor) => cursor.trailer(),
            Input::Tables(run) => run.scanner.as_ref().map_or(Trailer(0), TableScanner::trailer),
        }
    }

    fn value(&self) -> &[u8] {
        match self {
            Input::Memory(cursor) => cursor.value(),
            Input::Tables(run) => run.scanner.as_ref().map_or(&[], TableScanner::value),
        }
    }

    fn advance(&mut self) -> Result<()> {
        match self {
            Input::Memory(cursor) => {
                cursor.next();
                Ok(())
            }
            Input::Tables(run) => match &mut run.scanner {
                Some(scanner) => scanner.advance().map(|_| ()),
                None => Ok(()),
            },
        }
    }
}

/// What the merge has to offer.
pub(crate) enum MergePoll {
    /// An entry is under the merge.
    Ready,
    /// A read is in flight.
    Waiting(Ticket),
    /// All inputs have ended.
    End,
}

#[derive(Clone, Copy)]
struct Head {
    prefix: u64,
    input: u32,
}

/// The merge of the inputs of one job.
pub(crate) struct Merge {
    inputs: Vec<Input>,
    heap: Vec<Head>,
    /// Inputs that have to be polled before the heap is complete.
    unsettled: Vec<u32>,
}

impl Merge {
    pub(crate) fn new(inputs: Vec<Input>) -> Self {
        let unsettled = (0..inputs.len() as u32).collect();
        Merge { heap: Vec::with_capacity(inputs.len()), inputs, unsettled }
    }

    /// Brings the next entry under the merge, if it is to be had.
    pub(crate) fn poll(&mut self, meter: &mut WorkMeter, clock: &dyn Clock) -> Result<MergePoll> {
        while let Some(index) = self.unsettled.last().copied() {
            match self.inputs[index as usize].poll(meter, clock)? {
                ScanPoll::Waiting(ticket) => return Ok(MergePoll::Waiting(ticket)),
                ScanPoll::End => {}
                ScanPoll::Ready => self.push(index),
            }
            self.unsettled.pop();
        }
        Ok(if self.heap.is_empty() { MergePoll::End } else { MergePoll::Ready })
    }

    /// Bytes of the inputs' buffers; memtables are charged where they are kept.
    pub(crate) fn memory_bytes(&self) -> usize {
        let buffers = |input: &Input| match input {
            Input::Memory(_) => 0,
            Input::Tables(run) => run.scanner.as_ref().map_or(0, TableScanner::memory_bytes),
        };
        self.inputs.iter().map(buffers).sum()
    }

    fn current(&self) -> &Input {
        &self.inputs[self.heap[0].input as usize]
    }

    /// The key under the merge, which must be ready.
    pub(crate) fn key(&self) -> &[u8] {
        self.current().key()
    }

    pub(crate) fn trailer(&self) -> Trailer {
        self.current().trailer()
    }

    pub(crate) fn value(&self) -> &[u8] {
        self.current().value()
    }

    /// Leaves the current entry; call [`Merge::poll`] for the next one.
    pub(crate) fn advance(&mut self, meter: &mut WorkMeter, clock: &dyn Clock) -> Result<()> {
        let index = self.heap[0].input;
        let input = &mut self.inputs[index as usize];
        input.advance()?;
        match input.poll(meter, clock)? {
            ScanPoll::Ready => {
                self.heap[0].prefix = prefix_of(input.key());
                self.sift_down();
            }
            other => {
                self.heap.swap_remove(0);
                self.sift_down();
                if let ScanPoll::Waiting(_) = other {
                    self.unsettled.push(index);
                }
            }
        }
        Ok(())
    }

    fn precedes(&self, a: Head, b: Head) -> bool {
        match a.prefix.cmp(&b.prefix) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => {
                let (a, b) = (&self.inputs[a.input as usize], &self.inputs[b.input as usize]);
                compare_internal((a.key(), a.trailer()), (b.key(), b.trailer())) == Ordering::Less
            }
        }
    }

    fn push(&mut self, input: u32) {
        let prefix = prefix_of(self.inputs[input as usize].key());
        self.heap.push(Head { prefix, input });
        let mut index = self.heap.len() - 1;
        while index > 0 {
            let parent = (index - 1) / 2;
            if !self.precedes(self.heap[index], self.heap[parent]) {
                return;
            }
            self.heap.swap(index, parent);
            index = parent;
        }
    }

    fn sift_down(&mut self) {
        let mut index = 0;
        loop {
            let mut child = 2 * index + 1;
            if child >= self.heap.len() {
                return;
            }
            if child + 1 < self.heap.len() && self.precedes(self.heap[child + 1], self.heap[child])
            {
                child += 1;
            }
            if !self.precedes(self.heap[child], self.heap[index]) {
                return;
            }
            self.heap.swap(index, child);
            index = child;
        }
    }
}

/// The first eight bytes of a key as a number that sorts like them; short keys count as filled
/// up with zeros, so equal prefixes say nothing and the keys are compared.
fn prefix_of(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(bytes)
        }
    }
}
