//! Kieker's ids of traces and calls in the form of W3C Trace Context, which all processes share.
//!
//! Probes send these ids to other processes, and exporters give them to the same calls later. So a
//! call has one id, whoever names it.

/// The number that stands for a version of the header `traceparent`.
const VERSION: &str = "00";

/// Returns the W3C id of the trace that began with Kieker's id: this id in the lower 64 bits, and a
/// number that follows from it in the upper ones. Never 0.
pub const fn trace_id(kieker: i64) -> u128 {
    let low = kieker as u64;
    let id = ((mix(low) as u128) << 64) | low as u128;
    if id == 0 { 1 } else { id }
}

/// Returns the W3C id of the call with this number (`eoi`) in the trace with Kieker's id. Never 0.
pub const fn span_id(trace_id: i64, eoi: i32) -> u64 {
    let number = eoi as u32 as u64;
    let id = mix(mix(trace_id as u64) ^ number);
    if id == 0 { 1 } else { id }
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood, 2014) after its increment: one to one.
pub const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Reads the trace and the calling span from a header `traceparent` that a probe of Baler's has
/// recorded: the session of a `TraceMetadata` whose trace comes from another process.
pub fn recorded_parent(session: &str) -> Option<(u128, u64)> {
    let mut fields = session.split('-');
    if fields.next()? != VERSION {
        return None;
    }
    let (trace, span, _flags) = (fields.next()?, fields.next()?, fields.next()?);
    if trace.len() != 32 || span.len() != 16 || fields.next().is_some() {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok()?;
    Some((trace, u64::from_str_radix(span, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mapping_of_ids_stays_as_it_is() {
        // The first output of SplitMix64 with seed 0, from its reference implementation.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        let trace = 0x1619_22c6_45ce_50e8_1234_5678_9abc_def0;
        assert_eq!(trace_id(0x1234_5678_9abc_def0), trace);
        assert_eq!(span_id(0x1234_5678_9abc_def0, 7), 0x35fc_1d63_025e_e4db);
        assert_eq!(span_id(5, 0), 0xfad6_e246_7125_4235);
    }

    #[test]
    fn only_a_traceparent_is_a_parent() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = (
            0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            0x00f0_67aa_0ba9_02b7,
        );
        assert_eq!(recorded_parent(header), Some(parent));
        for other in [
            "<no-session-id>",
            "",
            "00-1-2-3",
            header.trim_start_matches('0'),
            &format!("{header}-"),
            &header.replace('f', "x"),
        ] {
            assert_eq!(recorded_parent(other), None, "{other}");
        }
    }
}
