//! The call sites of the program, for the other end of a controller's writer.

use std::sync::Arc;

use baler_common::transport::Probes;

use super::upkeep::Switch;
use crate::collector::ControllerState;
use crate::controller::refresh_active;
use crate::probe::signatures;

/// All call sites of the program, and the controller whose verdicts they are.
#[derive(Debug)]
pub(crate) struct Sites {
    pub(crate) application: Box<str>,
    pub(crate) shared: Arc<ControllerState>,
    pub(crate) switch: Arc<Switch>,
}

impl Probes for Sites {
    fn application(&self) -> &str {
        &self.application
    }

    fn signatures(&self, from: usize) -> Vec<&'static str> {
        signatures(from)
    }

    fn switch(&self, verdicts: &[(usize, bool)]) {
        self.switch.judge(verdicts);
        refresh_active(&self.shared);
    }
}
