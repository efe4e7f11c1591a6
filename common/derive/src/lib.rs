//! The derive macro of Baler's records.
