//! What an arm is run under, beside the settings of its engine: the speed of the device.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How fast the device under the data is. All but [`DeviceSpeed::Fast`] are emulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceSpeed {
    /// As it is.
    #[default]
    Fast,
    /// 10,000 operations per second.
    SlowSsd,
    /// 1,200 operations and 150 MB per second: six disks as one.
    Disk,
}

/// Rates that a device is held to, reads and writes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRates {
    /// Operations per second.
    pub operations: u64,
    /// Bytes per second; `None` for as many as it can.
    pub bytes: Option<u64>,
}

impl DeviceSpeed {
    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            DeviceSpeed::Fast => "fast",
            DeviceSpeed::SlowSsd => "slow-ssd",
            DeviceSpeed::Disk => "disk",
        }
    }

    /// What it is held to; `None` for the device as it is.
    pub fn rates(self) -> Option<DeviceRates> {
        match self {
            DeviceSpeed::Fast => None,
            DeviceSpeed::SlowSsd => Some(DeviceRates { operations: 10_000, bytes: None }),
            DeviceSpeed::Disk => Some(DeviceRates { operations: 1_200, bytes: Some(150_000_000) }),
        }
    }

    /// True for the device as it is.
    pub fn is_fast(&self) -> bool {
        *self == DeviceSpeed::Fast
    }
}

impl FromStr for DeviceSpeed {
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceSpeed, String> {
        let known = [DeviceSpeed::Fast, DeviceSpeed::SlowSsd, DeviceSpeed::Disk];
        let found = known.into_iter().find(|speed| speed.name() == text);
        found.ok_or_else(|| format!("allowed: {}", known.map(DeviceSpeed::name).join(", ")))
    }
}

impl fmt::Display for DeviceSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
