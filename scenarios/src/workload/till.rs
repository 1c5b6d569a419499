//! What one till does next: a pure, seeded stream of transactions as SQL.
//!
//! No I/O and no clock here; two tills with one seed say the same as long as they are resumed alike.

use std::collections::VecDeque;
use std::fmt::Write as _;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Sales that later transactions may still touch.
const OPEN_SALES: usize = 200;
/// Long enough to be stored out of line, so that later updates of the row send it as unchanged.
const LONG_NOTE: usize = 6_000;
/// Ids from here on belong to rows that scenarios plant.
const PLANTED_IDS: i64 = 900_000_000;

const METHODS: [&str; 4] = ["card", "cash", "voucher", "it''s a gift"];
const STATUSES: [&str; 4] = ["open", "paid", "packed", "returned"];

#[derive(Debug)]
pub(super) struct Till {
    random: StdRng,
    last_sale: i64,
    last_counter: i64,
    open: VecDeque<i64>,
}

impl Till {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: StdRng::seed_from_u64(seed), last_sale: 0, last_counter: 0, open: VecDeque::new() }
    }

    /// Goes on from what the source holds.
    pub(super) fn resume(&mut self, last_sale: i64, last_counter: i64, open: impl Iterator<Item = i64>) {
        self.last_sale = if last_sale < PLANTED_IDS { last_sale } else { self.last_sale };
        self.last_counter = last_counter;
        self.open = open.filter(|sale| *sale < PLANTED_IDS).collect();
    }

    /// The next transaction, from BEGIN to COMMIT or ROLLBACK.
    pub(super) fn next(&mut self) -> String {
        let mut sql = String::from("BEGIN;\n");
        match self.random.random_range(0..100) {
            0..55 => self.sell(&mut sql),
            55..75 => self.revise(&mut sql),
            75..83 => self.withdraw(&mut sql),
            83..93 => self.mistype(&mut sql),
            93..97 => self.correct_payment(&mut sql),
            _ => {
                self.sell(&mut sql);
                sql.push_str("ROLLBACK;\n");
                return sql;
            }
        }
        sql.push_str("COMMIT;\n");
        sql
    }

    fn sell(&mut self, sql: &mut String) {
        self.last_sale += 1;
        let sale = self.last_sale;
        let total = self.amount();
        let note = self.note();
        let customer = self.random.random_range(0..5_000);
        line(
            sql,
            &format!(
                "INSERT INTO sales (id, customer, status, total, note, sold_at) \
             VALUES ({sale}, 'customer {customer}', 'open', {total}, {note}, now())"
            ),
        );
        for number in 1..=self.random.random_range(1..5) {
            self.item(sql, sale, number);
        }
        self.pay(sql, sale, &total);
        self.open.push_back(sale);
        if self.open.len() > OPEN_SALES {
            self.open.pop_front();
        }
    }

    fn item(&mut self, sql: &mut String, sale: i64, number: i32) {
        let sku = self.random.random_range(0..900);
        let quantity = self.random.random_range(1..9);
        let price = self.amount();
        line(
            sql,
            &format!(
                "INSERT INTO sale_items (sale_id, line, sku, quantity, price) \
             VALUES ({sale}, {number}, 'sku-{sku:03}', {quantity}, {price})"
            ),
        );
    }

    fn pay(&mut self, sql: &mut String, sale: i64, amount: &str) {
        self.last_counter += 1;
        let counter = self.last_counter;
        let method = METHODS[self.random.random_range(0..METHODS.len())];
        line(
            sql,
            &format!(
                "INSERT INTO payments (counter, sale_id, method, amount) VALUES ({counter}, {sale}, '{method}', {amount})"
            ),
        );
    }

    /// Touches one row twice: the last value counts, so an order gone wrong would show.
    fn revise(&mut self, sql: &mut String) {
        let Some(sale) = self.any_open() else { return self.sell(sql) };
        for _ in 0..self.random.random_range(1..3) {
            let status = STATUSES[self.random.random_range(0..STATUSES.len())];
            let total = self.amount();
            line(
                sql,
                &format!(
                    "UPDATE sales SET status = '{status}', total = {total}, revision = revision + 1 WHERE id = {sale}"
                ),
            );
        }
        line(sql, &format!("UPDATE sale_items SET quantity = quantity + 1 WHERE sale_id = {sale}"));
    }

    fn withdraw(&mut self, sql: &mut String) {
        let Some(sale) = self.any_open() else { return self.sell(sql) };
        self.open.retain(|open| *open != sale);
        line(sql, &format!("DELETE FROM sale_items WHERE sale_id = {sale}"));
        line(sql, &format!("DELETE FROM sales WHERE id = {sale}"));
    }

    /// A part that is taken back must leave no trace.
    fn mistype(&mut self, sql: &mut String) {
        self.sell(sql);
        let sale = self.last_sale;
        line(sql, "SAVEPOINT slip");
        self.item(sql, sale, 90);
        line(sql, &format!("UPDATE sales SET status = 'mistyped' WHERE id = {sale}"));
        line(sql, "ROLLBACK TO slip");
        self.item(sql, sale, 91);
        line(sql, "RELEASE slip");
    }

    /// An update of a table without a key.
    fn correct_payment(&mut self, sql: &mut String) {
        if self.last_counter == 0 {
            return self.sell(sql);
        }
        let counter = self.random.random_range(1..=self.last_counter);
        let amount = self.amount();
        line(sql, &format!("UPDATE payments SET amount = {amount} WHERE counter = {counter}"));
    }

    fn any_open(&mut self) -> Option<i64> {
        (!self.open.is_empty()).then(|| self.open[self.random.random_range(0..self.open.len())])
    }

    fn amount(&mut self) -> String {
        format!("{}.{:02}", self.random.random_range(1..900), self.random.random_range(0..100))
    }

    fn note(&mut self) -> String {
        match self.random.random_range(0..50) {
            0 => {
                let letters = (0..LONG_NOTE).map(|_| char::from(self.random.random_range(b'a'..=b'z')));
                format!("'{}'", letters.collect::<String>())
            }
            1..10 => "'caf\u{e9} \u{2014} back\\slash, \"quotes\" and a \t tab'".to_owned(),
            10..13 => "''".to_owned(),
            _ => "NULL".to_owned(),
        }
    }
}

fn line(sql: &mut String, statement: &str) {
    let written = writeln!(sql, "{statement};");
    debug_assert!(written.is_ok(), "a String takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_stream_of_transactions() {
        let (mut first, mut second) = (Till::new(7), Till::new(7));
        for _ in 0..500 {
            assert_eq!(first.next(), second.next());
        }
    }

    #[test]
    fn counters_are_never_used_twice() {
        let mut till = Till::new(11);
        let mut counters = Vec::new();
        for _ in 0..2_000 {
            let sql = till.next();
            let paid =
                sql.lines().filter_map(|line| line.split("amount) VALUES (").nth(1)?.split(',').next());
            counters.extend(paid.map(str::to_owned));
        }
        let used = counters.len();
        counters.sort();
        counters.dedup();
        assert_eq!(counters.len(), used);
    }

    #[test]
    fn the_stream_has_inserts_updates_deletes_savepoints_and_rollbacks() {
        let mut till = Till::new(3);
        let all: String = (0..500).map(|_| till.next()).collect();
        for word in
            ["INSERT", "UPDATE sales", "UPDATE payments", "DELETE", "ROLLBACK TO", "\nROLLBACK;", "COMMIT"]
        {
            assert!(all.contains(word), "no {word}");
        }
    }
}
