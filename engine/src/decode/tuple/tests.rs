#![expect(clippy::unwrap_used, reason = "a failed expectation in a test is a failed test")]

use proptest::prelude::*;

use super::*;

/// A column with its own bytes, to be written as pgoutput does.
#[derive(Clone, Debug)]
enum Owned {
    Null,
    Toast,
    Text(Vec<u8>),
    Binary(Vec<u8>),
}

impl Owned {
    fn column(&self) -> Column<'_> {
        match self {
            Owned::Null => Column::Null,
            Owned::Toast => Column::UnchangedToast,
            Owned::Text(value) => Column::Text(value),
            Owned::Binary(value) => Column::Binary(value),
        }
    }
}

fn write(kind: u8, row: &[Owned], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend(u16::try_from(row.len()).unwrap().to_be_bytes());
    for column in row {
        let (kind, value) = match column {
            Owned::Null => (b'n', None),
            Owned::Toast => (b'u', None),
            Owned::Text(value) => (b't', Some(value)),
            Owned::Binary(value) => (b'b', Some(value)),
        };
        out.push(kind);
        if let Some(value) = value {
            out.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
            out.extend(value);
        }
    }
}

fn row() -> impl Strategy<Value = Vec<Owned>> {
    let value = || proptest::collection::vec(any::<u8>(), 0..40);
    let column = prop_oneof![
        Just(Owned::Null),
        Just(Owned::Toast),
        value().prop_map(Owned::Text),
        value().prop_map(Owned::Binary)
    ];
    proptest::collection::vec(column, 0..8)
}

fn same(tuple: Tuple<'_>, row: &[Owned]) -> bool {
    tuple.columns().len() == row.len() && tuple.columns().eq(row.iter().map(Owned::column))
}

proptest! {
    #[test]
    fn every_column_of_a_row_reads_back_as_it_was_written(old in row(), new in row()) {
        let mut body = Vec::new();
        write(b'K', &old, &mut body);
        prop_assert!(same(ChangeBody::delete(&body).unwrap().before().unwrap().tuple(), &old));
        write(b'N', &new, &mut body);
        let update = ChangeBody::update(&body).unwrap();
        prop_assert!(matches!(update.before(), Some(Before::Key(tuple)) if same(tuple, &old)));
        prop_assert!(same(update.new_row().unwrap(), &new));
    }

    #[test]
    fn a_body_with_a_byte_less_or_a_byte_more_is_refused(new in row()) {
        let mut body = Vec::new();
        write(b'N', &new, &mut body);
        prop_assert!(ChangeBody::insert(body.get(..body.len() - 1).unwrap()).is_err());
        body.push(b'n');
        prop_assert!(ChangeBody::insert(&body).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..60)) {
        for parse in [ChangeBody::insert, ChangeBody::update, ChangeBody::delete] {
            let Ok(change) = parse(&body) else { continue };
            let rows = change.before().map(|before| before.tuple()).into_iter().chain(change.new_row());
            for row in rows {
                prop_assert_eq!(row.columns().count(), row.len());
            }
        }
    }
}

#[test]
fn the_old_row_of_identity_full_is_told_from_a_key() {
    let body = [b'O', 0, 1, b'n', b'N', 0, 1, b'u'];
    let update = ChangeBody::update(&body).unwrap();
    assert!(matches!(update.before(), Some(Before::Full(_))));
    assert_eq!(update.new_row().unwrap().columns().next(), Some(Column::UnchangedToast));
}

#[test]
fn a_negative_or_huge_length_is_refused() {
    for length in [[0xFF; 4], [0x7F, 0xFF, 0xFF, 0xFF]] {
        let mut body = vec![b'N', 0, 1, b't'];
        body.extend(length);
        assert!(ChangeBody::insert(&body).is_err());
    }
}
