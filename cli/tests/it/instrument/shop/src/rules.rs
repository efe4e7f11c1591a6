//! Types, and methods of types that are elsewhere.

pub type Register<T> = types::Till<T>;

pub trait Priced {
    fn price(&self) -> u32;

    fn discount(&self) -> u32 {
        fn half(price: u32) -> u32 {
            price / 2
        }
        half(self.price())
    }
}

pub mod types {
    #[derive(Clone, Debug)]
    pub struct Till<T>(pub(super) T);

    #[allow(non_camel_case_types)]
    pub enum r#enum {
        One,
    }
}

impl<T> types::Till<T> {
    pub fn new(first: T) -> Self {
        Self(first)
    }
}

mod elsewhere {
    use super::*;
    use crate::rules::types::r#enum as One;

    impl<T: Copy> types::Till<T> {
        pub fn count(&self) -> usize { One::One.one() }
    }

    impl<T> Register<T> {
        #[track_caller]
        pub(crate) fn close(self) {}
    }

    impl Priced for types::Till<u8> {
        fn price(&self) -> u32 {
            self.0.into()
        }
    }

    impl One {
        fn one(&self) -> usize {
            1
        }
    }
}
