//! What can be told on any machine: how many instructions a probe is.

#![cfg(test)]

mod instructions;
