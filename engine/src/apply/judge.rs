//! From a stop to a failure: what only the target can tell is asked, in fresh transactions after the
//! rollback, and then classification decides.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{Client, Error};
use trellara_actors::failure::{Code, ErrorFacts, ErrorKind, Failure, Place, classify};
use trellara_storage::FlowName;
use trellara_storage::records::{ColumnValue, Operation};

use super::evidence;
use super::stop::{Cause, ChangeCopy, Stop};
use crate::contract::widening;
use crate::postgres::ident::{Qualified, identifier, literal};

/// Evidence is worth a wait, but not a stall.
const PATIENCE: Duration = Duration::from_secs(10);

/// Judges without asking anyone: the connection is gone.
pub(super) fn alone(stop: &Stop) -> Failure {
    classify(stop.place, stop.facts())
}

/// Judges with what the target still tells. An answer that fails leaves its fact out.
pub(super) async fn with_target(
    stop: &Stop,
    client: &Client,
    flow: &FlowName,
    server_version: &str,
) -> Failure {
    let mut facts = stop.facts();
    if let Cause::Breach(breach) = &stop.cause {
        let target_version = Some(server_version.to_owned());
        let found = trellara_actors::failure::ChangeEvidence {
            target_relation: breach.target_relation,
            target_version,
            ..Default::default()
        };
        facts.evidence = Some(Box::new(found));
    }
    if let Some(change) = &stop.change {
        facts.evidence = Some(Box::new(evidence::of(change, server_version)));
    }
    // An answer that does not come leaves the connection unusable, which its next user finds out.
    let _ = timeout(PATIENCE, ask(stop, client, flow, &mut facts)).await;
    classify(stop.place, facts)
}

async fn ask(stop: &Stop, client: &Client, flow: &FlowName, facts: &mut ErrorFacts) -> Result<(), Error> {
    let sqlstate = match &facts.kind {
        Some(ErrorKind::Database { sqlstate }) => sqlstate.clone(),
        Some(ErrorKind::Finding(Code::RowMissing)) => {
            return told_from_suppressed(stop, client, facts).await;
        }
        Some(
            ErrorKind::NameResolution
            | ErrorKind::ConnectRefused
            | ErrorKind::Tls
            | ErrorKind::ConnectionLost
            | ErrorKind::Protocol
            | ErrorKind::Finding(_),
        )
        | None => return Ok(()),
    };
    match (sqlstate.as_str(), &stop.change) {
        ("42501", _) if stop.place == Place::SessionSetup => may_set_role(client, facts).await,
        ("42501", Some(change)) => privilege(client, change, facts).await,
        ("XX000", _) => {
            facts.probe_failed = probe(client, flow).await.is_err();
            Ok(())
        }
        ("22P02", Some(change)) if facts.enum_type => missing_labels(client, change, facts).await,
        ("22001" | "22003", Some(change)) => {
            facts.remedy = widening(&change.mapped.mapping);
            Ok(())
        }
        ("23505", Some(change)) => conflict(client, change, facts).await,
        _ => Ok(()),
    }
}

/// Zero rows although the row is there: something at the target swallowed the change.
async fn told_from_suppressed(stop: &Stop, client: &Client, facts: &mut ErrorFacts) -> Result<(), Error> {
    let Some(change) = stop.change.as_ref().filter(|change| !change.mapped.free) else { return Ok(()) };
    if evidence::row_to_change(client, change).await?.is_some() {
        facts.kind = Some(ErrorKind::Finding(Code::RowSuppressed));
    }
    Ok(())
}

async fn may_set_role(client: &Client, facts: &mut ErrorFacts) -> Result<(), Error> {
    let role: String = client.query_one("SELECT current_user::text", &[]).await?.try_get(0)?;
    facts.remedy = vec![format!("GRANT SET ON PARAMETER session_replication_role TO {};", identifier(&role))];
    Ok(())
}

async fn privilege(client: &Client, change: &ChangeCopy, facts: &mut ErrorFacts) -> Result<(), Error> {
    let table = &change.mapped.mapping.table;
    let needed = match change.operation {
        Operation::Insert => "INSERT",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Truncate | Operation::Message => "TRUNCATE",
    };
    let row = client
        .query_one(
            "SELECT has_table_privilege($1::oid, $2) AND has_table_privilege($1::oid, 'SELECT')
                AND has_schema_privilege($3, 'USAGE'), current_user::text",
            &[&table.oid, &needed, &table.name.schema],
        )
        .await?;
    let held: bool = row.try_get(0)?;
    let role: String = row.try_get(1)?;
    facts.has_privilege = Some(held);
    if !held {
        let name = Qualified { schema: &table.name.schema, name: &table.name.name };
        facts.remedy = vec![
            format!("GRANT USAGE ON SCHEMA {} TO {};", identifier(&table.name.schema), identifier(&role)),
            format!("GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON {name} TO {};", identifier(&role)),
        ];
    }
    Ok(())
}

/// A write that means nothing: a quota refuses it as well, a row's own trouble does not.
async fn probe(client: &Client, flow: &FlowName) -> Result<u64, Error> {
    client
        .execute("UPDATE trellara.checkpoint SET updated = updated WHERE flow = $1", &[&flow.to_string()])
        .await
}

async fn conflict(client: &Client, change: &ChangeCopy, facts: &mut ErrorFacts) -> Result<(), Error> {
    let Some(name) = facts.constraint.as_deref() else { return Ok(()) };
    let table = &change.mapped.mapping.table;
    let ours = facts.table.as_deref() == Some(&table.name.name);
    let Some(index) = table.indexes.iter().find(|index| ours && index.name == name) else { return Ok(()) };
    facts.duplicate_key = change.operation == Operation::Insert && change.mapped.is_key(index);
    let row = evidence::conflicting_row(client, change, index).await?;
    if let Some(evidence) = &mut facts.evidence {
        evidence.conflicting_row = row;
    }
    Ok(())
}

/// `ALTER TYPE ... ADD VALUE` for every label of this row that the target's enums lack.
async fn missing_labels(client: &Client, change: &ChangeCopy, facts: &mut ErrorFacts) -> Result<(), Error> {
    let Some(image) = facts.evidence.as_ref().and_then(|evidence| evidence.image.as_ref()) else {
        return Ok(());
    };
    let mut remedy = Vec::new();
    for (name, value) in &image.new {
        let column = change.mapped.mapping.table.columns.iter().find(|column| column.name == *name);
        let (Some(column), ColumnValue::Text(label)) = (column, value) else { continue };
        if column.category != 'E' {
            continue;
        }
        let known = client
            .query_opt(
                "SELECT FROM pg_enum WHERE enumtypid = $1 AND enumlabel = $2",
                &[&column.base_oid, label],
            )
            .await?;
        if known.is_none() {
            let sql_type = &column.value.sql_type;
            remedy.push(format!("ALTER TYPE {sql_type} ADD VALUE IF NOT EXISTS {};", literal(label)));
        }
    }
    facts.remedy = remedy;
    Ok(())
}
