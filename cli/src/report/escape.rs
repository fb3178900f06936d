//! Escapes text for HTML. Must be applied to all text from outside the program.

/// Escapes the characters that are special in HTML text and quoted attributes.
pub(super) fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(letter),
            // Control characters are invalid in HTML. Direction marks could change how the text reads.
            _ if letter.is_control() || is_direction_mark(letter) => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}

fn is_direction_mark(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    #[test]
    fn markup_is_escaped() {
        assert_eq!(super::text("<script>\"a\"&'b'"), "&lt;script&gt;&quot;a&quot;&amp;&#39;b&#39;");
        assert_eq!(super::text("a\u{1b}[0m\u{202e}b"), "a\u{fffd}[0m\u{fffd}b");
    }
}
