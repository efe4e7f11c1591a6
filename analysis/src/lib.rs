//! Sources, filters and sinks over decoded chunks.
