//! What engines counted of the work that they were asked for, in words.

use crate::adapter::cross_count::{CrossCount, CrossCounts};

/// What counts may differ by and still agree: statements that failed and were tried again are
/// counted by a server and not by its client.
const AGREE: f64 = 0.001;

/// One line; `None` when nothing was counted from both sides.
pub(crate) fn line(counts: &CrossCounts) -> Option<String> {
    let asked = |(_, count): &(&String, &CrossCount)| count.asked > 0 || count.counted > 0;
    let worked: Vec<(&String, &CrossCount)> = counts.iter().filter(asked).collect();
    if worked.is_empty() {
        return None;
    }
    let told =
        |kind: &str, of: &dyn Fn(&CrossCount) -> bool, text: &dyn Fn(&CrossCount) -> String| {
            let parts = worked.iter().filter(|(_, count)| of(count));
            let parts: Vec<String> =
                parts.map(|(what, count)| format!("{} {what}", text(count))).collect();
            (!parts.is_empty()).then(|| format!("{kind}{}", parts.join(", ")))
        };
    let both = |count: &CrossCount| format!("{} for {}", count.counted, count.asked);
    let parts = [
        told("as many as it was asked for: ", &|c| c.asked == c.counted, &|c| c.asked.to_string()),
        told("nearly as many: ", &|c| c.asked != c.counted && c.difference() <= AGREE, &both),
        told("NOT what it was asked for: ", &|c| c.difference() > AGREE, &both),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_told_from_disagreement() {
        let counts = |pairs: &[(&str, u64, u64)]| -> CrossCounts {
            let pair = |(what, asked, counted): &(&str, u64, u64)| {
                ((*what).to_owned(), CrossCount { asked: *asked, counted: *counted })
            };
            pairs.iter().map(pair).collect()
        };
        assert_eq!(line(&CrossCounts::new()), None);
        assert_eq!(line(&counts(&[("selects", 0, 0)])), None);
        let text = line(&counts(&[
            ("deletes", 0, 0),
            ("inserts", 5000, 5001),
            ("rows updated", 100, 90),
            ("selects", 7, 7),
            ("updates", 0, 3),
        ]));
        assert_eq!(
            text.as_deref(),
            Some(
                "as many as it was asked for: 7 selects; nearly as many: 5001 for 5000 inserts; \
                 NOT what it was asked for: 90 for 100 rows updated, 3 for 0 updates"
            )
        );
    }
}
