//! Settings for tests.

use lithify_lab::adapter::codec::Codec;
use lithify_lab::adapter::settings::EngineSettings;

/// Small settings with codecs `small,middle,bottom`.
pub(super) fn settings(codecs: &str) -> EngineSettings {
    let codecs: Vec<Codec> =
        codecs.split(',').map(|codec| codec.parse().expect("a codec")).collect();
    EngineSettings {
        codec_small: codecs[0],
        codec_middle: codecs[1],
        codec_bottom: codecs[2],
        ..EngineSettings::small()
    }
}
