//! Requests are signed: the signature is computed anew from what arrived (Signature Version 4).

use client::Client;
use loopback::Request;
use service::memory::MemoryTable;
use sha2::{Digest, Sha256};
use stack_test::Stack;

use crate::world::{AT_ONCE, KEY_ID, SECRET, TOKEN, client, request};

#[tokio::test]
async fn every_request_is_signed_with_its_path_its_parameters_and_its_body() {
    let stack = Stack::start(MemoryTable::default());
    let client = client(&stack);
    client.create(&request("hb1")).await.unwrap();
    client.list().await.unwrap();
    client.describe("hb1").await.unwrap();
    client.training_jobs("hb1").await.unwrap();
    client.decisions("hb1", 3).await.unwrap();
    client.stop("hb1").await.unwrap();
    let requests = stack.requests();
    assert_eq!(requests.len(), 6);
    for request in &requests {
        assert!(is_signed(request, SECRET), "{request:?}");
        assert!(!is_signed(request, "another-secret"), "{request:?}");
        assert_eq!(request.header("x-amz-security-token"), Some(TOKEN));
        let credential = field(request, "Credential");
        assert!(credential.starts_with(&format!("{KEY_ID}/")), "{credential}");
        assert!(credential.ends_with("/eu-west-1/execute-api/aws4_request"), "{credential}");
        for name in ["host", "x-amz-date", "x-amz-security-token"] {
            assert!(field(request, "SignedHeaders").split(';').any(|signed| signed == name), "{name}");
        }
    }
    // What is changed on the way is not taken for what was signed.
    let mut changed = requests[0].clone();
    changed.body.push(b' ');
    assert!(!is_signed(&changed, SECRET));
}

#[tokio::test]
async fn without_credentials_nothing_is_signed() {
    let stack = Stack::start(MemoryTable::default());
    let client = Client::new(stack.endpoint.parse().unwrap(), None, AT_ONCE);
    client.list().await.unwrap();
    assert_eq!(stack.requests()[0].header("authorization"), None);
}

fn field<'a>(request: &'a Request, name: &str) -> &'a str {
    let given = request.header("authorization").unwrap();
    let (_, rest) = given.split_once(&format!("{name}=")).unwrap();
    rest.split(", ").next().unwrap()
}

fn is_signed(request: &Request, secret: &str) -> bool {
    let signed = field(request, "SignedHeaders");
    let header = |name: &str| format!("{name}:{}\n", request.header(name).unwrap());
    let headers: String = signed.split(';').map(header).collect();
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let mut pairs: Vec<&str> = query.split('&').collect();
    pairs.sort_unstable();
    let (query, body) = (pairs.join("&"), hex(&hash(&request.body)));
    let canonical = format!("{}\n{path}\n{query}\n{headers}\n{signed}\n{body}", request.method);
    let (_, scope) = field(request, "Credential").split_once('/').unwrap();
    let date = request.header("x-amz-date").unwrap();
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&hash(canonical.as_bytes())));
    let first = format!("AWS4{secret}").into_bytes();
    let key = scope.split('/').fold(first, |key, part| keyed_hash(&key, part.as_bytes()));
    field(request, "Signature") == hex(&keyed_hash(&key, text.as_bytes()))
}

fn hash(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

/// HMAC with SHA-256.
fn keyed_hash(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let padded = |with: u8| block.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    let inner = hash(&[padded(0x36), bytes.to_vec()].concat());
    hash(&[padded(0x5c), inner].concat())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
