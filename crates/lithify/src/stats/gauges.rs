//! Gauges: figures that are what they are at the moment of a snapshot. A row has the field, its unit
//! and its meaning; the JSON and `docs/stats.md` are made from the rows.

/// Name, unit and meaning.
pub(super) type Gauge = (&'static str, &'static str, &'static str);

/// A struct whose gauges are in the JSON and on the page of documentation by themselves. What is
/// no plain number follows behind `with`.
macro_rules! gauges {
    ($(#[$attribute:meta])* $gauges:ident {
        $($(#[doc = $doc:literal])+ $gauge:ident: $unit:literal;)+
    } with {
        $($(#[doc = $other_doc:literal])+ $other:ident: $value:ty;)*
    }) => {
        $(#[$attribute])*
        pub struct $gauges {
            $($(#[doc = $doc])+ pub $gauge: u64,)+
            $($(#[doc = $other_doc])+ pub $other: $value,)*
        }

        impl $gauges {
            /// Name, unit and meaning of every gauge.
            pub(super) const GAUGES: &'static [Gauge] =
                &[$((stringify!($gauge), $unit, concat!($($doc,)+).trim_ascii()),)+];

            /// Every gauge as it is, in the order of the list.
            pub(super) fn gauges(&self) -> impl Iterator<Item = (Gauge, u64)> + '_ {
                Self::GAUGES.iter().copied().zip([$(self.$gauge,)+])
            }

            /// Every gauge, to be set.
            #[cfg(test)]
            #[allow(dead_code, reason = "not all of them are set one by one")]
            pub(super) fn gauges_mut(&mut self) -> Vec<(&'static str, &mut u64)> {
                vec![$((stringify!($gauge), &mut self.$gauge),)+]
            }

            /// Adds those of another.
            #[allow(dead_code, reason = "not all of them are summed")]
            fn add_gauges(&mut self, other: &Self) {
                $(self.$gauge += other.$gauge;)+
            }

            fn gauges_json(&self, json: &mut JsonWriter) {
                for ((name, ..), value) in self.gauges() {
                    json.key(name).number(value);
                }
            }
        }
    };
}

/// Members of the JSON that are no gauge of a list and no name of another one.
#[cfg(test)]
pub(super) const MEMBERS: &[Gauge] = &[
    ("last_refusal", "text", "What the last refused flush or compaction failed at."),
    ("level", "level", "The number of a level."),
    ("score", "ratio", "Of a level: the need for compaction, 1 and more is due."),
    (
        "compression",
        "text",
        "Of a level the codec that the policy asks for, `by family` where families differ; of a \
         family its policy.",
    ),
    ("files_by_codec", "count", "Of a level: tables by the codec that they were written in."),
    ("id", "number", "The id of a family."),
    ("name", "text", "The name of a family."),
    (
        "longest_pass",
        "",
        "Of a family: the most dead entries that a cursor passed in one move, if these were 1,000 or more.",
    ),
    ("entries", "count", "Of the longest pass: dead entries."),
    ("from", "text", "Of the longest pass: the key before them, bytes escaped."),
    ("to", "text", "Of the longest pass: the key behind them."),
    ("limit_bytes", "bytes", "The memory budget."),
    ("slowed_us", "us", "Time in which at least one writer was held back."),
    (
        "gap_windows",
        "count",
        "Windows of 100 ms all through which a writer wanted to complete a write and none was \
         completed.",
    ),
    ("windows", "count", "Windows of 100 ms since the ledger's start."),
    ("delays", "", "Times that writers were slowed, by cause: count and time."),
    ("stops", "", "Times that writers were stopped, by cause: count and time."),
    ("count", "count", "How many."),
    ("sum_us", "us", "Their time."),
    (
        "units",
        "",
        "Units of work that held a thread for 1 ms and more, by cause: count, time, longest.",
    ),
    ("max_us", "us", "The longest."),
    ("cpu_ns", "ns", "CPU time of a cause, by part; of a job in all."),
    ("counters", "", "The counters, of the database and of each family."),
    (
        "derived",
        "",
        "The computed figures, of the database and of each family; `null` where undefined.",
    ),
    ("levels", "", "The levels, of the database and of each family."),
    ("families", "", "The column families."),
    ("causes", "", "Files and CPU time by cause."),
    ("codecs", "", "Blocks by codec, of the database and of each level."),
    ("stalls", "", "Who was kept waiting."),
    ("job_log", "", "The latest jobs, 64 at most, oldest first."),
    ("number", "number", "Of a job: jobs are numbered as they begin, from 1 on."),
    ("kind", "text", "Of a job: its kind."),
    (
        "reason",
        "text",
        "Of a compaction or move: why it was picked, as in the counters' names. Of a write stop: its \
         cause.",
    ),
    ("family", "text", "Of a job: the name of its family."),
    (
        "source_level",
        "level",
        "Of a job: the level that it takes from; `null` where there is none.",
    ),
    (
        "target_level",
        "level",
        "Of a job: the level that it writes into; `null` where there is none or several.",
    ),
    ("began_us", "us", "Of a job: when its first step began, since the ledger's start."),
    ("ended_us", "us", "Of a job: when it ended, since the ledger's start."),
    ("tables_in", "count", "Of a job: input tables; of a flush its memtables."),
    ("tables_out", "count", "Of a job: tables that it wrote or moved."),
    (
        "bytes_in",
        "bytes",
        "Of a job: bytes of its input; of an ingest of rows those of keys and values.",
    ),
    ("bytes_out", "bytes", "Of a job: stored bytes of the tables that it wrote or moved."),
    ("entries_in", "count", "Of a job: entries that it read."),
    ("entries_dropped", "count", "Of a job: entries that it did not write again."),
    ("outcome", "text", "Of a job: `done`, `aborted` by a close, or `failed:` and the error."),
    ("memory", "", "The memory budget and its uses."),
    ("cache", "", "The block cache."),
];

pub(super) use gauges;
