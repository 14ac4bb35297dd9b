//! The command line. Help texts teach by example; every example is one that runs.

mod rehearse;

use clap::{Parser, Subcommand};
use paceline_core::State;
pub(crate) use rehearse::RehearseOptions;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The outbound queue that can tell "not right now" from "not ever".
///
/// Applications push jobs (one e-mail, SMS, push message or webhook each); Paceline keeps them in Redis and sends
/// them to rate-limited APIs: every job once, as fast as the remote side allows and never faster.
#[derive(Parser)]
#[command(
    name = "paceline",
    version,
    arg_required_else_help = true,
    after_help = "\
Try it:
  paceline demo                              three classes through a provider that says 429
  paceline serve --config paceline.toml      worker and API; starts a private Redis if none is configured
  paceline push --class bulk --key welcome:42 '{\"to\":\"ada@example.org\"}'
  paceline queues                            what waits, what is in flight, what is done"
)]
pub(crate) struct Args {
    /// The settings; ./paceline.toml is used where it exists. `check-config --defaults` prints every setting.
    #[arg(long, global = true, env = "PACELINE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Log as JSON lines.
    #[arg(long, global = true)]
    pub(crate) log_json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run worker and API in one process
    Serve(ServeOptions),
    /// Run a worker only
    Worker(WorkerOptions),
    /// Run the API only
    Admin(ServeOptions),
    /// Run the rehearsal provider: limits, 429s, silence, and a ledger of what arrived
    Sandbox(SandboxOptions),
    /// Push jobs: one from the arguments, or many from a file or stdin
    Push(PushOptions),
    /// Show one job with its attempts
    Get(GetOptions),
    /// Show how deep each class is
    Queues(ReadOptions),
    /// Show pace against ceiling and why it changed; set limits by hand
    #[command(subcommand)]
    Budget(BudgetCommand),
    /// Say why a class or a job is not sent now, and when at the earliest
    Explain(ExplainOptions),
    /// Show what a person should look at; exit 3 where there is something
    Alerts(ReadOptions),
    /// Look at dead letters, and replay them
    #[command(subcommand)]
    Dlq(DlqCommand),
    /// Stop sending a class, until resumed or for a time
    Pause(PauseOptions),
    /// Lift whatever hold is on a class
    Resume(ResumeOptions),
    /// Look at Redis: version, memory, persistence, clocks, jobs that a change of settings would strand
    Doctor(DoctorOptions),
    /// Compare every record with the indexes, and put right what disagrees (after a restored snapshot, say)
    Reconcile(ReconcileOptions),
    /// Read the settings and tell every fault at once
    CheckConfig(CheckOptions),
    /// Print each script's SHA-1 and file, for SLOWLOG
    Scripts(ScriptsOptions),
    /// Send 3,500 jobs through a provider that says 429, and show what became of them
    Demo(DemoOptions),
    /// Rehearse a launch against the sandbox, next to the same launch by a naive sender
    Rehearse(RehearseOptions),
    /// Measure jobs per second through push, claim and settle next to redis-benchmark
    Bench(BenchOptions),
}

#[derive(clap::Args)]
pub(crate) struct WorkerOptions {
    /// Overrides redis.url
    #[arg(long, value_name = "URL")]
    pub(crate) redis: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct DoctorOptions {
    /// Overrides redis.url
    #[arg(long, value_name = "URL")]
    pub(crate) redis: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
#[command(after_help = "\
Workers do the same by themselves, about once an hour and slowly. Examples:
  paceline reconcile --dry-run     look only; exit 3 where something stands wrong
  paceline reconcile               and put it right, while workers run or not")]
pub(crate) struct ReconcileOptions {
    /// Overrides redis.url
    #[arg(long, value_name = "URL")]
    pub(crate) redis: Option<String>,
    /// Look and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct ServeOptions {
    /// Overrides redis.url
    #[arg(long, value_name = "URL")]
    pub(crate) redis: Option<String>,
    /// Overrides admin.listen
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  paceline sandbox --listen 127.0.0.1:9000
  paceline sandbox --scenario scenario.toml
  curl -X PUT localhost:9000/_sandbox/scenario -d '{\"rate_per_s\":40}'   change it while it runs
  curl localhost:9000/_sandbox/ledger                                   what really arrived")]
pub(crate) struct SandboxOptions {
    /// Where it listens
    #[arg(long, default_value = "127.0.0.1:9000")]
    pub(crate) listen: SocketAddr,
    /// A scenario in TOML; without one: 100 requests a second, burst 50, per credential
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
}

/// How to reach the API.
#[derive(clap::Args, Clone)]
pub(crate) struct ApiOptions {
    /// The API; by default where the settings say it listens
    #[arg(long, env = "PACELINE_API", value_name = "URL")]
    pub(crate) api: Option<String>,
    /// The token for it
    #[arg(long, env = "PACELINE_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  paceline push --class bulk --key welcome:42 '{\"to\":\"ada@example.org\"}'
  paceline push --file jobs.ndjson              one job per line; safe to repeat, because keys are remembered
  cat jobs.ndjson | paceline push --file -")]
pub(crate) struct PushOptions {
    #[command(flatten)]
    pub(crate) api: ApiOptions,
    /// The class
    #[arg(long, required_unless_present = "file")]
    pub(crate) class: Option<String>,
    /// The key; a UUIDv7 without one
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// Not before this time (RFC 3339 with an offset)
    #[arg(long, value_name = "TIME")]
    pub(crate) not_before: Option<String>,
    /// Not after this time
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_at: Option<String>,
    /// The campaign it is counted under
    #[arg(long)]
    pub(crate) campaign: Option<String>,
    /// A path on the provider's origin, where it differs from the class's
    #[arg(long)]
    pub(crate) path: Option<String>,
    /// Whole jobs, one JSON object per line; "-" reads stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["class", "key", "not_before", "expires_at", "campaign", "path", "payload"])]
    pub(crate) file: Option<PathBuf>,
    /// The payload, as JSON
    #[arg(required_unless_present = "file")]
    pub(crate) payload: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct GetOptions {
    #[command(flatten)]
    pub(crate) api: ApiOptions,
    /// The class
    pub(crate) class: String,
    /// The key
    pub(crate) key: String,
    /// The packed header in full words as well
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(clap::Args)]
pub(crate) struct ReadOptions {
    #[command(flatten)]
    pub(crate) api: ApiOptions,
}

#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  paceline budget ls                          pace, ceiling, what was used, what holds
  paceline budget show acme-bulk              and the last decisions, each with its cause
  paceline budget set acme-bulk --rate 40/s   in force at once, for every worker, until unset
  paceline budget unset acme-bulk             the configuration's limits again")]
pub(crate) enum BudgetCommand {
    /// List every budget
    Ls(ReadOptions),
    /// Show one budget and the last decisions about its pace
    Show(BudgetNameOptions),
    /// Set limits by hand; they stand against the configuration
    Set(BudgetSetOptions),
    /// Give the limits back to the configuration
    Unset(BudgetNameOptions),
}

#[derive(clap::Args)]
pub(crate) struct BudgetNameOptions {
    #[command(flatten)]
    pub(crate) api: ApiOptions,
    /// The budget: a credential or an account
    pub(crate) name: String,
}

#[derive(clap::Args)]
pub(crate) struct BudgetSetOptions {
    #[command(flatten)]
    pub(crate) api: ApiOptions,
    /// The budget: a credential or an account
    pub(crate) name: String,
    /// The ceiling, like 40/s, 600/min or 5000/h
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// How many may leave at once
    #[arg(long)]
    pub(crate) burst: Option<u64>,
    /// The pace never falls below
    #[arg(long)]
    pub(crate) floor: Option<String>,
    /// Requests in flight at once over all workers; 0: no limit
    #[arg(long)]
    pub(crate) max_in_flight: Option<u64>,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  paceline explain bulk                       what binds the class now
  paceline explain bulk welcome:42            and that job")]
pub(crate) struct ExplainOptions {
    #[command(flatten)]
    pub(crate) api: ApiOptions,
    /// The class
    pub(crate) class: String,
    /// The job's key
    pub(crate) key: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct PauseOptions {
    #[command(flatten)]
    pub(crate) api: ApiOptions,
    /// The class
    pub(crate) class: String,
    /// For so many seconds; without it until resumed
    #[arg(long, value_name = "SECONDS")]
    pub(crate) for_s: Option<u64>,
}

#[derive(clap::Args)]
pub(crate) struct ResumeOptions {
    #[command(flatten)]
    pub(crate) api: ApiOptions,
    /// The class; with --budget the budget
    pub(crate) name: String,
    /// It is a budget (a credential or an account), not a class
    #[arg(long)]
    pub(crate) budget: bool,
}

#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  paceline dlq ls --class bulk
  paceline dlq replay --class bulk --reason 'worker lost 3 times' --dry-run
  paceline dlq replay --class bulk --state failed --code 401     after the key was mended")]
pub(crate) enum DlqCommand {
    /// List dead letters: deferred and unconfirmed, and failed on request
    Ls(DlqListOptions),
    /// Move dead letters back to pending: same key, same send id, paced
    Replay(DlqReplayOptions),
    /// Say what became of jobs that nobody else can tell about: accepted, or not and so to be sent again
    Confirm(DlqConfirmOptions),
}

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("verdict").required(true).args(["accepted", "not_accepted"])))]
#[command(after_help = "\
Look at the provider first, then say what you saw. Examples:
  paceline dlq confirm --class bulk --accepted --message-id SM123 welcome:42
  paceline dlq confirm --class bulk --not-accepted welcome:43 welcome:44     they are sent again")]
pub(crate) struct DlqConfirmOptions {
    #[command(flatten)]
    pub(crate) api: ApiOptions,
    /// The class
    #[arg(long)]
    pub(crate) class: String,
    /// The provider has them
    #[arg(long)]
    pub(crate) accepted: bool,
    /// The provider has never had them
    #[arg(long)]
    pub(crate) not_accepted: bool,
    /// The provider's id of the message
    #[arg(long, requires = "accepted")]
    pub(crate) message_id: Option<String>,
    /// The jobs
    #[arg(required = true, value_name = "KEY")]
    pub(crate) keys: Vec<String>,
}

/// Which dead letters.
#[derive(clap::Args, Clone)]
pub(crate) struct DlqFilter {
    /// deferred, unconfirmed or failed; without it deferred and unconfirmed
    #[arg(long, value_parser = dead_state)]
    pub(crate) state: Option<State>,
    /// The reason, exactly
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// What the provider last said
    #[arg(long)]
    pub(crate) code: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct DlqListOptions {
    #[command(flatten)]
    pub(crate) api: ApiOptions,
    /// The class; without it all
    #[arg(long)]
    pub(crate) class: Option<String>,
    #[command(flatten)]
    pub(crate) filter: DlqFilter,
    /// At most so many
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
}

#[derive(clap::Args)]
pub(crate) struct DlqReplayOptions {
    #[command(flatten)]
    pub(crate) api: ApiOptions,
    /// The class
    #[arg(long)]
    pub(crate) class: String,
    #[command(flatten)]
    pub(crate) filter: DlqFilter,
    /// Only these keys
    #[arg(long, num_args = 1.., conflicts_with_all = ["state", "reason", "code"])]
    pub(crate) keys: Vec<String>,
    /// Count and move nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also those that the provider may have accepted and would not recognise again
    #[arg(long)]
    pub(crate) accept_duplicates: bool,
}

fn dead_state(word: &str) -> Result<State, String> {
    State::parse(word)
        .filter(|state| state.is_dead_letter() || *state == State::Failed)
        .ok_or_else(|| "must be deferred, unconfirmed or failed".into())
}

#[derive(clap::Args)]
pub(crate) struct CheckOptions {
    /// Print every setting with its default and its reason
    #[arg(long)]
    pub(crate) defaults: bool,
}

#[derive(clap::Args)]
pub(crate) struct ScriptsOptions {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct DemoOptions {
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Bulk jobs; lifecycle jobs are a sixth of them
    #[arg(long, default_value_t = 3_000)]
    pub(crate) bulk: usize,
    /// Keep serving after the table, to look around
    #[arg(long)]
    pub(crate) stay: bool,
}

#[derive(clap::Args)]
pub(crate) struct BenchOptions {
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Jobs per run
    #[arg(long, default_value_t = 50_000)]
    pub(crate) jobs: usize,
    /// Jobs per call
    #[arg(long, default_value_t = 50)]
    pub(crate) batch: usize,
    /// Runs, interleaved with the reference; the best counts
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
