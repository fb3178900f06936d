//! Converts the XML of a response to JSON. An element with children becomes an object, or a list if its children are
//! `member` or `item`, as in the Query protocol. Any other element becomes its text. Attributes and namespaces are
//! dropped.

use roxmltree::{Document, Node};
use serde_json::{Map, Value};

/// Maximum depth of elements. Responses of AWS have less than ten levels.
const DEPTH_MAX: usize = 32;
const LIST: [&str; 2] = ["member", "item"];

/// Returns the content of the root element. `None`: the text is not XML, or is nested too deeply.
pub(crate) fn value(bytes: &[u8]) -> Option<Value> {
    // The parser refuses a DTD, so that entities cannot expand.
    let document = Document::parse(std::str::from_utf8(bytes).ok()?).ok()?;
    content(document.root_element(), DEPTH_MAX)
}

fn content(element: Node<'_, '_>, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let children: Vec<Node<'_, '_>> = element.children().filter(Node::is_element).collect();
    if children.is_empty() {
        let text: String = element.children().filter_map(|node| node.text()).collect();
        return Some(Value::String(text));
    }
    if children.iter().all(|child| LIST.contains(&child.tag_name().name())) {
        return children.into_iter().map(|child| content(child, depth)).collect();
    }
    let mut object = Map::new();
    for child in children {
        object.insert(child.tag_name().name().to_owned(), content(child, depth)?);
    }
    Some(Value::Object(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elements_become_objects_lists_and_texts() {
        let text = br#"<?xml version="1.0"?>
            <R xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><Result a="b">
              <Arn>arn:aws:iam::1:role/a&amp;b</Arn><Doc><![CDATA[<x>]]></Doc><Empty/>
              <List><member><A>1</A></member><member>two</member></List>
            </Result></R>"#;
        let expected = json!({"Result": {
            "Arn": "arn:aws:iam::1:role/a&b", "Doc": "<x>", "Empty": "", "List": [{"A": "1"}, "two"],
        }});
        assert_eq!(value(text), Some(expected));
    }

    #[test]
    fn unreadable_and_dangerous_texts_have_no_value() {
        for text in ["", "{}", "<a>", "<a></b>", "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>", "<a>&x;</a>"] {
            assert_eq!(value(text.as_bytes()), None, "{text}");
        }
        assert_eq!(value(b"\xff"), None);
        let deep = |levels: usize| format!("{}{}", "<a>".repeat(levels), "</a>".repeat(levels));
        assert!(value(deep(DEPTH_MAX).as_bytes()).is_some());
        assert_eq!(value(deep(DEPTH_MAX + 1).as_bytes()), None);
        // Deeper than the stack of a thread would allow.
        assert_eq!(value(deep(100_000).as_bytes()), None);
    }
}
