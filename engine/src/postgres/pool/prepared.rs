//! Statements prepared on one connection, the least recently used dropped first.

use std::collections::HashMap;

use tokio_postgres::{Client, Error, Statement};

/// Each costs the target memory for its plan.
const MAX_STATEMENTS: usize = 256;

#[derive(Default)]
pub struct Prepared {
    statements: HashMap<String, (Statement, u64)>,
    clock: u64,
}

impl Prepared {
    /// The statement for this text, if it was prepared before.
    pub fn get(&mut self, sql: &str) -> Option<Statement> {
        self.clock += 1;
        let (statement, used) = self.statements.get_mut(sql)?;
        *used = self.clock;
        Some(statement.clone())
    }

    /// Prepares a text that `get` did not find.
    ///
    /// # Errors
    /// Whatever the server says of the text.
    pub async fn prepare(&mut self, client: &Client, sql: &str) -> Result<Statement, Error> {
        let statement = client.prepare(sql).await?;
        if self.statements.len() >= MAX_STATEMENTS {
            self.drop_oldest();
        }
        self.statements.insert(sql.to_owned(), (statement.clone(), self.clock));
        Ok(statement)
    }

    /// Forgets everything: a plan or a type may be out of date.
    pub fn clear(&mut self) {
        self.statements.clear();
    }

    /// Dropping the last handle of a statement closes it at the server.
    fn drop_oldest(&mut self) {
        let oldest = self.statements.iter().min_by_key(|(_, (_, used))| *used);
        if let Some(sql) = oldest.map(|(sql, _)| sql.clone()) {
            self.statements.remove(&sql);
        }
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} statements", self.statements.len())
    }
}
