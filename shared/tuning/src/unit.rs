//! Units: IDs, times, epochs, money, and the bounds of the decider.

pub mod epochs;
pub mod ids;
pub mod limits;
pub mod money;
pub mod scan;
pub mod time;

/// Returns whether a stored field has the value of its absence.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
