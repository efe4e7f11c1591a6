//! A web shop. Probes record its calls, and it has its own record type for orders.
//!
//! `shop URI [ADDRESS]`, for example `shop amqp://localhost/?queue=shop 127.0.0.1:8080`, takes
//! orders by `POST /orders` with `{"item": "tea", "count": 2}` until it is interrupted.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use baler::{Controller, Record, emit, probe};
use serde::Deserialize;
use tokio::net::TcpListener;

/// A customer's request.
#[derive(Deserialize)]
struct Wanted {
    item: String,
    count: u32,
}

#[derive(Record)]
#[record(name = "shop.Order")]
struct Order {
    id: u64,
    item: String,
    count: u32,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

#[probe]
async fn order(Json(Wanted { item, count }): Json<Wanted>) -> Result<String, StatusCode> {
    reserve(&item, count)?;
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    emit(&Order { id, item, count });
    Ok(format!("order {id}\n"))
}

#[probe]
fn reserve(item: &str, count: u32) -> Result<(), StatusCode> {
    match item.is_empty() || count == 0 {
        true => Err(StatusCode::UNPROCESSABLE_ENTITY),
        false => Ok(()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let uri = arguments.next().ok_or("usage: shop URI [ADDRESS]")?;
    let address = arguments.next().unwrap_or("127.0.0.1:8080".into());
    let controller = Controller::with(uri, |builder| builder.application("shop"))?;
    controller.install();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("http://{}", listener.local_addr()?);
        let shop = Router::new().route("/orders", post(order));
        axum::serve(listener, shop)
            .with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) })
            .await
    })?;
    println!("{}", controller.shutdown(Duration::from_secs(5)));
    Ok(())
}
