//! How long a command waits for a medium that moves nothing.

use std::time::Duration;

use clap::Args;

use super::values;
use crate::patience::GIVE_UP;

/// How long a command waits for a medium that moves nothing.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GiveUpArgs {
    /// End with code 69 when a medium owed progress for so long and nothing moved, whether it can be
    /// reached or not [default: 30s with --idle-timeout, otherwise never]
    #[arg(
        long,
        value_name = "DURATION",
        env = "BALER_GIVE_UP",
        value_parser = values::duration
    )]
    give_up: Option<Duration>,
}

impl GiveUpArgs {
    /// When to give up. A command that ends when nothing comes does not wait for ever for a medium
    /// that does not say whether something comes.
    pub(crate) fn limit(&self, idle_timeout: Option<Duration>) -> Option<Duration> {
        self.give_up.or_else(|| idle_timeout.map(|_| GIVE_UP))
    }
}
