//! Advice for machines: one JSON object. Names have their units; shares are parts of 1.

use serde::Serialize;

use crate::answer::{Advice, Outcome, TargetAdvice};
use crate::sample::Collected;
use crate::targets::OtherForms;

/// What a reader tests before it reads.
pub(crate) const SCHEMA: &str = "lithify-advice/1";

/// Words for how rows came to be in their order.
pub(crate) const COLLECTED: [(Collected, &str); 3] = [
    (Collected::AsTheyAre, "as in the input"),
    (Collected::ByFullPass, "sorted from all rows"),
    (Collected::OfSampledRows, "sorted from the sampled rows"),
];

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    data: Data<'a>,
    goal: &'a str,
    prices: String,
    assumed: Assumed,
    took_s: f64,
    is_stopped: bool,
    targets: Vec<Target>,
    unmeasured_targets: &'a [&'static str],
    unknown: &'a [String],
}

#[derive(Serialize)]
struct Data<'a> {
    path: &'a str,
    format: &'a str,
    files: u64,
    bytes: u64,
    rows: Option<u64>,
    row_bytes: Option<f64>,
    key_bytes: f64,
    key: &'a str,
    is_sorted_by_key: Option<bool>,
    places: usize,
    sampled_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    present: Option<Present<'a>>,
    notes: &'a [String],
    entropy_bits_per_byte: f64,
    incompressible_share: Option<f64>,
    far_repeats_share: Option<f64>,
}

#[derive(Serialize)]
struct Present<'a> {
    target: &'a str,
    settings: &'a str,
    bottom: Option<Stored>,
    upper: Option<[String; 2]>,
    is_set: bool,
    found: Vec<Stored>,
    stored_bytes: u64,
    tables: u64,
    rows_in_log: u64,
}

#[derive(Serialize)]
struct Stored {
    codec: String,
    block_size_bytes: usize,
    has_dictionary: bool,
}

#[derive(Serialize)]
struct Assumed {
    block_loads_per_mib: f64,
    lifetime_months: f64,
    database_bytes: f64,
    are_reads_given: bool,
}

#[derive(Serialize)]
struct Target {
    name: &'static str,
    title: &'static str,
    order: &'static str,
    unsorted_stored_share: Option<f64>,
    snippet: Vec<String>,
    other_forms: OtherForms,
    note: &'static str,
    source: &'static str,
    best: String,
    default: Option<String>,
    unmeasured_settings: usize,
    unfit_settings: Vec<String>,
    settings: Vec<Setting>,
}

#[derive(Serialize)]
struct Setting {
    name: String,
    codec: String,
    size_bytes: usize,
    dictionary_bytes: usize,
    stored_share: f64,
    stored_share_half_width: f64,
    bottom_stored_share: f64,
    stored_bytes: f64,
    held_out_predicted_share: Option<f64>,
    held_out_found_share: Option<f64>,
    held_out_half_width: Option<f64>,
    encode_ns_per_byte: f64,
    decode_ns_per_byte: f64,
    write_cpu_ns_per_byte: f64,
    upper_codecs: [String; 2],
    unit_data_bytes: f64,
    unit_decode_us: f64,
    calls_over_1_ms_share: f64,
    cost_micro_per_gb_life: f64,
    cost_terms: Vec<(&'static str, f64)>,
    is_on_frontier: bool,
}

/// The whole advice as a line of JSON.
///
/// # Errors
/// None that can occur: there is no map with keys that are no texts.
pub fn render(advice: &Advice) -> serde_json::Result<String> {
    let data = &advice.data;
    let has_rows = data.input.has_rows;
    let has_key = !data.input.key.is_empty();
    let document = Document {
        schema: SCHEMA,
        data: Data {
            path: &data.path,
            format: &data.input.format,
            files: data.input.files,
            bytes: data.input.data_bytes,
            rows: has_rows.then_some(data.rows),
            row_bytes: has_rows.then_some(data.basis.row_bytes),
            key_bytes: data.basis.key_bytes,
            key: &data.input.key,
            is_sorted_by_key: has_key.then_some(data.is_sorted),
            places: data.places,
            sampled_bytes: data.sampled_bytes,
            present: data.present.as_ref().map(of_present),
            notes: &data.notes,
            entropy_bits_per_byte: data.entropy_bits,
            incompressible_share: data.incompressible,
            far_repeats_share: data.far_repeats,
        },
        goal: &advice.goal,
        prices: advice.prices.to_string(),
        assumed: Assumed {
            block_loads_per_mib: advice.expectations.loads_per_mib(&data.basis),
            lifetime_months: advice.expectations.lifetime_months(),
            database_bytes: data.basis.database_bytes,
            are_reads_given: advice.expectations.reads_per_row.is_some(),
        },
        took_s: advice.took.as_secs_f64(),
        is_stopped: advice.course.is_stopped,
        unmeasured_targets: &advice.course.missing,
        targets: advice.targets.iter().map(|target| of_target(target, advice)).collect(),
        unknown: &advice.unknown,
    };
    serde_json::to_string(&document)
}

fn of_present(present: &crate::input::Present) -> Present<'_> {
    let stored = |stored: &crate::input::Stored| Stored {
        codec: stored.compression.to_string(),
        block_size_bytes: stored.block_size_bytes,
        has_dictionary: stored.has_dictionary,
    };
    Present {
        target: present.target,
        settings: &present.settings,
        bottom: present.bottom.as_ref().map(stored),
        upper: present.upper.map(|upper| upper.map(|codec| codec.to_string())),
        is_set: present.is_set,
        found: present.found.iter().map(stored).collect(),
        stored_bytes: present.stored_bytes,
        tables: present.tables,
        rows_in_log: present.rows_in_log,
    }
}

fn of_target(advice: &TargetAdvice, all: &Advice) -> Target {
    let frontier: Vec<String> = advice.frontier().iter().map(|outcome| outcome.name()).collect();
    let setting = |outcome: &Outcome| of_outcome(outcome, all, &frontier);
    Target {
        name: advice.target.name,
        title: advice.target.title,
        order: COLLECTED
            .iter()
            .find(|(one, _)| *one == advice.collected)
            .map_or("", |(_, text)| text),
        unsorted_stored_share: advice.unsorted.map(|unsorted| unsorted.value),
        snippet: advice.snippet(advice.best(), all.data.basis),
        other_forms: advice.other_forms(advice.best(), all.data.basis),
        note: advice.target.note,
        source: advice.target.source,
        best: advice.best().setting.name(),
        default: advice.default_outcome().map(|outcome| outcome.name()),
        unmeasured_settings: advice.unmeasured,
        unfit_settings: advice.unfit.clone(),
        settings: advice.outcomes.iter().map(setting).collect(),
    }
}

fn of_outcome(outcome: &Outcome, all: &Advice, frontier: &[String]) -> Setting {
    let name = outcome.name();
    let held_out = outcome.held_out;
    Setting {
        codec: outcome.setting.compression.to_string(),
        size_bytes: outcome.setting.size_bytes,
        dictionary_bytes: outcome.setting.dictionary_bytes,
        stored_share: outcome.ratio.value,
        stored_share_half_width: outcome.ratio.half_width,
        bottom_stored_share: outcome.bottom.value,
        stored_bytes: outcome.ratio.value * all.data.basis.data_bytes,
        held_out_predicted_share: held_out.map(|[predicted, _]| predicted.value),
        held_out_found_share: held_out.map(|[_, found]| found.value),
        held_out_half_width: held_out
            .map(|[predicted, found]| predicted.half_width.hypot(found.half_width)),
        encode_ns_per_byte: outcome.encode_ns,
        decode_ns_per_byte: outcome.decode_ns,
        write_cpu_ns_per_byte: outcome.write_ns,
        upper_codecs: outcome.upper.map(|codec| codec.to_string()),
        unit_data_bytes: outcome.unit_data_bytes,
        unit_decode_us: outcome.unit_decode_us,
        calls_over_1_ms_share: outcome.long_calls,
        cost_micro_per_gb_life: outcome.cost(),
        cost_terms: outcome.terms.named().to_vec(),
        is_on_frontier: frontier.contains(&name),
        name,
    }
}
