//! Small values from fuzz bytes, for targets whose input is a list of commands. Bytes that are missing count as 0.

/// Takes bytes from the front.
#[derive(Debug)]
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// A number below `count`, which is at least 1.
    pub(crate) fn below(&mut self, count: u8) -> u8 {
        self.byte() % count.max(1)
    }

    /// Two bytes.
    pub(crate) fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A number of any size; the small ones and the extremes are likely.
    pub(crate) fn number(&mut self) -> i64 {
        match self.below(8) {
            0..=3 => i64::from(self.byte()),
            4 => i64::from(self.short()),
            5 => [i64::MIN, i64::MAX, -1, i64::from(u32::MAX)][usize::from(self.below(4))],
            _ => {
                let mut bytes = [0; 8];
                bytes.fill_with(|| self.byte());
                i64::from_le_bytes(bytes)
            }
        }
    }
}
