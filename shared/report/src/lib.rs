//! The report of a tuning and its live page: one implementation for `hyperband report`, `serve` and `proxy`.
//!
//! [`collect`] folds the steps of a tuning into a [`document::Document`], and later steps into a [`document::Delta`].
//! [`html`] writes the page that shows a document. The page needs no network.
#![warn(missing_docs)]

pub mod best_model;
pub mod collect;
pub mod document;
pub mod event_text;
pub mod follow;
pub mod html;
pub mod text;

pub use collect::{Live, read};
pub use document::{Delta, Document, Head};
