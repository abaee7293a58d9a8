//! A small generator with a printed seed, so that a failure can be run again.

/// xorshift64*: enough to mutate seeds with.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed; 0 counts as 1.
    pub fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `bound`; 0 when the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { usize::try_from(self.number() % bound as u64).unwrap_or(0) }
    }

    /// Changes some bytes of a seed: flips, inserts, removes, repeats, and numbers at the edges of their types.
    pub fn mutate(&mut self, seed: &[u8]) -> Vec<u8> {
        const EDGES: [&[u8]; 8] = [
            &[0xFF; 8],
            &[0; 8],
            &[0xFD, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
            b"[[[[",
            b"{\"\":",
            b"\\u{",
            b"((((",
            &[0xC3, 0x28],
        ];
        let mut bytes = seed.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            match self.below(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 if at < bytes.len() => {
                    bytes.remove(at);
                }
                2 => bytes.insert(at, u8::try_from(self.below(256)).unwrap_or(0)),
                3 => {
                    let edge = EDGES[self.below(EDGES.len())];
                    bytes.splice(at..at, edge.iter().copied());
                }
                4 => bytes.truncate(at),
                _ => {
                    let end = (at + self.below(16)).min(bytes.len());
                    let part = bytes[at.min(end)..end].to_vec();
                    bytes.splice(at..at, part);
                }
            }
        }
        bytes
    }
}
