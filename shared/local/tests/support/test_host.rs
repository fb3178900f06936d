//! Test program: the host shim (`__host …`), or a small controller that a test can kill.
//!
//! `serve ROOT REQUEST SECONDS_BEFORE_READING_LOGS -- COMMAND ARG…` opens the service on ROOT, creates the job in the
//! file REQUEST unless it exists, and prints each state of the job. After its end it prints `log bytes N` and
//! `peak kB N`, and exits.

use std::error::Error;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use local::training::{Config, TrainingService};
use use_cases::ports::training::TrainingJobs;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(mode) if mode == "__host" => local::training::shim::shim_main(args),
        Some(mode) if mode == "serve" => match serve(&args.collect::<Vec<_>>()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                print_line(&format!("error {error}"));
                ExitCode::FAILURE
            }
        },
        _ => ExitCode::FAILURE,
    }
}

fn print_line(text: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn serve(args: &[OsString]) -> Result<(), Box<dyn Error>> {
    let [root, request, read_delay, _, command @ ..] = args else { return Err("usage".into()) };
    let read_delay = Duration::from_secs(read_delay.to_string_lossy().parse()?);
    let shim = vec![std::env::current_exe()?.into(), "__host".into()];
    let mut config = Config::new(PathBuf::from(root), command.to_vec(), shim);
    config.delays.restart = Duration::from_millis(20);
    let (service, mut feeds) = TrainingService::open(config).await?;
    let request: serde_json::Value = serde_json::from_slice(&std::fs::read(request)?)?;
    let _ = service.create(&request).await;
    let reading = tokio::spawn(async move {
        tokio::time::sleep(read_delay).await;
        let mut bytes = 0;
        while let Some(batch) = feeds.logs.recv().await {
            bytes += batch.len();
        }
        bytes
    });
    while let Some(event) = feeds.events.recv().await {
        if event["detail"]["TrainingJobName"] != request["TrainingJobName"] {
            continue;
        }
        let status = event["detail"]["TrainingJobStatus"].as_str().unwrap_or_default();
        print_line(event["detail"]["SecondaryStatus"].as_str().unwrap_or_default());
        if ["Completed", "Failed", "Stopped"].contains(&status) {
            break;
        }
    }
    service.shutdown().await;
    drop(service);
    print_line(&format!("log bytes {}", reading.await?));
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    print_line(&format!("peak kB {}", peak.trim().trim_end_matches(" kB")));
    Ok(())
}
