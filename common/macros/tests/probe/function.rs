use baler_monitoring::probe;

#[probe]
const fn constant() {}

trait Shop {
    #[probe]
    fn order(&self);
}

#[probe]
struct Basket;

#[probe]
unsafe extern "C" {
    fn foreign();
}

struct Till;

#[probe(name = "shop.Till.all()")]
impl Till {
    fn pay(&self) {}
}

#[probe]
impl Till {
    #[probe]
    const fn new() -> Self {
        Self
    }
}

#[probe]
impl Till {
    #[probe(skipped)]
    fn open(&self) {}
}

fn main() {}
