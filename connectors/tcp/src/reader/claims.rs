//! Decides which connection may send chunks of a producer.
//!
//! A sender might use the producer and epoch of another sender. Its chunks could then count as
//! copies and be dropped. So producer and epoch belong to the connection that sends them, as long
//! as it is alive.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};

use super::progress::Connection;

/// The most lives of producers (producer and epoch) that a connection holds. A relay that forwards
/// more lives loses its oldest claims, and claims them again with their next chunk.
const MAX_CLAIMS: usize = 256;

/// The connection that holds each life of a producer.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<HashMap<(ProducerId, Epoch), Arc<Connection>>>);

impl Claims {
    /// Claims the producer and epoch of a chunk for the connection that sends it.
    ///
    /// Another live connection keeps them, unless both connections have given the same proof: the
    /// same token or certificate. Then the connection that sent last holds them.
    ///
    /// # Errors
    ///
    /// The sender of the other connection, which keeps them.
    pub(super) fn claim(
        &self,
        identity: ChunkIdentity,
        connection: &Arc<Connection>,
    ) -> Result<(), Box<str>> {
        let life = (identity.producer, identity.epoch);
        let mut holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holder) = holders.get(&life) {
            if Arc::ptr_eq(holder, connection) {
                return Ok(());
            }
            if holder.is_alive() && !connection.has_same_proof(holder) {
                return Err(holder.endpoint.clone());
            }
        }
        holders.insert(life, Arc::clone(connection));
        let mut claimed = connection.claimed();
        claimed.push_back(life);
        if claimed.len() > MAX_CLAIMS {
            if let Some(life) = claimed.pop_front() {
                remove(&mut holders, &life, connection);
            }
        }
        Ok(())
    }

    /// Gives up all claims of a connection that has ended.
    pub(super) fn release(&self, connection: &Arc<Connection>) {
        let mut holders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for life in connection.claimed().drain(..) {
            remove(&mut holders, &life, connection);
        }
    }
}

/// Removes a claim, unless another connection holds it now.
fn remove(
    holders: &mut HashMap<(ProducerId, Epoch), Arc<Connection>>,
    life: &(ProducerId, Epoch),
    connection: &Arc<Connection>,
) {
    if holders
        .get(life)
        .is_some_and(|it| Arc::ptr_eq(it, connection))
    {
        holders.remove(life);
    }
}

#[cfg(test)]
mod tests;
