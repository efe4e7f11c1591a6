//! Which parts of a body are worth compressing.

use super::blocks::{Plan, head_bytes};
use crate::container::codec::Compressor;
use crate::container::error::EncodeError;
use crate::container::num::to_u64;
use crate::container::varint;

/// A byte saved pays for so many bytes that went through the compressor.
const BYTES_PER_BYTE: usize = 8;

/// So many bytes must be saved besides, since a call of the compressor costs microseconds.
const CALL_BYTES: usize = 16;

/// What is smaller is not tried: a frame of zstd has a dozen bytes beyond its content.
const LEAST_BYTES: usize = 128;

/// The most chunks between two trials, so that a change of load is noticed.
const MOST_CHUNKS: u16 = 256;

/// Remembers for bodies of like size what paid when it was tried last.
///
/// Columns are packed to the bit and strings are cut into words, so that there is often nothing
/// left that a compressor finds; where there is, it may be in one part only.
/// A trial compresses each part and the whole.
/// Trials get rare while they agree: after 1, 2, 4, ... chunks of the size.
/// No clock is read: time is taken to follow the bytes compressed.
#[derive(Debug)]
pub(super) struct Judge {
    /// By the number of significant bits of the body's length.
    sizes: [Verdict; usize::BITS as usize + 1],
}

#[derive(Debug, Clone, Copy, Default)]
struct Verdict {
    plan: Plan,
    /// How many chunks go by it without a trial.
    left: u16,
    /// How many go by the next one that agrees.
    next: u16,
}

impl Default for Judge {
    fn default() -> Self {
        Self {
            sizes: [Verdict::default(); usize::BITS as usize + 1],
        }
    }
}

impl Judge {
    /// What is to be compressed of a body whose types and strings have `texts` bytes.
    ///
    /// # Errors
    ///
    /// What the compressor says when it fails.
    pub(super) fn plan(
        &mut self,
        body: &[u8],
        texts: usize,
        compressor: &mut Compressor,
    ) -> Result<Plan, EncodeError> {
        let bits = usize::BITS - body.len().leading_zeros();
        let Some(verdict) = usize::try_from(bits)
            .ok()
            .and_then(|bits| self.sizes.get_mut(bits))
            .filter(|_| body.len() >= LEAST_BYTES)
        else {
            return Ok(Plan::Nothing);
        };
        if let Some(left) = verdict.left.checked_sub(1) {
            verdict.left = left;
            return Ok(verdict.plan);
        }
        let plan = tried(body, texts, compressor)?;
        verdict.next = match plan == verdict.plan {
            true => (verdict.next * 2).clamp(1, MOST_CHUNKS),
            false => 1,
        };
        verdict.plan = plan;
        verdict.left = verdict.next;
        Ok(plan)
    }
}

/// Tries what could be compressed; what is worth most.
fn tried(body: &[u8], texts: usize, compressor: &mut Compressor) -> Result<Plan, EncodeError> {
    let (first, second) = body.split_at_checked(texts).unwrap_or((&[], body));
    let candidates = [
        (Plan::Texts, first, head_bytes(second)),
        (Plan::Tables, second, head_bytes(first)),
        (Plan::Whole, body, 0),
    ];
    let (mut best, mut most) = (Plan::Nothing, 0);
    for (plan, part, more) in candidates {
        if part.len() < LEAST_BYTES {
            continue;
        }
        let Some((_, stored)) = compressor.compress(part)? else {
            continue;
        };
        let stored = stored.len() + varint::size(to_u64(stored.len())) + more;
        let cost = part.len() / BYTES_PER_BYTE + CALL_BYTES;
        let worth = part.len().saturating_sub(stored).saturating_sub(cost);
        if worth > most {
            (best, most) = (plan, worth);
        }
    }
    Ok(best)
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use super::*;
    use crate::container::compression::Compression;

    /// Bytes that no compressor makes smaller: splitmix64.
    fn noise(seed: u64, bytes: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        (0..bytes).map(|_| next().to_le_bytes()[0]).collect()
    }

    fn text(bytes: usize) -> Vec<u8> {
        let words = b"public void org.shop.Catalog.find(java.lang.String) ";
        words.iter().copied().cycle().take(bytes).collect()
    }

    #[expect(clippy::unwrap_used, reason = "a helper of tests")]
    fn compressor() -> Compressor {
        Compressor::new(Compression::Auto).unwrap()
    }

    #[test]
    fn only_what_pays_is_compressed() {
        let cases = [
            (noise(1, 600), noise(2, 600), Plan::Nothing),
            (text(600), noise(1, 600), Plan::Texts),
            (noise(1, 600), text(600), Plan::Tables),
            (text(600), text(600), Plan::Whole),
            (text(40), text(60), Plan::Nothing),
            (Vec::new(), text(600), Plan::Tables),
            (text(600), Vec::new(), Plan::Texts),
        ];
        for (texts, tables, expected) in cases {
            let body = [texts.clone(), tables].concat();
            let plan = Judge::default().plan(&body, texts.len(), &mut compressor());
            let found = plan.unwrap();
            // One part alone is the whole.
            let same = texts.is_empty() || texts.len() == body.len();
            assert!(
                found == expected || (same && found == Plan::Whole),
                "{found:?} instead of {expected:?}"
            );
        }
    }

    #[test]
    fn trials_get_rare_while_they_agree_and_a_change_is_noticed() {
        let mut judge = Judge::default();
        let mut compressor = compressor();
        let plain = noise(1, 1_200);
        let worth = [text(600), noise(1, 600)].concat();
        for _ in 0..2_000 {
            let plan = judge.plan(&plain, 600, &mut compressor).unwrap();
            assert_eq!(plan, Plan::Nothing);
        }
        let bits = 11;
        assert_eq!(judge.sizes[bits].next, MOST_CHUNKS);
        let noticed = (0..)
            .find(|_| judge.plan(&worth, 600, &mut compressor).unwrap() == Plan::Texts)
            .unwrap();
        assert!(noticed <= MOST_CHUNKS.into(), "{noticed}");
        assert_eq!(judge.sizes[bits].next, 1);
        // Bodies of another size are judged by themselves.
        let large = text(10_000);
        let plan = judge.plan(&large, 5_000, &mut compressor).unwrap();
        assert_eq!(plan, Plan::Whole);
    }
}
