//! The page: one HTML file with its style, its script, the charting library and, in a report, the document.
//!
//! The content security policy of the page allows only this style and this script, by their hashes. The only network
//! access is to the server of a live page: its event stream, its logs and its API.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::document::{Delta, Document};

/// The charting library, with its licence.
const LIBRARY: &str = include_str!("../assets/vendor/uplot.js");
const LIBRARY_STYLE: &str = include_str!("../assets/vendor/uplot.css");
const STYLE: &[&str] = &[
    include_str!("../assets/style/base.css"),
    include_str!("../assets/style/parts.css"),
    include_str!("../assets/style/print.css"),
];
/// In the order of their use. They share one scope.
const SCRIPTS: &[&str] = &[
    include_str!("../assets/script/format.js"),
    include_str!("../assets/script/dom.js"),
    include_str!("../assets/script/model.js"),
    include_str!("../assets/script/colours.js"),
    include_str!("../assets/script/plot.js"),
    include_str!("../assets/script/summary.js"),
    include_str!("../assets/script/curves.js"),
    include_str!("../assets/script/brackets.js"),
    include_str!("../assets/script/costs.js"),
    include_str!("../assets/script/timeline.js"),
    include_str!("../assets/script/money.js"),
    include_str!("../assets/script/scatter.js"),
    include_str!("../assets/script/progress.js"),
    include_str!("../assets/script/parallel.js"),
    include_str!("../assets/script/forest.js"),
    include_str!("../assets/script/importance.js"),
    include_str!("../assets/script/table.js"),
    include_str!("../assets/script/best.js"),
    include_str!("../assets/script/detail.js"),
    include_str!("../assets/script/log.js"),
    include_str!("../assets/script/metrics.js"),
    include_str!("../assets/script/connection.js"),
    include_str!("../assets/script/controls.js"),
    include_str!("../assets/script/compare.js"),
    include_str!("../assets/script/stream.js"),
    include_str!("../assets/script/main.js"),
];
const LIST_SCRIPT: &str =
    concat!(include_str!("../assets/script/connection.js"), include_str!("../assets/script/list.js"));
const BODY: &str = include_str!("../assets/page.html");

/// Returns the page of a document, which needs no network.
pub fn page(document: &Document) -> String {
    // A document has no map with keys other than text, so it always has a JSON form.
    let json = serde_json::to_string(document).unwrap_or_default();
    let data = format!("<script type=\"application/json\" id=\"document\">{}</script>\n", in_script(&json));
    whole(&document.head.name, "", &data)
}

/// Returns the page of the tuning `name` that shows the events of the stream at `url`, an address of its own origin.
///
/// The first event of each connection is `document`, with [`document_event`]. Each later event is `delta`, with
/// [`delta_event`]. The page connects again by itself, and a new `document` replaces everything. It reads the end of the
/// log of a job at `logs/<job>`, relative to its own address.
pub fn live(name: &str, url: &str) -> String {
    let data = format!("<meta name=\"event-stream\" content=\"{}\">\n", in_attribute(url));
    whole(name, "; connect-src 'self'", &data)
}

/// A list of tunings: rows with an address, the text of a link to it, and other cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct List {
    /// The rows.
    pub rows: Vec<(String, String, Vec<String>)>,
    /// A remark below the table.
    pub note: &'static str,
}

/// Returns the page of a list, which shows the events of the stream at `url`, each with [`list_event`].
pub fn list(title: &str, heads: &[&str], list: &List, empty: &str, url: &str) -> String {
    let style = STYLE.concat();
    let script = format!("\"use strict\";\n{LIST_SCRIPT}");
    let cells = |tag: &str, texts: &[String]| {
        let text = |text: &String| format!("<{tag}>{}</{tag}>", in_attribute(text));
        texts.iter().map(text).collect::<Vec<_>>().concat()
    };
    let row = |(address, first, others): &(String, String, Vec<String>)| {
        let (address, first) = (in_attribute(address), in_attribute(first));
        format!("<tr><td><a href=\"{address}\">{first}</a></td>{}</tr>\n", cells("td", others))
    };
    let rows = list.rows.iter().map(row).collect::<Vec<_>>().concat();
    let hidden = |is_hidden: bool| if is_hidden { " hidden" } else { "" };
    let (no_table, no_text) = (hidden(list.rows.is_empty()), hidden(!list.rows.is_empty()));
    let head = |head: &&str| format!("<th scope=\"col\">{}</th>", in_attribute(head));
    let heads = heads.iter().map(head).collect::<Vec<_>>().concat();
    let (title, empty, url) = (in_attribute(title), in_attribute(empty), in_attribute(url));
    let note = in_attribute(list.note);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{}'; script-src '{}'; connect-src \
         'self'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" \
         content=\"light dark\">\n<meta name=\"event-stream\" content=\"{url}\">\n<title>{title}</title>\n\
         <style>{style}</style>\n</head>\n<body>\n<header><h1>{title}</h1><span id=\"connection\" class=\"connection\" \
         role=\"status\" hidden></span></header>\n<main><p id=\"empty\" class=\"empty\"{no_text}>{empty}</p>\n<div \
         id=\"table\" class=\"wide\"{no_table}><table><thead><tr>{heads}</tr></thead><tbody id=\"rows\">\n{rows}</tbody>\
         </table></div>\n<p id=\"note\" class=\"note\">{note}</p></main>\n<script>{script}</script>\n</body>\n</html>\n",
        hash(&style),
        hash(&script)
    )
}

/// Returns an event of the stream of a list: the whole list.
pub fn list_event(list: &List) -> String {
    event("list", serde_json::to_string(list))
}

/// Returns the first event of a stream: the whole document.
pub fn document_event(document: &Document) -> String {
    event("document", serde_json::to_string(document))
}

/// Returns a later event of a stream: the changes since the last one.
pub fn delta_event(delta: &Delta) -> String {
    event("delta", serde_json::to_string(delta))
}

/// JSON has no line breaks outside its texts, and escapes those in texts, so it is one line of data.
fn event(name: &str, json: serde_json::Result<String>) -> String {
    format!("event: {name}\ndata: {}\n\n", json.unwrap_or_default())
}

fn whole(name: &str, connections: &str, data: &str) -> String {
    let style = format!("{LIBRARY_STYLE}\n{}", STYLE.concat());
    let script = format!("{LIBRARY}\n(() => {{\n\"use strict\";\n{}}})();\n", SCRIPTS.concat());
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; img-src data: blob:; base-uri 'none'; form-action \
         'none'{connections}",
        hash(&style),
        hash(&script)
    );
    let name = in_attribute(name);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>\
         {name} - hyperband</title>\n<style>{style}</style>\n</head>\n<body>\n{BODY}{data}<script>{script}</script>\n\
         </body>\n</html>\n"
    )
}

/// Returns the source expression of a content security policy that allows exactly `text`.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// Escapes JSON for a script element: no text of a user ends the element or opens a comment in it.
fn in_script(json: &str) -> String {
    // Outside its texts, JSON has none of these characters.
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Escapes text for content and for an attribute in double quotes.
fn in_attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_the_script_element() {
        let json = serde_json::to_string("</script><!--\u{2028}").unwrap();
        let escaped = in_script(&json);
        assert_eq!(escaped, r#""\u003c/script>\u003c!--\u2028""#);
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), "</script><!--\u{2028}");
    }

    #[test]
    fn the_own_style_and_script_end_no_element() {
        for text in SCRIPTS.iter().chain(STYLE).chain(&[LIBRARY, LIBRARY_STYLE, LIST_SCRIPT]) {
            for end in ["</script", "</style", "<!--", "http:", "https:"] {
                assert!(!text.contains(end), "{end}");
            }
        }
    }

    #[test]
    fn a_live_page_connects_to_its_own_origin_only() {
        let page = live("a\"<b>", "/events?a&b");
        assert!(page.contains("<title>a&quot;&lt;b&gt; - hyperband</title>"));
        assert!(page.contains("connect-src 'self'\">"));
        assert!(page.contains("<meta name=\"event-stream\" content=\"/events?a&amp;b\">"));
        assert!(!page.contains("id=\"document\""));
    }
}
