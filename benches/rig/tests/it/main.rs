//! What can be told on any machine: how many instructions a probe is, and that measurements add up.

#![cfg(test)]

mod autotune;
mod instructions;
