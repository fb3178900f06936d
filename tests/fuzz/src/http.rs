//! Target `http`: requests of API Gateway and of direct callers, and the controller's responses as hosts read them.

use wire::events::http::{HttpRequest, HttpResponse, MAX_BODY_BYTES};
use wire::events::{direct, payload};

use crate::check_error_text;

pub(crate) fn run(input: &[u8]) {
    let event = match payload(input) {
        Ok(event) => event,
        Err(error) => return check_error_text(&error),
    };
    match HttpRequest::parse(&event) {
        Ok(request) => {
            let held = [&request.path, &request.method, &request.request_id].map(String::len);
            assert!(
                held.iter().sum::<usize>() + request.body.len() <= input.len(),
                "the request holds more bytes than the input"
            );
            assert!(request.body.len() <= MAX_BODY_BYTES);
            assert!(request.headers.keys().all(|name| !name.bytes().any(|byte| byte.is_ascii_uppercase())));
            assert_eq!(
                HttpRequest::parse(&request.encode()).as_ref(),
                Ok(&request),
                "the request reads back the same"
            );
        }
        Err(error) => check_error_text(&error),
    }
    match direct::parse(&event) {
        Ok(request) => {
            assert!(request.body.len() <= MAX_BODY_BYTES);
            assert_eq!(request.caller.as_deref(), Some(direct::CALLER), "no payload names its caller");
            let again = direct::parse(&direct::encode(&request));
            assert_eq!(again.map(|read| (read.path, read.query)), Ok((request.path, request.query)));
        }
        Err(error) => check_error_text(&error),
    }
    match HttpResponse::parse(&event) {
        Ok(response) => assert_eq!(HttpResponse::parse(&response.encode()).as_ref(), Ok(&response)),
        Err(error) => check_error_text(&error),
    }
}
