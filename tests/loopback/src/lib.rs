//! A minimal HTTP/1.1 server for AWS SDKs and the Lambda runtime: requests with a length or in chunks, and keep-alive.
//!
//! For tests only, on loopback. Must never be reachable from another machine.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a failing helper fails its test")]

mod service;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

pub use service::{Answer, Call, Service};

/// An HTTP request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Path, with its query.
    pub path: String,
    headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Request {
    /// Returns the value of a header; `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.0 == name).map(|header| header.1.as_str())
    }
}

/// An HTTP response.
#[derive(Debug)]
pub struct Response {
    /// Status; 0 = no response, and the connection is closed.
    pub status: u16,
    /// Additional headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the response that closes the connection without an answer.
    pub fn cut() -> Self {
        Self { status: 0, headers: Vec::new(), body: Vec::new() }
    }
}

/// Serves each connection in its own thread until the process ends.
pub fn serve(listener: TcpListener, answer: impl Fn(&Request) -> Response + Send + Sync + 'static) {
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while let Some(request) = read(&mut reader) {
                    if write(&stream, &answer(&request)).is_none() {
                        return;
                    }
                }
            });
        }
    });
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request { method, path, headers, body: Vec::new() };
    if request.header("transfer-encoding") == Some("chunked") {
        request.body = chunks(reader)?;
    } else if let Some(length) = request.header("content-length") {
        request.body = vec![0; length.parse().ok()?];
        reader.read_exact(&mut request.body).ok()?;
    }
    Some(request)
}

fn chunks(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let length = usize::from_str_radix(line.trim(), 16).ok()?;
        let mut chunk = vec![0; length + 2];
        reader.read_exact(&mut chunk).ok()?;
        chunk.truncate(length);
        if chunk.is_empty() {
            return Some(body);
        }
        body.extend(chunk);
    }
}

fn write(mut stream: &TcpStream, response: &Response) -> Option<()> {
    if response.status == 0 {
        return None;
    }
    let mut head = format!("HTTP/1.1 {} X\r\nContent-Length: {}\r\n", response.status, response.body.len());
    if !response.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        head.push_str("Content-Type: application/json\r\n");
    }
    let extra = response.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    head.extend(extra);
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&response.body).ok()
}
