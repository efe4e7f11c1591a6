//! The origin of a trace in the form for other processes: W3C Trace Context.

use std::fmt;
use std::str::FromStr;

use baler_connector_kieker::w3c;

/// The header `traceparent` of W3C Trace Context (version 00): the trace of a request, and the span
/// that made the request.
///
/// ```
/// use baler_monitoring::{TraceContext, TraceParent};
///
/// # fn handle() {}
/// # fn main() -> Result<(), baler_monitoring::TraceParentError> {
/// let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let parent: TraceParent = header.parse()?;
/// let _attached = TraceContext::continuing(&parent).attach();
/// handle(); // Records of traces that begin here name that parent.
/// // A request to another process says where it comes from:
/// let header = TraceContext::current().traceparent().map(|it| it.to_string());
/// # Ok(())
/// # }
/// ```
///
/// # Ids
///
/// Kieker's ids of traces have 63 bits and belong to one process. W3C's ids have 128 bits and are
/// the same in all processes. The mapping is:
///
/// - A trace that comes from another process gets its own id here. A `TraceMetadata` record
///   contains its parent, [`kieker_trace_id`](Self::kieker_trace_id) (the low 63 bits of the W3C
///   id), with the `parentOrderId` -1, and the header as the `sessionId`. Requests that it sends
///   have the received W3C id. The
///   exclusive or of the four 16-bit parts is the same for both ids, so that both traces go to the
///   same lane.
/// - A trace that began here with Kieker's id has the W3C ids of [`w3c`].
/// - Between processes with Baler the header `tracestate` may carry [`state`](Self::state). Then
///   the parent's trace and number come from the immediate caller, over any number of hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace_id: u128,
    parent_id: u64,
    flags: u8,
    /// Trace and eoi in the sending process.
    caller: Option<(i64, i32)>,
}

/// A header is not a valid `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceParentError {
    /// It does not consist of four fields of the right lengths with `-` between them.
    #[error("a traceparent has the form 00-<32 hex digits>-<16 hex digits>-<2 hex digits>")]
    Form,
    /// A field has characters other than digits and small letters from a to f.
    #[error("the {field} of a traceparent has other characters than 0-9 and a-f")]
    Digits {
        /// The field.
        field: &'static str,
    },
    /// The version is ff, which is forbidden.
    #[error("the version of a traceparent cannot be ff")]
    Version,
    /// An id is 0.
    #[error("the {field} of a traceparent cannot be all zeros")]
    Zero {
        /// The field.
        field: &'static str,
    },
}

/// The flag that the caller may have recorded the trace.
const SAMPLED: u8 = 1;
/// The known flags: sampled, and random (level 2).
const KNOWN_FLAGS: u8 = 3;
/// The length of a header of version 00.
const LENGTH: usize = 55;

impl TraceParent {
    /// Creates the header of a request made within a trace of this process.
    pub(crate) fn of_call(trace_id: i64, eoi: i32, from: Option<&Self>) -> Self {
        Self {
            trace_id: from.map_or_else(|| w3c::trace_id(trace_id), |from| from.trace_id),
            parent_id: w3c::span_id(trace_id, eoi),
            flags: from.map_or(SAMPLED, |from| from.flags & KNOWN_FLAGS),
            caller: Some((trace_id, eoi)),
        }
    }

    /// Returns the id of the trace in all processes, not 0.
    pub const fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// Returns the id of the span that made the request, not 0.
    pub const fn parent_id(&self) -> u64 {
        self.parent_id
    }

    /// Whether the caller may have recorded the trace. Baler records in both cases.
    pub const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Returns the trace's id in Kieker's records: the low 63 bits of the id, or the id that
    /// [`with_state`](Self::with_state) found.
    pub fn kieker_trace_id(&self) -> i64 {
        self.caller.map_or_else(
            || {
                let [.., a, b, c, d, e, f, g, h] = self.trace_id.to_be_bytes();
                i64::from_be_bytes([a, b, c, d, e, f, g, h]) & i64::MAX
            },
            |(trace_id, _)| trace_id,
        )
    }

    /// Returns the number of the call in that trace; -1 if it is not known.
    pub fn kieker_order_id(&self) -> i32 {
        self.caller.map_or(-1, |(_, eoi)| eoi)
    }

    /// Takes the member of a process with Baler from the header `tracestate`. Other members are
    /// skipped, as the specification demands.
    #[must_use]
    pub fn with_state(mut self, tracestate: &str) -> Self {
        let own = tracestate
            .split(',')
            .find_map(|member| member.trim_matches([' ', '\t']).strip_prefix("baler="));
        let caller = own.and_then(|own| {
            let (trace_id, eoi) = own.split_once('-')?;
            let trace_id = i64::try_from(digits(trace_id, 16, "").ok()?).ok()?;
            let eoi = i32::try_from(digits(eoi, 8, "").ok()?).ok()?;
            Some((trace_id, eoi))
        });
        self.caller = caller.or(self.caller);
        self
    }

    /// Returns the member of the header `tracestate` by which a process with Baler knows the call.
    /// Put it before the received members. `None` if this does not come from this process.
    pub fn state(&self) -> Option<String> {
        let (trace_id, eoi) = self.caller?;
        Some(format!("baler={trace_id:016x}-{eoi:08x}"))
    }
}

impl FromStr for TraceParent {
    type Err = TraceParentError;

    /// Parses strictly. From versions above 00 it takes the fields of 00, as the specification
    /// demands.
    fn from_str(header: &str) -> Result<Self, Self::Err> {
        let mut fields = header.splitn(5, '-');
        let (version, trace_id, parent_id, flags) =
            match (fields.next(), fields.next(), fields.next(), fields.next()) {
                (Some(version), Some(trace_id), Some(parent_id), Some(flags)) => {
                    (version, trace_id, parent_id, flags)
                }
                _ => return Err(TraceParentError::Form),
            };
        let version = digits(version, 2, "version")?;
        if version == 0xff {
            return Err(TraceParentError::Version);
        }
        if version == 0 && header.len() != LENGTH {
            return Err(TraceParentError::Form);
        }
        let trace_id = digits(trace_id, 32, "trace-id")?;
        let parent_id = digits(parent_id, 16, "parent-id")?;
        let flags = digits(flags, 2, "trace-flags")?;
        if trace_id == 0 {
            return Err(TraceParentError::Zero { field: "trace-id" });
        }
        if parent_id == 0 {
            return Err(TraceParentError::Zero { field: "parent-id" });
        }
        Ok(Self {
            trace_id,
            parent_id: u64::try_from(parent_id).map_err(|_| TraceParentError::Form)?,
            flags: u8::try_from(flags).map_err(|_| TraceParentError::Form)?,
            caller: None,
        })
    }
}

fn digits(text: &str, length: usize, field: &'static str) -> Result<u128, TraceParentError> {
    if text.len() != length {
        return Err(TraceParentError::Form);
    }
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if !text.bytes().all(is_digit) {
        return Err(TraceParentError::Digits { field });
    }
    u128::from_str_radix(text, 16).map_err(|_| TraceParentError::Digits { field })
}

impl fmt::Display for TraceParent {
    /// The header, in version 00.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = self.flags & KNOWN_FLAGS;
        write!(
            f,
            "00-{:032x}-{:016x}-{flags:02x}",
            self.trace_id, self.parent_id
        )
    }
}

#[cfg(test)]
mod tests;
