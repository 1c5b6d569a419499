//! A cursor over outside bytes; each step either yields what was asked for or says what was expected.

/// Bytes that are not what the protocol documents. Holds no content: values may be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed pgoutput: {0}")]
pub struct Malformed(pub(super) &'static str);

#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed(what))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn u8(&mut self, what: &'static str) -> Result<u8, Malformed> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        self.array(what).map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        self.array(what).map(u32::from_be_bytes)
    }

    pub(super) fn i32(&mut self, what: &'static str) -> Result<i32, Malformed> {
        self.array(what).map(i32::from_be_bytes)
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, Malformed> {
        self.array(what).map(u64::from_be_bytes)
    }

    pub(super) fn i64(&mut self, what: &'static str) -> Result<i64, Malformed> {
        self.array(what).map(i64::from_be_bytes)
    }

    /// A length that PostgreSQL sends as a signed number.
    pub(super) fn length(&mut self, what: &'static str) -> Result<usize, Malformed> {
        usize::try_from(self.i32(what)?).map_err(|_| Malformed(what))
    }

    /// Bytes up to a zero byte, which is consumed.
    pub(super) fn string(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or(Malformed(what))?;
        let text = self.take(end, what)?;
        self.take(1, what)?;
        Ok(text)
    }

    pub(super) fn finish(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed("bytes after the end")) }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed(what))?;
        self.rest = rest;
        Ok(*taken)
    }
}
