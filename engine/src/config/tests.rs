#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fs;
use std::time::Duration;

use super::*;
use crate::settings::{Password, RowPolicy, TlsMode};

/// Loads `trellara.yml` with this text from a folder of its own; paths in errors are made relative to it.
fn load_text(text: &str, files: &[(&str, &str)], overrides: &Overrides) -> Result<Settings, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trellara.yml");
    fs::write(&path, text).unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let prefix = format!("{}/", folder.path().display());
    load(&path, overrides).map_err(|invalid| invalid.to_string().replace(&prefix, ""))
}

fn valid(text: &str) -> Settings {
    load_text(text, &[], &Overrides::default()).unwrap()
}

fn mistakes(text: &str) -> String {
    load_text(text, &[], &Overrides::default()).unwrap_err()
}

const FLEET: &str = r#"
config_version: 1
instance: retail-west
data_dir: ./trellara-data
metrics: { listen: 127.0.0.1:9640 }
defaults:
  source: { tls: verify-full, password: { file: "/run/secrets/{source}" } }
  dataset: { id: retail-sales, tables: [public.sales, public.sale_items] }
  target: { url: postgresql://trellara@hub/retail, password: { env: HUB_PASSWORD }, schema: "{source}" }
  on_missing_row: skip_and_record
flows:
  - source: { id: store-0001, url: postgresql://trellara@store1/pos }
    labels: { region: west }
  - source: { id: "0002", url: postgresql://trellara@store2:6432/pos, tls: require, password: { passfile: /run/passfile } }
    target: { schema: ~ }
    log: { max_bytes: 1GiB }
"#;

#[test]
fn flows_inherit_from_defaults_and_override_them() {
    let settings = valid(FLEET);
    let [first, second] = &settings.flows[..] else { panic!("two flows are configured") };
    assert_eq!(first.name.to_string(), "store-0001:retail-sales");
    assert_eq!(first.labels, [("region".to_owned(), "west".to_owned())]);
    assert_eq!(first.source.slot, "trellara_store_0001_retail_sales");
    assert_eq!(first.source.publications, ["trellara_retail-sales"]);
    assert!(first.source.create_publication);
    assert_eq!((first.source.server.host.as_str(), first.source.server.port), ("store1", 5432));
    assert_eq!(first.source.server.tls.mode, TlsMode::VerifyFull);
    assert!(matches!(&first.source.server.password, Password::File(path)
        if path.to_str() == Some("/run/secrets/store-0001")));
    assert_eq!(first.target.schema.as_deref(), Some("store-0001"));
    assert_eq!(first.target.on_missing_row, RowPolicy::Record);
    assert_eq!(first.log_max_bytes, 4 << 30);
    assert_eq!(second.name.to_string(), "0002:retail-sales");
    assert_eq!((second.source.server.port, second.source.server.tls.mode), (6432, TlsMode::Require));
    assert_eq!(second.target.schema, None);
    assert_eq!(second.log_max_bytes, 1 << 30);
    assert!(settings.data_dir.is_absolute());
    assert_eq!(settings.admin_socket, settings.data_dir.join("admin.sock"));
}

#[test]
fn a_csv_file_enrols_flows_with_dotted_keys_and_empty_cells_inherit() {
    let text = FLEET.replace("flows:\n", "flows_from: stores.csv\nflows:\n");
    let stores = "source.id,source.url,labels.region,dataset.tables\n\
                  0003,postgresql://trellara@store3/pos,east,\n\
                  # closed\n\
                  0004,postgresql://trellara@store4/pos,,public.sales public.tills\n";
    let settings = load_text(&text, &[("stores.csv", stores)], &Overrides::default()).unwrap();
    let names: Vec<String> = settings.flows.iter().map(|flow| flow.name.to_string()).collect();
    assert_eq!(names[2..], ["0003:retail-sales", "0004:retail-sales"]);
    assert_eq!(settings.flows[2].labels, [("region".to_owned(), "east".to_owned())]);
    assert_eq!(settings.flows[2].source.tables.len(), 2);
    assert_eq!(settings.flows[3].source.tables[1].name, "tills");
}

#[test]
fn the_environment_overrides_the_file_and_flags_override_both() {
    let overrides = Overrides {
        environment: [
            ("TRELLARA__METRICS__LISTEN", "127.0.0.1:1111"),
            ("TRELLARA__DEFAULTS__SOURCE__IDLE_TIMEOUT", "5s"),
            ("TRELLARA__DATA_DIR", "/from/environment"),
            ("TRELLARA_CONFIG", "none of the layers"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        flags: vec![("data_dir".to_owned(), "/from/flags".to_owned())],
    };
    let settings = load_text(FLEET, &[], &overrides).unwrap();
    assert_eq!(settings.metrics.listen, Some("127.0.0.1:1111".parse().unwrap()));
    assert_eq!(settings.flows[0].source.idle_timeout, Duration::from_secs(5));
    assert_eq!(settings.data_dir.to_str(), Some("/from/flags"));
}

#[test]
fn a_wrong_variable_is_named_as_it_is_set() {
    let variable = ("TRELLARA__METRICS__LISTEN".to_owned(), "nowhere".to_owned());
    let overrides = Overrides { environment: [variable].into(), flags: Vec::new() };
    insta::assert_snapshot!(load_text(FLEET, &[], &overrides).unwrap_err());
}

#[test]
fn every_mistake_is_reported_at_once_with_its_line_and_the_way_out() {
    insta::assert_snapshot!(mistakes(
        r#"config_version: 2
instance: Retail West
data_dir: ./data
metrics: { listen: nowhere, per_flow: full }
defaults:
  source: { tls: maybe, password: hunter2, sslcert: /c.pem }
  dataset: { id: retail, tables: [sales, public.items, public.items] }
  target: { url: postgresql://trellara:secret@hub/retail, schma: x }
  start: seed
flows:
  - source: { id: 0001, url: postgresql://trellara@store1/pos?sslmode=require }
    log: { max_bytes: 4GB }
  - source: { id: store-2, url: store2:5432, idle_timeout: 30 }
    labels: { region: "far west" }
  - dataset: retail
epochs: { every: 1h }
"#
    ));
}

#[test]
fn keys_written_twice_are_reported_with_both_lines() {
    insta::assert_snapshot!(mistakes(
        "config_version: 1\ninstance: a\ndata_dir: ./d\ninstance: b\nflows: []\ndata_dir: ./e\n"
    ));
}

#[test]
fn text_that_is_not_yaml_is_reported_with_its_line() {
    insta::assert_snapshot!(mistakes("config_version: 1\ninstance: [a\ndata_dir: }\n"));
}

#[test]
fn flows_that_cannot_stand_side_by_side_are_reported() {
    insta::assert_snapshot!(mistakes(
        r#"config_version: 1
instance: a
data_dir: ./d
defaults:
  dataset: { id: d, tables: [public.t] }
  target: { url: postgresql://u@hub/h }
flows:
  - source: { id: one, url: postgresql://u@s/one }
  - source: { id: one, url: postgresql://u@s/two }
  - source: { id: a-b, url: postgresql://u@s/three }
  - source: { id: a_b, url: postgresql://u@s/four }
  - source: { id: loop, url: postgresql://u@hub/h }
"#
    ));
}

#[test]
fn mistakes_in_a_csv_file_carry_its_lines() {
    let text = FLEET.replace("flows:\n", "flows_from: stores.csv\nflows:\n");
    let stores = "source.id,source.url,colour\n\
                  UPPER,postgresql://trellara@store3/pos,red\n\
                  0004,postgresql://trellara@store4/pos\n\
                  0005,mysql://store5/pos,\n";
    insta::assert_snapshot!(load_text(&text, &[("stores.csv", stores)], &Overrides::default()).unwrap_err());
}

#[test]
fn a_missing_file_says_so() {
    let text = FLEET.replace("flows:\n", "flows_from: stores.csv\nflows:\n");
    insta::assert_snapshot!(load_text(&text, &[], &Overrides::default()).unwrap_err());
}

#[test]
fn ids_that_yaml_reads_as_numbers_are_refused_and_quoted_ones_are_not() {
    for (id, fits) in
        [("0001", false), ("7", false), ("1e5", false), ("on", false), ("\"0001\"", true), ("s1", true)]
    {
        let text = FLEET.replace("id: store-0001", &format!("id: {id}"));
        let result = load_text(&text, &[], &Overrides::default());
        assert_eq!(result.is_ok(), fits, "{id}: {:?}", result.err());
    }
}

#[test]
fn the_shown_configuration_is_complete_and_reads_back_the_same() {
    let settings = valid(FLEET);
    let shown = show(&settings);
    insta::assert_snapshot!(shown.replace(settings.data_dir.parent().unwrap().to_str().unwrap(), "/folder"));
    assert_eq!(show(&valid(&shown)), shown);
}

#[test]
fn the_file_that_init_writes_is_valid() {
    let settings = valid(&template("retail-west"));
    assert_eq!(checked(&settings), "configuration is valid: 1 flows, 1 source servers, 1 target servers");
}

#[test]
fn the_specification_digest_ignores_hosts_and_notices_names() {
    let digest = |text: &str| valid(text).flows[0].spec_digest.clone();
    let original = digest(FLEET);
    assert_eq!(digest(&FLEET.replace("@store1/", "@store1.example/")), original);
    assert_ne!(digest(&FLEET.replace("public.sale_items", "public.tills")), original);
    assert_ne!(digest(&FLEET.replace("@hub/retail", "@hub/other")), original);
}

mod reload {
    use super::*;

    fn between(old: &str, new: &str) -> Diff {
        diff(&valid(old), &valid(new))
    }

    #[test]
    fn limits_labels_and_hosts_change_live_and_names_are_refused_with_the_command() {
        let new = FLEET
            .replace("@store1/pos", "@store1.example/pos")
            .replace("region: west", "region: east")
            .replace("public.sale_items]", "public.sale_items, public.tills]");
        let report = between(FLEET, &new).report;
        insta::assert_json_snapshot!(report.changed);
        assert!(report.is_refused());
    }

    #[test]
    fn changed_limits_are_shown_as_they_are_written() {
        let new = FLEET.replace("defaults:\n", "defaults:\n  apply: { group_transactions: 100 }\n");
        let report = between(FLEET, &new).report;
        let change = &report.changed[0].fields[0];
        assert_eq!(change.field, "apply");
        assert_eq!(change.to, "{ group_transactions: 100, group_changes: 20000, group_bytes: 8MiB }");
    }

    #[test]
    fn the_same_configuration_is_no_change() {
        let report = between(FLEET, FLEET).report;
        assert!(report.needs_restart.iter().all(|change| change.field != "instance"));
        assert_eq!((report.unchanged, report.changed.len(), report.added.len()), (2, 0, 0));
    }

    #[test]
    fn flows_that_left_are_detached_and_many_of_them_want_yes() {
        let flows = |count: usize| {
            let row = |n| format!("  - source: {{ id: s{n}, url: postgresql://t@s{n}/pos }}\n");
            let (head, _) = FLEET.split_once("flows:\n").unwrap();
            format!("{head}flows:\n{}", (0..count).map(row).collect::<String>())
        };
        let few = between(&flows(100), &flows(97));
        assert_eq!((few.detached.len(), few.report.needs_yes), (3, false));
        assert!(between(&flows(200), &flows(194)).report.needs_yes, "more than five");
        assert!(between(&flows(10), &flows(9)).report.needs_yes, "more than 5 %");
    }
}
