//! Places: points of the unit cube, at the resolution of the stored state.

use serde::{Deserialize, Serialize};

use crate::space::{Configuration, EncodeError, Space};

/// The steps of a stored coordinate.
const STEPS: f64 = 65_536.0;

/// A point of the unit cube in 16 bits for each coordinate: small enough for the stored state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Place(Vec<u16>);

impl Place {
    /// Returns the place of a configuration.
    pub fn of(space: &Space, configuration: &Configuration) -> Result<Self, EncodeError> {
        let steps = space.encode(configuration)?.into_iter().map(step);
        Ok(Self(steps.collect()))
    }

    /// Returns the configuration at the place: numbers are as exact as a stored coordinate.
    ///
    /// # Panics
    /// If the place is not of this space.
    pub fn configuration(&self, space: &Space) -> Configuration {
        space.decode(&self.point())
    }

    pub(crate) fn point(&self) -> Vec<f64> {
        self.0.iter().map(|step| center(*step)).collect()
    }
}

impl Space {
    /// Returns the place of the configuration at a point: equal for points with the same integers and categories.
    pub(crate) fn snapped(&self, point: &[f64]) -> Vec<f64> {
        let values = self.parameters().iter().zip(point);
        values.map(|(parameter, u)| center(step(parameter.domain.snapped(*u)))).collect()
    }
}

fn center(step: u16) -> f64 {
    (f64::from(step) + 0.5) / STEPS
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the product is clamped to 0..=65535; the cast drops its fraction"
)]
fn step(coordinate: f64) -> u16 {
    (coordinate * STEPS).clamp(0.0, STEPS - 1.0) as u16
}
