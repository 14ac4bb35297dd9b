//! Limiters that others wrote, in front of the sandbox: nginx and HAProxy, as they come from the distribution.

use crate::ports;
use crate::redis_server::{bound_to_us, spawn};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A running limiter; dropped, it is killed.
pub struct Limiter {
    port: u16,
    child: Child,
    _folder: TempDir,
}

impl Limiter {
    /// nginx `limit_req`: a leaky bucket per client; what is refused does not count, and names no wait.
    pub fn nginx(upstream: &str, rate_per_s: u32, burst: u32) -> Self {
        let settings = format!(
            "daemon off; master_process off; pid {{folder}}/pid; error_log stderr crit;\n\
             events {{}}\n\
             http {{\n  access_log off; client_body_temp_path {{folder}}/body; proxy_temp_path {{folder}}/proxy;\n  \
             fastcgi_temp_path {{folder}}/f; uwsgi_temp_path {{folder}}/u; scgi_temp_path {{folder}}/s;\n  \
             limit_req_zone $binary_remote_addr zone=all:1m rate={rate_per_s}r/s; limit_req_status 429;\n  \
             server {{ listen 127.0.0.1:{{port}}; location / {{\n    \
             limit_req zone=all burst={burst} nodelay; proxy_pass {upstream}; proxy_set_header Host $host; }} }}\n}}\n"
        );
        Self::start("nginx", &["-p", "{folder}", "-c", "{folder}/settings"], &settings)
    }

    /// HAProxy stick tables: so many requests in any second and in any five seconds. What is refused counts, so a
    /// sender that does not slow down stays locked out.
    pub fn haproxy(upstream: &str, per_s: u32, per_5_s: u32) -> Self {
        let server = upstream.trim_start_matches("http://");
        let settings = format!(
            "defaults\n  mode http\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n\
             backend one_second\n  stick-table type integer size 10 expire 60s store http_req_rate(1s)\n\
             backend five_seconds\n  stick-table type integer size 10 expire 60s store http_req_rate(5s)\n\
             frontend all\n  bind 127.0.0.1:{{port}}\n  \
             http-request track-sc0 int(1) table one_second\n  http-request track-sc1 int(1) table five_seconds\n  \
             http-request deny deny_status 429 if {{ sc0_http_req_rate(one_second) gt {per_s} }}\n  \
             http-request deny deny_status 429 if {{ sc1_http_req_rate(five_seconds) gt {per_5_s} }}\n  \
             default_backend sandbox\n\
             backend sandbox\n  server sandbox {server}\n"
        );
        Self::start("haproxy", &["-q", "-db", "-f", "{folder}/settings"], &settings)
    }

    fn start(program: &str, args: &[&str], settings: &str) -> Self {
        let (port, folder) = (ports::free(), tempfile::tempdir().expect("a temporary folder can be made"));
        let path = folder.path().display().to_string();
        let settings = settings.replace("{port}", &port.to_string()).replace("{folder}", &path);
        std::fs::write(folder.path().join("settings"), settings).expect("it can be written to");
        let mut command = bound_to_us(program);
        command.args(args.iter().map(|arg| arg.replace("{folder}", &path))).stdout(Stdio::null());
        let child =
            spawn(command).unwrap_or_else(|error| panic!("{program}: {error}; `make test` installs it"));
        let limiter = Self { port, child, _folder: folder };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(10), "{program} does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        limiter
    }

    /// Where it listens.
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Limiter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
