//! Handing chunks to librdkafka without copying them.
//!
//! `BaseProducer::send` has librdkafka copy each payload, into memory that one thread asks for and
//! another one gives back. Since the collector reuses buffers, avoiding the copy saves 7 % of the
//! writing process's CPU time at 1,024 records a chunk. Here librdkafka
//! reads the chunk's own memory until the delivery report.
//!
//! # Invariants
//!
//! 1. The payload is owned by the message's opaque, which no one but the delivery callback, or the
//!    failed call, turns back into a box. librdkafka.h on `rd_kafka_produce`: without
//!    `RD_KAFKA_MSG_F_COPY` and `RD_KAFKA_MSG_F_FREE` the payload is the application's, which must
//!    not touch it before the message's delivery report.
//! 2. The opaque is of the type that the client's context names ([`DeliveryOpaque`](rdkafka::producer::ProducerContext::DeliveryOpaque)),
//!    made by [`into_ptr`](rdkafka::IntoOpaque::into_ptr): rdkafka's callback takes it back as that.
//! 3. The bytes of a [`Bytes`](bytes::Bytes) stay where they are while one of its clones lives, wherever it moves.
//! 4. Key, name and value of the header are copied before the call returns.
//!
//! A message without a report when its client ends leaks its opaque, and so the payload.

#![expect(
    unsafe_code,
    reason = "rdkafka's own way copies (see above); the invariants stand above, too"
)]

use std::ffi::{CStr, c_int};
use std::ptr;

use rdkafka::IntoOpaque as _;
use rdkafka::bindings::{
    rd_kafka_error_code, rd_kafka_error_destroy, rd_kafka_produceva, rd_kafka_vtype_t,
    rd_kafka_vu_s__bindgen_ty_1 as Value, rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 as Memory,
    rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_2 as Header, rd_kafka_vu_t,
};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::{BaseProducer, Producer as _};

use super::state::{Callbacks, SentChunk};
use crate::headers::Label;

/// What goes with a chunk.
#[derive(Debug)]
pub(super) struct Envelope<'a> {
    pub(super) topic: &'a CStr,
    /// Chosen by the key if there is none.
    pub(super) partition: Option<i32>,
    pub(super) label: &'a Label,
}

/// Neither copied nor freed.
const SHARED: c_int = 0;

/// Hands a chunk to the client's queue; never blocks.
///
/// # Errors
///
/// librdkafka's code, when it does not take it: there is no delivery report then.
pub(super) fn produce(
    client: &BaseProducer<Callbacks>,
    envelope: &Envelope<'_>,
    sent: Box<SentChunk>,
) -> Result<(), RDKafkaErrorCode> {
    // Invariant 3: this is where they are still when the box is a pointer.
    let payload = memory(&sent.bytes);
    let opaque = sent.into_ptr();
    let mut parts = Vec::with_capacity(7);
    let mut part = |vtype, u| parts.push(rd_kafka_vu_t { vtype, u });
    let cstr = envelope.topic.as_ptr();
    part(rd_kafka_vtype_t::RD_KAFKA_VTYPE_TOPIC, Value { cstr });
    if let Some(i32_) = envelope.partition {
        part(rd_kafka_vtype_t::RD_KAFKA_VTYPE_PARTITION, Value { i32_ });
    }
    part(
        rd_kafka_vtype_t::RD_KAFKA_VTYPE_MSGFLAGS,
        Value { i: SHARED },
    );
    part(
        rd_kafka_vtype_t::RD_KAFKA_VTYPE_VALUE,
        Value { mem: payload },
    );
    let mem = memory(envelope.label.key.as_bytes());
    part(rd_kafka_vtype_t::RD_KAFKA_VTYPE_KEY, Value { mem });
    let ptr = opaque;
    part(rd_kafka_vtype_t::RD_KAFKA_VTYPE_OPAQUE, Value { ptr });
    let (name, value) = &envelope.label.header;
    let header = Header {
        name: name.as_ptr(),
        val: value.as_ptr().cast(),
        size: isize::try_from(value.len()).unwrap_or(isize::MAX),
    };
    part(rd_kafka_vtype_t::RD_KAFKA_VTYPE_HEADER, Value { header });
    // SAFETY: the client lives, each part has the value that its type asks for (librdkafka.h,
    // `rd_kafka_vtype_t`), and they live until the call returns; the payload until the opaque is a box
    // again, by the first three invariants.
    let error =
        unsafe { rd_kafka_produceva(client.client().native_ptr(), parts.as_ptr(), parts.len()) };
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is the caller's, to be destroyed once, and the opaque has come back: a
    // message that is not taken has no delivery report.
    let code = unsafe {
        let code = rd_kafka_error_code(error);
        rd_kafka_error_destroy(error);
        drop(Box::<SentChunk>::from_ptr(opaque));
        code
    };
    Err(code.into())
}

fn memory(bytes: &[u8]) -> Memory {
    Memory {
        // Nothing writes to it: librdkafka.h has no constant pointers here.
        ptr: ptr::from_ref(bytes).cast_mut().cast(),
        size: bytes.len(),
    }
}
