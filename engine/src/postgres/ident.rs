//! The one place that quotes identifiers and literals. Names come from a source that this engine does not
//! control, so an unquoted one in a statement is the danger here.

use std::fmt;

/// PostgreSQL keeps names up to this many bytes and cuts longer ones silently (`NAMEDATALEN - 1`).
pub const MAX_NAME_BYTES: usize = 63;

/// A quoted identifier: always in double quotes, so that case, keywords and every character survive.
pub fn identifier(name: &str) -> String {
    let mut quoted = String::with_capacity(name.len() + 2);
    push_quoted(&mut quoted, name, '"');
    quoted
}

/// Several identifiers, separated by commas.
pub fn identifiers<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut list = String::new();
    for name in names {
        if !list.is_empty() {
            list.push_str(", ");
        }
        push_quoted(&mut list, name, '"');
    }
    list
}

/// A quoted string literal that reads the same whatever `standard_conforming_strings` says.
pub fn literal(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 4);
    if text.contains('\\') {
        quoted.push_str(" E");
        push_quoted(&mut quoted, &text.replace('\\', "\\\\"), '\'');
    } else {
        push_quoted(&mut quoted, text, '\'');
    }
    quoted
}

/// A name in a schema, shown quoted: `"public"."order"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qualified<'a> {
    pub schema: &'a str,
    pub name: &'a str,
}

impl fmt::Display for Qualified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", identifier(self.schema), identifier(self.name))
    }
}

fn push_quoted(out: &mut String, text: &str, quote: char) {
    out.push(quote);
    for character in text.chars() {
        if character == quote {
            out.push(quote);
        }
        out.push(character);
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_keep_case_keywords_quotes_and_blanks() {
        for (name, quoted) in [
            ("plain", "\"plain\""),
            ("Mixed Case", "\"Mixed Case\""),
            ("select", "\"select\""),
            ("a\"b", "\"a\"\"b\""),
            ("a.b", "\"a.b\""),
            ("semi;--", "\"semi;--\""),
            ("Größe 列😀", "\"Größe 列😀\""),
            ("back\\slash", "\"back\\slash\""),
            (" ", "\" \""),
        ] {
            assert_eq!(identifier(name), quoted);
        }
    }

    #[test]
    fn a_name_of_the_greatest_length_is_not_changed() {
        let name = "x".repeat(MAX_NAME_BYTES);
        assert_eq!(identifier(&name), format!("\"{name}\""));
    }

    #[test]
    fn lists_are_separated_by_commas() {
        assert_eq!(identifiers(["a", "b\"", "C"]), "\"a\", \"b\"\"\", \"C\"");
        assert_eq!(identifiers([]), "");
    }

    #[test]
    fn literals_survive_quotes_and_backslashes() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal(""), "''");
        assert_eq!(literal("a\\'b"), " E'a\\\\''b'");
    }

    #[test]
    fn qualified_names_quote_both_parts() {
        assert_eq!(Qualified { schema: "a.b", name: "c\"d" }.to_string(), "\"a.b\".\"c\"\"d\"");
    }
}
