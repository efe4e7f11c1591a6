//! Probes, queue and collector: the part of Baler that is linked into an application.
