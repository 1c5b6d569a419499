//! How the engine says no: the shape of RFC 7807, with a stable code and a hint.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $status:literal, $title:literal;)*) => {
        /// Codes of refused requests. Failures of flows carry the codes of the engine's failure table;
        /// numbers are never reused across both.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RequestCode { $($(#[$doc])* $name),* }

        impl RequestCode {
            pub const ALL: &[RequestCode] = &[$(RequestCode::$name),*];

            pub const fn number(self) -> u16 {
                match self { $(RequestCode::$name => $number),* }
            }

            /// HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(RequestCode::$name => $status),* }
            }

            pub const fn title(self) -> &'static str {
                match self { $(RequestCode::$name => $title),* }
            }
        }
    };
}

codes! {
    FlowNotFound = 801, 404, "no flow matches";
    NameAmbiguous = 802, 409, "name fits more than one";
    RequestInvalid = 803, 400, "request is not valid";
    NotNow = 804, 409, "not possible in the present state";
    ConfigurationInvalid = 805, 422, "configuration is not valid";
    ConfirmationNeeded = 806, 409, "confirmation needed";
    EngineStopping = 807, 503, "engine is stopping";
    TookTooLong = 808, 504, "no answer in time";
    QuarantineNotFound = 809, 404, "no quarantine record matches";
    DigestDiffers = 810, 409, "digest prefix does not match the transaction";
    ReloadRefused = 811, 409, "change cannot be made while the flow lives";
    BackupFailed = 812, 500, "store backup failed";
    PathNotFound = 813, 404, "no such path";
    VersionsDiffer = 814, 409, "versions differ";
    EngineUnreachable = 815, 503, "engine is not reachable";
    Internal = 899, 500, "internal error";
}

impl fmt::Display for RequestCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TRL-{:04}", self.number())
    }
}

/// A refused or failed request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// `TRL-nnnn`.
    pub code: String,
    pub title: String,
    /// HTTP status.
    pub status: u16,
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    pub const MEDIA_TYPE: &str = "application/problem+json";

    pub fn new(code: RequestCode, detail: impl Into<String>) -> Self {
        Self {
            code: code.to_string(),
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.into(),
            hint: None,
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn is(&self, code: RequestCode) -> bool {
        self.code == code.to_string()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code, self.title, self.detail)
    }
}

impl std::error::Error for Problem {}
