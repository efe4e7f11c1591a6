//! The contract of every connector.

use crate::support::Rabbit;

baler_connector_testkit::contract_tests!(Rabbit);
