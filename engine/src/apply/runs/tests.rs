//! The planner against naive application: rows of a run are applied in an arbitrary order, and the end
//! must be what source order gives.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Tables: 0 and 1 free, 2 not free (a trigger logs what it sees), 3 tied by a second unique column.
#[derive(Clone, Copy, Debug)]
struct Change {
    table: u32,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Put { key: u8, value: u8 },
    Set { key: u8, value: u8 },
    Rename { key: u8, to: u8 },
    Delete { key: u8 },
}

type Rows = BTreeMap<(u32, u8), u8>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Database {
    rows: Rows,
    /// What the trigger of table 2 saw: (rows of table 0, statement).
    seen: Vec<(usize, u8)>,
}

impl Database {
    fn apply(&mut self, change: Change) {
        let table = change.table;
        match change.what {
            What::Put { key, value } => {
                assert!(self.rows.insert((table, key), value).is_none(), "duplicate key");
            }
            What::Set { key, value } => *self.rows.get_mut(&(table, key)).expect("row is there") = value,
            What::Rename { key, to } => {
                let value = self.rows.remove(&(table, key)).expect("row is there");
                assert!(self.rows.insert((table, to), value).is_none(), "duplicate key");
            }
            What::Delete { key } => {
                self.rows.remove(&(table, key)).expect("row is there");
            }
        }
        if table == 2 {
            let others = self.rows.keys().filter(|(table, _)| *table == 0).count();
            self.seen.push((others, 0));
        }
        let mut values: Vec<u8> =
            self.rows.iter().filter(|((table, _), _)| *table == 3).map(|(_, value)| *value).collect();
        let all = values.len();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), all, "second unique column");
    }
}

fn footprint(change: Change) -> Footprint {
    let (operation, key, alone) = match change.what {
        What::Put { key, .. } => (0, key, false),
        What::Set { key, .. } => (1, key, change.table == 3),
        What::Rename { key, .. } => (2, key, true),
        What::Delete { key } => (3, key, false),
    };
    let table = change.table;
    Footprint {
        table,
        mapping: table as usize,
        form: table as usize * 10 + operation,
        row: Some(key.into()),
        alone,
        free: table != 2,
        tied: table == 3,
    }
}

/// Keeps what a source could have sent: rows exist, keys and the second unique column stay unique.
fn possible(changes: Vec<Change>) -> Vec<Change> {
    let mut rows = Rows::new();
    let free_value = |rows: &Rows, table: u32, value: u8| {
        table != 3 || !rows.iter().any(|((other, _), taken)| *other == 3 && *taken == value)
    };
    changes
        .into_iter()
        .filter(|Change { table, what }| {
            let at = |key: u8| (*table, key);
            match *what {
                What::Put { key, value } => {
                    let fits = !rows.contains_key(&at(key)) && free_value(&rows, *table, value);
                    fits.then(|| rows.insert(at(key), value)).is_some()
                }
                What::Set { key, value } => {
                    let fits = rows.contains_key(&at(key)) && free_value(&rows, *table, value);
                    fits.then(|| rows.insert(at(key), value)).is_some()
                }
                What::Rename { key, to } => {
                    let fits = rows.contains_key(&at(key)) && !rows.contains_key(&at(to));
                    fits.then(|| rows.remove(&at(key)).and_then(|value| rows.insert(at(to), value))).is_some()
                }
                What::Delete { key } => rows.remove(&at(key)).is_some(),
            }
        })
        .collect()
}

/// Applies by plan; the rows of each run in the order that `shuffle` gives.
fn apply_planned(changes: &[Change], reverse: bool) -> Database {
    let mut database = Database::default();
    let mut planner = Planner::default();
    let mut runs: BTreeMap<usize, Vec<Change>> = BTreeMap::new();
    let mut flushed = Vec::new();
    let send = |database: &mut Database, run: Vec<Change>| {
        let rows: Vec<Change> = if reverse { run.into_iter().rev().collect() } else { run };
        rows.into_iter().for_each(|change| database.apply(change));
    };
    for change in changes {
        let place = planner.place(&footprint(*change), &mut flushed);
        for number in flushed.drain(..) {
            send(&mut database, runs.remove(&number).expect("a flushed run was open"));
        }
        match place {
            Place::Alone => send(&mut database, vec![*change]),
            Place::Open(number) => assert!(runs.insert(number, vec![*change]).is_none()),
            Place::Join(number) => runs.get_mut(&number).expect("a joined run is open").push(*change),
        }
    }
    planner.flush(&mut flushed);
    for number in flushed {
        send(&mut database, runs.remove(&number).expect("a flushed run was open"));
    }
    assert!(runs.is_empty(), "everything was sent");
    database
}

fn any_change() -> impl Strategy<Value = Change> {
    let key = 0_u8..5;
    let value = 0_u8..6;
    let what = prop_oneof![
        3 => (key.clone(), value.clone()).prop_map(|(key, value)| What::Put { key, value }),
        3 => (key.clone(), value).prop_map(|(key, value)| What::Set { key, value }),
        1 => (key.clone(), key.clone()).prop_map(|(key, to)| What::Rename { key, to }),
        2 => key.prop_map(|key| What::Delete { key }),
    ];
    (0_u32..4, what).prop_map(|(table, what)| Change { table, what })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn planned_runs_end_where_source_order_ends(
        changes in prop::collection::vec(any_change(), 0..60),
        reverse: bool,
    ) {
        let changes = possible(changes);
        let mut naive = Database::default();
        changes.iter().for_each(|change| naive.apply(*change));
        let planned = apply_planned(&changes, reverse);
        prop_assert_eq!(planned.rows, naive.rows);
        prop_assert_eq!(planned.seen.len(), naive.seen.len());
        // A run of the watched table sees the other tables as they stood at its own place in the order.
        let others = |seen: &[(usize, u8)]| seen.iter().map(|(rows, _)| *rows).collect::<Vec<_>>();
        prop_assert_eq!(others(&planned.seen), others(&naive.seen));
    }
}

fn plain(form: usize, row: u64) -> Footprint {
    Footprint { table: 1, mapping: 1, form, row: Some(row), alone: false, free: true, tied: false }
}

#[test]
fn a_key_that_occurs_twice_splits_the_run() {
    let (mut planner, mut flushed) = (Planner::default(), Vec::new());
    assert_eq!(planner.place(&plain(1, 7), &mut flushed), Place::Open(0));
    assert_eq!(planner.place(&plain(1, 8), &mut flushed), Place::Join(0));
    assert!(flushed.is_empty());
    assert_eq!(planner.place(&plain(1, 7), &mut flushed), Place::Open(1));
    assert_eq!(flushed, [0]);
}

#[test]
fn changes_of_different_tables_do_not_split_each_other() {
    let (mut planner, mut flushed) = (Planner::default(), Vec::new());
    let other = |row| Footprint { table: 2, mapping: 2, form: 20, ..plain(0, row) };
    for row in 0..10 {
        planner.place(&plain(1, row), &mut flushed);
        planner.place(&other(row), &mut flushed);
    }
    assert!(flushed.is_empty());
    planner.flush(&mut flushed);
    assert_eq!(flushed, [0, 1]);
}

#[test]
fn another_relation_version_splits_the_run() {
    let (mut planner, mut flushed) = (Planner::default(), Vec::new());
    planner.place(&plain(1, 1), &mut flushed);
    planner.place(&Footprint { mapping: 2, form: 2, ..plain(2, 2) }, &mut flushed);
    assert_eq!(flushed, [0]);
}

#[test]
fn inserts_without_a_key_share_a_run() {
    let (mut planner, mut flushed) = (Planner::default(), Vec::new());
    let unnamed = Footprint { row: None, ..plain(1, 0) };
    assert_eq!(planner.place(&unnamed, &mut flushed), Place::Open(0));
    assert_eq!(planner.place(&unnamed, &mut flushed), Place::Join(0));
    // The delete of one of them waits for the run and goes alone.
    let delete = Footprint { form: 2, alone: true, ..unnamed };
    assert_eq!(planner.place(&delete, &mut flushed), Place::Alone);
    assert_eq!(flushed, [0]);
}

#[test]
fn a_full_run_is_closed() {
    let (mut planner, mut flushed) = (Planner::default(), Vec::new());
    for row in 0..MAX_ROWS as u64 {
        assert!(row == 0 || !planner.filled(0));
        planner.place(&plain(1, row), &mut flushed);
    }
    assert!(planner.filled(0));
    assert_eq!(planner.place(&plain(1, 5), &mut flushed), Place::Open(1));
}
