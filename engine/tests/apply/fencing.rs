//! Two engines on one flow, lost answers and frozen backends: one effect (I4, I11).

use trellara_actors::failure::Class;
use trellara_actors::ports::{ApplyOutcome, Applying, Claim, Claimed, TargetSession, Token};
use trellara_engine::apply::checkpoint::{self, Claimant, Held};
use trellara_storage::InstanceId;
use trellara_storage::records::Outcome;

use super::stage::{Stage, claim_of};

fn token_of(claimed: Claimed) -> Token {
    let Claimed::Ours(checkpoint) = claimed else { panic!("{claimed:?}") };
    checkpoint.token
}

#[tokio::test]
async fn i11_a_live_lease_holds_off_another_engine_until_it_takes_over() {
    let mut stage = Stage::new("CREATE TABLE t(k int PRIMARY KEY)").await;
    let mut rival = stage.rival().await;
    let Claimed::Held(held) = rival.claim(&claim_of(2)).await.unwrap() else { panic!("the lease is live") };
    assert!(held.lease_live);
    assert_eq!(held.holder, "engine 1");
    let theirs = token_of(rival.claim(&Claim { take_over: true, ..claim_of(2) }).await.unwrap());
    assert!(theirs.generation > stage.token.generation);

    stage.run("INSERT INTO t VALUES (1)").await;
    let transactions = stage.received().await;
    let group = stage.group(&transactions);
    let ApplyOutcome::NotThere(Some(found)) = stage.apply(&group, Applying::SetBased).await else {
        panic!("the token is not ours any more")
    };
    assert_eq!(found.token, theirs);
    assert!(stage.at_target("SELECT * FROM t").await.is_empty());
}

#[tokio::test]
async fn i11_a_lease_that_ran_out_is_claimed_and_the_same_instance_claims_again_at_once() {
    let mut stage = Stage::new("CREATE TABLE t(k int PRIMARY KEY)").await;
    let again = token_of(stage.session().claim(&claim_of(1)).await.unwrap());
    assert_eq!(again.generation, stage.token.generation + 1);
    stage
        .target
        .batch_execute("UPDATE trellara.checkpoint SET lease_until = now() - interval '1 s'")
        .await
        .unwrap();
    let theirs = token_of(stage.rival().await.claim(&claim_of(2)).await.unwrap());
    assert_eq!(theirs.instance, InstanceId::new([2; 16]));
}

#[tokio::test]
async fn i8_a_missing_row_is_missing_unless_it_is_the_first_claim() {
    let mut stage = Stage::new("CREATE TABLE t(k int PRIMARY KEY)").await;
    stage.target.batch_execute("DELETE FROM trellara.checkpoint").await.unwrap();
    let later = Claim { initial: None, ..claim_of(1) };
    assert_eq!(stage.session().claim(&later).await.unwrap(), Claimed::Missing);
    stage.run("INSERT INTO t VALUES (1)").await;
    let transactions = stage.received().await;
    let group = stage.group(&transactions);
    assert!(matches!(stage.apply(&group, Applying::SetBased).await, ApplyOutcome::NotThere(None)));
}

#[tokio::test]
async fn i4_a_group_that_was_applied_already_has_no_second_effect() {
    let mut stage = Stage::new("CREATE TABLE nokey(v int)").await;
    stage.run("INSERT INTO nokey VALUES (1)").await;
    let transactions = stage.received().await;
    let group = stage.group(&transactions);
    assert!(matches!(stage.apply(&group, Applying::SetBased).await, ApplyOutcome::Applied));
    let ApplyOutcome::NotThere(Some(found)) = stage.apply(&group, Applying::SetBased).await else {
        panic!("the position has moved")
    };
    assert_eq!(found.applied, group.to);
    assert_eq!(found.token, stage.token);
    assert_eq!(stage.at_target("SELECT * FROM nokey").await, ["(1)"]);
}

/// A backend that hangs between its statements and COMMIT, while the flow goes on over another one.
#[tokio::test]
async fn i4_a_frozen_backend_and_its_successor_have_one_effect_on_a_keyless_table() {
    let mut stage = Stage::with("CREATE TABLE nokey(v int)", "", |settings| {
        settings.target.lock_timeout = std::time::Duration::from_millis(300);
    })
    .await;
    stage.run("INSERT INTO nokey VALUES (1)").await;
    let transactions = stage.received().await;
    let group = stage.group(&transactions);
    // The frozen one has done everything but COMMIT.
    let (from, to) = (group.from, group.to);
    stage
        .target
        .batch_execute(&format!(
            "BEGIN; UPDATE trellara.checkpoint SET applied_lsn = '{}', applied_position = '{}' \
             WHERE generation = {} AND applied_lsn = '{}'; INSERT INTO nokey VALUES (1)",
            to.commit_lsn, to.position, stage.token.generation, from.commit_lsn
        ))
        .await
        .unwrap();
    // The successor waits for the row and gives up.
    let waiting = stage.apply(&group, Applying::SetBased).await;
    assert!(matches!(waiting, ApplyOutcome::Failed { member: None, .. }), "{waiting:?}");
    stage.target.batch_execute("COMMIT").await.unwrap();
    let ApplyOutcome::NotThere(Some(found)) = stage.apply(&group, Applying::SetBased).await else {
        panic!("the frozen COMMIT has arrived")
    };
    assert_eq!(found.applied, group.to);
    assert_eq!(stage.at_target("SELECT * FROM nokey").await, ["(1)"]);
}

#[tokio::test]
async fn a_terminated_session_is_a_lost_connection_and_the_next_one_goes_on() {
    let mut stage = Stage::new("CREATE TABLE t(k int PRIMARY KEY)").await;
    stage.run("INSERT INTO t VALUES (1)").await;
    stage
        .target
        .batch_execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
             WHERE application_name = 'trellara_test' AND datname = current_database()",
        )
        .await
        .unwrap();
    let transactions = stage.received().await;
    let group = stage.group(&transactions);
    // The end of the session may be noticed by the next statement only.
    let mut outcome = stage.apply(&group, Applying::SetBased).await;
    if let ApplyOutcome::Failed { member: None, failure } = &outcome {
        assert_eq!(failure.class, Class::Transient, "{failure:?}");
        outcome = stage.apply(&group, Applying::SetBased).await;
    }
    assert!(matches!(outcome, ApplyOutcome::Applied), "{outcome:?}");
    stage.assert_equal("SELECT * FROM t").await;
}

#[tokio::test]
async fn leases_of_several_flows_are_renewed_in_one_statement_and_only_by_their_holder() {
    let stage = Stage::new("CREATE TABLE t(k int PRIMARY KEY)").await;
    let (client, instance) = (&stage.target, stage.token.instance);
    let held = |by| {
        let lease = std::time::Duration::from_secs(3600);
        [Held { flow: stage.settings.name.clone(), by, lease }]
    };
    let by_token = held(Claimant::Token(stage.token));
    assert_eq!(checkpoint::renew(client, instance, &by_token).await.unwrap(), 1);
    assert_eq!(
        stage.at_target("SELECT lease_until > now() + interval '50 min' FROM trellara.checkpoint").await,
        ["(t)"]
    );
    assert_eq!(checkpoint::renew(client, instance, &held(Claimant::AnyBoot)).await.unwrap(), 1);
    let stale = Token { generation: stage.token.generation + 5, ..stage.token };
    assert_eq!(checkpoint::renew(client, instance, &held(Claimant::Token(stale))).await.unwrap(), 0);
    let other = InstanceId::new([2; 16]);
    assert_eq!(checkpoint::renew(client, other, &held(Claimant::AnyBoot)).await.unwrap(), 0);
}

/// A long apply transaction holds its row's lock; the other flows' leases must not run out meanwhile.
#[tokio::test]
async fn i11_a_renewal_does_not_wait_for_a_row_that_is_being_applied_to() {
    let stage = Stage::new("CREATE TABLE t(k int PRIMARY KEY)").await;
    let applying = crate::cluster::Cluster::shared().client(&stage.settings.target.server.database).await;
    applying.batch_execute("BEGIN; UPDATE trellara.checkpoint SET updated = now()").await.unwrap();
    let by = Claimant::Token(stage.token);
    let lease = std::time::Duration::from_secs(3600);
    let held = [Held { flow: stage.settings.name.clone(), by, lease }];
    assert_eq!(checkpoint::renew(&stage.target, stage.token.instance, &held).await.unwrap(), 0);
    applying.batch_execute("COMMIT").await.unwrap();
    assert_eq!(checkpoint::renew(&stage.target, stage.token.instance, &held).await.unwrap(), 1);
}

/// The server ends the session inside COMMIT: nobody can tell from the answer whether it took place.
#[tokio::test]
async fn i4_a_commit_without_an_answer_is_in_doubt_and_the_checkpoint_tells() {
    let mut stage = Stage::new("CREATE TABLE nokey(v int)").await;
    let dying = "CREATE FUNCTION trellara.die() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(10); RETURN NULL; END'; \
        CREATE CONSTRAINT TRIGGER die AFTER UPDATE ON trellara.checkpoint DEFERRABLE INITIALLY DEFERRED \
        FOR EACH ROW EXECUTE FUNCTION trellara.die(); ALTER TABLE trellara.checkpoint ENABLE ALWAYS TRIGGER die";
    stage.target.batch_execute(dying).await.unwrap();
    stage.run("INSERT INTO nokey VALUES (1)").await;
    let transactions = stage.received().await;
    let group = stage.group(&transactions);
    let outcome = stage.apply(&group, Applying::SetBased).await;
    assert!(matches!(outcome, ApplyOutcome::InDoubt(_)), "{outcome:?}");
    let found = stage.session().checkpoint().await.unwrap().unwrap();
    assert_eq!(found.applied, group.from);
    stage.target.batch_execute("DROP TRIGGER die ON trellara.checkpoint").await.unwrap();
    assert!(matches!(stage.apply(&group, Applying::SetBased).await, ApplyOutcome::Applied));
    assert_eq!(stage.at_target("SELECT * FROM nokey").await, ["(1)"]);
}

#[tokio::test]
async fn i3_a_discarded_transaction_moves_the_checkpoint_and_leaves_its_outcome() {
    let mut stage = Stage::new("CREATE TABLE t(k int PRIMARY KEY)").await;
    stage.run("INSERT INTO t VALUES (1)").await;
    stage.run("INSERT INTO t VALUES (2)").await;
    let transactions = stage.received().await;
    let mut group = stage.group(&transactions);
    group.members[0].instead = Some(Outcome::Discarded);
    assert!(matches!(stage.apply(&group, Applying::SetBased).await, ApplyOutcome::Applied));
    assert_eq!(stage.at_target("SELECT * FROM t").await, ["(2)"]);
    let digest = transactions[0].digest();
    assert_eq!(
        stage.at_target("SELECT outcome, change, digest FROM trellara.transaction_outcomes").await,
        [format!("(discarded,0,{digest})")]
    );
}
