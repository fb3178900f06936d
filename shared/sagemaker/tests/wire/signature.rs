//! The signature of a request, recomputed from the received request (Signature Version 4).

use loopback::Request;
use sha2::{Digest, Sha256};

/// Asserts that `secret` signs `request`, including its body and length.
#[track_caller]
pub(crate) fn check(request: &Request, secret: &str) {
    let given = request.header("authorization").unwrap();
    let field = |name: &str| {
        let (_, rest) = given.split_once(&format!("{name}=")).unwrap();
        rest.split(", ").next().unwrap()
    };
    let signed = field("SignedHeaders");
    assert!(signed.split(';').any(|name| name == "content-length"), "{signed}");
    let header = |name: &str| format!("{name}:{}\n", request.header(name).unwrap());
    let headers: String = signed.split(';').map(header).collect();
    let canonical = format!("POST\n{}\n\n{headers}\n{signed}\n{}", request.path, hex(&hash(&request.body)));
    let (_, scope) = field("Credential").split_once('/').unwrap();
    let text = format!(
        "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
        request.header("x-amz-date").unwrap(),
        hex(&hash(canonical.as_bytes()))
    );
    let first = format!("AWS4{secret}").into_bytes();
    let key = scope.split('/').fold(first, |key, part| keyed_hash(&key, part.as_bytes()));
    assert_eq!(field("Signature"), hex(&keyed_hash(&key, text.as_bytes())));
}

fn hash(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

/// HMAC with SHA-256.
fn keyed_hash(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 64];
    let key = if key.len() > block.len() { hash(key) } else { key.to_vec() };
    block[..key.len()].copy_from_slice(&key);
    let padded = |with: u8| block.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    let inner = hash(&[padded(0x36), bytes.to_vec()].concat());
    hash(&[padded(0x5c), inner].concat())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
