//! The file of the container's image names only existing things. These tests build no image.

use std::fs;
use std::path::Path;
use std::process::Command;

use cargo_metadata::MetadataCommand;

use crate::support::workspace;

/// Returns the instructions, each on one line: `RUN`, and its command.
fn instructions() -> Vec<(String, String)> {
    let text = fs::read_to_string(workspace("deploy/Containerfile")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let text = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .map(|(name, rest)| (name.to_owned(), rest.to_owned()))
        .collect()
}

/// Returns the arguments of each instruction of this name.
fn all<'a>(instructions: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    let found = instructions.iter().filter(|(it, _)| it == name);
    found.map(|(_, rest)| rest.as_str()).collect()
}

/// Returns the word after another one.
fn after<'a>(words: &[&'a str], name: &str) -> &'a str {
    let place = words.iter().position(|word| *word == name);
    words[place.unwrap_or_else(|| panic!("no {name} in {words:?}")) + 1]
}

#[test]
fn the_image_is_built_of_what_there_is_and_runs_what_was_built() {
    let instructions = instructions();
    let all = |name| all(&instructions, name);
    let metadata = MetadataCommand::new().no_deps().exec().unwrap();

    // The build: an old enough compiler, the package, its program.
    let [build, image] = all("FROM")[..] else {
        panic!("not two stages");
    };
    let program = metadata.packages.iter().find(|it| it.name == "baler-cli");
    let program = program.unwrap();
    let compiler = program.rust_version.as_ref().unwrap();
    let compiler = format!("rust:{}.{}-", compiler.major, compiler.minor);
    assert!(build.contains(&compiler), "{build}: not {compiler}");
    let suite = |text: &str| text.contains("bookworm");
    assert!(suite(build) && suite(image), "two C libraries");
    let runs = all("RUN");
    let cargo = runs.iter().find(|run| run.starts_with("cargo ")).unwrap();
    let words: Vec<_> = cargo.split_whitespace().collect();
    assert_eq!(after(&words, "--package"), program.name.as_str());
    assert!(words.contains(&"--locked"));
    assert_eq!(after(&words, "--profile"), "dist");
    let mut copied = all("COPY").into_iter();
    let copied = copied.find_map(|copy| copy.strip_prefix("--from=build "));
    let (from, to) = copied.unwrap().split_once(' ').unwrap();
    let built = format!("{}/target/dist/", all("WORKDIR")[0]);
    let binary = from.strip_prefix(&built).unwrap();
    let is_program = |it: &&cargo_metadata::Target| it.is_bin() && it.name == binary;
    assert!(program.targets.iter().any(|it| is_program(&it)), "{from}");
    assert_eq!(all("ENTRYPOINT"), [format!("[\"{to}\"]")]);

    // The final stage: a user that owns the volume, which holds all data to keep, and the exposed
    // ports.
    let setup = runs.last().unwrap();
    let words: Vec<_> = setup.split_whitespace().collect();
    let user = after(&words, "--uid");
    assert_eq!(all("USER"), [format!("{user}:{user}")]);
    let volume: Vec<String> = serde_json::from_str(all("VOLUME")[0]).unwrap();
    assert!(
        words.contains(&volume[0].as_str()),
        "nobody makes {volume:?}"
    );
    let command: Vec<String> = serde_json::from_str(all("CMD")[0]).unwrap();
    let command: Vec<_> = command.iter().map(String::as_str).collect();
    for flag in ["--spool", "--quarantine"] {
        let kept = Path::new(after(&command, flag));
        assert!(kept.starts_with(&volume[0]), "{flag} is not on the volume");
    }
    let exposed: Vec<_> = all("EXPOSE")[0].split_whitespace().collect();
    for flag in ["--from", "--metrics"] {
        let (address, settings) = after(&command, flag)
            .split_once('?')
            .unwrap_or_else(|| (after(&command, flag), ""));
        let (_, port) = address.rsplit_once(':').unwrap();
        // A process that reaches the container must not be able to send without a token.
        assert!(
            flag == "--metrics" || settings.contains("token_file="),
            "{settings}"
        );
        assert!(exposed.contains(&port), "{flag}");
    }
}

/// Debian's slim image has the C library and GCC's. OpenSSL is installed into it, for Kafka's TLS.
#[cfg(target_os = "linux")]
#[test]
fn the_program_needs_no_library_that_the_image_lacks() {
    const THERE: [&str; 9] = [
        "ld-linux",
        "libc.so",
        "libcrypto.so",
        "libdl.so",
        "libgcc_s.so",
        "libm.so",
        "libpthread.so",
        "libssl.so",
        "linux-vdso",
    ];
    let listed = Command::new("ldd")
        .arg(env!("CARGO_BIN_EXE_baler"))
        .output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    assert!(listed.contains("libc.so"), "{listed}");
    for line in listed.lines() {
        assert!(THERE.iter().any(|there| line.contains(there)), "{line}");
    }
    if listed.contains("libssl.so") {
        let instructions = instructions();
        let installed = all(&instructions, "RUN");
        assert!(
            installed.last().unwrap().contains(" libssl3 "),
            "{installed:?}"
        );
    }
}
