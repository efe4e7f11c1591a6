//! The function for build scripts, in a process of its own that stands for the script.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Names the schemas to the process that stands for the build script.
const SCHEMAS: &str = "BALER_IRL_TEST_SCHEMAS";

/// Returns the lines for Cargo.
fn run(schemas: &Path, out: Option<&Path>) -> Vec<String> {
    let mut script = Command::new(std::env::current_exe().unwrap());
    script
        .args(["--exact", "build::build_script", "--nocapture"])
        .env(SCHEMAS, schemas)
        .env_remove("OUT_DIR");
    if let Some(out) = out {
        script.env("OUT_DIR", out);
    }
    let output = script.output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text
        .lines()
        .filter_map(|line| line.split_once("cargo::").map(|it| it.1.to_owned()));
    lines.collect()
}

#[test]
fn build_script() {
    if let Some(schemas) = std::env::var_os(SCHEMAS) {
        println!();
        baler_irl::build::compile(Path::new(&schemas));
    }
}

#[test]
fn a_build_script_writes_types_and_names_each_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let (schemas, out) = (folder.path().join("schemas"), folder.path().join("out"));
    fs::create_dir(&schemas).unwrap();
    let (file, shown) = (schemas.join("a.irl"), schemas.display());
    let rerun = format!("rerun-if-changed={shown}");
    let lines = |text: &str| {
        fs::write(&file, text).unwrap();
        let lines = run(&schemas, Some(&out));
        assert_eq!(lines[0], rerun);
        lines[1..].to_vec()
    };
    assert_eq!(
        lines("package a\nevent E : T { int a = 'xy' }"),
        [
            format!(
                "error={shown}/a.irl:2:11: T is not defined; \
                 define it, or name the file or folder with the file that defines it"
            ),
            format!("error={shown}/a.irl:2:23: a string does not fit int"),
        ]
    );
    assert_eq!(
        lines("package a event E { int[3] b }"),
        ["error=a.E: b: a record of Baler has no array of a fixed length; write int[]"]
    );
    assert!(!out.exists());
    let legacy = lines("package a struct E { int b }");
    assert_eq!(legacy.len(), 1);
    assert!(legacy[0].starts_with("warning="), "{legacy:?}");
    let made = fs::read_to_string(out.join("irl/a.rs")).unwrap();
    assert!(made.contains("#[record(name = \"a.E\")]"), "{made}");
    fs::write(&file, "package a").unwrap();
    assert!(run(&schemas, None)[1].starts_with("error=OUT_DIR is not set"));
    assert_eq!(
        run(&folder.path().join("none.irl"), Some(&out))[1..].len(),
        1
    );
}
