//! The allowed dependencies between crates. The tables below are the only list of allowed edges.
//!
//! A new row or name here is a new edge, and docs/decisions.md has to explain it.

use std::path::Path;
use std::process::Command;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// The crates of the workspace that a crate may name.
#[derive(Debug, Clone, Copy)]
enum Allowed {
    AllBut(&'static [&'static str]),
    Only(&'static [&'static str]),
}

impl Allowed {
    fn contains(self, name: &str) -> bool {
        match self {
            Self::AllBut(names) => !names.contains(&name),
            Self::Only(names) => names.contains(&name),
        }
    }
}

/// One row for each crate: the crates that it may name in `[dependencies]` and
/// `[build-dependencies]`.
const INTERNAL: &[(&str, Allowed)] = &[
    (
        "baler-common",
        Allowed::Only(&["baler-irl", "baler-macros"]),
    ),
    ("baler-macros", Allowed::Only(&["baler-instrument"])),
    (
        // Its probes and samplers emit Kieker's types.
        "baler-monitoring",
        Allowed::Only(&["baler-common", "baler-connector-kieker", "baler-macros"]),
    ),
    (
        "baler-tracing",
        Allowed::Only(&["baler-common", "baler-monitoring"]),
    ),
    (
        "baler-connector-amqp",
        Allowed::Only(&["baler-common", "baler-connector-file"]),
    ),
    ("baler-connector-file", Allowed::Only(&["baler-common"])),
    ("baler-connector-kafka", Allowed::Only(&["baler-common"])),
    (
        "baler-connector-kieker",
        Allowed::Only(&["baler-common", "baler-connector-file", "baler-irl"]),
    ),
    ("baler-connector-null", Allowed::Only(&["baler-common"])),
    (
        // It makes spans of Kieker's calls.
        "baler-connector-otlp",
        Allowed::Only(&["baler-common", "baler-connector-kieker"]),
    ),
    ("baler-connector-tcp", Allowed::Only(&["baler-common"])),
    ("baler-connector-testkit", Allowed::Only(&["baler-common"])),
    ("baler-instrument", Allowed::Only(&[])),
    ("baler-irl", Allowed::Only(&[])),
    // It has the quarantine from there, as the relay and the spool have, and reads Kieker's types.
    (
        "baler-analysis",
        Allowed::Only(&[
            "baler-common",
            "baler-connector-file",
            "baler-connector-kieker",
        ]),
    ),
    // The crate on which an application depends: it names all that an application may link, and
    // nothing that tests or measures.
    (
        "baler",
        Allowed::AllBut(&[
            "baler-benches",
            "baler-cli",
            "baler-connector-testkit",
            "baler-rig",
        ]),
    ),
    // It has the list of media from `baler`.
    ("baler-cli", Allowed::AllBut(&["baler-benches"])),
    (
        "baler-rig",
        // Its page has the look of the reports of the analysis.
        Allowed::Only(&[
            "baler-analysis",
            "baler-common",
            "baler-connector-kieker",
            "baler-connector-null",
            "baler-monitoring",
        ]),
    ),
    ("baler-benches", Allowed::AllBut(&["baler"])),
];

/// The crates that any crate may name in `[dev-dependencies]`, besides its row above.
const DEV: &[&str] = &[
    "baler-connector-amqp",
    "baler-connector-file",
    "baler-connector-kafka",
    "baler-connector-kieker",
    "baler-connector-null",
    "baler-connector-otlp",
    "baler-connector-tcp",
    "baler-connector-testkit",
];

/// Further crates that a single crate may name in `[dev-dependencies]`.
const DEV_OF: &[(&str, &str)] = &[
    // Its tests export what an application records.
    ("baler-connector-otlp", "baler-monitoring"),
    ("baler-connector-otlp", "baler-tracing"),
    ("baler-macros", "baler-common"),
    ("baler-macros", "baler-monitoring"),
    ("baler-monitoring", "baler-analysis"),
    ("baler-rig", "baler"),
];

/// A client library is named by its connector alone, whatever the kind of dependency.
const CLIENTS: &[(&str, &str)] = &[
    ("lapin", "baler-connector-amqp"),
    ("rdkafka", "baler-connector-kafka"),
];

/// An async runtime never crosses a seam: connectors hide theirs, the program may own one.
const RUNTIMES: &[&str] = &["async-executor", "async-std", "smol", "tokio"];

/// Crates whose whole tree is free of clients and runtimes, in every combination of features.
const SYNC: &[&str] = &["baler-analysis", "baler-common", "baler-monitoring"];

/// Crates of tests and measurements, which nothing that is shipped links.
const NOT_SHIPPED: &[&str] = &[
    "baler-connector-testkit",
    "fastrace",
    "kafka-protocol",
    "opentelemetry",
];

/// One dependency as a manifest declares it.
#[derive(Debug)]
struct Edge {
    from: String,
    to: String,
    kind: DependencyKind,
    internal: bool,
}

fn is_connector(name: &str) -> bool {
    name.starts_with("baler-connector-")
}

/// Returns why an edge is forbidden, or `None` if it is allowed.
fn complaint(edge: &Edge) -> Option<&'static str> {
    let (from, to) = (edge.from.as_str(), edge.to.as_str());
    let dev = edge.kind == DependencyKind::Development;
    if edge.internal {
        let row = INTERNAL.iter().find(|(name, _)| *name == from);
        let Some((_, allowed)) = row else {
            return Some("the crate has no row in the table");
        };
        if allowed.contains(to) || (dev && (DEV.contains(&to) || DEV_OF.contains(&(from, to)))) {
            return None;
        }
        return Some("the table does not have this edge");
    }
    if CLIENTS
        .iter()
        .any(|(client, owner)| *client == to && *owner != from)
    {
        return Some("a client library is named by its connector alone");
    }
    let may_own_runtime = is_connector(from) || from == "baler-cli";
    if !dev && RUNTIMES.contains(&to) && !may_own_runtime {
        return Some("an async runtime belongs to a connector or to the program");
    }
    None
}

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Returns every crate of the workspace, and every dependency that the manifests declare.
fn declared() -> (Vec<String>, Vec<Edge>) {
    let metadata = MetadataCommand::new()
        .manifest_path(workspace().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let members: Vec<_> = metadata
        .packages
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let mut edges = Vec::new();
    for package in &metadata.packages {
        for dependency in &package.dependencies {
            edges.push(Edge {
                from: package.name.to_string(),
                to: dependency.name.clone(),
                kind: dependency.kind,
                internal: dependency.path.is_some() || members.contains(&dependency.name),
            });
        }
    }
    (members, edges)
}

#[test]
fn edges_name_only_what_the_table_allows() {
    let (_, edges) = declared();
    assert!(
        !edges.is_empty(),
        "cargo metadata told of no dependency at all"
    );
    let complaints: Vec<_> = edges
        .iter()
        .filter_map(|edge| {
            let why = complaint(edge)?;
            Some(format!(
                "{} -> {} ({}): {why}",
                edge.from, edge.to, edge.kind
            ))
        })
        .collect();
    assert!(
        complaints.is_empty(),
        "forbidden edges:\n{}",
        complaints.join("\n")
    );
}

#[test]
fn every_crate_has_a_row_and_every_row_a_crate() {
    let (mut members, _) = declared();
    let mut rows: Vec<_> = INTERNAL
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    members.sort();
    rows.sort();
    assert_eq!(rows, members);
}

#[test]
fn whole_trees_below_the_seams_are_free_of_clients_and_runtimes() {
    for package in SYNC {
        for name in tree(package, &["--all-features"]) {
            let client = CLIENTS.iter().any(|(client, _)| *client == name);
            assert!(
                !client && !RUNTIMES.contains(&name.as_str()),
                "{package} links {name}"
            );
        }
    }
}

#[test]
fn an_application_links_no_client_runtime_or_test_library_that_it_did_not_ask_for() {
    let linked = tree("baler", &[]);
    let clients = CLIENTS.iter().map(|(client, _)| *client);
    for name in clients.chain(NOT_SHIPPED.iter().copied()) {
        assert!(!linked.iter().any(|it| it == name), "it links {name}");
    }
    for name in tree("baler", &["--no-default-features"]) {
        assert!(!RUNTIMES.contains(&name.as_str()), "it links {name}");
    }
    let whole = tree("baler", &["--all-features"]);
    // The messages of OTLP bring it.
    let otlp = ["opentelemetry"];
    let not_shipped = NOT_SHIPPED.iter().filter(|name| !otlp.contains(name));
    for name in not_shipped {
        assert!(!whole.iter().any(|it| it == name), "it links {name}");
    }
}

#[test]
fn the_program_that_is_shipped_links_nothing_that_breaks_or_measures_others() {
    let linked = tree("baler-cli", &["--features", "kafka-tls"]);
    for name in NOT_SHIPPED {
        assert!(!linked.iter().any(|it| it == name), "it links {name}");
    }
    let of_tests = tree("baler-cli", &["--all-features"]);
    assert!(of_tests.iter().any(|it| it == "baler-connector-testkit"));
}

#[test]
fn crates_share_work_with_files_and_no_medium() {
    let metadata = MetadataCommand::new()
        .manifest_path(workspace().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let mut users = Vec::new();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let dependency = package
            .dependencies
            .iter()
            .find(|it| it.name == "baler-connector-file" && it.kind != DependencyKind::Development);
        let Some(dependency) = dependency.filter(|_| is_connector(name) || SYNC.contains(&name))
        else {
            continue;
        };
        let features = &dependency.features;
        let shared = ["follow", "quarantine", "thread-writer"];
        assert!(!dependency.uses_default_features, "{name}: {features:?}");
        assert!(
            features.iter().all(|it| shared.contains(&it.as_str())),
            "{name}: {features:?}"
        );
        users.push(name);
    }
    users.sort_unstable();
    let expected = [
        "baler-analysis",
        "baler-connector-amqp",
        "baler-connector-kieker",
    ];
    assert_eq!(users, expected);
}

/// Returns the names of the crates that a crate links. `cargo tree` resolves features for this
/// crate alone, as an application would see it.
fn tree(package: &str, features: &[&str]) -> Vec<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "-p", package, "-e", "normal,build"])
        .args(["--prefix", "none", "--format", "{p}"])
        .args(features)
        .current_dir(workspace())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&tree.stdout);
    let errors = String::from_utf8_lossy(&tree.stderr);
    assert!(tree.status.success(), "{errors}");
    let names = told.lines().filter_map(|line| line.split(' ').next());
    let names: Vec<String> = names.map(str::to_owned).collect();
    assert_eq!(names.first().map(String::as_str), Some(package), "{told}");
    names
}

#[test]
fn forbidden_edges_are_found() {
    use DependencyKind::{Build, Development, Normal};

    let edge = |from: &str, to: &str, kind, internal| Edge {
        from: from.to_owned(),
        to: to.to_owned(),
        kind,
        internal,
    };
    for forbidden in [
        edge("baler", "baler-connector-testkit", Normal, true),
        edge("baler-analysis", "baler-monitoring", Normal, true),
        edge("baler-cli", "baler-benches", Normal, true),
        edge("baler-common", "baler-connector-null", Normal, true),
        edge("baler-common", "tokio", Normal, false),
        edge("baler-connector-file", "baler-connector-tcp", Normal, true),
        edge("baler-connector-null", "baler-analysis", Development, true),
        edge("baler-connector-null", "baler-connector-tcp", Normal, true),
        edge("baler-connector-tcp", "baler-connector-file", Normal, true),
        edge("baler-connector-tcp", "lapin", Normal, false),
        edge("baler-connector-tcp", "rdkafka", Development, false),
        edge("baler-monitoring", "baler-analysis", Build, true),
        edge("baler-monitoring", "baler-connector-tcp", Normal, true),
        edge("baler-newcomer", "baler-common", Normal, true),
        edge("baler-benches", "lapin", Normal, false),
        edge("baler-rig", "rdkafka", Normal, false),
    ] {
        assert!(complaint(&forbidden).is_some(), "{forbidden:?}");
    }
    for allowed in [
        edge("baler", "baler-connector-kafka", Normal, true),
        edge("baler-cli", "tokio", Normal, false),
        edge("baler-common", "baler-connector-testkit", Development, true),
        edge("baler-connector-amqp", "baler-connector-file", Normal, true),
        edge("baler-connector-kafka", "rdkafka", Normal, false),
        edge("baler-connector-tcp", "tokio", Normal, false),
        edge("baler-monitoring", "baler-analysis", Development, true),
        edge("baler-monitoring", "baler-common", Normal, true),
    ] {
        assert_eq!(complaint(&allowed), None, "{allowed:?}");
    }
}
