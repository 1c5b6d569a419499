//! Column values of a run as one array parameter in PostgreSQL's text form. Values pass through as the
//! source sent them; only the array's own quoting is added.

use std::error::Error;
use std::fmt;

use bytes::{BufMut, BytesMut};
use postgres_types::{Format, IsNull, ToSql, Type};

/// `{"a",NULL,"b\"c"}` in the making. Its Debug shows no value.
pub(super) struct ArrayText {
    text: Vec<u8>,
    delimiter: u8,
}

impl ArrayText {
    pub(super) fn new(delimiter: u8) -> Self {
        Self { text: vec![b'{'], delimiter }
    }

    pub(super) fn push(&mut self, value: Option<&[u8]>) {
        if self.text.len() > 1 {
            self.text.push(self.delimiter);
        }
        match value {
            None => self.text.extend_from_slice(b"NULL"),
            Some(value) => self.push_quoted(value),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Server encodings never use a quote or backslash as part of another character.
    fn push_quoted(&mut self, value: &[u8]) {
        let special = |byte: &u8| *byte == b'"' || *byte == b'\\';
        self.text.push(b'"');
        let mut rest = value;
        while let Some(at) = rest.iter().position(special) {
            let (plain, tail) = rest.split_at(at);
            self.text.extend_from_slice(plain);
            self.text.push(b'\\');
            self.text.push(tail[0]);
            rest = &tail[1..];
        }
        self.text.extend_from_slice(rest);
        self.text.push(b'"');
    }
}

impl fmt::Debug for ArrayText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "array of {} bytes", self.text.len())
    }
}

impl ToSql for ArrayText {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.reserve(self.text.len() + 1);
        out.put_slice(&self.text);
        out.put_u8(b'}');
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(ty, out)
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed expectation in a test is a failed test")]

    use super::*;

    fn text(values: &[Option<&str>], delimiter: u8) -> String {
        let mut array = ArrayText::new(delimiter);
        for value in values {
            array.push(value.map(str::as_bytes));
        }
        let mut out = BytesMut::new();
        array.to_sql(&Type::TEXT_ARRAY, &mut out).unwrap();
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn null_the_word_null_and_the_empty_string_stay_apart() {
        assert_eq!(text(&[None, Some("NULL"), Some("")], b','), r#"{NULL,"NULL",""}"#);
    }

    #[test]
    fn quotes_backslashes_and_braces_are_protected() {
        assert_eq!(text(&[Some(r#"a"b\c"#), Some("{x,y}")], b','), r#"{"a\"b\\c","{x,y}"}"#);
    }

    #[test]
    fn the_delimiter_is_the_types_own() {
        assert_eq!(text(&[Some("(1,1),(0,0)"), None], b';'), r#"{"(1,1),(0,0)";NULL}"#);
    }

    #[test]
    fn debug_shows_no_value() {
        let mut array = ArrayText::new(b',');
        array.push(Some(b"secret"));
        assert!(!format!("{array:?}").contains("secret"));
    }
}
