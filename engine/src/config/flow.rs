//! One flow: its section, merged with `defaults`, as settings.

use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use trellara_storage::FlowName;

use super::section::Section;
use super::tree::Origin;
use super::{ident, server};
use crate::settings::{
    FlowSettings, GroupLimits, RowPolicy, SourceSettings, TableName, TargetSettings, TriggerPolicy,
};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);
/// Renewed every 10 s; another engine waits this long before it claims (I11).
const LEASE: Duration = Duration::from_secs(30);
const GROUP: GroupLimits = GroupLimits { transactions: 500, changes: 20_000, bytes: 8 << 20 };

/// What flows take from the file as a whole.
pub(super) struct Surroundings<'s> {
    pub(super) instance: &'s str,
    pub(super) pool_max: usize,
    /// Relative paths start here: the folder of the configuration file.
    pub(super) base: &'s Path,
}

/// A flow with the places that collisions with other flows are reported at.
pub(super) struct ReadFlow {
    pub(super) settings: FlowSettings,
    pub(super) origin: Origin,
}

/// The sections of one flow while they are being read.
struct Sections<'f> {
    flow: Section<'f>,
    source: Section<'f>,
    dataset: Section<'f>,
    target: Section<'f>,
}

/// The flow; none when it holds a mistake that leaves nothing to go on with.
pub(super) fn read(mut flow: Section<'_>, around: &Surroundings<'_>) -> Option<ReadFlow> {
    let source = flow.section("source");
    let dataset = flow.section("dataset");
    let target = flow.section("target");
    let mut sections = Sections { flow, source, dataset, target };
    let (name, origin) = sections.name();
    // A flow without a valid name is read all the same, so that its other mistakes show.
    let reading = name.clone().or_else(|| FlowName::new("x", "x").ok())?;
    let source = sections.source(&reading, around.base);
    let target = sections.target(&reading, around);
    let settings = sections.rest(around.instance, name, source, target)?;
    Some(ReadFlow { settings, origin })
}

impl Sections<'_> {
    /// The name, and where it is written.
    fn name(&mut self) -> (Option<FlowName>, Origin) {
        let findings = self.flow.findings();
        let source = self.source.required("id", "store-0001");
        let dataset = self.dataset.required("id", "retail-sales");
        let origin = source.as_ref().map_or_else(|| self.flow.origin().clone(), |id| id.origin.clone());
        let source = source.and_then(|text| ident::id(text, findings));
        let dataset = dataset.and_then(|text| ident::id(text, findings));
        let name = source.zip(dataset).and_then(|(source, dataset)| FlowName::new(&source, &dataset).ok());
        (name, origin)
    }

    fn source(&mut self, name: &FlowName, base: &Path) -> Option<SourceSettings> {
        let server = server::read(&mut self.source, name, base);
        let slot = self.slot(name);
        let (publications, create_publication) = self.publications(name);
        let tables = self.tables();
        let mut heartbeat = self.flow.section("heartbeat");
        let heartbeat_interval = heartbeat.duration("interval", 30 * SECOND);
        heartbeat.finish();
        let source = &mut self.source;
        Some(SourceSettings {
            slot,
            publications,
            create_publication,
            tables,
            streaming: source.switch("streaming", true),
            binary: source.switch("binary", false),
            accept_synchronous: source.switch("accept_synchronous", false),
            idle_timeout: source.duration("idle_timeout", 60 * SECOND),
            wal_sender_timeout: source.duration("wal_sender_timeout", 30 * SECOND),
            heartbeat_interval,
            boundary_wait: source.duration("boundary_wait", 60 * SECOND),
            server: server?,
        })
    }

    fn slot(&mut self, name: &FlowName) -> String {
        let Some(text) = self.source.text("slot") else { return ident::default_slot(name) };
        let slot = ident::expand(&text, name, self.source.findings());
        if !ident::is_slot_name(&slot) {
            let instead = Some("write 1 to 63 of a-z, 0-9 and _".to_owned());
            self.source.findings().add(&text.origin, format!("{slot:?} is not a slot name"), instead);
        }
        slot
    }

    /// Named ones are never made by the engine: who names them owns them.
    fn publications(&mut self, name: &FlowName) -> (Vec<String>, bool) {
        let Some(texts) = self.source.texts("publications") else {
            return (vec![ident::default_publication(name)], true);
        };
        if texts.is_empty() {
            let instead = Some("name one, or leave the key out".to_owned());
            self.source.findings().add(self.source.origin(), "publications is empty", instead);
        }
        let findings = self.source.findings();
        (texts.iter().map(|text| ident::expand(text, name, findings)).collect(), false)
    }

    fn tables(&mut self) -> Vec<TableName> {
        let findings = self.dataset.findings();
        let texts = self.dataset.texts("tables").unwrap_or_default();
        if texts.is_empty() && self.dataset.is_sound() {
            let instead = Some("write tables: [public.sales, public.payments]".to_owned());
            findings.add(self.dataset.origin(), "names no tables", instead);
        }
        let mut tables: Vec<TableName> = Vec::new();
        for text in &texts {
            let Some(table) = ident::table(text, findings) else { continue };
            if tables.contains(&table) {
                findings.add(&text.origin, format!("table {} is named twice", text.text), None);
            } else {
                tables.push(table);
            }
        }
        tables
    }

    fn target(&mut self, name: &FlowName, around: &Surroundings<'_>) -> Option<TargetSettings> {
        let target = &mut self.target;
        let server = server::read(target, name, around.base);
        let schema = target.text("schema").map(|text| ident::expand(&text, name, target.findings()));
        let triggers = [("skip", TriggerPolicy::Skip), ("enforce", TriggerPolicy::Enforce)];
        let missing = [("quarantine", RowPolicy::Quarantine), ("skip_and_record", RowPolicy::Record)];
        let duplicate = [("quarantine", RowPolicy::Quarantine), ("overwrite_and_record", RowPolicy::Record)];
        let unlisted = [("ignore", false), ("quarantine", true)];
        Some(TargetSettings {
            schema,
            triggers_and_foreign_keys: target
                .choice("triggers_and_foreign_keys", &triggers)
                .unwrap_or(TriggerPolicy::Skip),
            synchronous_commit: target.switch("synchronous_commit", true),
            lock_timeout: target.duration("lock_timeout", 30 * SECOND),
            lease: LEASE,
            pool_max: around.pool_max,
            on_missing_row: self.flow.choice("on_missing_row", &missing).unwrap_or(RowPolicy::Quarantine),
            on_duplicate: self.flow.choice("on_duplicate", &duplicate).unwrap_or(RowPolicy::Quarantine),
            quarantine_unlisted_tables: self.dataset.choice("unlisted_tables", &unlisted).unwrap_or(false),
            server: server?,
        })
    }

    /// Everything that belongs to neither side; what was not asked for by now is unknown.
    fn rest(
        mut self,
        instance: &str,
        name: Option<FlowName>,
        source: Option<SourceSettings>,
        target: Option<TargetSettings>,
    ) -> Option<FlowSettings> {
        let labels = labels(self.flow.section("labels"));
        let from_now = start(&mut self.flow);
        let group = group(self.flow.section("apply"));
        let mut log = self.flow.section("log");
        let log_max_bytes = log.bytes("max_bytes").unwrap_or(4 << 30);
        let log_retain_applied = log.duration("retain_applied", DAY);
        let log_retain_applied_bytes = log.bytes("retain_applied_bytes").unwrap_or(1 << 30);
        log.finish();
        let mut dedup = self.flow.section("dedup");
        let dedup_retain = dedup.duration("retain", 7 * DAY);
        dedup.finish();
        for section in [self.source, self.dataset, self.target, self.flow] {
            section.finish();
        }
        let (source, target) = (source?, target?);
        let spec_digest = spec_digest(&source, &target);
        Some(FlowSettings {
            name: name?,
            instance: instance.to_owned(),
            labels,
            source,
            target,
            from_now,
            group,
            log_max_bytes,
            log_retain_applied,
            log_retain_applied_bytes,
            dedup_retain,
            spec_digest,
        })
    }
}

fn labels(section: Section<'_>) -> Vec<(String, String)> {
    let findings = section.findings();
    let fits = |text: &str| {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        (1..=63).contains(&text.len()) && text.bytes().all(word)
    };
    let mut labels = Vec::new();
    for (name, value) in section.entries() {
        if fits(&name) && fits(&value.text) {
            labels.push((name, value.text));
        } else {
            let instead = Some("write 1 to 63 letters, digits, -, _ and . on both sides".to_owned());
            findings.add(&value.origin, format!("{name}={} is not a label", value.text), instead);
        }
    }
    labels
}

/// True for `from_now`. Nothing else can be asked for: without it the tables must be empty at the source.
fn start(section: &mut Section<'_>) -> bool {
    let Some(text) = section.text("start") else { return false };
    if text.text != "from_now" {
        let instead = "leave it out (the tables must then be empty at the source), or write from_now";
        section.findings().add(
            &text.origin,
            format!("{:?} is not a start that this version has", text.text),
            Some(instead.to_owned()),
        );
    }
    true
}

fn group(mut section: Section<'_>) -> GroupLimits {
    let group = GroupLimits {
        transactions: section.number("group_transactions").map_or(GROUP.transactions, |n| n as usize),
        changes: section.number("group_changes").map_or(GROUP.changes, u64::from),
        bytes: section.bytes("group_bytes").filter(|bytes| *bytes > 0).unwrap_or(GROUP.bytes),
    };
    section.finish();
    group
}

/// Over everything that may not change while the flow lives: names and content, not hosts or roles.
fn spec_digest(source: &SourceSettings, target: &TargetSettings) -> String {
    let mut tables: Vec<String> =
        source.tables.iter().map(|table| format!("{}\0{}", table.schema, table.name)).collect();
    tables.sort();
    let parts = [
        source.slot.clone(),
        source.publications.join("\0"),
        source.server.database.clone(),
        tables.join("\0"),
        target.server.database.clone(),
        target.schema.clone().unwrap_or_default(),
    ];
    Sha256::digest(parts.join("\n").as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
