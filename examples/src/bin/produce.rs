use baler::{Controller, Record};

#[derive(Record)]
struct Order {
    id: u64,
    item: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let controller = Controller::to(std::env::args().nth(1).ok_or("usage: produce URI")?)?;
    for id in 0..1_000 {
        let item = format!("item {}", id % 10);
        controller.emit(&Order { id, item });
    }
    println!("{}", controller.shutdown(std::time::Duration::from_secs(5)));
    Ok(())
}
