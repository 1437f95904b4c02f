#!/bin/sh
# Sets this machine up from the bundle in this folder, without any network.
#
#   sh start.sh                            asks once, installs and verifies
#   sh start.sh --yes --target /opt/torch  asks nothing; nor does it where there is no terminal
#   sh start.sh detect --json              any other command of the assistant
#
# Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the bundle has nothing for this machine. All that is said also goes into
# a log: SETUP_ASSISTANT_LOG, by default start.log in the assistant's folder of your data, where the environments are.
set -u

# Everything is a function that the last line calls: of a script that was copied half, nothing runs.
main() {
    bundle=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1
    find_machine
    [ -f "$bundle/uv/$platform/uv" ] || fail 3 machine
    mkdir -p "$home" 2>/dev/null && [ -w "$home" ] || fail 1 folder
    SETUP_ASSISTANT_LOG=${SETUP_ASSISTANT_LOG:-$data/pytorch-setup-assistant/start.log}
    export SETUP_ASSISTANT_LOG
    bring_uv
    find_own || make_own
    # The assistant shows its commands as they can be typed here.
    SETUP_ASSISTANT_STARTED_AS="sh $(quoted "$bundle/start.sh")"
    export SETUP_ASSISTANT_STARTED_AS
    case ${1-} in
        '' | -*)
            # What the bundle holds, and nothing from anywhere else.
            unset UV_INDEX UV_DEFAULT_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_FIND_LINKS
            unset PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS
            export UV_NO_CONFIG=1 PIP_CONFIG_FILE=/dev/null
            set -- bundle install "$bundle" "$@"
            ;;
    esac
    exec "$own/bin/python" -P -m torch_setup_assistant "$@"
}

find_machine() {
    arch=$(uname -m)
    data=${XDG_DATA_HOME:-${HOME-}/.local/share}
    case $(uname -s) in
        Darwin)
            system=macos
            data=${XDG_DATA_HOME:-${HOME-}/Library/Application Support}
            # A shell under Rosetta says x86_64, and an x86_64 Python would know nothing of the GPU.
            [ "$(sysctl -n hw.optional.arm64 2>/dev/null)" != 1 ] || arch=arm64
            ;;
        *) system=linux ;;
    esac
    case $system-$arch in
        linux-amd64) arch=x86_64 ;;
        linux-arm64) arch=aarch64 ;;
    esac
    platform=$system-$arch
    home=$data/pytorch-setup-assistant/bundle
    # uv takes a Python that it needs from here, but not where it is told to stay offline.
    offline=yes
    if [ -d "$bundle/python/$platform" ]; then
        export UV_PYTHON_INSTALL_MIRROR="file://$bundle/python/$platform"
        offline=
    fi
}

# From a share or a memory stick no program may run, perhaps.
bring_uv() {
    uv=$home/uv
    cmp -s "$bundle/uv/$platform/uv" "$uv" && return
    { cp "$bundle/uv/$platform/uv" "$uv.$$" && chmod +x "$uv.$$" && mv -f "$uv.$$" "$uv"; } || fail 1 folder
}

# Lists have names as linux-x86_64-3.12-0123456789ab.txt: an environment of that name holds just its packages.
find_own() {
    for list in "$bundle/assistant/$platform"-*.txt; do
        own=$home/$(basename "$list" .txt)
        [ ! -f "$own/ready" ] || return 0
    done
    return 1
}

make_own() {
    part=$home/part.$$
    trap 'rm -rf "$part"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' HUP TERM
    for list in "$bundle/assistant/$platform"-*.txt; do
        own=$home/$(basename "$list" .txt)
        version=${list##*"$platform"-}
        uv venv --quiet --no-project --relocatable --clear --python "${version%%-*}" "$part" || continue
        uv pip install --quiet --python "$part/bin/python" --no-index --find-links "$bundle/wheels" --no-deps \
            --require-hashes --requirements "$list" || fail 1 failed "$home/said"
        : >"$part/ready"
        rm -rf "$own"
        mv "$part" "$own" || fail 1 folder
        trap - EXIT INT HUP TERM
        remove_others
        return
    done
    fail 1 python "$home/said"
}

uv() {
    "$uv" --no-config ${offline:+--offline} "$@" >"$home/said" 2>&1
    code=$?
    cat "$home/said" >>"$SETUP_ASSISTANT_LOG"
    return $code
}

# What an earlier bundle brought, or a start that was killed has left.
remove_others() {
    for other in "$home"/*/; do
        [ "$other" = "$own/" ] || rm -rf "$other"
    done
}

# A sentence in every language, which the bundle brings; before it what uv said.
fail() {
    [ $# -lt 3 ] || cat "$3" >&2
    cat "$bundle/assistant/says/$2.txt" >&2
    [ -z "${SETUP_ASSISTANT_LOG-}" ] || cat "$bundle/assistant/says/$2.txt" >>"$SETUP_ASSISTANT_LOG"
    exit "$1"
}

quoted() {
    case $1 in
        *[!A-Za-z0-9_./:@%+=-]*) printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")" ;;
        *) printf '%s' "$1" ;;
    esac
}

main "$@"
