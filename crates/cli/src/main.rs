//! `paceline`: arguments → configuration → tracing → signals → run. The only place that wires things together.

mod api;
mod args;
mod bench;
mod budgets;
mod check;
mod deadletters;
mod demo;
mod doctor;
mod get;
mod lanes;
mod print;
mod private_redis;
mod push;
mod queues;
mod reconcile;
mod rehearse;
mod sandbox;
mod scripts;
mod serve;
mod settings;
mod signals;

use args::{Args, Command, ServeOptions, WorkerOptions};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    start_tracing(args.log_json);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return print::failed(&error.into()),
    };
    match runtime.block_on(run(args)) {
        Ok(code) => code,
        Err(error) => print::failed(&error),
    }
}

async fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Installed once, whichever part makes the first TLS connection; a second attempt changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = args.config.as_deref();
    match args.command {
        Command::Serve(options) => serve::run(config, serve::Parts::Both, &options).await,
        Command::Worker(WorkerOptions { redis }) => {
            serve::run(config, serve::Parts::Worker, &ServeOptions { redis, listen: None }).await
        }
        Command::Admin(options) => serve::run(config, serve::Parts::Admin, &options).await,
        Command::Sandbox(options) => sandbox::run(&options).await,
        Command::Push(options) => push::run(config, &options).await,
        Command::Get(options) => get::run(config, &options).await,
        Command::Queues(options) => queues::run(config, &options).await,
        Command::Budget(command) => budgets::run(config, &command).await,
        Command::Explain(options) => budgets::explain(config, &options).await,
        Command::Alerts(options) => budgets::alerts(config, &options).await,
        Command::Dlq(command) => deadletters::run(config, &command).await,
        Command::Pause(options) => queues::pause(config, &options).await,
        Command::Resume(options) => queues::resume(config, &options).await,
        Command::Doctor(options) => {
            doctor::run(config, &ServeOptions { redis: options.redis, listen: None }, options.json).await
        }
        Command::Reconcile(options) => reconcile::run(config, &options).await,
        Command::CheckConfig(options) => check::run(config, &options),
        Command::Scripts(options) => scripts::run(&options),
        Command::Demo(options) => demo::run(&options).await,
        Command::Rehearse(options) => rehearse::run(&options).await,
        Command::Bench(options) => bench::run(&options).await,
    }
}

/// Logs go to stderr, so that what a command prints can be piped; `RUST_LOG` chooses how much.
fn start_tracing(json: bool) {
    use std::io::IsTerminal;
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,paceline=info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if json {
        builder.json().init();
    } else {
        builder.with_ansi(std::io::stderr().is_terminal()).init();
    }
}
