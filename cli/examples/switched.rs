//! A service whose probes the receiver of its records can switch.
//!
//! ```sh
//! cargo run -p baler-cli --example switched -- 'kieker+tcp://127.0.0.1:9876?adaptive=true'
//! ```
//!
//! It calls three operations a hundred times a second, two of them in the package `com.shop`, until
//! standard input ends. Then it prints the account of its records.

#![expect(clippy::print_stdout, reason = "an example talks to people")]

use std::error::Error;
use std::io;
use std::thread;
use std::time::Duration;

use baler::{Controller, enter};

fn order() {
    let _probe = enter!("public void com.shop.Till.order()");
    pay();
}

fn pay() {
    let _probe = enter!("public void com.shop.billing.Bank.pay()");
}

fn check() {
    let _probe = enter!("public void com.health.Monitor.check()");
}

fn main() -> Result<(), Box<dyn Error>> {
    let uri = std::env::args().nth(1).ok_or("usage: switched URI")?;
    let controller = Controller::with(uri, |builder| {
        builder
            .application("shop")
            .wait_time(Duration::from_millis(50))
    })?;
    controller.install();
    let input = thread::spawn(|| io::copy(&mut io::stdin(), &mut io::sink()));
    while !input.is_finished() {
        order();
        check();
        thread::park_timeout(Duration::from_millis(10));
    }
    println!("{}", controller.shutdown(Duration::from_secs(5)));
    Ok(())
}
