//! Chunks over TCP: many senders to one receiver.
