//! Failures that capture itself finds in a stream.

use trellara_storage::records::FailureDetail;

use crate::failure::{Class, Code, Failure, Place};

/// The stream broke its own protocol; `what` is for people and holds no row values.
pub(super) fn protocol(what: impl Into<String>) -> Failure {
    failure(Place::Stream, Class::Defect, Code::ProtocolDefect, what.into(), None)
}

pub(super) fn failure(
    place: Place,
    class: Class,
    code: Code,
    summary: String,
    hint: Option<String>,
) -> Failure {
    let detail = FailureDetail {
        class: class.name().to_owned(),
        code: code.to_string(),
        message: summary.clone(),
        hint,
        ..FailureDetail::default()
    };
    Failure { place, class, code, summary, detail: Box::new(detail), evidence: None }
}
