//! A service of asynchronous functions. The trace of an order follows it over awaits, worker
//! threads and, if it is passed on, into other tasks.

use std::time::Duration;

use baler_common::transport::ChunkWriter;
use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::{Controller, ShutdownReport, TraceContext, in_trace, probe};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[probe]
async fn order(item: u32) -> Result<(), Failure> {
    let price = price(item).await?;
    // The receipt is part of the order, although another task sends it.
    let receipt = tokio::spawn(in_trace(TraceContext::current(), receipt(price)));
    // The statistics are not part of it: a spawned task begins a trace of its own.
    let statistics = tokio::spawn(statistics(item));
    receipt.await?;
    statistics.await?;
    Ok(())
}

#[probe]
async fn price(item: u32) -> Result<u32, Failure> {
    tokio::task::yield_now().await;
    item.checked_mul(3).ok_or_else(|| "too dear".into())
}

#[probe]
async fn receipt(price: u32) {
    tokio::task::yield_now().await;
    print(price);
}

#[probe]
fn print(price: u32) -> String {
    format!("{price} EUR")
}

#[probe]
async fn statistics(_item: u32) {
    tokio::task::yield_now().await;
}

/// Takes eight orders at once and returns the report.
pub(crate) fn run(writer: Box<dyn ChunkWriter>) -> Result<ShutdownReport, Failure> {
    let controller = Controller::builder(writer).application("shop").start()?;
    controller.install();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    runtime.block_on(async {
        let orders: Vec<_> = (0..8).map(|item| tokio::spawn(order(item))).collect();
        for order in orders {
            order.await??;
        }
        Ok::<_, Failure>(())
    })?;
    drop(runtime);
    Ok(controller.shutdown(Duration::from_secs(5)))
}

#[allow(clippy::print_stdout, reason = "an example shows what it did")]
fn main() -> Result<(), Failure> {
    let writer = NullWriter::new(NullConfig::default());
    println!("{}", run(Box::new(writer))?);
    Ok(())
}
