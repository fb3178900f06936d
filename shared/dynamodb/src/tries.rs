//! Counts how often the SDK sent one call.
//!
//! The SDK tells only the last answer, and what a failed condition means hangs on whether an earlier try may have been done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextRef;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;

/// The tries of one call; a clone counts the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tries(Arc<AtomicU32>);

impl Tries {
    /// Whether there was more than one.
    pub(crate) fn several(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}

impl Intercept for Tries {
    fn name(&self) -> &'static str {
        "Tries"
    }

    fn read_before_attempt(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
