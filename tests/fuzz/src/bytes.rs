//! Small values from fuzz bytes, for targets whose input is a list of commands. Missing bytes count as 0.

/// The bytes that are not read yet.
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

    /// Returns the next byte.
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// Returns a number below `count`, which must be at least 1.
    pub(crate) fn below(&mut self, count: u8) -> u8 {
        self.byte() % count.max(1)
    }

    /// Returns the next two bytes as a number.
    pub(crate) fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Returns a number of any size. Small numbers and extremes are likely.
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
