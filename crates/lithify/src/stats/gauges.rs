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

pub(super) use gauges;
