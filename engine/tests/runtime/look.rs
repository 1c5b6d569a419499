//! What happens to slot and publications while the stream runs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use trellara_actors::capture::{
    self, CaptureContext, CaptureExit, CaptureReport, CaptureSettings, LineageSettings,
};
use trellara_actors::failure::Code;
use trellara_actors::flow::{FlowLink, TargetView};
use trellara_engine::runtime::SystemClock;
use trellara_engine::source::{Heartbeats, Source};
use trellara_storage::families::flows;
use trellara_storage::records::{FlowPart, Lineage};
use trellara_storage::{FlowId, Progress};

use super::fleet::World;
use crate::eventually::eventually;

const FLOW: FlowId = FlowId::new(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_redefined_beside_the_stream_is_told_once_and_a_replaced_one_ends_the_lineage() {
    let world = World::new().await;
    let (log, _threads) = trellara_storage::log::start(Arc::clone(&world.store) as _).unwrap();
    let link = FlowLink::new(None, Progress::ZERO);
    link.target.send_replace(TargetView { read: true, checkpoint: None, answering: true });
    let source = &world.settings.source;
    let context = CaptureContext {
        flow: FLOW,
        settings: CaptureSettings {
            lineage: LineageSettings {
                slot: source.slot.clone(),
                publications: source.publications.clone(),
                from_now: false,
            },
            log_max_bytes: 1 << 30,
            keepalive_interval: Duration::from_secs(10),
            look_interval: Duration::from_millis(50),
        },
        source: Arc::new(Source::new(&world.settings, 1, Heartbeats::default())),
        log: log.for_flow(FLOW),
        clock: SystemClock::new(),
        link: link.clone(),
    };
    let reports = Arc::new(Mutex::new(Vec::new()));
    let (_stop, stopped) = watch::channel(false);
    let seen = Arc::clone(&reports);
    let task = tokio::spawn(capture::run(context, stopped, move |report| seen.lock().unwrap().push(report)));
    let changes = || {
        let of = |report: &CaptureReport| match report {
            CaptureReport::PublicationsChanged(names) => Some(names.clone()),
            CaptureReport::Lineage { .. } | CaptureReport::Capturing | CaptureReport::Progress(_) => None,
        };
        reports.lock().unwrap().iter().filter_map(of).collect::<Vec<_>>()
    };
    eventually("the slot's restart position", || async { *link.restart.borrow() }).await;
    assert!(changes().is_empty());

    let more = "CREATE TABLE more (id int PRIMARY KEY); ALTER PUBLICATION sales ADD TABLE more";
    world.source.batch_execute(more).await.unwrap();
    eventually("the change is told", || async { (!changes().is_empty()).then_some(()) }).await;
    let stored: Option<Lineage> = flows::get(&*world.store, FLOW, FlowPart::Lineage).unwrap();
    assert_eq!(stored, *link.lineage.borrow());

    let replaced = "BEGIN; DROP PUBLICATION sales; CREATE PUBLICATION sales FOR TABLE sale; COMMIT";
    world.source.batch_execute(replaced).await.unwrap();
    let exit = task.await.unwrap();
    assert!(matches!(exit, CaptureExit::LineageLost { code: Code::PublicationReplaced, .. }), "{exit:?}");
    assert_eq!(changes(), [["sales".to_owned()]]);
}
