//! The contract of every connector.

use crate::support::{Rabbit, RabbitStream};

mod queue {
    use super::Rabbit;

    baler_connector_testkit::contract_tests!(Rabbit: reads redelivers breaks stalls threads many_writers many_readers);
}

mod stream {
    use super::RabbitStream;

    baler_connector_testkit::contract_tests!(RabbitStream: reads redelivers breaks stalls many_writers);
}
