//! What both sides of Baler agree on: records, containers, transport seams.
