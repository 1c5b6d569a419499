//! The envelope of every value: prefix, checksum, payload.
//!
//! ```text
//! 0        4        6        8                16                      32
//! | magic  | version| flags  | payload length | xxh3-128 of payload   | payload ...
//! ```
//! All little-endian. `flags` names the payload's form: archived (rkyv) for the hot records of the log,
//! JSON for records that people and later versions read field by field.

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_128;

const MAGIC: [u8; 4] = *b"TRLA";
const VERSION: u16 = 1;
const HEADER: usize = 32;
const ARCHIVED: u16 = 1;
const JSON: u16 = 2;

/// Why a value was not believed; the caller adds family and key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("shorter than its prefix")]
    Short,
    #[error("not a record of this store")]
    Magic,
    #[error("record version {0} is not supported")]
    Version(u16),
    #[error("payload form {0} where another was expected")]
    Form(u16),
    #[error("length {found} where the prefix says {expected}")]
    Length { expected: u64, found: u64 },
    #[error("checksum does not match")]
    Checksum,
    #[error("checksum matches but the content does not decode: {0}")]
    Undecodable(String),
}

/// Wraps an archived payload.
pub fn seal_archived(payload: &[u8]) -> Vec<u8> {
    seal(ARCHIVED, payload)
}

/// Serialises to JSON and wraps it.
///
/// # Panics
/// Never for the record types of this crate: their maps have string keys.
pub fn seal_json<T: Serialize>(record: &T) -> Vec<u8> {
    let payload = serde_json::to_vec(record).expect("records serialise to JSON");
    seal(JSON, &payload)
}

/// The verified payload of an archived value.
///
/// # Errors
/// Any `Damage`.
pub fn open_archived(value: &[u8]) -> Result<&[u8], Damage> {
    open(ARCHIVED, value)
}

/// Verifies and decodes a JSON value.
///
/// # Errors
/// Any `Damage`.
pub fn open_json<T: DeserializeOwned>(value: &[u8]) -> Result<T, Damage> {
    let payload = open(JSON, value)?;
    serde_json::from_slice(payload).map_err(|error| Damage::Undecodable(error.to_string()))
}

fn seal(form: u16, payload: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(HEADER + payload.len());
    value.extend_from_slice(&MAGIC);
    value.extend_from_slice(&VERSION.to_le_bytes());
    value.extend_from_slice(&form.to_le_bytes());
    value.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    value.extend_from_slice(&xxh3_128(payload).to_le_bytes());
    value.extend_from_slice(payload);
    value
}

fn open(form: u16, value: &[u8]) -> Result<&[u8], Damage> {
    let (head, payload) = value.split_at_checked(HEADER).ok_or(Damage::Short)?;
    let (magic, rest) = head.split_at(4);
    let (version, rest) = rest.split_at(2);
    let (found_form, rest) = rest.split_at(2);
    let (length, checksum) = rest.split_at(8);
    if magic != MAGIC {
        return Err(Damage::Magic);
    }
    let version = u16::from_le_bytes([version[0], version[1]]);
    if version != VERSION {
        return Err(Damage::Version(version));
    }
    let expected = u64::from_le_bytes(length.try_into().expect("split at 8"));
    let found = payload.len() as u64;
    if expected != found {
        return Err(Damage::Length { expected, found });
    }
    if checksum != xxh3_128(payload).to_le_bytes() {
        return Err(Damage::Checksum);
    }
    let found_form = u16::from_le_bytes([found_form[0], found_form[1]]);
    if found_form != form {
        return Err(Damage::Form(found_form));
    }
    Ok(payload)
}
