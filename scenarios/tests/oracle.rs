//! Every oracle fires at the defect that it is there for.

use std::time::Duration;

use trellara_scenarios::cluster::Cluster;
use trellara_scenarios::fleet::{RETAIL, Store};
use trellara_scenarios::oracle::{self, Difference};
use trellara_scenarios::sandbox::Sandbox;
use trellara_scenarios::workload::Workload;
use trellara_scenarios::{session, wait};

/// One database that is source and, in a schema of its own, target: what a faultless engine would leave.
struct Copied {
    store: Store,
    _cluster: Cluster,
    _sandbox: Sandbox,
}

impl Copied {
    async fn create() -> Self {
        let sandbox = Sandbox::create().unwrap();
        let cluster = Cluster::create(&sandbox, "one").await.unwrap();
        let database = cluster.database("postgres");
        let store = Store {
            id: "store-0001".to_owned(),
            cluster: 0,
            database: "postgres".to_owned(),
            source: database.clone(),
            target: database,
            schema: "\"store-0001\"".to_owned(),
        };
        session::script(&store.source, RETAIL).await.unwrap();
        let schema = format!("CREATE SCHEMA {0}; SET search_path = {0};\n{RETAIL}", store.schema);
        session::script(&store.target, &schema).await.unwrap();
        let copied = Self { store, _cluster: cluster, _sandbox: sandbox };
        copied.load().await;
        copied
    }

    async fn load(&self) {
        let load = Workload::start(std::slice::from_ref(&self.store), 5, 1_000.0);
        let client = session::open(&self.store.source).await.unwrap();
        wait::until("enough sales", Duration::from_secs(60), async || {
            let row = client.query_one("SELECT count(*) FROM sales", &[]).await?;
            Ok((row.get::<_, i64>(0) > 300).then_some(()))
        })
        .await
        .unwrap();
        assert!(load.stop().await.unwrap() > 300);
        for table in ["sales", "sale_items", "payments"] {
            self.plant(&format!("INSERT INTO {{}}.{table} SELECT * FROM public.{table}")).await;
        }
    }

    /// A statement for the target; `{}` stands for its schema.
    async fn plant(&self, sql: &str) {
        session::script(&self.store.target, &sql.replace("{}", &self.store.schema)).await.unwrap();
    }

    async fn differences(&self) -> Vec<Difference> {
        oracle::contents(&self.store).await.unwrap().1
    }

    /// The only difference: its table, how many rows are missing and how many are there beyond the source.
    async fn only(&self) -> (String, usize, usize) {
        let differences = self.differences().await;
        assert_eq!(differences.len(), 1, "{differences:?}");
        let first = &differences[0];
        (first.table.clone(), first.missing.len(), first.extra.len())
    }
}

#[tokio::test]
async fn equal_contents_are_found_equal_and_a_planted_loss_is_caught() {
    let copied = Copied::create().await;
    let (rows, differences) = oracle::contents(&copied.store).await.unwrap();
    assert!(rows > 1_000, "{rows}");
    assert_eq!(differences, []);
    assert!(oracle::counted_twice(&copied.store).await.unwrap().is_empty());

    copied
        .plant(
            "DELETE FROM {}.sale_items WHERE (sale_id, line) = (SELECT min(sale_id), 1 FROM {}.sale_items)",
        )
        .await;
    assert_eq!(copied.only().await, ("sale_items".to_owned(), 1, 0));
}

#[tokio::test]
async fn a_transaction_that_took_effect_twice_is_caught_by_both_oracles() {
    let copied = Copied::create().await;
    copied.plant("INSERT INTO {}.payments SELECT * FROM {}.payments WHERE counter = (SELECT max(counter) FROM {}.payments)").await;
    assert_eq!(copied.only().await, ("payments".to_owned(), 0, 1));
    assert_eq!(oracle::counted_twice(&copied.store).await.unwrap().len(), 1);
}

#[tokio::test]
async fn two_updates_applied_in_the_wrong_order_and_a_wrong_value_are_caught() {
    let copied = Copied::create().await;
    let touched = "(SELECT min(id) FROM public.sales)";
    let first = format!("SET status = 'first', revision = revision + 1 WHERE id = {touched}");
    let second = format!("SET status = 'second', revision = revision + 1 WHERE id = {touched}");
    for step in [&first, &second] {
        copied.plant(&format!("UPDATE public.sales {step}")).await;
    }
    for step in [&second, &first] {
        copied.plant(&format!("UPDATE {{}}.sales {step}")).await;
    }
    assert_eq!(copied.only().await, ("sales".to_owned(), 1, 1));
    copied.plant(&format!("UPDATE {{}}.sales SET status = 'second' WHERE id = {touched}")).await;
    assert_eq!(copied.differences().await, []);

    copied
        .plant(&format!("UPDATE {{}}.sales SET note = coalesce(note, '') || ' ' WHERE id = {touched}"))
        .await;
    assert_eq!(copied.only().await, ("sales".to_owned(), 1, 1));
}

#[tokio::test]
async fn an_empty_text_and_no_text_are_told_apart_and_a_row_that_never_arrives_is_named() {
    let copied = Copied::create().await;
    copied
        .plant(
            "UPDATE {}.sales SET note = '' WHERE id = (SELECT min(id) FROM public.sales WHERE note IS NULL)",
        )
        .await;
    assert_eq!(copied.only().await, ("sales".to_owned(), 1, 1));

    let lost = oracle::flow_through(&copied.store, Duration::from_millis(200)).await.unwrap_err();
    assert!(lost.to_string().contains("store-0001"), "{lost}");
}
