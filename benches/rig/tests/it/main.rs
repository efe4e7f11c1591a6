//! Instructions a probe executes: the same on any machine.

#![cfg(test)]

mod instructions;
