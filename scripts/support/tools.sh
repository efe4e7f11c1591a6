# Sourced by the scripts beside this folder: finds the tools they need, installs what is missing.
#
# Nothing is installed outside the target folder, except the components and toolchains of rustup
# and, on Debian, the packages chromium, debootstrap, iproute2, libssl-dev, pkg-config, python3,
# rabbitmq-server and valgrind.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
target_dir=${CARGO_TARGET_DIR:-$root/target}
[[ $target_dir == /* ]] || target_dir=$root/$target_dir
tools_dir=$target_dir/tools
export PATH=$tools_dir/bin:$PATH

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

die() {
    say "$*"
    exit 2
}

# The manifests of all fuzz folders, each a workspace of its own, one a line.
fuzz_manifests() {
    (cd "$root" && find . -path '*/fuzz/Cargo.toml' -not -path '*/target/*') | sed 's,^\./,,' | sort
}

# The version of a tool that tools.txt pins.
pinned_version() {
    # These have no wheel.
    [[ $1 != cargo-deb ]] || { echo 3.8.0 && return; }
    # It reads the JSON of Rust 1.95; another compiler may need another version.
    [[ $1 != cargo-public-api ]] || { echo 0.52.0 && return; }
    sed -n "s/^astral-dev-toolchain-$1==\([0-9.]*\).*/\1/p" "$root/scripts/support/tools.txt"
}

# need_cargo_command cargo-NAME: a prebuilt wheel takes seconds, a build from source minutes.
need_cargo_command() {
    local tool=$1 version
    if "$tool" --version >/dev/null 2>&1 || cargo "${tool#cargo-}" --version >/dev/null 2>&1; then
        return 0
    fi
    version=$(pinned_version "$tool")
    mkdir -p "$tools_dir/bin"
    say "$tool is missing: installing $version into $tools_dir"
    install_wheel "$tool" || install_source "$tool" "$version" ||
        die "$tool could not be installed: try 'cargo install --locked $tool@$version'"
}

install_wheel() {
    local tool=$1 wanted="$tools_dir/$1.txt" unpacked="$tools_dir/wheel-$1"
    python3 -m pip --version >/dev/null 2>&1 || return 1
    # The lines of this one tool: its name and the hashes that follow.
    sed -n "/^astral-dev-toolchain-$tool==/,/[^\\\\]\$/p" \
        "$root/scripts/support/tools.txt" >"$wanted"
    [[ -s $wanted ]] || return 1
    rm -rf "$unpacked"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
        --only-binary :all: --require-hashes --target "$unpacked" -r "$wanted" >&2 || return 1
    mv "$unpacked/bin/$tool" "$tools_dir/bin/$tool" || return 1
    rm -rf "$unpacked"
    "$tool" --version >/dev/null 2>&1 || {
        # Built for another system library, say.
        rm -f "$tools_dir/bin/$tool"
        return 1
    }
}

# Unoptimised: it builds in a third of the time, and these tools wait for cargo anyway.
install_source() {
    local tool=$1 version=$2
    say "no wheel of $tool fits this machine: building it from source"
    CARGO_TARGET_DIR=$tools_dir/build CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
        CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_STRIP=none \
        cargo install --quiet --locked --root "$tools_dir" "$tool@$version" >&2 || return 1
    rm -rf "$tools_dir/build"
}

need_component() {
    local component=$1 probe=$2
    cargo "$probe" --version >/dev/null 2>&1 && return 0
    say "the component $component is missing: adding it"
    rustup component add "$component" >&2 || die "rustup could not add $component"
}

need_nightly() {
    cargo +nightly --version >/dev/null 2>&1 && return 0
    say "the nightly toolchain is missing: installing it"
    rustup toolchain install nightly --profile minimal >&2 || die "rustup could not install nightly"
}

as_root() { if [[ $(id -u) == 0 ]]; then "$@"; else sudo -n "$@"; fi; }

# install_packages PACKAGE...: installs packages of Debian that the tests need.
install_packages() {
    command -v apt-get >/dev/null || die "$1 is missing: the tests need it"
    say "$1 is missing: installing it"
    { as_root apt-get update &&
        as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y --no-install-recommends "$@"; } >&2 || die "$1 could not be installed"
}

need_python() {
    command -v python3 >/dev/null || install_packages python3 python3-pip
}

# need_python_package NAME: reads the Parquet files of the tests, as scripts/support/NAME.txt pins it.
# Where it cannot be had, the tests that want it fail and say so.
need_python_package() {
    need_python
    local package=$1 folder=$tools_dir/$1
    python3 -c "import $package" 2>/dev/null && return 0
    PYTHONPATH=$folder python3 -c "import $package" 2>/dev/null && return 0
    say "$package is missing: installing it into $folder"
    rm -rf "$folder"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-input \
        --only-binary :all: --require-hashes --target "$folder" \
        -r "$root/scripts/support/$package.txt" >&2 || say "$package could not be installed"
}

# need_debootstrap: it makes the clean root in which the package is tried.
need_debootstrap() {
    command -v debootstrap >/dev/null || install_packages debootstrap
}

# need_valgrind: it counts instructions.
need_valgrind() {
    command -v valgrind >/dev/null || install_packages valgrind libc6-dbg
}

# need_chromium: a test opens a report in it.
need_chromium() {
    command -v chromium >/dev/null || install_packages chromium fonts-dejavu-core
}

# need_promtool: it judges the metrics and the alert rules. The package itself would start a server.
need_promtool() {
    command -v promtool >/dev/null && return 0
    local folder=$tools_dir/prometheus
    say "promtool is missing: unpacking Debian's package prometheus into $folder"
    mkdir -p "$folder" "$tools_dir/bin"
    (cd "$folder" && { apt-get download prometheus || { as_root apt-get update && apt-get download prometheus; }; } >&2 &&
        dpkg-deb -x prometheus_*.deb . && mv usr/bin/promtool "$tools_dir/bin/promtool") ||
        say "promtool could not be installed"
    rm -rf "$folder"
}

# need_openssl: Kafka's TLS links it.
need_openssl() {
    pkg-config --exists openssl 2>/dev/null || install_packages libssl-dev pkg-config
}

# need_iproute: the test of the READMEs' commands brings up the loopback of its own network with it.
need_iproute() {
    command -v ip >/dev/null || install_packages iproute2
}

# need_rabbitmq: the tests start nodes of their own from its folder, so no service is wanted.
need_rabbitmq() {
    compgen -G '/usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server' >/dev/null ||
        install_packages rabbitmq-server
}
