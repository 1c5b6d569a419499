//! An error of the source's decoding that repeats at the same transaction: nothing can be set aside that was
//! never received, so it ends the incarnation. A cut connection is never one of these.

use super::assembler::Assembler;
use super::report::CaptureExit;
use crate::failure::{Class, Code, Failure};
use crate::flow::{FlowLink, Stumble};

const GIVE_UP_AFTER: u32 = 3;

/// What an error of the stream comes to, given where the stream stood.
pub(super) fn judge(link: &FlowLink, assembler: &Assembler, failure: Failure) -> CaptureExit {
    let is_decoding = match failure.class {
        Class::Transient | Class::Endpoint(_) | Class::Lineage | Class::Fence => false,
        Class::RowData | Class::SchemaContract | Class::Integrity | Class::Defect | Class::Unknown => true,
    };
    let Some((commit_lsn, xid)) = assembler.in_progress().filter(|_| is_decoding) else {
        return CaptureExit::Failed(failure);
    };
    let before = *link.stumble.borrow();
    let times = match before {
        Some(stumble) if (stumble.commit_lsn, stumble.xid) == (commit_lsn, xid) => stumble.times + 1,
        Some(_) | None => 1,
    };
    link.stumble.send_replace(Some(Stumble { commit_lsn, xid, times }));
    if times < GIVE_UP_AFTER {
        return CaptureExit::Failed(failure);
    }
    let at = commit_lsn.map_or_else(|| "a streamed transaction".to_owned(), |lsn| lsn.to_string());
    let what = format!("undecodable at {at}, xid {xid}: {failure}");
    CaptureExit::LineageLost { code: Code::Undecodable, what }
}
