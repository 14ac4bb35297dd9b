//! A job that kills its worker: failures 49. The process really dies, so the worker is a child of this test: the
//! test's own binary, started again with a word in its environment.

use crate::support::*;
use paceline_core::config::{Config, Sources};
use paceline_core::transport::Answers;
use paceline_core::{Outgoing, State, Transport};
use paceline_tests::stage::{ONE_CLASS, Stage, embedded, http};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The folder with the settings; whoever finds it in its environment is the worker.
const FOLDER: &str = "PACELINE_TEST_POISONED_WORKER";
const THIS_TEST: &str = "poison::a_job_that_kills_its_worker_parks_itself_and_not_its_neighbours";
const POISON: &str = "bulk:7";

/// Speaks HTTP and writes down when each sending begins and ends; one payload is the end of the process.
struct Deadly {
    http: Arc<dyn Transport>,
    log: Mutex<File>,
}

impl Deadly {
    fn note(&self, what: &str, key: &str) {
        let line = format!("{} {what} {key}\n", std::process::id());
        // One write in append mode: lines of several processes do not mix.
        self.log.lock().expect("no holder panics").write_all(line.as_bytes()).expect("the folder is there");
    }
}

impl Transport for Deadly {
    fn send<'a>(&'a self, jobs: &'a [Outgoing]) -> Answers<'a> {
        Box::pin(async move {
            let payload: serde_json::Value =
                serde_json::from_slice(&jobs[0].request.body).expect("it is JSON");
            let key = payload["key"].as_str().expect("every payload here has one");
            self.note("begins", key);
            if key == POISON {
                // Its neighbours are on the wire by now.
                tokio::time::sleep(Duration::from_millis(30)).await;
                std::process::abort();
            }
            let answers = self.http.send(jobs).await;
            self.note("ends", key);
            answers
        })
    }
}

/// What the child does until it dies.
async fn work(folder: &Path) {
    let settings = std::fs::read_to_string(folder.join("paceline.toml")).expect("it was written");
    let mut config =
        Config::read(Sources { file: Some(("test", &settings)), environment: &[] }).expect("it is valid");
    config.redis.url = std::fs::read_to_string(folder.join("redis")).expect("it was written");
    let log =
        OpenOptions::new().append(true).create(true).open(folder.join("log")).expect("the folder is there");
    let log = Mutex::new(log);
    let deadly = Arc::new_cyclic(|_| Deadly {
        http: http(&config, config.classes.values().next().expect("one")),
        log,
    });
    let worker = embedded(&config, |_| deadly.clone());
    worker.run(CancellationToken::new(), CancellationToken::new()).await;
}

/// A child that is started again whenever it dies.
struct Restarting {
    folder: PathBuf,
    child: Child,
    deaths: usize,
}

impl Restarting {
    fn start(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), child: child(folder), deaths: 0 }
    }

    fn restart_if_dead(&mut self) {
        if self.child.try_wait().expect("it is our own child").is_some() {
            self.deaths += 1;
            self.child = child(&self.folder);
        }
    }
}

impl Drop for Restarting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Dies with the thread of this test.
fn child(folder: &Path) -> Child {
    let this = std::env::current_exe().expect("a running test knows its own file");
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL"])
        .arg(this)
        .args(["--exact", THIS_TEST])
        .env(FOLDER, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("setpriv (util-linux) is there")
}

#[tokio::test]
async fn a_job_that_kills_its_worker_parks_itself_and_not_its_neighbours() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return work(Path::new(&folder)).await;
    }
    let settings = ONE_CLASS
        .replace("deadline_ms = 2000", "deadline_ms = 1000")
        .replace("lease_margin_ms = 1000", "lease_margin_ms = 600");
    let stage = Stage::new(slow(100), &settings).await;
    let settings = stage.settings_file();
    let folder = settings.parent().expect("a file lies in a folder");
    std::fs::write(folder.join("redis"), stage.redis.url()).expect("it can be written to");
    stage.push(BULK, 20).await;
    let mut workers = [0; 3].map(|_| Restarting::start(folder));
    until("the poison is parked and the others are sent", async || {
        workers.iter_mut().for_each(Restarting::restart_if_dead);
        let depths = stage.depths(BULK).await;
        depths.of(State::Deferred) == 1 && depths.of(State::Submitted) == 19
    })
    .await;
    assert_eq!(workers.iter().map(|worker| worker.deaths).sum::<usize>(), 3, "it is not handed out for ever");
    let parked = jobs_in(&stage, State::Deferred).await.remove(0);
    assert_eq!((parked.key.as_str(), parked.counters.spent, parked.counters.lapses), (POISON, 0, 3));
    assert_eq!(parked.history.last().expect("its ends are on record").reason, "worker lost 3 times");
    let neighbours = jobs_in(&stage, State::Submitted).await;
    assert!(neighbours.iter().all(|job| job.counters.spent == 0 && job.counters.lapses <= 2));
    assert_delivered_once(&stage, 19);
    assert_alone_at_last(&std::fs::read_to_string(folder.join("log")).expect("it was written"));
}

/// When a poison of two lapses begins, nothing else is on the wire of its process.
fn assert_alone_at_last(log: &str) {
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split(' ').collect()).collect();
    let is_last = |line: &Vec<&str>| line[1] == "begins" && line[2] == POISON;
    let last = lines.iter().rposition(is_last).expect("it was sent");
    assert_eq!(lines.iter().filter(|line| is_last(line)).count(), 3, "{log}");
    let own = lines[..=last].iter().filter(|line| line[0] == lines[last][0]);
    let open = own.map(|line| if line[1] == "begins" { 1 } else { -1 }).sum::<i32>();
    assert_eq!(open, 1, "{log}");
}
