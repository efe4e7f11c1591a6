use baler_monitoring::probe;

#[probe]
const fn constant() {}

trait Shop {
    #[probe]
    fn order(&self);
}

#[probe]
struct Basket;

struct Till;

#[probe]
impl Till {
    fn pay(&self) {}
}

#[probe]
mod module {}

#[probe]
trait Priced {}

fn main() {}
