//! Whose turn it is: a fair queue over flows, pure.
//!
//! Each round takes from every waiting flow in turn, at most `FLOW_BYTES` from one and `ROUND_BYTES` in
//! all, and keeps each flow's own order. 400 bytes that share a synced batch with 1 MiB wait 2 ms, with
//! 16 MiB 58 ms, with 64 MiB 280 ms: hence the caps.

use std::collections::{BTreeMap, VecDeque};

use crate::FlowId;

/// Bytes of one flow in one round.
pub const FLOW_BYTES: usize = 256 * 1024;
/// Bytes of one round.
pub const ROUND_BYTES: usize = 1024 * 1024;

/// Items that wait, by flow.
#[derive(Debug)]
pub struct Turns<T> {
    queues: BTreeMap<FlowId, VecDeque<(usize, T)>>,
    /// Flows with waiting items, the next one in front.
    ring: VecDeque<FlowId>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { queues: BTreeMap::new(), ring: VecDeque::new() }
    }
}

impl<T> Turns<T> {
    pub fn push(&mut self, flow: FlowId, bytes: usize, item: T) {
        let queue = self.queues.entry(flow).or_insert_with(|| {
            self.ring.push_back(flow);
            VecDeque::new()
        });
        queue.push_back((bytes, item));
    }

    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// The items of one round, empty only when nothing waits. An item larger than a cap goes when it is
    /// first: larger than a flow's share as that flow's only one, larger than a round alone.
    pub fn round(&mut self) -> Vec<T> {
        let mut round = Vec::new();
        let mut room = ROUND_BYTES;
        for _ in 0..self.ring.len() {
            let Some(flow) = self.ring.pop_front() else { break };
            let queue = self.queues.get_mut(&flow).expect("a flow in the ring has a queue");
            let fits = take_share(queue, &mut room, &mut round);
            if queue.is_empty() {
                self.queues.remove(&flow);
            } else if fits {
                self.ring.push_back(flow);
            } else {
                // The round is full before this flow had its share: it is first next time.
                self.ring.push_front(flow);
                break;
            }
        }
        round
    }
}

/// Moves a flow's share into the round. False when the round had no room for what the flow could still send.
fn take_share<T>(queue: &mut VecDeque<(usize, T)>, room: &mut usize, round: &mut Vec<T>) -> bool {
    let mut share = FLOW_BYTES;
    let mut first = true;
    while let Some(&(bytes, _)) = queue.front() {
        if bytes > share && !first {
            return true;
        }
        if bytes > *room && !round.is_empty() {
            return false;
        }
        round.extend(queue.pop_front().map(|(_, item)| item));
        share = share.saturating_sub(bytes);
        *room = room.saturating_sub(bytes);
        first = false;
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flow(n: u32) -> FlowId {
        FlowId::new(n)
    }

    #[test]
    fn a_small_batch_waits_for_at_most_one_share_of_each_other_flow() {
        let mut turns = Turns::default();
        for n in 0..4000 {
            turns.push(flow(1), FLOW_BYTES, (1, n));
        }
        turns.round();
        for small in 2..=51 {
            turns.push(flow(small), 400, (small, 0));
        }
        let round = turns.round();
        assert_eq!(round.iter().filter(|(flow, _)| *flow == 1).count(), 1, "one share of the flood");
        assert_eq!(round.iter().filter(|(flow, _)| *flow != 1).count(), 50, "and everybody else");
    }

    #[test]
    fn an_item_above_every_cap_goes_alone_and_nothing_starves_behind_it() {
        let mut turns = Turns::default();
        turns.push(flow(1), 10, "before");
        turns.push(flow(2), ROUND_BYTES * 5, "huge");
        turns.push(flow(3), 10, "after");
        assert_eq!(turns.round(), ["before"]);
        assert_eq!(turns.round(), ["huge"]);
        assert_eq!(turns.round(), ["after"]);
        assert!(turns.is_empty());
    }

    /// p99 latency in microseconds of 199 flows that commit 400 bytes each again and again, when a write
    /// costs one millisecond and two microseconds a KiB. `flood` bytes of another flow wait all the time.
    fn p99_of_single_rows(flood: usize) -> usize {
        let mut turns = Turns::default();
        let mut latencies = Vec::new();
        let mut now = 0;
        for single in 2..=200 {
            turns.push(flow(single), 400, (single, 0, 400));
        }
        let mut flooding = 0;
        while latencies.len() < 20_000 {
            while flooding < flood {
                turns.push(flow(1), FLOW_BYTES, (1, now, FLOW_BYTES));
                flooding += FLOW_BYTES;
            }
            let round = turns.round();
            now += 1000 + 2 * round.iter().map(|(_, _, bytes)| bytes / 1024).sum::<usize>();
            for (id, since, bytes) in round {
                if id == 1 {
                    flooding -= bytes;
                } else {
                    latencies.push(now - since);
                    turns.push(flow(id), 400, (id, now, 400));
                }
            }
        }
        latencies.sort();
        latencies[latencies.len() * 99 / 100]
    }

    #[test]
    fn single_rows_take_at_most_twice_as_long_while_one_flow_floods() {
        let (calm, flooded) = (p99_of_single_rows(0), p99_of_single_rows(4 * 1024 * 1024));
        assert!(flooded > calm, "the flood costs something: {flooded} against {calm}");
        assert!(flooded <= 2 * calm, "{flooded} against {calm}");
    }

    proptest! {
        #[test]
        fn every_round_keeps_the_caps_the_order_and_loses_nothing(
            items in prop::collection::vec((0u32..6, 1usize..600_000), 0..200),
        ) {
            let mut turns = Turns::default();
            for (n, (id, bytes)) in items.iter().enumerate() {
                turns.push(flow(*id), *bytes, (n, *id, *bytes));
            }
            let mut taken: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
            while !turns.is_empty() {
                let round = turns.round();
                prop_assert!(!round.is_empty());
                let total: usize = round.iter().map(|(_, _, bytes)| bytes).sum();
                prop_assert!(total <= ROUND_BYTES || round.len() == 1);
                for id in 0..6 {
                    let of_flow: Vec<_> = round.iter().filter(|(_, flow, _)| *flow == id).collect();
                    let bytes: usize = of_flow.iter().map(|(_, _, bytes)| bytes).sum();
                    prop_assert!(bytes <= FLOW_BYTES || of_flow.len() == 1);
                }
                for (n, id, _) in round {
                    taken.entry(id).or_default().push(n);
                }
            }
            prop_assert_eq!(taken.values().map(Vec::len).sum::<usize>(), items.len());
            for order in taken.values() {
                prop_assert!(order.is_sorted());
            }
        }

        #[test]
        fn bytes_ahead_of_a_small_batch_are_bounded_by_the_number_of_flows(
            others in 1u32..20, queued in 1usize..60, bytes in 1usize..FLOW_BYTES,
        ) {
            let mut turns = Turns::default();
            for other in 1..=others {
                for _ in 0..queued {
                    turns.push(flow(other), bytes, (other, bytes));
                }
            }
            turns.push(flow(100), 400, (100, 400));
            let mut ahead = 0;
            loop {
                let round = turns.round();
                let mine = round.iter().any(|(flow, _)| *flow == 100);
                ahead += round.iter().map(|(_, bytes)| bytes).sum::<usize>();
                if mine {
                    break;
                }
            }
            prop_assert!(ahead <= (others as usize) * FLOW_BYTES + ROUND_BYTES);
        }
    }
}
