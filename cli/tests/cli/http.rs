//! A program that serves HTTP, and a client on a plain socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::Value;

use crate::world::{Ended, World, ended, signal, until};

/// A started `serve` or `proxy`. Killed if its test does not end it.
pub(crate) struct Served {
    child: Option<Child>,
    said: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
    pub(crate) url: String,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    pub(crate) fn text(&self) -> &str {
        &self.body
    }

    /// Asserts the status.
    #[track_caller]
    pub(crate) fn with_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

impl Served {
    /// Starts the program and waits until it serves.
    pub(crate) fn start(mut command: std::process::Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let Some(url) = line.trim().strip_prefix("serving ") else { panic!("{line:?} {:?}", ended(child)) };
        let (mut err, said) = (BufReader::new(child.stderr.take().unwrap()), Arc::<Mutex<String>>::default());
        let kept = Arc::clone(&said);
        let reader = thread::spawn(move || {
            let mut line = String::new();
            while err.read_line(&mut line).unwrap_or(0) > 0 {
                kept.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Self { url: url.to_owned(), child: Some(child), said, reader: Some(reader) }
    }

    /// Waits until standard error contains `text`.
    pub(crate) fn until_said(&self, text: &str) {
        until(text, || self.said.lock().unwrap().contains(text));
    }

    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Connects to the program.
    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address()).unwrap()
    }

    /// Sends a request with further header lines. Adds `Host`, unless a line has it.
    pub(crate) fn send(&self, line: &str, headers: &[&str], body: &[u8]) -> Reply {
        let host = format!("Host: {}", self.address());
        let own = headers.iter().any(|line| line.starts_with("Host:"));
        let lines: Vec<&str> = headers.iter().copied().chain((!own).then_some(host.as_str())).collect();
        let mut stream = self.connect();
        let length = body.len();
        write!(
            stream,
            "{line} HTTP/1.1\r\n{}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n",
            lines.join("\r\n")
        )
        .unwrap();
        // The server may refuse a large body before it has read it.
        let _ = stream.write_all(body);
        read(stream)
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send(&format!("GET {path}"), &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(&format!("POST {path}"), &["Content-Type: application/json"], body.to_string().as_bytes())
    }

    /// Performs an operation in SageMaker's protocol.
    pub(crate) fn aws(&self, operation: &str, body: &Value) -> Reply {
        let target = format!("X-Amz-Target: SageMaker.{operation}");
        let kind = "Content-Type: application/x-amz-json-1.1";
        self.send("POST /", &[kind, &target], body.to_string().as_bytes())
    }

    /// Kills the program.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Ends the program by a signal.
    pub(crate) fn end(mut self, name: &str) -> Ended {
        let child = self.child.take().unwrap();
        signal(&child, name);
        let ended = ended(child);
        self.reader.take().unwrap().join().unwrap();
        Ended { err: self.said.lock().unwrap().clone(), ..ended }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// Reads a response until the connection closes.
pub(crate) fn read(mut stream: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    // The server may reset the connection after its response.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

impl World {
    /// Starts `hyperband serve … -- sh train.sh`.
    pub(crate) fn serve(&self, options: &[&str]) -> Served {
        Served::start(self.command(&serve(options)))
    }
}

/// Returns the arguments of `serve` on a free port.
pub(crate) fn serve<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["serve", "--listen", "127.0.0.1:0", "--grace-seconds", "20"], options, &["--", "sh", "train.sh"]]
        .concat()
}
