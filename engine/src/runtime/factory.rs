//! Makes flows out of the configuration and the store: numbers, handles, drivers.

use std::sync::{Arc, PoisonError, RwLock};

use trellara_actors::ports::{Clock, FlowFactory, OpenFlow};
use trellara_storage::families::flows;
use trellara_storage::log::{FlowLogHandle, LogHandle};
use trellara_storage::records::{FlowIdentity, FlowPart};
use trellara_storage::{Batch, Error, FlowId, FlowName, Store};
