//! The program `sampling`.

use std::process::Command;

use serde_json::Value;

const PATH: [u64; 9] = [100, 1, 100, 500, 1, 100, 1, 50, 50];

fn method(ms: u64) -> String {
    format!("void Demo.method{ms}ms()")
}

#[test]
fn agents_show_the_known_calls_and_balances_add_up() {
    const MASS: usize = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sampling"))
        .args(["--repetitions=1", "--intervals=10", "--format=json"])
        .arg(format!("--mass={MASS}"))
        .arg(format!("--results={}", folder.path().display()))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect(&told);
    assert!(output.status.success(), "{told}");
    let agents = ["plain", "operation", "aggregated", "fixed", "jittered"];
    let found = rows.iter().map(|row| (&row["demo"], &row["agent"]));
    let found: Vec<_> = found
        .map(|(demo, agent)| (demo.as_str(), agent.as_str()))
        .collect();
    let wanted = ["mixed", "mass"].map(|demo| agents.map(|it| (Some(demo), Some(it))));
    assert_eq!(found, wanted.concat());

    for row in &rows {
        assert_eq!(row["failure"], Value::Null, "{row:#}");
        let part = |name: &str| row["balance_ms"][name]["mean"].as_f64().unwrap();
        let parts = [
            "setup",
            "work",
            "probes",
            "sampler",
            "collector",
            "report",
            "rest",
        ];
        let sum: f64 = parts.iter().map(|name| part(name)).sum();
        assert!((sum - part("wall")).abs() < 1e-6, "{row:#}");
        let demo = row["demo_ms"]["mean"].as_f64().unwrap();
        let wall = part("setup") + demo + part("report");
        assert!((wall - part("wall")).abs() < 1e-6, "{row:#}");

        let is_mixed = row["demo"] == "mixed";
        let (all, methods): (Vec<u64>, &[u64]) = match is_mixed {
            true => (PATH.to_vec(), &[1, 50, 100, 500]),
            false => (vec![0; MASS], &[0]),
        };
        if is_mixed {
            let least = all.iter().sum::<u64>() as f64;
            assert!(part("work") >= least && demo >= part("work"), "{row:#}");
        }
        let errors = row["errors"].as_array().unwrap();
        let estimators = match row["agent"].as_str().unwrap() {
            "plain" => 0,
            "operation" | "aggregated" => 1,
            _ => 2,
        };
        assert_eq!(errors.len(), estimators * methods.len(), "{row:#}");
        for error in errors.iter().filter(|it| it["estimator"] == "probes") {
            let is_of = |ms: &&u64| error["method"] == method(**ms);
            let calls = all.iter().filter(is_of).count();
            assert_eq!(error["calls"], calls, "{error:#}");
            // A busy machine makes calls longer outside of the part whose time they know. Two clocks
            // may differ a little.
            let percent = error["error_percent"]["mean"].as_f64().unwrap();
            assert!(!is_mixed || percent > -0.1, "{error:#}");
        }
        let path: Vec<&str> = row["path"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(Value::as_str)
            .collect();
        match row["agent"].as_str().unwrap() {
            "operation" if is_mixed => assert_eq!(path, PATH.map(method)),
            // The article's sampler sees 100, 1, 100 as a call of 200 ms.
            "fixed" | "jittered" if is_mixed => {
                let call = format!("void Demo.runCode() > {}", method(500));
                assert!(path.contains(&&*call), "{path:?}");
            }
            "plain" | "aggregated" => assert!(path.is_empty(), "{path:?}"),
            _ => {}
        }
    }

    let text = std::fs::read_to_string(folder.path().join("sampling.txt")).unwrap();
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    for line in [
        "Running Demo with [100, 1, 100, 500, 1, 100, 1, 50, 50] methods",
        "Agent monitoring thread main with sampling interval of 10ms",
        "  void Demo.method500ms()",
        "Code Execution Path:",
        "Execution Path incomplete!",
        "Agent internal Overhead ",
    ] {
        assert!(
            text.lines().any(|it| it.starts_with(line)),
            "{line}: {text}"
        );
    }
}

#[test]
fn hybrid_monitoring_finds_the_hot_spots_and_keeps_its_budget() {
    // Without optimisation a probe takes twenty times as long.
    let budget = if cfg!(debug_assertions) { 20.0 } else { 1.0 };
    let per_mille = format!("--budget-per-mille={}", budget * 10.0);
    let output = Command::new(env!("CARGO_BIN_EXE_sampling"))
        .args(["--hybrid=10", "--format=json", &per_mille])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect(&told);
    let loads: Vec<_> = rows.iter().map(|row| row["load"].as_f64()).collect();
    assert_eq!(loads, [Some(1.0), Some(0.1), Some(1.0)]);
    // At a tenth of the load, to wake the collector takes half of 1 % even without a record.
    for (row, most) in rows.iter().zip([1.0, 1.5, 1.0]) {
        let percent = row["percent"].as_f64().unwrap();
        assert!(percent <= most * budget, "{row:#}");
    }
    // They compute most.
    for hot in ["authorize", "home", "rank"] {
        let found = rows[0]["found_s"][hot].as_f64();
        assert!(found.is_some_and(|seconds| seconds <= 10.0), "{rows:#?}");
    }
}

#[test]
fn an_interval_of_nothing_is_told() {
    let output = Command::new(env!("CARGO_BIN_EXE_sampling"))
        .args(["--intervals", "0"])
        .output();
    let output = output.unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && told.contains("--intervals"),
        "{told}"
    );
}
