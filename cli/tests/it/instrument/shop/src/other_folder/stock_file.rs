pub mod shelf;

#[derive(Default)]
pub struct Stock {
    left: u32,
}

impl Stock {
    pub fn take(&mut self, count: u32) -> Option<u32> {
        let left = self.left.checked_sub(count)?;
        self.left = left;
        Some(left)
    }
}
