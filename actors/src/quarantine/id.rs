//! Short ids that a person can read out: `Q-7F3K`.

use trellara_storage::TransactionId;
use xxhash_rust::xxh3::xxh3_64;

/// Digits and letters without I, L, O and U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const SHORTEST: usize = 4;
const LONGEST: usize = 12;

/// The shortest id of this transaction that is not `taken`. Drawn from its identity, so that the same
/// transaction has the same id whoever parks it.
pub(crate) fn short_id(transaction: TransactionId, taken: impl Fn(&str) -> bool) -> String {
    let mut identity = Vec::with_capacity(20);
    identity.extend_from_slice(&transaction.flow.get().to_be_bytes());
    identity.extend_from_slice(&transaction.incarnation.get().to_be_bytes());
    identity.extend_from_slice(&transaction.commit_lsn.get().to_be_bytes());
    identity.extend_from_slice(&transaction.xid.get().to_be_bytes());
    let hash = xxh3_64(&identity);
    let letter = |n: usize| {
        let index = usize::try_from(hash >> (5 * n) & 31).expect("five bits");
        char::from(ALPHABET[index])
    };
    let id = |length: usize| format!("Q-{}", (0..length).map(letter).collect::<String>());
    (SHORTEST..LONGEST).map(id).find(|id| !taken(id)).unwrap_or_else(|| id(LONGEST))
}

#[cfg(test)]
mod tests {
    use trellara_storage::{FlowId, Incarnation, Lsn, Xid};

    use super::*;

    fn transaction(at: u64) -> TransactionId {
        TransactionId {
            flow: FlowId::new(1),
            incarnation: Incarnation::FIRST,
            commit_lsn: Lsn::new(at),
            xid: Xid::new(7),
        }
    }

    #[test]
    fn an_id_has_four_letters_that_cannot_be_mistaken() {
        for at in 0..1_000 {
            let id = short_id(transaction(at), |_| false);
            let letters = id.strip_prefix("Q-").expect("prefix");
            assert_eq!(letters.len(), 4);
            assert!(letters.bytes().all(|letter| ALPHABET.contains(&letter)), "{id}");
        }
    }

    #[test]
    fn an_id_that_is_taken_grows_and_keeps_its_beginning() {
        let short = short_id(transaction(1), |_| false);
        let longer = short_id(transaction(1), |id| id == short);
        assert_eq!(longer.len(), short.len() + 1);
        assert!(longer.starts_with(&short));
    }
}
