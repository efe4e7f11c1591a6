//! What seed and flags decide before anything runs.

use std::collections::BTreeSet;

use baler_common::transport::Order;

use super::shown;
use crate::args::{FaultChoice, VerifyArgs};
use crate::commands::verify::random::Random;
use crate::commands::verify::stand::{ANYWHERE, Stand, WITH_SPOOL};
use crate::endpoint;
use crate::exit::{Code, Failure};

/// What seed and flags decide.
#[derive(Debug)]
pub(in crate::commands::verify) struct Plan {
    /// In this order.
    pub(super) schedule: Vec<FaultChoice>,
    pub(super) down_at_start: bool,
    pub(super) order_promised: bool,
    /// Records around each fault, and at the end.
    pub(super) slice: u64,
    /// Records of one overflow.
    pub(in crate::commands::verify) burst: u64,
    pub(super) producers: u16,
    pub(in crate::commands::verify) consumers: u16,
}

impl Plan {
    /// The plan of a run on this endpoint.
    ///
    /// # Errors
    ///
    /// The endpoint cannot have a fault that was asked for.
    pub(super) fn new(
        args: &VerifyArgs,
        stand: &dyn Stand,
        random: &mut Random,
    ) -> Result<Self, Failure> {
        let faults = chosen(args, stand)?;
        let schedule = schedule(&faults, args.rounds, random);
        let consumers = stand.consumers(args);
        let slices = u64::try_from(schedule.len())
            .unwrap_or(u64::MAX)
            .saturating_add(1);
        let slice = args.records / slices;
        let alone = consumers == 1 && !faults.contains(&FaultChoice::Rebalance);
        let writer = endpoint::writer(&stand.producer_uri(0))?.writer;
        let is_ordered = writer.capability().order == Order::PerLane;
        Ok(Self {
            order_promised: is_ordered && (alone || stand.orders_competitors()),
            down_at_start: faults.contains(&FaultChoice::BrokerDownAtStart),
            schedule,
            slice,
            burst: (slice / 2).min(200_000).min(stand.window() / 4),
            producers: args.producers,
            consumers,
        })
    }
}

/// Each fault so many times, in an order that the seed decides; those of the start are no part.
fn schedule(faults: &[FaultChoice], rounds: u16, random: &mut Random) -> Vec<FaultChoice> {
    let mut schedule = Vec::new();
    for _ in 0..rounds {
        let mut round: Vec<_> = faults
            .iter()
            .copied()
            .filter(|fault| *fault != FaultChoice::BrokerDownAtStart)
            .collect();
        random.shuffle(&mut round);
        schedule.extend(round);
    }
    schedule
}

/// The faults that were asked for, each once, as the endpoint can have them.
fn chosen(args: &VerifyArgs, stand: &dyn Stand) -> Result<Vec<FaultChoice>, Failure> {
    let faults = ANYWHERE.iter().chain(stand.faults());
    let mut possible: BTreeSet<_> = faults.copied().collect();
    if args.spool {
        possible.extend(WITH_SPOOL);
    }
    if args.faults.contains(&FaultChoice::All) {
        return Ok(possible.into_iter().collect());
    }
    let wanted: BTreeSet<_> = args.faults.iter().copied().collect();
    for fault in &wanted {
        if !possible.contains(fault) {
            let names: Vec<_> = possible.iter().map(|it| it.name()).collect();
            return Err(Failure::new(
                Code::Configuration,
                format!(
                    "--faults {} does not go with --to {}, which can have {}",
                    fault.name(),
                    shown(&args.to),
                    names.join(", ")
                ),
            ));
        }
    }
    Ok(wanted.into_iter().collect())
}
