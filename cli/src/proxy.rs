//! `hyperband proxy`: serves the API of a deployed stack on this machine. Signs each request and forwards it.

use std::sync::Arc;

use api_client::{Address, ClientError, Stack};
use http_api::{Answered, ApiError};
use wire::events::http::{HttpRequest, HttpResponse};

use crate::arguments::Proxy;
use crate::failure::{Exit, Failure};
use crate::local_server::LocalServer;
use crate::output::print_err;
use crate::remote::{Remote, failed};
use crate::signals::Signals;
use crate::tunings::Tunings;

/// Serves until SIGINT or SIGTERM.
pub(crate) async fn proxy(options: Proxy) -> Result<Exit, Failure> {
    let address = options.place.required("")?;
    let listening =
        LocalServer::bind(&options.listen, options.allow_remote, "acts with your AWS credentials").await?;
    let remote = Remote::connect(address).await?;
    let stack = Arc::clone(&remote.stack);
    // Missing credentials are reported now, not with the first request.
    stack.is_signed().await.map_err(failed)?;
    let mut signals = Signals::listen()?;
    let (pages, streams) = server::pages(Tunings::of_stack(remote, options.place.location_options()));
    let routes = server::routes(move |request| forward(Arc::clone(&stack), request)).merge(pages);
    let mut serving = listening.serve(routes, options.output);
    tokio::select! {
        failure = serving.broken() => return Err(failure),
        () = signals.next() => {}
    }
    drop(streams);
    tokio::select! {
        () = serving.close() => {}
        () = signals.next() => {}
    }
    Ok(Exit::Done)
}

async fn forward(stack: Arc<Stack>, request: HttpRequest) -> HttpResponse {
    let answered = match refusal(&stack, &request) {
        Some(refusal) => Err(refusal),
        None => stack.forward(&request).await.map_err(|error| {
            let error = unanswered(&error);
            print_err(&format!("{} {}: {}\n", request.method, request.path, error.message));
            error
        }),
    };
    answered.unwrap_or_else(|error| Answered::refused(&request, error).response)
}

/// Returns the error for a request that cannot be forwarded.
fn refusal(stack: &Stack, request: &HttpRequest) -> Option<ApiError> {
    if !request.path.starts_with('/') {
        return Some(ApiError::of_host(
            "ValidationException",
            400,
            "invalid path: expected one that begins with /",
        ));
    }
    let is_aws = request.path == "/" && matches!(stack.address(), Address::Function(_));
    is_aws.then(|| {
        ApiError::of_host(
            "UnknownOperationException",
            400,
            "the endpoint is a function, which serves the paths /tuning-jobs only, not SageMaker's protocol: start the \
             proxy with the stack's output ApiUrl",
        )
    })
}

/// Returns the error for a request without a response of the API.
fn unanswered(error: &ClientError) -> ApiError {
    let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
    let message = format!("{error}{hint}");
    match error {
        ClientError::Denied { .. } => ApiError::of_host("AccessDeniedException", 403, message),
        _ => ApiError::of_host("ServiceUnavailable", 503, message),
    }
}
