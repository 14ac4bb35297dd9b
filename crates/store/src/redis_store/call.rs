//! One call of one script: its keys and its arguments.

use crate::scripts::Script;
use redis::{Cmd, ToRedisArgs};

/// A call in the making.
pub(super) struct Call {
    pub(super) script: &'static Script,
    keys: Vec<String>,
    args: Vec<Vec<u8>>,
}

impl Call {
    pub(super) fn new(script: &'static Script, keys: Vec<String>) -> Self {
        Self { script, keys, args: Vec::new() }
    }

    pub(super) fn keys(mut self, keys: impl IntoIterator<Item = String>) -> Self {
        self.keys.extend(keys);
        self
    }

    pub(super) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        arg.write_redis_args(&mut self.args);
        self
    }

    /// By its hash: what is sent as a rule.
    pub(super) fn by_sha(&self) -> Cmd {
        self.command("EVALSHA", &self.script.sha)
    }

    /// By its text: once, where the script cache does not have it. Unlike SCRIPT LOAD it goes to the right node.
    pub(super) fn by_source(&self) -> Cmd {
        self.command("EVAL", &self.script.source)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.args);
        command
    }
}
