//! The size that a draw is for.

use super::*;
use crate::space::{Parameter, Scaling};

fn space() -> Space {
    let sizes = Domain::Ordinal { values: ["1", "2", "4"].map(str::to_owned).into() };
    let number = Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
    let parameters = [("x", number), ("instances", sizes)];
    Space::new(parameters.map(|(name, domain)| Parameter { name: name.to_owned(), domain }).into()).unwrap()
}

/// Points are stored with 16 bits for each coordinate, so a coordinate may be one step off.
#[test]
fn a_size_has_the_points_of_its_own_cell() {
    let mut rng = Rng::new(1);
    let size =
        std::iter::repeat_with(|| Size::drawn(&space(), &[5, 1, 2], &mut rng)).take(100).flatten().next();
    let size = size.unwrap();
    let step = 1.0 / 65_536.0;
    let found = [1.0 / 6.0, 0.5 - step, 0.5, 0.5 + step, 5.0 / 6.0].map(|center| size.has(&[0.5, center]));
    assert_eq!(found, [false, true, true, true, false], "the second size has the fewest trials");
    let mut point = [0.25, 0.9];
    size.apply(&mut point);
    assert_eq!(point.map(|coordinate| coordinate.to_string()), ["0.25", "0.5"]);
}
