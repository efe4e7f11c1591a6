//! Tests of cells under loom.

mod models;
