//! The fault simulator (being written).
