//! API Gateway's requests, and our responses as hosts read them.

use wire::events::http::{HttpRequest, HttpResponse, MAX_BODY_BYTES};
use wire::events::payload;

use crate::check_told;

pub(crate) fn run(input: &[u8]) {
    let event = match payload(input) {
        Ok(event) => event,
        Err(error) => return check_told(&error),
    };
    match HttpRequest::parse(&event) {
        Ok(request) => {
            let held = [&request.path, &request.method, &request.request_id].map(String::len);
            assert!(held.iter().sum::<usize>() + request.body.len() <= input.len(), "more than was sent");
            assert!(request.body.len() <= MAX_BODY_BYTES);
            assert!(request.headers.keys().all(|name| !name.bytes().any(|byte| byte.is_ascii_uppercase())));
            assert_eq!(
                HttpRequest::parse(&request.encode()).as_ref(),
                Ok(&request),
                "it reads back the same"
            );
        }
        Err(error) => check_told(&error),
    }
    match HttpResponse::parse(&event) {
        Ok(response) => assert_eq!(HttpResponse::parse(&response.encode()).as_ref(), Ok(&response)),
        Err(error) => check_told(&error),
    }
}
