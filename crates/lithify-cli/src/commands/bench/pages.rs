//! `lithify bench pages`: what compressed pages with holes in files cost.

use std::path::PathBuf;

use clap::Args;
use lithify_lab::adapter::codec::Codec;
use lithify_lab::experiment::file_system::FileSystemSpec;
use lithify_lab::kind::planned::{Planned, PlannedRun};
use lithify_lab::kind::{Expanded, Kind};
use lithify_lab::page_store::kind::Pages;
use lithify_lab::page_store::store::Layout;
use lithify_lab::page_store::{PAGE_BYTES, PagesPlan, PagesSpec};

use super::arguments::range;
use super::places::refuse_files;
use super::process::this_program;
use super::ready::alone;
use crate::fault::Fault;

/// `bench pages`
#[derive(Debug, Args)]
#[command(after_help = "\
Pages of 16 KiB in one file: as they are (plain), compressed into slots of 8 KiB (slot), or
compressed in their places with holes behind them (hole). As rows of Lithify they are tree. Each is
filled, overwritten at random, measured, and dropped while somebody else writes to the same file
system. File systems are made in loop files, which needs root; one that cannot be made costs its
own rows. The report goes to DIR/page-compression.txt, .csv, .json and .html. What was measured
by the same program with the same settings is not measured again.

Examples:
  lithify bench pages
  lithify bench pages --file-systems ext4,xfs,btrfs --size-mib 8192 --seconds 60
  lithify bench pages --file-systems btrfs:zstd-3,zfs:gzip-6:16k --layouts plain --codec lz4")]
pub struct PagesArguments {
    /// On which file systems: ext4, xfs, btrfs, btrfs:zlib-9, btrfs:lzo, btrfs:zstd-3,
    /// zfs:gzip-6, zfs:lzjb:16k, ...
    #[arg(long, value_name = "NAME,...", value_delimiter = ',',
        default_values_t = [FileSystemSpec::Ext4, FileSystemSpec::Xfs, FileSystemSpec::Btrfs(None)])]
    file_systems: Vec<FileSystemSpec>,
    /// In which layouts: plain, slot, hole, tree
    #[arg(long, value_name = "NAME,...", value_delimiter = ',',
        default_values_t = Layout::ALL)]
    layouts: Vec<Layout>,
    /// Codec of pages and blocks
    #[arg(long, value_name = "CODEC", default_value = "zlib-6")]
    codec: Codec,
    /// Bytes of all pages before compression, MiB [1 to 1000000]
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = range(1, 1_000_000))]
    size_mib: u64,
    /// How long random pages are written [1 to 86400]
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = range(1, 86_400))]
    seconds: u64,
    /// Rounds over all file systems and layouts [1 to 100]
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = range(1, 100))]
    repeats: u64,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 20_151_002)]
    seed: u64,
    /// Measure again what was measured
    #[arg(long)]
    fresh: bool,
    /// Where the images are meanwhile; beside the results when not given
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
}

/// Runs it.
pub fn run(arguments: &PagesArguments) -> Result<(), Fault> {
    refuse_files([&arguments.results].into_iter().chain(&arguments.data).map(PathBuf::as_path))?;
    let ready = prepare(arguments)?;
    alone(&ready, &arguments.results, arguments.data.as_deref(), arguments.fresh, &[])
}

/// Makes it ready.
pub fn prepare(arguments: &PagesArguments) -> Result<Box<dyn PlannedRun>, Fault> {
    let program = this_program(Pages::NAME)?;
    let spec = PagesSpec {
        file_systems: arguments.file_systems.clone(),
        layouts: arguments.layouts.clone(),
        codec: arguments.codec,
        pages: (arguments.size_mib << 20) / PAGE_BYTES as u64,
        seconds: arguments.seconds,
        repeats: arguments.repeats,
        seed: arguments.seed,
        build: program.build().map_err(Fault::failure)?,
    };
    let expanded = Expanded { plan: PagesPlan::new(spec), skipped: Vec::new() };
    Ok(Box::new(Planned::<Pages>::new(expanded, program)))
}
