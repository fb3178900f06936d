//! The pages of `serve` and `proxy`: the list of tunings, the live page and its events, and the report.

use std::io::{BufRead, BufReader, Write};

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use stack_api::{Stack, response};

use crate::http::{Served, serve};
use crate::world::{ENDLESS, QUICK, World, ended, request, until};

/// Reads events until the tuning has ended. Returns their names, and the document after all changes of its head.
fn events(served: &Served, name: &str) -> (Vec<String>, Value) {
    let mut stream = served.connect();
    let path = format!("/tuning-jobs/{name}/events");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", served.address()).unwrap();
    let (mut names, mut head) = (Vec::new(), Value::Null);
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        if let Some(name) = line.strip_prefix("event: ") {
            names.push(name.to_owned());
        }
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let data: Value = serde_json::from_str(data).unwrap();
        head = data["head"].clone();
        if head["status"] == "Completed" {
            break;
        }
    }
    (names, head)
}

#[test]
fn the_page_of_a_tuning_follows_it_to_its_end() {
    let world = World::new(QUICK);
    let served = world.serve(&[]);
    assert!(served.get("/").with_status(200).text().contains("There are no tunings yet"));
    served.get("/tuning-jobs/t/events").with_status(404);
    served.post("/tuning-jobs", &request("t")).with_status(201);
    let page = served.get("/tuning-jobs/t/page").with_status(200);
    assert!(page.head.contains("text/html") && page.text().contains("content=\"events\""), "{}", page.head);
    let (names, head) = events(&served, "t");
    assert_eq!(names[0], "document");
    assert!(names[1..].iter().all(|name| name == "delta"), "{names:?}");
    let described = served.get("/tuning-jobs/t").with_status(200).json();
    assert_eq!(head["best"]["job"], described["BestTrainingJob"]["TrainingJobName"], "{head}");
    assert_eq!(head["model"], "none: the training program saved none in $SM_MODEL_DIR");
    let list = served.get("/").with_status(200);
    assert!(
        list.text().contains("<a href=\"/tuning-jobs/t/page\">t</a></td><td>Completed</td>"),
        "{}",
        list.text()
    );
    let report = served.get("/tuning-jobs/t/report").with_status(200);
    assert!(report.text().contains("id=\"document\""));
    // The open streams of pages do not delay the end.
    served.end("TERM").with_code(0);
}

#[test]
fn the_pages_and_reports_of_a_stack_are_those_of_its_tunings() {
    let world = World::new(QUICK);
    let stack = world.stack();
    ended(world.start(&[])).with_code(0);
    let arguments = ["proxy", "--listen", "127.0.0.1:0", "--endpoint", &stack.endpoint];
    let served = Served::start(world.command(&arguments));
    let (names, head) = events(&served, "t");
    assert_eq!((names, &head["status"]), (vec!["document".to_owned()], &Value::from("Completed")));
    assert!(served.get("/").with_status(200).text().contains(">t</a>"));
    assert!(served.get("/tuning-jobs/t/report").with_status(200).text().contains("id=\"document\""));
    served.get("/tuning-jobs/missing/events").with_status(404);
    served.end("TERM").with_code(0);
    world.at(&stack, &["report", "t", "-o", "stack.html"]).with_code(0);
    assert!(world.read("stack.html").contains("id=\"document\""));
    let unknown = world.at(&stack, &["report", "missing"]).with_code(2);
    assert!(unknown.err.contains("there is no tuning 'missing'"), "{unknown:?}");
}

#[test]
fn a_seventeenth_stream_is_refused_until_another_ends() {
    // The end of the tuning ends its streams.
    let world = World::new(ENDLESS);
    let served = Served::start(world.command(&serve(&[])));
    served.post("/tuning-jobs", &request("t")).with_status(201);
    let open = |served: &Served| {
        let mut stream = served.connect();
        write!(stream, "GET /tuning-jobs/t/events HTTP/1.1\r\nHost: {}\r\n\r\n", served.address()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        (line, reader)
    };
    let mut streams: Vec<_> = (0..16).map(|_| open(&served)).collect();
    assert!(streams.iter().all(|(line, _)| line.contains(" 200 ")), "{streams:?}");
    assert!(open(&served).0.contains(" 503 "));
    streams.pop();
    until("a stream is free", || open(&served).0.contains(" 200 "));
    served.end("TERM").with_code(0);
}

/// Another tuning that got the name of a deleted one had its steps added to the page of the deleted one.
#[test]
fn regression_the_events_of_a_deleted_tuning_end_when_another_has_its_name() {
    let world = World::new(QUICK);
    let another = json!({"TuningJobId": "t-another", "Decisions": []});
    let stack = Stack::with_rule(MemoryTable::default(), move |request, pass| {
        if request.path.contains("/decisions") { response(200, &another) } else { pass() }
    });
    let arguments = ["proxy", "--listen", "127.0.0.1:0", "--endpoint", &stack.endpoint];
    let served = Served::start(world.command(&arguments));
    served.post("/tuning-jobs", &request("t")).with_status(201);
    // The page connects again when the stream ends.
    let (names, head) = events(&served, "t");
    assert_eq!((names, &head["status"]), (vec!["document".to_owned()], &Value::from("InProgress")));
    served.end("TERM").with_code(0);
}
