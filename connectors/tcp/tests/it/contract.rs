//! The contract of every connector.

use crate::support::Tcp;

baler_connector_testkit::contract_tests!(Tcp: reads redelivers breaks stalls threads many_writers);
