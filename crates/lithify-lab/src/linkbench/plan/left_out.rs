//! Arms that engines cannot run, told in a line for each reason and not for each arm.

use crate::adapter::EngineName;

/// What was left out, by engine and by what keeps it from running.
#[derive(Debug, Default)]
pub(crate) struct LeftOut(Vec<Reason>);

#[derive(Debug)]
struct Reason {
    engine: EngineName,
    why: String,
    arms: Vec<String>,
}

impl LeftOut {
    /// `engine` cannot run `arm`. An arm that comes again, in another repeat, is counted once.
    pub(crate) fn note(&mut self, engine: &EngineName, arm: String, why: String) {
        let known = self.0.iter_mut().find(|known| known.engine == *engine && known.why == why);
        match known {
            Some(known) if known.arms.contains(&arm) => {}
            Some(known) => known.arms.push(arm),
            None => self.0.push(Reason { engine: engine.clone(), why, arms: vec![arm] }),
        }
    }

    /// A line for each reason, the first found first.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|Reason { engine, why, arms }| {
            let verb = if arms.len() == 1 { "is" } else { "are" };
            format!("{} on {engine} {verb} skipped: {why}", arms.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_with_one_reason_share_a_line() {
        let (one, other) = (EngineName::lithify(), EngineName::model());
        let mut left_out = LeftOut::default();
        for (engine, arm, why) in [
            (&one, "lz4-4k", "no lz4"),
            (&one, "lz4-8k", "no lz4"),
            (&other, "lz4-4k", "no lz4"),
            (&one, "lz4-4k", "no lz4"),
            (&one, "zstd-4k", "no zstd"),
        ] {
            left_out.note(engine, arm.to_owned(), why.to_owned());
        }
        let lines: Vec<String> = left_out.lines().collect();
        assert_eq!(
            lines,
            [
                "lz4-4k, lz4-8k on lithify are skipped: no lz4",
                "lz4-4k on model is skipped: no lz4",
                "zstd-4k on lithify is skipped: no zstd",
            ]
        );
    }
}
