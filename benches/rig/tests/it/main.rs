//! What can be told of the probe's cost on any machine: how many instructions it is.

#![cfg(test)]

mod instructions;
