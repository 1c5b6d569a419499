//! The file that `trellara init` writes: small, valid, and saying what to fill in.

/// A configuration for this instance name.
pub fn template(instance: &str) -> String {
    format!(
        r#"# Trellara. Check with `trellara config check`, try the servers with `trellara preflight`.
config_version: 1
instance: "{instance}"
data_dir: ./trellara-data
metrics: {{ listen: 127.0.0.1:9640 }}

# Every flow inherits these and may override them.
defaults:
  source: {{ tls: verify-full, password: {{ env: SOURCE_PASSWORD }} }}
  target:
    url: postgresql://trellara@hub.example/retail
    tls: verify-full
    password: {{ file: /run/secrets/hub }}
    schema: "{{source}}"
  dataset: {{ id: retail-sales, tables: [public.sales, public.payments] }}

# One flow per source. For many, write them into a CSV file with the header
# source.id,source.url,labels.region and name it here: flows_from: stores.csv
flows:
  - source: {{ id: store-0001, url: postgresql://trellara@store1.example/pos }}
    labels: {{ region: west }}
"#
    )
}
