//! Units: IDs, times, epochs, money, and the bounds of the decider.

pub mod epochs;
pub mod ids;
pub mod limits;
pub mod money;
pub mod scan;
pub mod time;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(number: &u32) -> bool {
    *number == 0
}
