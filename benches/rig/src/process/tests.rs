use super::*;

const SOON: Duration = Duration::from_secs(20);

#[test]
fn values_go_both_ways_and_silence_and_death_differ() {
    let mut child = Child::start(Command::new("cat")).unwrap();
    child.send(&("one", 1)).unwrap();
    let answer: (String, u32) = child.answer(SOON, &mut || true).unwrap();
    assert_eq!(answer, ("one".to_owned(), 1));
    assert_eq!(child.next::<u32>(Instant::now()), Ok(None));
    child.send(&"no number").unwrap();
    child.next::<u32>(Instant::now() + SOON).unwrap_err();
    child.process.kill().unwrap();
    let dead = child.next::<u32>(Instant::now() + SOON).unwrap_err();
    assert!(dead.to_string().contains("ended"), "{dead}");
    let child = Child::start(Command::new("cat")).unwrap();
    child.end(SOON).unwrap();
    Child::start(Command::new("false"))
        .unwrap()
        .end(SOON)
        .unwrap_err();
}
