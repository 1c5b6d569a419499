//! A quarantine record as a line, and as the whole evidence.

use trellara_actors::failure::Code;
use trellara_api::quarantine::{
    Attempt, Cell, CellValue, Change, FailureText, QuarantineDetail, QuarantineLine, QuarantineState,
    Resolution,
};
use trellara_storage::FlowName;
use trellara_storage::records::{
    self, ChangeImage, ColumnValue, FailureDetail, QuarantineAction, QuarantineRecord,
};

use crate::admin::time;
use crate::repair::{self, Desk};

pub(in crate::admin) fn state(state: records::QuarantineState) -> QuarantineState {
    match state {
        records::QuarantineState::Open => QuarantineState::Open,
        records::QuarantineState::Replaying => QuarantineState::Replaying,
        records::QuarantineState::Replayed => QuarantineState::Replayed,
        records::QuarantineState::ReplayedInPart => QuarantineState::ReplayedInPart,
        records::QuarantineState::Discarded => QuarantineState::Discarded,
        records::QuarantineState::Superseded => QuarantineState::Superseded,
    }
}

pub(in crate::admin) fn line(record: &QuarantineRecord, flow: &FlowName, desk: Desk<'_>) -> QuarantineLine {
    let failure = &record.failure;
    let image = record.image.as_ref();
    let state = state(record.state);
    let table = match (&failure.schema, &failure.table) {
        (Some(schema), Some(table)) => Some(format!("{schema}.{table}")),
        (None, Some(table)) => Some(table.clone()),
        (_, None) => image.map(|image| format!("{}.{}", image.schema, image.table)),
    };
    QuarantineLine {
        id: record.id.clone(),
        flow: flow.to_string(),
        state,
        at: time(record.at),
        class: failure.class.clone(),
        code: failure.code.clone(),
        title: title(&failure.code),
        sqlstate: failure.sqlstate.clone(),
        constraint: failure.constraint.clone(),
        table,
        column: failure.column.clone(),
        operation: image.map(|image| image.operation.clone()),
        key: image.map(|image| cells(&image.key)).unwrap_or_default(),
        commit_lsn: record.transaction.commit_lsn.to_string(),
        attempts: record.attempts.len() as u64,
        next: state.is_open().then(|| repair::plan_command(flow, desk)),
    }
}

/// Of this version; a code of another one has none here.
fn title(code: &str) -> String {
    let known = Code::ALL.iter().find(|known| known.to_string() == code);
    known.map(|code| code.title().to_owned()).unwrap_or_default()
}

pub(in crate::admin) fn detail(
    record: &QuarantineRecord,
    flow: &FlowName,
    desk: Desk<'_>,
) -> QuarantineDetail {
    QuarantineDetail {
        line: line(record, flow, desk),
        incarnation: record.transaction.incarnation.get(),
        xid: record.transaction.xid.get(),
        end_lsn: record.end_lsn.to_string(),
        commit_time: time(record.commit_time),
        digest: record.digest.to_string(),
        failure: failure(&record.failure),
        change_number: record.change,
        changes: record.changes,
        change: record.image.as_ref().map(change),
        conflicting_row: record.conflicting_row.as_deref().map(cells),
        source_relation_digest: record.source_relation.map(|digest| digest.to_string()),
        target_relation_digest: record.target_relation.map(|digest| digest.to_string()),
        checkpoint_lsn: record.checkpoint.to_string(),
        engine_version: record.engine_version.clone(),
        source_version: record.source_version.clone(),
        target_version: record.target_version.clone(),
        attempt_list: record
            .attempts
            .iter()
            .map(|attempt| Attempt { at: time(attempt.at), failure: failure(&attempt.failure) })
            .collect(),
        resolution: record.resolution.as_ref().map(resolution),
    }
}

pub(in crate::admin) fn failure(detail: &FailureDetail) -> FailureText {
    FailureText {
        code: detail.code.clone(),
        sqlstate: detail.sqlstate.clone(),
        message: detail.message.clone(),
        detail: detail.detail.clone(),
        hint: detail.hint.clone(),
        context: detail.context.clone(),
        remedy: detail.remedy.clone(),
    }
}

fn change(image: &ChangeImage) -> Change {
    Change {
        operation: image.operation.clone(),
        schema: image.schema.clone(),
        table: image.table.clone(),
        key: cells(&image.key),
        old: cells(&image.old),
        new: cells(&image.new),
    }
}

fn cells(row: &[(String, ColumnValue)]) -> Vec<Cell> {
    let cell = |(column, value): &(String, ColumnValue)| Cell {
        column: column.clone(),
        value: match value {
            ColumnValue::Null => CellValue::Null,
            ColumnValue::UnchangedToast => CellValue::UnchangedToast,
            ColumnValue::Text(text) => CellValue::Text(text.clone()),
            ColumnValue::Bytes(hex) => CellValue::Bytes(hex.clone()),
        },
    };
    row.iter().map(cell).collect()
}

fn resolution(resolution: &records::Resolution) -> Resolution {
    Resolution {
        action: match resolution.action {
            QuarantineAction::Replay => "replay",
            QuarantineAction::Discard => "discard",
        }
        .to_owned(),
        actor: resolution.actor.clone(),
        reason: resolution.reason.clone(),
        at: time(resolution.at),
    }
}
