//! Tells a torn tail of the write-ahead log from damage that looks like one.
//!
//! RocksDB drops a last record that runs past the end of its file, because that is what a crash leaves.
//! One flipped bit in the *length* of a record in the last block looks the same, and takes every
//! acknowledged record behind it along without an error. But what a crash tears is a prefix: there is no
//! whole record in it. So the part that RocksDB would drop is searched for one.
//!
//! ```text
//! a file is blocks of 32 KiB; in a block:
//! | crc32c, masked: 4 | length: 2 | kind: 1 | payload | ...     crc over kind and payload, little-endian
//! ```

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::Error;

const BLOCK: u64 = 32 * 1024;
const HEADER: usize = 7;
/// Full, first, middle and last fragment of a record.
const KINDS: std::ops::RangeInclusive<u8> = 1..=4;

/// Checks the tail of every write-ahead log file in the directory.
///
/// # Errors
/// `StoreDamaged` names the file and where the damaged record begins; `ReadFailed`.
pub(super) fn check(directory: &Path) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::ReadFailed(format!("{}: {error}", directory.display()));
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_none_or(|extension| extension != "log") {
            continue;
        }
        let (start, block) = last_block(&path).map_err(failed)?;
        if let Some(at) = damage(&block) {
            let name = path.file_name().unwrap_or_default().display().to_string();
            let what = format!("length of the record at offset {} of {name} is damaged", start + at as u64);
            return Err(Error::StoreDamaged { path: directory.display().to_string(), what });
        }
    }
    Ok(())
}

fn last_block(path: &Path) -> std::io::Result<(u64, Vec<u8>)> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len() / BLOCK * BLOCK;
    file.seek(SeekFrom::Start(start))?;
    let mut block = Vec::new();
    file.read_to_end(&mut block)?;
    Ok((start, block))
}

/// Where a record begins that is not torn but damaged.
fn damage(block: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(header) = Header::at(block, at) {
        let end = at + HEADER + header.length;
        if end > block.len() {
            let torn = &block[at..];
            return (whole_but_for_its_length(torn, &header) || holds_a_record(torn)).then_some(at);
        }
        at = end;
    }
    None
}

fn whole_but_for_its_length(torn: &[u8], header: &Header) -> bool {
    KINDS.contains(&header.kind) && header.matches(&torn[HEADER - 1..])
}

fn holds_a_record(torn: &[u8]) -> bool {
    (1..torn.len()).any(|at| {
        Header::at(torn, at).is_some_and(|header| {
            let content = torn.get(at + HEADER - 1..at + HEADER + header.length);
            KINDS.contains(&header.kind) && content.is_some_and(|content| header.matches(content))
        })
    })
}

struct Header {
    checksum: u32,
    length: usize,
    kind: u8,
}

impl Header {
    fn at(block: &[u8], at: usize) -> Option<Self> {
        let bytes: [u8; HEADER] = block.get(at..at + HEADER)?.try_into().ok()?;
        let [a, b, c, d, low, high, kind] = bytes;
        let length = usize::from(u16::from_le_bytes([low, high]));
        Some(Self { checksum: u32::from_le_bytes([a, b, c, d]), length, kind })
    }

    /// `content` is kind and payload.
    fn matches(&self, content: &[u8]) -> bool {
        let checksum = crc32c(content).rotate_right(15).wrapping_add(0xa282_ead8);
        self.checksum == checksum
    }
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte: u32 = 0;
    while byte < 256 {
        // The byte as CRC state, shifted out bit by bit over the reflected Castagnoli polynomial.
        let mut state = byte;
        let mut bit = 0;
        while bit < 8 {
            state = (state >> 1) ^ (0x82f6_3b78 & (state & 1).wrapping_neg());
            bit += 1;
        }
        table[byte as usize] = state;
        byte += 1;
    }
    table
};

fn crc32c(bytes: &[u8]) -> u32 {
    let step = |state: u32, byte: &u8| (state >> 8) ^ TABLE[usize::from(*byte ^ (state & 0xFF) as u8)];
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(payload: &[u8]) -> Vec<u8> {
        let content = [&[1], payload].concat();
        let checksum = crc32c(&content).rotate_right(15).wrapping_add(0xa282_ead8);
        let length = u16::try_from(payload.len()).expect("short");
        [checksum.to_le_bytes().as_slice(), &length.to_le_bytes(), &content].concat()
    }

    #[test]
    fn the_checksum_is_castagnolis() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn whole_records_and_every_torn_tail_are_sound() {
        let block = [record(b"first"), record(&[7; 300]), record(b"last one")].concat();
        for length in 0..=block.len() {
            assert_eq!(damage(&block[..length]), None, "torn at {length}");
        }
    }

    #[test]
    fn a_length_that_grew_is_damage_wherever_its_record_stands() {
        let records = [record(b"first"), record(&[7; 300]), record(b"last one")];
        let block = records.concat();
        let mut at = 0;
        for one in &records {
            for bit in [0x10, 0x40, 0x80] {
                let mut damaged = block.clone();
                damaged[at + 5] ^= bit;
                assert_eq!(damage(&damaged), Some(at));
            }
            at += one.len();
        }
    }
}
