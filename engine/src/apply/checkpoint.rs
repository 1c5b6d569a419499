//! The flow's row at the target: made, claimed, read, and moved (I3, I4, I11).
//!
//! The one danger: moving it for someone who no longer holds it. Every move compares token and position;
//! a claim compares holder and lease by the target's own clock.

use std::time::Duration;

use postgres_types::PgLsn;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Row};
use trellara_actors::ports::{Checkpoint, Claim, Claimed, InitialCheckpoint, Token};
use trellara_storage::{FlowName, Incarnation, InstanceId, Lsn, Progress, TransactionDigest};

/// Advisory lock that keeps flows from making the schema at the same time (`trella` in ASCII).
const SCHEMA_LOCK: i64 = 0x7472_656c_6c61;

const SCHEMA: &str = "
CREATE SCHEMA IF NOT EXISTS trellara;
CREATE TABLE IF NOT EXISTS trellara.checkpoint (
  flow text PRIMARY KEY,
  incarnation bigint NOT NULL,
  lineage text NOT NULL,
  applied_lsn pg_lsn NOT NULL,
  applied_position pg_lsn NOT NULL,
  digest text,
  instance text NOT NULL,
  boot bigint NOT NULL,
  generation bigint NOT NULL,
  holder text NOT NULL,
  lease_until timestamptz NOT NULL,
  updated timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS trellara.transaction_outcomes (
  flow text NOT NULL,
  incarnation bigint NOT NULL,
  commit_lsn pg_lsn NOT NULL,
  xid bigint NOT NULL,
  change bigint NOT NULL,
  outcome text NOT NULL,
  digest text NOT NULL,
  relation text,
  row_key text,
  at timestamptz NOT NULL,
  PRIMARY KEY (flow, incarnation, commit_lsn, change)
);
COMMENT ON TABLE trellara.transaction_outcomes IS
  'Transactions and changes (numbered from 1; 0 is the whole transaction) that were not simply applied.';";

const COLUMNS: &str = "incarnation, lineage, applied_lsn, applied_position, digest, instance, boot, \
                       generation, holder, lease_until > clock_timestamp()";

/// Moves the row, and with it takes its lock: first statement of every apply transaction.
pub(super) const ADVANCE: &str = "
UPDATE trellara.checkpoint
   SET applied_lsn = $6, applied_position = $7, digest = coalesce($8, digest), updated = clock_timestamp(),
       lease_until = clock_timestamp() + $9::float8 * interval '1 second'
 WHERE flow = $1 AND instance = $2 AND boot = $3 AND generation = $4
   AND applied_lsn = $5 AND applied_position = $10";

/// Leases of all flows that one engine holds in a database, in one statement. A row that is locked belongs to
/// an apply transaction, which renews it: waiting for one would keep all the others waiting.
const RENEW: &str = "
UPDATE trellara.checkpoint c
   SET lease_until = clock_timestamp() + ours.lease * interval '1 second'
  FROM (SELECT c.flow, held.lease
          FROM trellara.checkpoint c
          JOIN unnest($1::text[], $2::int8[], $3::int8[], $4::float8[])
               AS held(flow, boot, generation, lease) ON c.flow = held.flow
         WHERE c.instance = $5
           AND (held.boot IS NULL OR (c.boot = held.boot AND c.generation = held.generation))
           FOR UPDATE OF c SKIP LOCKED) AS ours
 WHERE c.flow = ours.flow";

/// A lease that is to be renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub flow: FlowName,
    pub by: Claimant,
    pub lease: Duration,
}

/// By which claim an engine instance holds a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimant {
    Token(Token),
    /// Whichever was the last of the instance: this process has not looked at the row yet.
    AnyBoot,
}

/// Makes what is missing of schema `trellara`.
///
/// # Errors
/// 42501 where the role may not, and whatever the connection says.
pub async fn ensure_schema(client: &Client) -> Result<(), Error> {
    let present = client
        .query_one(
            "SELECT to_regclass('trellara.checkpoint') IS NOT NULL
                AND to_regclass('trellara.transaction_outcomes') IS NOT NULL",
            &[],
        )
        .await?
        .try_get(0)?;
    if present {
        return Ok(());
    }
    // Statements of one simple query are one transaction by themselves.
    client.batch_execute(&format!("SELECT pg_advisory_xact_lock({SCHEMA_LOCK});{SCHEMA}")).await
}

/// Renews the leases of these flows, whatever phase they are in; returns how many were.
///
/// # Errors
/// Whatever the server or the connection says.
pub async fn renew(client: &Client, instance: InstanceId, held: &[Held]) -> Result<u64, Error> {
    let token = |held: &Held| match held.by {
        Claimant::Token(token) => Some(token),
        Claimant::AnyBoot => None,
    };
    let flows: Vec<String> = held.iter().map(|held| held.flow.to_string()).collect();
    let boots: Vec<Option<i64>> =
        held.iter().map(|held| token(held).map(|token| token.boot.cast_signed())).collect();
    let generations: Vec<Option<i64>> =
        held.iter().map(|held| token(held).map(|token| token.generation.cast_signed())).collect();
    let leases: Vec<f64> = held.iter().map(|held| held.lease.as_secs_f64()).collect();
    client.execute(RENEW, &[&flows, &boots, &generations, &leases, &instance.to_string()]).await
}

/// Tries to become the row's holder.
///
/// # Errors
/// Whatever the server or the connection says; nothing was claimed then.
pub(super) async fn claim(
    client: &Client,
    flow: &FlowName,
    claim: &Claim,
    lease: Duration,
) -> Result<Claimed, Error> {
    let sql = format!(
        "UPDATE trellara.checkpoint
            SET instance = $2, boot = $3, generation = generation + 1, holder = $4,
                lease_until = clock_timestamp() + $5::float8 * interval '1 second', updated = clock_timestamp()
          WHERE flow = $1 AND (instance = $2 OR lease_until <= clock_timestamp() OR $6)
      RETURNING {COLUMNS}"
    );
    let (flow_name, instance) = (flow.to_string(), claim.instance.to_string());
    let boot = claim.boot.cast_signed();
    if let Some(initial) = &claim.initial {
        insert(client, &flow_name, initial, claim).await?;
    }
    let row = client
        .query_opt(
            &sql,
            &[&flow_name, &instance, &boot, &claim.holder, &lease.as_secs_f64(), &claim.take_over],
        )
        .await?;
    match row {
        Some(row) => Ok(Claimed::Ours(checkpoint(&row)?)),
        None => Ok(read(client, flow, false).await?.map_or(Claimed::Missing, Claimed::Held)),
    }
}

/// The first checkpoint, without a holder's lease; an existing row stays as it is.
async fn insert(
    client: &Client,
    flow: &str,
    initial: &InitialCheckpoint,
    claim: &Claim,
) -> Result<u64, Error> {
    client
        .execute(
            "INSERT INTO trellara.checkpoint
             VALUES ($1, $2, $3, $4, $5, NULL, $6, $7, 0, $8, clock_timestamp(), clock_timestamp())
             ON CONFLICT (flow) DO NOTHING",
            &[
                &flow,
                &i64::from(initial.incarnation.get()),
                &initial.lineage,
                &lsn(initial.applied.commit_lsn),
                &lsn(initial.applied.position),
                &claim.instance.to_string(),
                &claim.boot.cast_signed(),
                &claim.holder,
            ],
        )
        .await
}

/// Removes everything that names the flow; nothing to remove, or no schema, is fine.
pub(super) async fn forget(client: &Client, flow: &FlowName) -> Result<(), Error> {
    let present = client.query_one("SELECT to_regclass('trellara.checkpoint') IS NOT NULL", &[]).await?;
    if !present.get::<_, bool>(0) {
        return Ok(());
    }
    let flow = flow.to_string();
    client.execute("DELETE FROM trellara.transaction_outcomes WHERE flow = $1", &[&flow]).await?;
    client.execute("DELETE FROM trellara.checkpoint WHERE flow = $1", &[&flow]).await?;
    Ok(())
}

/// The row as it stands; `lock` waits for whoever is changing it. A target without our tables has none.
///
/// # Errors
/// Whatever the server or the connection says.
pub(super) async fn read(client: &Client, flow: &FlowName, lock: bool) -> Result<Option<Checkpoint>, Error> {
    let lock = if lock { " FOR UPDATE" } else { "" };
    let sql = format!("SELECT {COLUMNS} FROM trellara.checkpoint WHERE flow = $1{lock}");
    match client.query_opt(&sql, &[&flow.to_string()]).await {
        Ok(row) => row.map(|row| checkpoint(&row)).transpose(),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn lsn(lsn: Lsn) -> PgLsn {
    PgLsn::from(lsn.get())
}

/// A digest that cannot be read counts as none: adoption then finds no proof and refuses by itself.
fn checkpoint(row: &Row) -> Result<Checkpoint, Error> {
    let position = |at| row.try_get::<_, PgLsn>(at).map(|lsn| Lsn::new(lsn.into()));
    let digest: Option<&str> = row.try_get(4)?;
    let instance: &str = row.try_get(5)?;
    let incarnation: i64 = row.try_get(0)?;
    Ok(Checkpoint {
        incarnation: Incarnation::new(u32::try_from(incarnation).unwrap_or(0)),
        lineage: row.try_get(1)?,
        applied: Progress { commit_lsn: position(2)?, position: position(3)? },
        digest: digest.and_then(|text| text.parse::<TransactionDigest>().ok()),
        token: Token {
            instance: instance.parse().unwrap_or_default(),
            boot: row.try_get::<_, i64>(6)?.cast_unsigned(),
            generation: row.try_get::<_, i64>(7)?.cast_unsigned(),
        },
        holder: row.try_get(8)?,
        lease_live: row.try_get(9)?,
    })
}
