//! The file as a whole: the engine's own settings, all flows, and what they may not have in common.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::finding::Findings;
use super::flow::{self, ReadFlow, Surroundings};
use super::section::Section;
use super::tree::{self, Item, Node, Origin};
use super::{LogBudget, MetricsSettings, Settings, StorageSettings, enrol, ident};
use crate::settings::FlowSettings;

/// A Unix socket's address ends here.
const MAX_SOCKET_BYTES: usize = 107;

/// The settings; what cannot be used is a finding.
pub(super) fn read(root: Item, base: &Path, findings: &Findings) -> Option<Settings> {
    let mut root = Section::new(root, findings);
    version(&mut root);
    let instance = root.required("instance", "retail-west").and_then(|text| ident::id(text, findings));
    let data_dir = root.required("data_dir", "./trellara-data").map(|text| super::resolve(base, &text.text));
    let admin_socket = admin_socket(root.section("admin"), base, data_dir.as_deref());
    let metrics = metrics(root.section("metrics"));
    let storage = storage(root.section("storage"), root.section("log"));
    let pool_max = pool_max(root.section("pool"));
    let flows = flow_items(&mut root, base);
    root.finish();
    let around = Surroundings { instance: instance.as_deref().unwrap_or("x"), pool_max, base };
    let read = flows.into_iter().filter_map(|item| flow::read(Section::new(item, findings), &around));
    let flows = apart(read.collect(), findings);
    Some(Settings {
        instance: instance?,
        data_dir: data_dir?,
        admin_socket: admin_socket?,
        metrics,
        storage,
        flows,
    })
}

fn version(root: &mut Section<'_>) {
    let Some(text) = root.required("config_version", "1") else { return };
    if text.text != "1" {
        let what = format!("configuration version {} is not known", text.text);
        root.findings().add(&text.origin, what, Some("this version reads config_version: 1".to_owned()));
    }
}

fn admin_socket(mut section: Section<'_>, base: &Path, data_dir: Option<&Path>) -> Option<PathBuf> {
    let text = section.text("socket");
    let origin = text.as_ref().map_or_else(|| section.origin().clone(), |text| text.origin.clone());
    let findings = section.findings();
    section.finish();
    let socket =
        text.map(|text| super::resolve(base, &text.text)).or_else(|| Some(data_dir?.join("admin.sock")))?;
    if socket.as_os_str().len() > MAX_SOCKET_BYTES {
        let what = format!("socket path is longer than {MAX_SOCKET_BYTES} bytes");
        findings.add(&origin, what, Some("write admin: { socket: ... } with a shorter path".to_owned()));
    }
    Some(socket)
}

fn metrics(mut section: Section<'_>) -> MetricsSettings {
    let expected = "an address, write for instance 127.0.0.1:9640";
    let listen = section.parsed("listen", expected, |text| text.parse().ok());
    let per_flow = section.choice("per_flow", &[("core", true), ("off", false)]).unwrap_or(true);
    section.finish();
    MetricsSettings { listen, per_flow }
}

fn storage(mut storage: Section<'_>, mut log: Section<'_>) -> StorageSettings {
    let memory = storage.bytes("memory").unwrap_or(512 << 20);
    storage.finish();
    let expected = "a size or a share of the file system, write for instance 200GiB or 70%";
    let total = log.parsed("total_bytes", expected, |text| match text.strip_suffix('%') {
        Some(share) => share.parse().ok().filter(|share| (1..=95).contains(share)).map(LogBudget::Percent),
        None => super::units::bytes(text).map(LogBudget::Bytes),
    });
    let log_reserve_bytes = log.bytes("reserve_bytes");
    log.finish();
    StorageSettings { memory, log_total: total.unwrap_or(LogBudget::Percent(70)), log_reserve_bytes }
}

fn pool_max(mut section: Section<'_>) -> usize {
    let max = section.number("max").map_or(16, |max| max as usize);
    section.finish();
    max
}

/// Every flow section, `defaults` merged in, from `flows` and from the rows of `flows_from`.
fn flow_items(root: &mut Section<'_>, base: &Path) -> Vec<Item> {
    let findings = root.findings();
    let defaults = root.item("defaults");
    let mut items = match root.item("flows") {
        None => Vec::new(),
        Some(Item { node: Node::List(items), .. }) => items,
        Some(item) => {
            let what = format!("is {}, a list is expected", item.kind());
            findings.add(&item.origin, what, Some("begin each flow with -".to_owned()));
            Vec::new()
        }
    };
    if let Some(file) = root.text("flows_from") {
        let path = super::resolve(base, &file.text);
        items.extend(enrol::read(&path, &file.text, &file.origin, findings));
    }
    match defaults {
        None => items,
        Some(defaults) => items.into_iter().map(|item| inherit(&defaults, item)).collect(),
    }
}

/// The flow with the defaults under it. Its sections stay the flow's own, so that a key missing in both is
/// missing in the flow.
fn inherit(defaults: &Item, mut flow: Item) -> Item {
    if let Node::Table(sections) = &mut flow.node {
        for key in ["source", "dataset", "target"] {
            let path = format!("{}.{key}", flow.origin.path);
            let own = Item::new(Node::Table(BTreeMap::new()), Origin { path, ..flow.origin.clone() });
            sections.entry(key.to_owned()).or_insert(own);
        }
    }
    tree::merge(defaults, flow)
}

/// The flows, after a finding for each that another one rules out.
fn apart(flows: Vec<ReadFlow>, findings: &Findings) -> Vec<FlowSettings> {
    let mut names: HashMap<String, Origin> = HashMap::new();
    let mut slots: HashMap<(String, u16, String), (String, Origin)> = HashMap::new();
    for ReadFlow { settings, origin } in &flows {
        let name = settings.name.to_string();
        if let Some(first) = names.insert(name.clone(), origin.clone()) {
            let what = format!("flow {name} is configured twice, first at {}", first.place);
            findings.add(origin, what, Some("give it another source.id or dataset.id".to_owned()));
            continue;
        }
        let server = &settings.source.server;
        let slot = (server.host.clone(), server.port, settings.source.slot.clone());
        if let Some((other, first)) = slots.insert(slot, (name.clone(), origin.clone())) {
            let slot = &settings.source.slot;
            let what =
                format!("{name} uses slot {slot} of {}, as {other} at {} does", server.host, first.place);
            findings.add(origin, what, Some("write source: { slot: ... } for one of them".to_owned()));
        }
        not_into_itself(settings, origin, findings);
    }
    flows.into_iter().map(|flow| flow.settings).collect()
}

/// A flow whose target tables are its source tables would feed itself.
fn not_into_itself(settings: &FlowSettings, origin: &Origin, findings: &Findings) {
    let (source, target) = (&settings.source.server, &settings.target.server);
    let same_database =
        (&source.host, source.port, &source.database) == (&target.host, target.port, &target.database);
    let same_schema = match &settings.target.schema {
        None => true,
        Some(schema) => settings.source.tables.iter().any(|table| table.schema == *schema),
    };
    if same_database && same_schema {
        let what = "source and target are the same tables".to_owned();
        findings.add(
            origin,
            what,
            Some("name another database, or write target: { schema: ... }".to_owned()),
        );
    }
}
