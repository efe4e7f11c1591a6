use super::*;

fn rounds(finished: BTreeMap<usize, Result<usize, Failure>>) -> Rounds<usize> {
    Rounds {
        repetitions: 3,
        seed: 1,
        finished,
    }
}

#[test]
fn every_round_has_every_case_once_and_an_order_of_its_own() {
    let cases: Vec<usize> = (0..20).collect();
    let mut order = Vec::new();
    let all = in_rounds(
        &cases,
        rounds(BTreeMap::from([(0, Ok(77)), (7, Err(Failure::new("no")))])),
        &mut |_| true,
        |number, case, _| {
            order.push((number, *case));
            Ok(number)
        },
    )
    .unwrap();
    let expected = interleaved(20, 3, 1);
    assert_ne!(expected[..20], expected[20..40]);
    let mut second = expected[20..40].to_vec();
    second.sort_unstable();
    assert_eq!(second, cases);
    // Neither finished nor failed cases are measured.
    assert!(
        order
            .iter()
            .all(|(number, case)| expected[*number] == *case)
    );
    assert_eq!(order.len(), 60 - 2 - 2);
    assert_eq!(all[expected[0]].samples[0], 77);
    assert!(all[expected[7]].failure.is_some());
    let stopped = in_rounds(
        &cases,
        rounds(BTreeMap::new()),
        &mut |_| false,
        |_, _, _| Ok(1),
    );
    assert_eq!(stopped.unwrap_err(), Failure::stopped());
}
