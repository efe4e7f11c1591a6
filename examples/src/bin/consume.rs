use baler::Record;

#[derive(Record)]
struct Order {
    id: u64,
    item: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for batch in baler::consume::<Order>(std::env::args().nth(1).ok_or("usage: consume URI")?)? {
        let batch = batch?;
        batch.iter().for_each(|o| println!("{} {}", o.id, o.item));
        batch.ack()?;
    }
    Ok(())
}
