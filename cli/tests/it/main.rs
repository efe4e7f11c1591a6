//! The program from outside, and what must hold across the whole workspace.

#![cfg(test)]

mod edges;
mod habits;
