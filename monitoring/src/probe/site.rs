//! A place in the program where calls are recorded.

use std::sync::OnceLock;

use baler_common::record::Interned;

use super::call::{Call, Guard};
use super::path::class_of;
use crate::controller;

/// A place in the program where calls are recorded: one static a probe.
#[derive(Debug)]
pub struct Site {
    operation: Operation,
    /// Made at the first call that is recorded; afterwards a call writes four bytes.
    signature: OnceLock<Interned>,
}

#[derive(Debug)]
enum Operation {
    /// The whole signature.
    Named(&'static str),
    /// A function, with the text that the macro could make.
    Function {
        modifiers_and_return: &'static str,
        /// The type name of a function inside this one.
        here: fn() -> &'static str,
        name: &'static str,
        arguments: &'static str,
    },
}

impl Site {
    /// A site with a signature of its own.
    pub const fn named(signature: &'static str) -> Self {
        Self {
            operation: Operation::Named(signature),
            signature: OnceLock::new(),
        }
    }

    /// The site of a function; `here` returns the type name of a function declared in it.
    pub const fn new(
        modifiers_and_return: &'static str,
        here: fn() -> &'static str,
        name: &'static str,
        arguments: &'static str,
    ) -> Self {
        Self {
            operation: Operation::Function {
                modifiers_and_return,
                here,
                name,
                arguments,
            },
            signature: OnceLock::new(),
        }
    }

    /// Begins a call; it ends when the guard is dropped.
    ///
    /// While nothing is recorded this is one relaxed load.
    #[inline]
    pub fn enter(&'static self) -> Guard {
        if controller::is_active() {
            Guard::begin(self)
        } else {
            Guard::inactive()
        }
    }

    /// Begins a call of an asynchronous function; it ends when the value is dropped.
    #[inline]
    pub fn enter_async(&'static self) -> Call {
        if controller::is_active() {
            Call::begin(self)
        } else {
            Call::inactive()
        }
    }

    pub(super) fn signature(&self) -> Interned {
        *self.signature.get_or_init(|| self.operation.signature())
    }
}

impl Operation {
    /// The signature as Kieker writes it: `public Receipt shop.Shop.order(Basket, u32)`.
    fn signature(&self) -> Interned {
        match self {
            Self::Named(signature) => Interned::new(signature),
            Self::Function {
                modifiers_and_return,
                here,
                name,
                arguments,
            } => {
                let class = class_of(here());
                Interned::leaked(&format!(
                    "{modifiers_and_return} {class}.{name}({arguments})"
                ))
            }
        }
    }
}
