#!/bin/sh
# Opens the setup assistant for PyTorch on a machine that need not have Python. It brings uv, which brings a Python of
# its own, and starts the assistant with it; pasted again, it opens the assistant again.
#
#   curl -LsSf https://github.com/OWNER/PROJECT/releases/latest/download/install.sh | sh
#   curl -LsSf https://github.com/OWNER/PROJECT/releases/latest/download/install.sh | sh -s -- setup --yes
#
# It needs no administrator, changes no settings and writes only into your own data and cache folders. A uv on PATH is
# used as it is. Proxy variables, UV_DEFAULT_INDEX, UV_PYTHON_INSTALL_MIRROR and all other settings of uv hold.
# SETUP_ASSISTANT_SOURCE names what is installed: a requirement, such as "torch-setup-assistant[lab] @ FILE-OR-ADDRESS".
# Exit codes are those of the assistant; 1 where something could not be fetched, 3 where this machine is not supported.
set -u

UV_VERSION=0.13.9
# SHA-256 of uv's wheels. `renew.py` writes these lines here, in install.ps1 and in pyz/__main__.py. Linux gets the static
# build, which runs beside glibc and musl alike.
WHEELS='
linux-x86_64 uv-0.13.9-py3-none-musllinux_1_1_x86_64.whl 2c45530751517d6c3bbc69a19473f6effe47cce047bede01ffd8af7ea7b36b25
linux-aarch64 uv-0.13.9-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl 5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe
macos-x86_64 uv-0.13.9-py3-none-macosx_10_12_x86_64.whl c16ed11e013557536b3e60065f1b912f6407bd6518e041b961e23ef9e6b4fbf5
macos-arm64 uv-0.13.9-py3-none-macosx_11_0_arm64.whl 66c512266d633bef48384a1f53003f41f2a8e7b36fe6e7fbfd3e0fd52d96fa63
windows-x86_64 uv-0.13.9-py3-none-win_amd64.whl 6a44b2ed8111d2f60d2b92627c5dccda3f7ed7570b18ce115e569cd68c28246b
windows-arm64 uv-0.13.9-py3-none-win_arm64.whl eeb92051c2123b9730c46b04cc843cfa4bc7d7b0aec56df431a2215ef4cb0273
'
PYTHON=${UV_PYTHON:-3.12}

# Everything is a function that the last line calls: of a script that arrives half, nothing runs.
main() {
    source=${SETUP_ASSISTANT_SOURCE:-torch-setup-assistant[lab]}
    [ $# -gt 0 ] || set -- lab
    # What pip calls the index, uv does not know: https://docs.astral.sh/uv/pip/compatibility/
    index=${UV_DEFAULT_INDEX:-${UV_INDEX_URL:-${PIP_INDEX_URL:-https://PYPI/simple}}}
    if [ -n "${PIP_INDEX_URL-}" ]; then
        export UV_DEFAULT_INDEX="$index"
    fi
    find_machine
    uv=$(command -v uv)
    "${uv:-none}" --version >/dev/null 2>&1 || bring_uv
    # As a module: the script that uv would start needs realpath, which Macs have from macOS 13 on.
    set -- "$uv" tool run --python "$PYTHON" --from "$source" python -P -m torch_setup_assistant "$@"
    say "Getting the assistant ready; the first time this takes a minute or two." \
        "正在准备安装助手，第一次需要一两分钟。"
    "$uv" tool run --python "$PYTHON" --from "$source" python -P -m torch_setup_assistant --version >/dev/null ||
        fail 1 "uv could not get Python or the assistant ready; its own words are above. Often it is the network: check it and the proxy (HTTPS_PROXY), or set UV_DEFAULT_INDEX to another package index and UV_PYTHON_INSTALL_MIRROR to another source of Python, then start again." \
            "uv 无法准备好 Python 或安装助手，原因见上方 uv 的提示。多半是网络问题：请检查网络和代理（HTTPS_PROXY），或用 UV_DEFAULT_INDEX 指定其他软件包索引（例如 https://pypi.tuna.tsinghua.edu.cn/simple），用 UV_PYTHON_INSTALL_MIRROR 指定 Python 的镜像，然后重新开始。"
    # The assistant shows its commands as they can be typed here.
    SETUP_ASSISTANT_STARTED_AS="$(quoted "$uv") tool run --python $PYTHON --from $(quoted "$source") python -P -m torch_setup_assistant"
    export SETUP_ASSISTANT_STARTED_AS
    # Where this script is itself the input, questions are asked at the terminal.
    if [ ! -f "$0" ] && [ ! -t 0 ] && (: </dev/tty) 2>/dev/null; then
        exec "$@" </dev/tty
    fi
    exec "$@"
}

find_machine() {
    system=$(uname -s)
    arch=$(uname -m)
    data="${XDG_DATA_HOME:-${HOME-}/.local/share}"
    case $system in
        Linux) system=linux ;;
        Darwin)
            system=macos
            data="${XDG_DATA_HOME:-${HOME-}/Library/Application Support}"
            # A shell under Rosetta says x86_64, and an x86_64 Python would know nothing of the GPU.
            if [ "$(sysctl -n hw.optional.arm64 2>/dev/null)" = 1 ]; then
                arch=arm64
                [ -n "${UV_PYTHON-}" ] || PYTHON=cpython-$PYTHON-macos-aarch64
            fi
            ;;
    esac
    case $system-$arch in
        linux-amd64) arch=x86_64 ;;
        linux-arm64) arch=aarch64 ;;
    esac
    folder=$data/pytorch-setup-assistant/uv-$UV_VERSION
}

bring_uv() {
    uv=$folder/uv
    # Whom the system trusts, such as a company's proxy, curl trusts; busybox's wget trusts everybody, so there uv's own list.
    if command -v curl >/dev/null; then
        export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}"
    fi
    if "$uv" --version >/dev/null 2>&1; then
        return
    fi
    line=$(printf '%s' "$WHEELS" | grep "^$system-$arch ") ||
        fail 3 "There is no PyTorch for this machine ($system, $arch). If there is one after all, put uv on PATH (https://docs.astral.sh/uv/) and start again." \
            "没有适合这台机器（$system，$arch）的 PyTorch。如果确实有，请先安装 uv（https://docs.astral.sh/uv/）并加入 PATH，然后重新开始。"
    wheel=${line#* }
    sum=${wheel#* }
    wheel=${wheel% *}
    if ! { [ -n "${HOME-}" ] && mkdir -p "$folder" && part=$(mktemp -d "$folder/part.XXXXXX"); } 2>/dev/null; then
        fail 1 "$folder cannot be written to. Set HOME to a folder of yours that has 2 GB free, then start again." \
            "无法写入 $folder。请把 HOME 设为您自己的、有 2 GB 空闲空间的文件夹，然后重新开始。"
    fi
    trap 'rm -rf "$part"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' HUP TERM
    say "Fetching uv $UV_VERSION, which brings Python (this once)." "正在下载 uv $UV_VERSION，由它准备 Python（仅此一次）。"
    fetch_uv
    chmod +x "$part/uv"
    "$part/uv" --version >/dev/null 2>&1 ||
        fail 1 "uv does not run in $folder; perhaps no program may. Set HOME to another folder of yours, then start again." \
            "uv 无法在 $folder 中运行，可能是该文件夹不允许运行程序。请把 HOME 设为您自己的其他文件夹，然后重新开始。"
    mv -f "$part/uv" "$uv"
    rm -rf "$part"
    trap - EXIT INT HUP TERM
}

fetch_uv() {
    page=${index%/}/uv/
    fetch "$page" "$part/page" || unreachable "$page"
    # A page of links (PEP 503), with or without line breaks. curl and wget resolve `..` by themselves.
    link=$(tr '>' '\n' <"$part/page" | sed -n "s/.*href=[\"']\([^\"'#]*$wheel\).*/\1/p" | head -n 1)
    case $link in
        '')
            page=$(without_password "$page")
            fail 1 "$page does not have $wheel. Set UV_DEFAULT_INDEX to another package index, or put uv on PATH (https://docs.astral.sh/uv/), then start again." \
                "$page 没有 $wheel。请用 UV_DEFAULT_INDEX 指定其他软件包索引，或安装 uv（https://docs.astral.sh/uv/）并加入 PATH，然后重新开始。"
            ;;
        *://*) ;;
        /*) link=$(printf '%s' "$page" | sed 's|^\([a-z]*://[^/]*\).*|\1|')$link ;;
        *) link=$page$link ;;
    esac
    fetch "$link" "$part/uv.whl" || unreachable "$link"
    found=$(sha256 "$part/uv.whl")
    [ -n "$found" ] || missing "sha256sum, shasum, openssl"
    [ "$found" = "$sum" ] ||
        fail 1 "$wheel arrived damaged, or was changed on the way, and was thrown away. Start again; if that does not help, use another network or set UV_DEFAULT_INDEX to another package index." \
            "$wheel 下载后已损坏或在途中被改动，已丢弃。请重新开始；如仍不行，请换一个网络，或用 UV_DEFAULT_INDEX 指定其他软件包索引。"
    unpack || missing "unzip, bsdtar, busybox, python3"
}

fetch() {
    if command -v curl >/dev/null; then
        curl -fsSL --retry 2 --connect-timeout 20 -o "$2" "$1"
    elif wget --version >/dev/null 2>&1; then
        wget -q -t 3 -T 20 -O "$2" "$1"
    elif command -v wget >/dev/null; then
        wget -q -O "$2" "$1" # busybox', some of which crash at -T
    else
        missing "curl, wget"
    fi
}

sha256() {
    if command -v sha256sum >/dev/null; then
        sha256sum "$1"
    elif command -v shasum >/dev/null; then
        shasum -a 256 "$1"
    elif command -v openssl >/dev/null; then
        openssl dgst -sha256 -r "$1"
    fi | cut -d ' ' -f 1
}

unpack() {
    program=uv-$UV_VERSION.data/scripts/uv
    if command -v unzip >/dev/null; then
        unzip -q "$part/uv.whl" "$program" -d "$part"
    elif command -v bsdtar >/dev/null; then
        bsdtar -xf "$part/uv.whl" -C "$part" "$program"
    elif command -v busybox >/dev/null; then
        busybox unzip -q "$part/uv.whl" "$program" -d "$part"
    elif command -v python3 >/dev/null; then
        python3 -m zipfile -e "$part/uv.whl" "$part"
    fi
    mv "$part/$program" "$part" 2>/dev/null
}

unreachable() {
    address=$(without_password "$1")
    fail 1 "$address cannot be fetched. Check the network and the proxy (HTTPS_PROXY), or set UV_DEFAULT_INDEX to another package index, then start again." \
        "无法下载 $address。请检查网络和代理（HTTPS_PROXY），或用 UV_DEFAULT_INDEX 指定其他软件包索引（例如 https://pypi.tuna.tsinghua.edu.cn/simple），然后重新开始。"
}

without_password() {
    printf '%s' "$1" | sed 's|//[^/]*@|//|'
}

missing() {
    fail 1 "One of these programs is needed here: $1. Install one, then start again." \
        "需要以下程序之一：$1。请安装其中一个，然后重新开始。"
}

# English, or Chinese where the system speaks Chinese and its encoding is UTF-8.
say() {
    case ${LC_ALL:-${LC_CTYPE:-${LANG-}}} in
        *.UTF-8 | *.utf8 | *.utf-8 | *.UTF8) ;;
        *) set -- "$1" "$1" ;;
    esac
    case ${LANGUAGE:-${LC_ALL:-${LC_MESSAGES:-${LANG-}}}} in
        zh*) printf '%s\n' "$2" >&2 ;;
        *) printf '%s\n' "$1" >&2 ;;
    esac
}

fail() {
    code=$1
    shift
    say "$@"
    exit "$code"
}

quoted() {
    case $1 in
        *[!A-Za-z0-9_./:@%+=-]*) printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")" ;;
        *) printf '%s' "$1" ;;
    esac
}

main "$@"
