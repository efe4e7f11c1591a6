//! Chunks in a folder of segment files.
