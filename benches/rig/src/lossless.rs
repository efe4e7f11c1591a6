//! The controller that measurements of writing share.

use baler_common::container::{Compression, NativeSerializer};
use baler_common::transport::ChunkWriter;
use baler_monitoring::{Controller, ControllerBuilder, Overflow};

use crate::failure::Failure;

/// One that sends what is emitted and nothing else, in native chunks compressed like this (`none`,
/// `lz4`, `zstd:3`).
///
/// # Errors
///
/// There is no such compression.
pub fn controller(
    writer: Box<dyn ChunkWriter>,
    compression: &str,
) -> Result<ControllerBuilder, Failure> {
    let compression = compression.parse::<Compression>();
    let compression = compression.map_err(Failure::cannot("compress"))?;
    let serializer = NativeSerializer::new(compression).map_err(Failure::cannot("compress"))?;
    Ok(Controller::builder(writer)
        .metadata_record(false)
        // Nothing may be lost, so the slower end sets the pace.
        .overflow(Overflow::Block)
        .serializer(serializer))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use baler_connector_null::{NullConfig, NullWriter};

    use super::*;
    use crate::workload::{Executions, Workload};

    #[test]
    fn what_is_sent_is_what_was_emitted() {
        let writer = || Box::new(NullWriter::new(NullConfig::default()));
        let controller = controller(writer(), "zstd:3").unwrap().start().unwrap();
        let mut workload = Workload::new(1);
        let call = workload.next().unwrap();
        assert!(controller.emit(Executions::new(&workload).of(&call)));
        let report = controller.shutdown(Duration::from_secs(20));
        assert_eq!(report.delivered(), 1);
        assert!(super::controller(writer(), "squeezed").is_err());
    }
}
