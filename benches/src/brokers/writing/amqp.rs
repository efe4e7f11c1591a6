//! Writing one message a record with lapin alone.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use baler_rig::plain_row::Rows;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel, Confirmation};

use super::super::case::Way;
use super::super::clients::Amqp;
use super::super::task::Writing;
use super::{Calls, Confirmed, Writes};
use crate::failure::Failure;

/// How many messages may be unconfirmed.
const WINDOW: usize = 1_024;

/// The mark of a message that outlives the broker's end.
const PERSISTENT: u8 = 2;

/// A connection with one channel in confirm mode, driven by one thread; persistent, mandatory
/// messages, as Baler's.
pub(super) struct Writer<'a> {
    amqp: Amqp,
    queue: ShortString,
    awaiting: bool,
    calls: &'a Calls,
    confirmed: Confirmed,
}

type Publishing = Pin<Box<dyn Future<Output = lapin::Result<Confirmation>>>>;

/// A publish that was polled once, which put its frames in order behind those before; awaiting
/// each to its end costs several times the CPU.
enum Slot {
    Waiting(Publishing),
    Answered(Result<(), Failure>),
}

impl Slot {
    async fn start(mut publishing: Publishing) -> Self {
        match poll_fn(|cx| Poll::Ready(publishing.as_mut().poll(cx))).await {
            Poll::Pending => Self::Waiting(publishing),
            Poll::Ready(result) => Self::Answered(confirmed(result)),
        }
    }

    async fn answer(self) -> Result<(), Failure> {
        match self {
            Self::Waiting(publishing) => confirmed(publishing.await),
            Self::Answered(result) => result,
        }
    }
}

fn confirmed(result: lapin::Result<Confirmation>) -> Result<(), Failure> {
    match result.map_err(Failure::cannot("publish"))? {
        Confirmation::Ack(None) => Ok(()),
        other => Err(Failure::new(format!("not confirmed: {other:?}"))),
    }
}

async fn publish(
    channel: Channel,
    queue: ShortString,
    row: Vec<u8>,
) -> lapin::Result<Confirmation> {
    let options = BasicPublishOptions {
        mandatory: true,
        immediate: false,
    };
    let properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
    let publishing =
        channel.basic_publish(ShortString::default(), queue, options, &row, properties);
    publishing.await?.await
}

impl<'a> Writer<'a> {
    pub(super) fn open(task: &Writing, calls: &'a Calls) -> Result<Self, Failure> {
        let amqp = Amqp::connect(&task.address)?;
        let selecting = amqp.channel.confirm_select(ConfirmSelectOptions::default());
        amqp.block_on(selecting)
            .map_err(Failure::cannot("ask for confirms"))?;
        Ok(Self {
            amqp,
            queue: task.name.as_str().into(),
            awaiting: task.way == Way::Awaiting,
            calls,
            confirmed: Confirmed::default(),
        })
    }
}

impl Writes for Writer<'_> {
    fn write(&mut self, records: u64) -> Result<(), Failure> {
        let rows = Rows::new(self.calls.workload());
        let most = if self.awaiting { 1 } else { WINDOW };
        let mut bytes = 0;
        let sending = async {
            let mut window: VecDeque<Slot> = VecDeque::with_capacity(most);
            for call in self.calls.take(records) {
                let mut row = Vec::with_capacity(256);
                rows.write(call, &mut row);
                bytes += u64::try_from(row.len()).unwrap_or(u64::MAX);
                let publishing = publish(self.amqp.channel.clone(), self.queue.clone(), row);
                window.push_back(Slot::start(Box::pin(publishing)).await);
                if window.len() >= most
                    && let Some(oldest) = window.pop_front()
                {
                    oldest.answer().await?;
                }
            }
            for slot in window {
                slot.answer().await?;
            }
            Ok(())
        };
        self.amqp.block_on(sending)?;
        self.confirmed.records += records;
        self.confirmed.messages += records;
        self.confirmed.payload_bytes += bytes;
        Ok(())
    }

    fn confirmed(&self) -> Confirmed {
        self.confirmed
    }
}
