//! Which bodies are worth compressing.

use crate::container::codec::Compressor;
use crate::container::error::EncodeError;

/// How many bytes may go through the compressor for one byte that is saved.
const BYTES_PER_BYTE: usize = 8;

/// So many bytes must be saved besides, since a call of the compressor costs microseconds.
const CALL_BYTES: usize = 16;

/// What is smaller is not tried: a frame of zstd has a dozen bytes beyond its content.
const LEAST_BYTES: usize = 128;

/// The most chunks between two trials, so that a change of load is noticed.
const MOST_CHUNKS: u16 = 256;

/// Remembers for bodies of like size whether it paid to compress when it was tried last.
///
/// Columns are packed to the bit and strings are cut into words, so that there is often nothing
/// left that a compressor finds.
/// Trials get rare while they agree: after 1, 2, 4, ... chunks of the size.
/// No clock is read: time is taken to follow the bytes compressed.
#[derive(Debug)]
pub(super) struct Judge {
    /// By the number of significant bits of the body's length.
    sizes: [Verdict; usize::BITS as usize + 1],
}

#[derive(Debug, Clone, Copy, Default)]
struct Verdict {
    pays: bool,
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
    /// Whether this body is worth compressing.
    ///
    /// # Errors
    ///
    /// What the compressor says when it fails.
    pub(super) fn pays(
        &mut self,
        body: &[u8],
        compressor: &mut Compressor,
    ) -> Result<bool, EncodeError> {
        let bits = usize::BITS - body.len().leading_zeros();
        let Some(verdict) = usize::try_from(bits)
            .ok()
            .and_then(|bits| self.sizes.get_mut(bits))
            .filter(|_| body.len() >= LEAST_BYTES)
        else {
            return Ok(false);
        };
        if let Some(left) = verdict.left.checked_sub(1) {
            verdict.left = left;
            return Ok(verdict.pays);
        }
        let stored = compressor.compress(body)?;
        let cost = body.len() / BYTES_PER_BYTE + CALL_BYTES;
        let pays = stored.is_some_and(|(_, stored)| stored.len() + cost < body.len());
        verdict.next = if pays == verdict.pays {
            (verdict.next * 2).clamp(1, MOST_CHUNKS)
        } else {
            1
        };
        verdict.pays = pays;
        verdict.left = verdict.next;
        Ok(pays)
    }
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
        for (body, expected) in [
            (noise(1, 1_200), false),
            (text(1_200), true),
            ([text(600), noise(1, 600)].concat(), true),
            (text(100), false),
        ] {
            let found = Judge::default().pays(&body, &mut compressor());
            assert_eq!(found.unwrap(), expected);
        }
    }

    #[test]
    fn trials_get_rare_while_they_agree_and_a_change_is_noticed() {
        let mut judge = Judge::default();
        let mut compressor = compressor();
        let plain = noise(1, 1_200);
        let worth = [text(600), noise(1, 600)].concat();
        for _ in 0..2_000 {
            assert!(!judge.pays(&plain, &mut compressor).unwrap());
        }
        let bits = 11;
        assert_eq!(judge.sizes[bits].next, MOST_CHUNKS);
        let noticed = (0..)
            .find(|_| judge.pays(&worth, &mut compressor).unwrap())
            .unwrap();
        assert!(noticed <= MOST_CHUNKS.into(), "{noticed}");
        assert_eq!(judge.sizes[bits].next, 1);
        // Bodies of another size are judged by themselves.
        assert!(judge.pays(&text(10_000), &mut compressor).unwrap());
    }
}
