//! Load, CPU, wire and latency measurement.
