//! See the tests of the outbox below.
