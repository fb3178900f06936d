//! Every place of a deviation in a small world: the promises P1 to P6 hold.
//!
//! The command of `simulator::exhaustive` goes further: `cargo run --release -p simulator -- --exhaustive 2 --seconds 60`.

use simulator::exhaustive::{Rungs, explore};

/// P1 to P6, with one crash, duplicate, loss, reorder, second process, failure, stop or restore, wherever it strikes.
#[test]
fn one_deviation_anywhere_breaks_no_promise() {
    for rungs in [Rungs::Promote, Rungs::Stop] {
        let explored = explore(rungs, 1, None);
        println!("{rungs:?}: {explored}");
        assert_eq!(explored.violation, None);
        assert!(explored.is_exhausted && explored.ends > 100 && explored.worlds > 1_000, "{explored}");
    }
}
