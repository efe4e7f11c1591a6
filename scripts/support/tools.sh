# Sourced by the scripts beside this folder: finds the tools that they need, and installs missing ones.
#
# Nothing is installed outside the target folder, except the components and toolchains of rustup
# and the packages of Debian that the table `debian` lists.
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

# The packages of Debian that a need stands for.
declare -A debian=(
    [chromium]="chromium fonts-dejavu-core"
    [debootstrap]="debootstrap"
    [go]="golang-go"
    [iproute]="iproute2"
    [javac]="default-jdk-headless"
    [openssl]="libssl-dev pkg-config"
    [perl]="perl"
    [python]="python3 python3-pip"
    [venv]="python3-venv"
    [rabbitmq]="rabbitmq-server"
    [valgrind]="valgrind libc6-dbg"
)

# has NEED: whether this machine has it.
has() {
    case $1 in
    clippy) cargo clippy --version ;;
    rustfmt) cargo fmt --version ;;
    nightly) cargo +nightly --version ;;
    # Kafka's TLS links it.
    openssl) pkg-config --exists openssl ;;
    # The tests start nodes of their own from its folder, so no service is wanted.
    rabbitmq) compgen -G '/usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server' ;;
    iproute) command -v ip ;;
    python) python3 -m pip --version ;;
    python-tools) cmp "$tools_dir/python/installed.txt" "$root/scripts/support/python.txt" ;;
    spark) cmp "$tools_dir/python/spark.txt" "$root/scripts/support/spark.txt" ;;
    venv) python3 -c 'import ensurepip, venv' ;;
    cargo-*) "$1" --version || cargo "${1#cargo-}" --version ;;
    duckdb | datafusion | pyarrow)
        python3 -c "import $1" || PYTHONPATH=$tools_dir/$1 python3 -c "import $1"
        ;;
    opentelemetry)
        PYTHONPATH=$tools_dir/$1 python3 -c 'import opentelemetry.exporter.otlp.proto.grpc, opentelemetry.exporter.otlp.proto.http'
        ;;
    *) command -v "$1" ;;
    esac >/dev/null 2>&1
}

# need NEED...: installs what is missing, the packages of Debian first and in one go.
need() {
    local it packages=() others=()
    for it in "$@"; do
        if has "$it"; then continue; fi
        if [[ -n ${debian[$it]:-} ]]; then read -ra packages <<<"${packages[*]} ${debian[$it]}"; else others+=("$it"); fi
    done
    ((${#packages[@]} == 0)) || install_packages "${packages[@]}"
    for it in "${others[@]}"; do
        # Another need may have brought it.
        if has "$it"; then continue; fi
        say "$it is missing: installing it"
        install "$it" || die "$it could not be installed"
        has "$it" || die "$it was installed, and still does not run"
    done
}

install() {
    case $1 in
    clippy | rustfmt) rustup component add "$1" >&2 ;;
    nightly) rustup toolchain install nightly --profile minimal >&2 ;;
    promtool) install_promtool ;;
    python-tools) install_python_tools ;;
    spark) install_spark ;;
    cargo-*) install_wheel "$1" || install_source "$1" ;;
    duckdb | datafusion | opentelemetry | pyarrow) install_python_package "$1" ;;
    *) return 1 ;;
    esac
}

as_root() { if [[ $(id -u) == 0 ]]; then "$@"; else sudo -n "$@"; fi; }

# install_packages PACKAGE...: says which packages of Debian it installs, and installs them.
install_packages() {
    command -v apt-get >/dev/null || die "no apt-get here: please install $*, or use --no-install where it exists"
    as_root true 2>/dev/null ||
        die "sudo needs a password: please run 'sudo apt-get install --no-install-recommends $*', or use --no-install where it exists"
    say "installing packages of Debian: $*"
    { as_root apt-get update --quiet=2 &&
        as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install --quiet=2 --yes --no-install-recommends "$@"; } >&2 ||
        die "packages of Debian could not be installed: $*"
}

# install_wheel TOOL: a prebuilt wheel takes seconds, a build from source minutes.
install_wheel() {
    local tool=$1 wanted="$tools_dir/$1.txt" unpacked="$tools_dir/wheel-$1"
    has python || return 1
    mkdir -p "$tools_dir/bin"
    # The lines of this one tool: its name and the hashes that follow.
    sed -n "/^astral-dev-toolchain-$tool==/,/[^\\\\]\$/p" \
        "$root/scripts/support/tools.txt" >"$wanted"
    [[ -s $wanted ]] || return 1
    rm -rf "$unpacked"
    pip_install --no-deps --target "$unpacked" -r "$wanted" || return 1
    mv "$unpacked/bin/$tool" "$tools_dir/bin/$tool" || return 1
    rm -rf "$unpacked"
    has "$tool" || {
        # Built for another system library, say.
        rm -f "$tools_dir/bin/$tool"
        return 1
    }
}

# The version of a tool that tools.txt pins.
pinned_version() {
    case $1 in
    # These have no wheel.
    cargo-deb) echo 3.8.0 ;;
    cargo-hack) echo 0.6.46 ;;
    # It reads the JSON of Rust 1.95; another compiler may need another version.
    cargo-public-api) echo 0.52.0 ;;
    *) sed -n "s/^astral-dev-toolchain-$1==\([0-9.]*\).*/\1/p" "$root/scripts/support/tools.txt" ;;
    esac
}

# Unoptimised: it builds in a third of the time, and these tools wait for cargo anyway.
install_source() {
    local tool=$1
    say "no wheel of $tool fits this machine: building it from source"
    CARGO_TARGET_DIR=$tools_dir/build CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
        CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_STRIP=none \
        cargo install --quiet --locked --root "$tools_dir" "$tool@$(pinned_version "$tool")" >&2 || return 1
    rm -rf "$tools_dir/build"
}

pip_install() {
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-input \
        --only-binary :all: --require-hashes "$@" >&2
}

# install_python_package NAME: what tests run beside Baler, as scripts/support/NAME.txt pins it.
install_python_package() {
    rm -rf "${tools_dir:?}/$1"
    pip_install --target "$tools_dir/$1" -r "$root/scripts/support/$1.txt"
}

# install_python_tools: what builds and tests the package in python/, in an environment of its own.
install_python_tools() {
    local folder=$tools_dir/python wanted=$root/scripts/support/python.txt
    rm -rf "$folder"
    python3 -m venv "$folder" && "$folder/bin/python" -m pip install --quiet \
        --disable-pip-version-check --no-input --only-binary :all: --require-hashes -r "$wanted" >&2 &&
        cp "$wanted" "$folder/installed.txt"
}

# install_spark: into the environment of the package in python/.
install_spark() {
    local folder=$tools_dir/python wanted=$root/scripts/support/spark.txt
    need python-tools
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
        --require-hashes -r "$wanted" >&2 && cp "$wanted" "$folder/spark.txt"
}

# install_promtool: it judges metrics and alert rules. The package itself would start a server.
install_promtool() {
    local folder=$tools_dir/prometheus
    mkdir -p "$folder" "$tools_dir/bin"
    (cd "$folder" && { apt-get download prometheus || { as_root apt-get update && apt-get download prometheus; }; } >&2 &&
        dpkg-deb -x prometheus_*.deb . && mv usr/bin/promtool "$tools_dir/bin/promtool")
    local status=$?
    rm -rf "$folder"
    return $status
}
