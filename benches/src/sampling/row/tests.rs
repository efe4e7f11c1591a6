use super::*;
use crate::sampling::measure::{Estimate, closed};

fn case(agent: Agent, interval_ms: Option<u32>) -> Case {
    Case {
        mass: None,
        agent,
        interval_ms,
    }
}

fn estimate(estimator: &str, method: &str, ms: u64, calls: Option<(u64, u64, u64)>) -> Estimate {
    let ns = |ms| ms * 1_000_000;
    Estimate {
        estimator: estimator.to_owned(),
        method: method.to_owned(),
        ns: ns(ms),
        calls: calls.map(|(calls, min, max)| (calls, ns(min), ns(max))),
    }
}

fn run(estimates: Vec<Estimate>, path: &[&str]) -> Measured {
    Measured {
        demo_ms: 950.2,
        balance: closed(
            1_043.0,
            [
                ("setup", 1.0),
                ("probes", 1.6),
                ("sampler", 0.0),
                ("report", 90.0),
            ],
        ),
        probe_ns: 30.0,
        truth_ns: [(100, 300e6), (500, 500e6)]
            .map(|(ms, ns)| (method(ms), ns))
            .into(),
        estimates,
        path: path.iter().map(|it| (*it).to_owned()).collect(),
        is_path_complete: true,
        missed: 0,
    }
}

#[test]
fn lines_are_those_of_the_article() {
    let probes = |ms, times| estimate("probes", &method(ms), times * ms, Some((times, ms, ms)));
    let run = run(vec![probes(100, 3), probes(500, 1)], &["a", "b"]);
    let told = lines(&case(Agent::Operation, None), &run);
    let article = "\
Running Demo with [100, 1, 100, 500, 1, 100, 1, 50, 50] methods
MIXED Demo completed in 950ms
Trace Aspect recorded following results:
  void Demo.method500ms() 500ms (min: 500ms, max: 500ms) - 1 invocations
  void Demo.method100ms() 300ms (min: 100ms, max: 100ms) - 3 invocations
Code Execution Path:
  a
  b
Agent internal Overhead 2ms
Agent Overhead 91ms
";
    assert_eq!(told, article);
}

#[test]
fn lines_of_samples_are_those_of_the_article() {
    let samples = |estimator, ms| estimate(estimator, &method(500), ms, None);
    let mut run = run(
        vec![samples("back-to-back", 488), samples("midpoint", 499)],
        &[],
    );
    let mut case = case(Agent::Fixed, Some(10));
    case.mass = Some(1_000);
    run.is_path_complete = false;
    let told = lines(&case, &run);
    let article = "\
Agent monitoring thread main with sampling interval of 10ms
Running Demo with 1000 0ms methods
MASS Demo completed in 950ms
Agent stopped - Results:
  void Demo.method500ms() 488ms
Execution Path incomplete!
Agent internal Overhead 2ms
Agent Overhead 91ms
";
    assert_eq!(told, article);
}

#[test]
fn errors_are_relative_to_the_true_times() {
    let times = [490, 510].map(|ms| run(vec![estimate("midpoint", &method(500), ms, None)], &[]));
    let runs = Runs {
        samples: times.into(),
        failure: None,
    };
    let row = Row::new(&case(Agent::Jittered, Some(10)), &runs);
    let error = |estimator, ms| row.error(estimator, ms).unwrap();
    assert!(error("midpoint", 500).mean.abs() < 1e-9);
    assert!(error("midpoint", 500).high > 2.0);
    // What an estimator does not know has no time.
    assert_eq!(error("midpoint", 100).mean, -100.0);
    assert_eq!(error("back-to-back", 500).mean, -100.0);
    assert_eq!(row.errors.len(), 4);
    let table = table_of_errors(&[row], MIXED);
    assert!(table.contains("-100.0 ± 0.0"), "{table}");
}
