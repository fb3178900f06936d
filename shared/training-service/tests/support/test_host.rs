//! Test program: runs the host shim of training processes (`__host …`).

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(mode) if mode == "__host" => local::training::shim::shim_main(args),
        _ => ExitCode::FAILURE,
    }
}
