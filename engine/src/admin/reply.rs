//! Refusals: every way that a request can end badly, as a problem with a code.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use trellara_actors::flow::order::OrderError;
use trellara_api::{Problem, RequestCode};
use trellara_storage::Error;

/// An answer of a route.
pub(super) type Reply<T> = Result<Json<T>, Refusal>;

#[derive(Debug)]
pub(super) struct Refusal(pub(super) Problem);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(of_store(&error))
    }
}

impl From<OrderError> for Refusal {
    fn from(error: OrderError) -> Self {
        Self(of_order(&error))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self.0)).into_response();
        let kind = HeaderValue::from_static(Problem::MEDIA_TYPE);
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

pub(super) fn of_store(error: &Error) -> Problem {
    Problem::new(RequestCode::Internal, error.to_string())
}

/// Why the fleet did not carry an order out.
pub(super) fn of_order(error: &OrderError) -> Problem {
    use trellara_actors::quarantine::Refused;
    let code = match error {
        OrderError::UnknownFlow => RequestCode::FlowNotFound,
        OrderError::NotRunning | OrderError::Busy | OrderError::Refused(_) => RequestCode::NotNow,
        OrderError::Quarantine(Refused::NotFound(_)) => RequestCode::QuarantineNotFound,
        OrderError::Quarantine(Refused::NotOpen { .. } | Refused::Illegal { .. }) => RequestCode::NotNow,
        OrderError::Quarantine(Refused::ReasonMissing) => RequestCode::RequestInvalid,
        OrderError::Quarantine(Refused::DigestTooShort | Refused::DigestMismatch(_)) => {
            RequestCode::DigestDiffers
        }
        OrderError::Quarantine(Refused::Store(error)) | OrderError::Store(error) => return of_store(error),
        OrderError::Gone => RequestCode::EngineStopping,
    };
    Problem::new(code, error.to_string())
}

/// The body of a request. An absent field that has a default may be absent; an unknown one is tolerated.
pub(super) fn body<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal(Problem::new(RequestCode::RequestInvalid, error.to_string())))
}

pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Refusal> {
    axum::extract::Query::try_from_uri(uri)
        .map(|query| query.0)
        .map_err(|error| Refusal(Problem::new(RequestCode::RequestInvalid, error.body_text())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use trellara_actors::failure::Code;

    use super::*;

    #[test]
    fn no_number_is_both_a_failure_and_a_refused_request() {
        let failures = Code::ALL.iter().map(|code| code.number());
        let requests = RequestCode::ALL.iter().map(|code| code.number());
        let numbers: BTreeSet<u16> = failures.chain(requests).collect();
        assert_eq!(numbers.len(), Code::ALL.len() + RequestCode::ALL.len());
    }
}
