//! What the store knows of itself.

use serde::{Deserialize, Serialize};

use crate::{InstanceId, Timestamp};

/// Who this store belongs to; made once, with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreIdentity {
    pub instance: InstanceId,
    pub created: Timestamp,
}

/// Left for every flow by `store recover`: what was acknowledged may be missing. It goes when the flow has
/// passed the lineage check, and until then the flow neither confirms nor applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryMark {
    pub at: Timestamp,
    pub reason: String,
}
