use std::sync::Arc;
use std::thread;
use std::time::Instant;

use super::*;

/// A message, field by field.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn request(key: i16, version: i16) -> Self {
        let numbered = Self::default().i16(key).i16(version).i32(7);
        numbered.text("client").text("group")
    }

    fn i16(mut self, value: i16) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn i32(mut self, value: i32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn i64(mut self, value: i64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn text(self, text: &str) -> Self {
        let mut all = self.i16(i16::try_from(text.len()).unwrap());
        all.0.extend(text.as_bytes());
        all
    }
}

/// What a member learns when all have joined; the leader learns who they are.
fn joined(generation: i32, members: i32) -> Vec<u8> {
    let answer = Fields::default().i32(7).i32(0).i16(0).i32(generation);
    answer.text("range").text("a").text("b").i32(members).0
}

fn sync(member: &str, dealt: i32) -> Vec<u8> {
    let request = Fields::request(SYNC_GROUP, 3).i32(2).text(member);
    request.i16(-1).i32(dealt).0
}

/// Joins the group, as one of so many if it leads.
fn join(groups: &Groups, members: i32) {
    let join = Fields::request(JOIN_GROUP, 5).0;
    let (number, question) = groups.asked(&join).unwrap();
    assert_eq!(number, 7);
    let answer = joined(2, members);
    assert_eq!(groups.answered(&question, &answer).unwrap(), answer);
}

/// What becomes of a commit of this offset that the mock answers so.
fn commit(groups: &Groups, offset: i64, answer: i16) -> i16 {
    let request = Fields::request(OFFSET_COMMIT, 7).i32(2).text("b").i16(-1);
    let request = request.i32(1).text("topic").i32(1);
    let request = request.i32(3).i64(offset).i32(-1).text("");
    let (_, question) = groups.asked(&request.0).unwrap();
    let answered = |error| {
        let answer = Fields::default().i32(7).i32(0).i32(1).text("topic");
        answer.i32(1).i32(3).i16(error).0
    };
    let told = groups.answered(&question, &answered(answer)).unwrap();
    let told = i16::from_be_bytes(*told.last_chunk().unwrap());
    assert_eq!(answered(told).len(), answered(answer).len());
    told
}

/// What the group is told that it committed where the mock has `offset`.
fn committed(groups: &Groups, offset: i64) -> i64 {
    let (_, question) = groups.asked(&Fields::request(OFFSET_FETCH, 5).0).unwrap();
    let answered = |offset| {
        let answer = Fields::default().i32(7).i32(0).i32(1).text("topic");
        let answer = answer.i32(1).i32(3).i64(offset).i32(-1);
        answer.text("").i16(0).i16(0).0
    };
    let told = groups.answered(&question, &answered(offset)).unwrap();
    let place = told.len() - 18;
    let found = i64::from_be_bytes(told[place..place + 8].try_into().unwrap());
    assert_eq!(told, answered(found));
    found
}

#[test]
fn commit_is_taken_while_members_are_waited_for_and_not_while_the_leader_deals() {
    let groups = Groups::default();
    assert_eq!(commit(&groups, 40, REBALANCE_IN_PROGRESS), 0);
    assert_eq!(committed(&groups, -1), 40);
    join(&groups, 0);
    let refused = commit(&groups, 41, REBALANCE_IN_PROGRESS);
    assert_eq!(
        (refused, committed(&groups, -1)),
        (REBALANCE_IN_PROGRESS, 40)
    );
    let (_, synced) = groups.asked(&sync("b", 0)).unwrap();
    groups.answered(&synced, &[0, 0, 0, 7]).unwrap();
    assert_eq!(commit(&groups, 42, REBALANCE_IN_PROGRESS), 0);
    assert_eq!(committed(&groups, 30), 42);
    assert_eq!(commit(&groups, 43, 25), 25, "another refusal stays one");
    assert_eq!(commit(&groups, 44, 0), 0);
    assert_eq!(committed(&groups, 44), 44, "the mock has it");
}

#[test]
fn members_that_join_or_leave_end_the_dealing() {
    for key in [JOIN_GROUP, LEAVE_GROUP] {
        let groups = Groups::default();
        join(&groups, 0);
        groups.asked(&Fields::request(key, 1).0);
        assert_eq!(commit(&groups, 1, REBALANCE_IN_PROGRESS), 0, "{key}");
    }
}

#[test]
fn leader_deals_after_every_member_asked() {
    let groups = Arc::new(Groups::default());
    join(&groups, 2);
    let dealing = Arc::clone(&groups);
    let leader = thread::spawn(move || {
        dealing.asked(&sync("a", 2)).unwrap();
    });
    let other = sync("b", 0);
    groups.asked(&other).unwrap();
    assert!(!leader.is_finished(), "it waits");
    groups.passed_on(&other);
    leader.join().unwrap();

    // A member that never asks is not waited for.
    let start = Instant::now();
    groups.lock().values_mut().for_each(|it| it.synced.clear());
    groups.asked(&sync("a", 2)).unwrap();
    assert!(start.elapsed() >= PATIENCE);
}
