use super::*;

#[test]
fn an_interrupted_sweep_is_found_again_and_another_or_a_finished_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let open = |plan| RunLog::open(folder.path(), plan).unwrap();
    let line = |number: usize| {
        let result = match number {
            1 => Err("it broke".to_owned()),
            _ => Ok(Sample::default()),
        };
        to_line(&FinishedRun { number, result }).unwrap()
    };
    let (mut log, runs) = open("\"a\"");
    assert!(runs.is_empty());
    log.write(&line(0)).unwrap();
    log.write(&line(1)).unwrap();
    // The last line is cut.
    log.write(line(2).get(..9).unwrap()).unwrap();
    let (mut log, runs) = open("\"a\"");
    let found: Vec<_> = runs
        .iter()
        .map(|(number, run)| (*number, run.is_ok()))
        .collect();
    assert_eq!(found, [(0, true), (1, false)]);
    log.write(&line(2)).unwrap();
    let (mut log, runs) = open("\"a\"");
    assert_eq!(runs.len(), 3);
    log.write(FINISHED).unwrap();
    assert!(open("\"a\"").1.is_empty());
    open("\"a\"").0.write(&line(0)).unwrap();
    assert!(open("\"b\"").1.is_empty());
}
