//! What the checkpoint row says about a group that was tried. The row is the only witness: an answer that
//! did not come says nothing (I4).

use trellara_storage::Progress;

use crate::ports::{Checkpoint, Group, Token};

/// Where the row stands in relation to the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The row is gone.
    Lost,
    /// Another token is in it.
    Taken(Checkpoint),
    Ours(Whereabouts),
}

/// Where the target stands in relation to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// At the group's end: its COMMIT had arrived.
    After,
    /// Where the group starts: it has no effect and may be tried again.
    Before,
    Elsewhere(Progress),
}

pub(super) fn standing(token: Token, group: &Group, row: Option<Checkpoint>) -> Standing {
    match row {
        None => Standing::Lost,
        Some(row) if row.token != token => Standing::Taken(row),
        Some(row) => Standing::Ours(whereabouts(group, row.applied)),
    }
}

/// A group that moves nothing is always after itself: there is nothing to repeat.
pub(super) fn whereabouts(group: &Group, applied: Progress) -> Whereabouts {
    if applied == group.to {
        Whereabouts::After
    } else if applied == group.from {
        Whereabouts::Before
    } else {
        Whereabouts::Elsewhere(applied)
    }
}

#[cfg(test)]
mod tests {
    use trellara_storage::{Incarnation, InstanceId, Lsn};

    use super::*;

    fn progress(at: u64) -> Progress {
        Progress { commit_lsn: Lsn::new(at), position: Lsn::new(at + 1) }
    }

    fn row(generation: u64, at: u64) -> Checkpoint {
        Checkpoint {
            incarnation: Incarnation::FIRST,
            lineage: String::new(),
            applied: progress(at),
            digest: None,
            token: token(generation),
            holder: String::new(),
            lease_live: true,
        }
    }

    fn token(generation: u64) -> Token {
        Token { instance: InstanceId::default(), boot: 1, generation }
    }

    fn group() -> Group {
        Group { from: progress(10), members: Vec::new(), to: progress(20) }
    }

    #[test]
    fn i4_a_row_at_the_end_of_the_group_means_that_the_lost_commit_had_arrived() {
        assert_eq!(standing(token(1), &group(), Some(row(1, 20))), Standing::Ours(Whereabouts::After));
    }

    #[test]
    fn i4_a_row_where_the_group_starts_means_that_it_has_no_effect() {
        assert_eq!(standing(token(1), &group(), Some(row(1, 10))), Standing::Ours(Whereabouts::Before));
    }

    #[test]
    fn a_row_anywhere_else_is_gone_to() {
        let elsewhere = Standing::Ours(Whereabouts::Elsewhere(progress(15)));
        assert_eq!(standing(token(1), &group(), Some(row(1, 15))), elsewhere);
    }

    #[test]
    fn i11_another_token_fences_wherever_the_row_stands() {
        for at in [10, 15, 20] {
            assert_eq!(standing(token(1), &group(), Some(row(2, at))), Standing::Taken(row(2, at)));
        }
    }

    #[test]
    fn a_row_that_is_gone_is_a_lost_target() {
        assert_eq!(standing(token(1), &group(), None), Standing::Lost);
    }
}
