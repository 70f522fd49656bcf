//! Gauges: figures that are what they are at the moment of a snapshot. A row has the field, its unit
//! and its meaning; the JSON and `docs/stats.md` are made from the rows.

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
            #[cfg(test)]
            pub(super) const GAUGES: &'static [(&'static str, &'static str, &'static str)] =
                &[$((stringify!($gauge), $unit, concat!($($doc,)+).trim_ascii()),)+];

            fn gauges_json(&self, json: &mut JsonWriter) {
                $(json.key(stringify!($gauge)).number(self.$gauge);)+
            }
        }
    };
}

pub(super) use gauges;
