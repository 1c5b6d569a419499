//! Who asks: the user at the other end of the socket, as the kernel says, and the name that a person
//! behind a shared account gives.

use axum::extract::FromRequestParts;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::http::request::Parts;
use axum::serve::IncomingStream;
use tokio::net::UnixListener;
use trellara_api::path::ACTING_AS;
use trellara_api::{Problem, RequestCode};

use super::reply::Refusal;

const MAX_NAME_BYTES: usize = 100;

/// The peer's user id, taken when the connection was accepted; none where the kernel did not say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(Option<u32>);

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        Self(stream.io().peer_cred().ok().map(|credentials| credentials.uid()))
    }
}

/// Who is written into the audit trail.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    /// `anna`, or `anna as night shift`.
    pub(super) name: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Asker {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let peer = parts.extensions.get::<ConnectInfo<Peer>>();
        let user =
            peer.and_then(|ConnectInfo(Peer(uid))| *uid).map_or_else(|| "unknown".to_owned(), user_name);
        let Some(acting_as) = parts.headers.get(ACTING_AS) else { return Ok(Self { name: user }) };
        let named = acting_as.to_str().ok().filter(|name| name.len() <= MAX_NAME_BYTES);
        let named = named.ok_or_else(|| {
            let detail = format!("--as takes up to {MAX_NAME_BYTES} plain characters");
            Refusal(Problem::new(RequestCode::RequestInvalid, detail))
        })?;
        Ok(Self { name: format!("{user} as {named}") })
    }
}

/// The account's name where `/etc/passwd` has it.
fn user_name(uid: u32) -> String {
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let account = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    account.unwrap_or_else(|| format!("user {uid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_named_and_unknown_ones_numbered() {
        assert_eq!(user_name(0), "root");
        assert_eq!(user_name(4_000_000_000), "user 4000000000");
    }
}
