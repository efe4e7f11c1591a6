//! Tables of executions of operations, in which most of a row follows from the rows before it;
//! FORMAT.md, "Calls".
//!
//! Executions come in the order of their ends. Within a trace each is either the caller of those
//! before it, or has none beneath it. So the depth says what the order index is, and times lie near
//! those of neighbours in the call tree. (Kieker's `OperationExecutionRecord`: eoi and ess.)
//!
//! - `place`: the expected next row of a trace; the encoder writes the difference of the real row from
//!   it, and the decoder adds the difference again.
//! - `encode`, `decode`: the table.

mod decode;
mod encode;
mod place;

pub(super) use decode::read;
pub(super) use encode::CallEncoder;

/// The well-known type that has this layout.
pub(super) const TYPE: u64 = 2;

/// The layout's number.
pub(super) const LAYOUT: u8 = 1;

/// The positions of its fields.
mod field {
    pub(super) const OPERATION: usize = 0;
    pub(super) const SESSION: usize = 1;
    pub(super) const TRACE: usize = 2;
    pub(super) const TIN: usize = 3;
    pub(super) const TOUT: usize = 4;
    pub(super) const HOST: usize = 5;
    pub(super) const EOI: usize = 6;
    pub(super) const ESS: usize = 7;
}

/// Sessions: one for each trace, or one for each row.
const SESSION_OF_TRACE: u8 = 0;
const SESSION_OF_ROW: u8 = 1;
