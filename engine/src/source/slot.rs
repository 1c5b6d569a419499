//! The flow's slot as the catalog shows it, who holds it, and dropping it.

use std::time::Duration;

use trellara_actors::ports::{SlotFacts, SlotKind, WalStatus};
use trellara_storage::Lsn;

use crate::postgres::Error;
use crate::postgres::ident::literal;
use crate::postgres::replication::{Connection, Row};

const VERSION_16: u32 = 160_000;
const VERSION_17: u32 = 170_000;

/// How long a terminated walsender of ours may take to let go.
const RELEASE_PATIENCE: Duration = Duration::from_secs(10);
const RELEASE_POLL: Duration = Duration::from_millis(100);

const OBJECT_IN_USE: &str = "55006";

/// What became of a slot that was to be dropped.
pub(super) enum Dropped {
    Gone,
    Absent,
    Held(Holder),
}

/// Whoever streams from a slot.
pub(super) struct Holder {
    pub(super) pid: i32,
    pub(super) application_name: String,
    pub(super) host: String,
}

impl Holder {
    /// Another engine's name may begin like ours, so the rest of it has to be a generation.
    fn is_ours(&self, application_prefix: &str) -> bool {
        let generation = self.application_name.strip_prefix(application_prefix);
        generation.is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

pub(super) async fn facts(connection: &mut Connection, slot: &str) -> Result<Option<SlotFacts>, Error> {
    let invalidation = match connection.server_version() {
        VERSION_17.. => "invalidation_reason",
        VERSION_16.. => "CASE WHEN conflicting THEN 'conflicting' END",
        _ => "NULL",
    };
    let sql = format!(
        "SELECT slot_type, coalesce(plugin, ''), coalesce(database = current_database(), false), temporary, \
         two_phase, confirmed_flush_lsn, restart_lsn, wal_status, {invalidation}, active_pid \
         FROM pg_replication_slots WHERE slot_name = {}",
        literal(slot)
    );
    let rows = connection.command(&sql).await?;
    rows.first().map(read).transpose()
}

fn read(row: &Row) -> Result<SlotFacts, Error> {
    let lsn = |column| row.get(column)?.map(parse::<Lsn>).transpose();
    Ok(SlotFacts {
        kind: if row.text(0)? == "logical" { SlotKind::Logical } else { SlotKind::Physical },
        plugin: row.text(1)?.to_owned(),
        same_database: row.text(2)? == "t",
        temporary: row.text(3)? == "t",
        two_phase: row.text(4)? == "t",
        confirmed: lsn(5)?,
        restart: lsn(6)?,
        wal_status: row.get(7)?.map(wal_status).transpose()?,
        invalidation: row.get(8)?.map(str::to_owned),
        active_pid: row.get(9)?.map(parse).transpose()?,
    })
}

fn wal_status(text: &str) -> Result<WalStatus, Error> {
    match text {
        "reserved" => Ok(WalStatus::Reserved),
        "extended" => Ok(WalStatus::Extended),
        "unreserved" => Ok(WalStatus::Unreserved),
        "lost" => Ok(WalStatus::Lost),
        _ => Err(Error::Protocol("wal_status of a slot")),
    }
}

fn parse<T: std::str::FromStr>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| Error::Protocol("value of another type"))
}

/// None when nobody streams from the slot, or there is none.
pub(super) async fn holder(connection: &mut Connection, slot: &str) -> Result<Option<Holder>, Error> {
    let sql = format!(
        "SELECT s.active_pid, coalesce(a.application_name, ''), coalesce(host(a.client_addr), 'local') \
         FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid \
         WHERE s.slot_name = {} AND s.active_pid IS NOT NULL",
        literal(slot)
    );
    let rows = connection.command(&sql).await?;
    let holder = |row: &Row| {
        Ok(Holder {
            pid: row.parse(0)?,
            application_name: row.text(1)?.to_owned(),
            host: row.text(2)?.to_owned(),
        })
    };
    rows.first().map(holder).transpose()
}

/// Drops the slot if it exists. A connection of this engine (`application_prefix` and a number) that still
/// holds it is ended first; one of somebody else is left alone.
///
/// # Errors
/// Somebody holds the slot, or the server refused.
pub(super) async fn drop_if_exists(
    connection: &mut Connection,
    slot: &str,
    application_prefix: &str,
) -> Result<Dropped, Error> {
    let deadline = tokio::time::Instant::now() + RELEASE_PATIENCE;
    loop {
        if let Some(holder) = holder(connection, slot).await? {
            if !holder.is_ours(application_prefix) {
                return Ok(Dropped::Held(holder));
            }
            connection.command(&format!("SELECT pg_terminate_backend({})", holder.pid)).await?;
            if tokio::time::Instant::now() > deadline {
                return Ok(Dropped::Held(holder));
            }
            tokio::time::sleep(RELEASE_POLL).await;
            continue;
        }
        let sql = format!(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = {}",
            literal(slot)
        );
        return match connection.command(&sql).await {
            Ok(rows) if rows.is_empty() => Ok(Dropped::Absent),
            Ok(_) => Ok(Dropped::Gone),
            // Taken between the two statements: look again.
            Err(error) if error.sqlstate() == Some(OBJECT_IN_USE) => continue,
            Err(error) => Err(error),
        };
    }
}
