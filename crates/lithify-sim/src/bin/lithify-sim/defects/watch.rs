//! The process beside the trial: reads what it tells, and ends it when it hangs.
//!
//! A case hangs when it has used more processor time than any case needs, or, as it may also wait
//! for ever, when nothing was heard for a time that no busy machine explains.

use super::trial::{Line, Verdict};
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// No case needs so much processor time.
const CASE_CPU_MAX: Duration = Duration::from_secs(40);

/// No case takes so long, however busy the machine is.
const CASE_WALL_MAX: Duration = Duration::from_secs(300);

/// How often the time is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A kernel's tick, in which the time of processes is counted.
const TICKS_PER_SECOND: u64 = 100;

/// Runs a trial in a process of its own, this program with other arguments; a hang, or an end
/// without a verdict, is a catch too.
pub(super) fn try_in_process(arguments: &[&str]) -> io::Result<Verdict> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let Some(output) = child.stdout.take() else { return Err(io::Error::other("no output")) };
    let (sender, lines) = channel();
    let reader = std::thread::spawn(move || {
        let texts = BufReader::new(output).lines().map_while(Result::ok);
        // The receiver goes when the trial is over.
        texts.filter_map(|text| Line::parse(&text)).try_for_each(|line| sender.send(line)).ok();
    });
    let verdict = listen(&child, &lines);
    // It has ended, or is to end here.
    let _ = child.kill();
    let status = child.wait()?;
    let _ = reader.join();
    Ok(verdict.unwrap_or_else(|last| end_without_verdict(last, &status.to_string())))
}

/// The verdict; or what was going on when the process ended without one.
fn listen(child: &Child, lines: &Receiver<Line>) -> Result<Verdict, Option<Line>> {
    let mut last = None;
    let mut since = (Instant::now(), Duration::ZERO);
    loop {
        match lines.recv_timeout(LOOK_EVERY) {
            Ok(Line::End(verdict)) => return Ok(verdict),
            Ok(line) => {
                last = Some(line);
                since = (Instant::now(), cpu_time(child.id()).unwrap_or_default());
            }
            Err(RecvTimeoutError::Disconnected) => return Err(last),
            Err(RecvTimeoutError::Timeout) => {
                let cpu = cpu_time(child.id()).unwrap_or_default().saturating_sub(since.1);
                if cpu > CASE_CPU_MAX || since.0.elapsed() > CASE_WALL_MAX {
                    return Ok(caught(last, "a hang".to_string()));
                }
            }
        }
    }
}

fn end_without_verdict(last: Option<Line>, status: &str) -> Verdict {
    match last {
        Some(_) => caught(last, format!("the process ended: {status}")),
        None => Verdict::Failed { what: format!("the process ended before its start: {status}") },
    }
}

fn caught(during: Option<Line>, what: String) -> Verdict {
    let (check, cases, all_cases) = match during {
        Some(Line::Case { check, cases, all_cases }) => (check, cases, all_cases),
        _ => Default::default(),
    };
    Verdict::Caught { check, cases, all_cases, what }
}

/// The processor time of a process so far, where the system tells.
fn cpu_time(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in parentheses, may have spaces; the times are 11 words behind it.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = words.next()?.parse::<u64>().ok()? + words.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}
