#!/bin/sh
# Sees to what pip and npm cannot bring. Installs it with apt, as root or through sudo; where that is not
# possible it says in its first line what is missing, then how to get it, and fails: before anything is built.
#
#   sh tests/system_packages.sh demo     what an environment needs
#   sh tests/system_packages.sh test     what the tests need besides
#
# PYTHON   the Python to make the environment with (python3)
# WITHOUT  programs to do without: "chromium gstreamer mosquitto openssl" or some; their tests are skipped
# SBIN     where system programs lie that are not on everybody's PATH
set -eu

PYTHON=${PYTHON:-python3}
WITHOUT=${WITHOUT:-}
PATH=$PATH${SBIN-:/usr/local/sbin:/usr/sbin}
purpose=${1:-test}

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# Whether one of these programs runs: on Ubuntu `chromium-browser` may only say that a snap is wanted.
runs() {
    for program in "$@"; do
        if has "$program" && "$program" --version >/dev/null 2>&1; then return 0; fi
    done
    return 1
}

wanted() {
    case " $WITHOUT " in *" $1 "*) return 1 ;; esac
}

# Whether the system's own Python has GStreamer's RTSP server; tests/rtsp_server.py is run with it.
rtsp_server() { "${SYSTEM_PYTHON:-/usr/bin/python3}" -c "$rtsp_check" >/dev/null 2>&1; }
rtsp_check='
import gi
gi.require_version("GstRtspServer", "1.0")
from gi.repository import Gst, GstRtspServer
Gst.init(None)
assert Gst.ElementFactory.find("rtph264pay") and Gst.ElementFactory.find("matroskademux")
assert Gst.ElementFactory.find("tsdemux") and Gst.ElementFactory.find("h264parse")
'

# Prints the package of the browser: Debian also has Chromium without a user interface, which does half of the work.
browser() {
    if has apt-cache && apt-cache show chromium-headless-shell >/dev/null 2>&1; then
        echo chromium-headless-shell
    else
        echo chromium
    fi
}

# Prints the packages that are missing, one on each line, each with what it is for.
missing() {
    has make || echo 'make runs all this'
    if ! has "$PYTHON"; then
        echo 'python3-venv Python 3.11 or newer'
    # Debian ships Python without the part that makes environments.
    elif ! "$PYTHON" -m ensurepip --version >/dev/null 2>&1; then
        minor=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        echo "python$minor-venv the part of Python that makes environments"
    fi
    [ "$purpose" = test ] || return 0
    if wanted chromium && ! runs chromium-headless-shell chromium chromium-browser google-chrome; then
        echo "$(browser) the browser that the page is tested in"
    fi
    if wanted mosquitto && ! { has mosquitto && has mosquitto_passwd; }; then
        echo 'mosquitto the broker that MQTT is tested with'
    fi
    if wanted openssl && ! has openssl; then
        echo 'openssl makes the certificates that TLS is tested with'
    fi
    if wanted gstreamer && ! rtsp_server; then
        echo 'gir1.2-gst-rtsp-server-1.0 the RTSP server that fetching cameras is tested with'
        echo 'gstreamer1.0-plugins-good what it plays video files with'
        echo 'gstreamer1.0-plugins-bad what it plays streams with whose pictures change their size'
        echo 'python3-gi what it is written with'
    fi
}

names() { missing | while read -r name _; do printf ' %s' "$name"; done; }

# Prints how to run a command as root without a question; fails when there is no way.
root() {
    if [ "$(id -u)" -eq 0 ]; then
        echo env
    elif has sudo && sudo -n true >/dev/null 2>&1; then
        echo 'sudo -n env'
    else
        return 1
    fi
}

give_up() {
    echo "error: make $purpose needs what pip and npm cannot bring:$(names)"
    missing | while read -r name reason; do echo "  $name: $reason"; done
    echo "$1"
    has apt-get && echo "Install it by hand, as root: apt-get install$(names)"
    if [ "$purpose" = test ]; then
        echo 'To skip the tests that need a program: make test WITHOUT="chromium gstreamer mosquitto openssl" (or some of them)'
    fi
    exit 1
} >&2

for name in $WITHOUT; do
    case $name in
        chromium | gstreamer | mosquitto | openssl) echo "without $name: the tests that need it are skipped" ;;
        *) fail "error: WITHOUT may name chromium, gstreamer, mosquitto and openssl, not $name" ;;
    esac
done
if has "$PYTHON" && ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    fail "error: edgebox needs Python 3.11 or newer, and $PYTHON is $("$PYTHON" --version 2>&1)" \
        "Name a newer one: make $purpose PYTHON=python3.11"
fi

packages=$(names)
[ -n "$packages" ] || exit 0
has apt-get || give_up 'There is no apt-get here to install it with.'
as_root=$(root) || give_up 'Only root may install it, and sudo is not possible here without a password.'
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Lists that are old, or of which one cannot be reached, may still do.
$as_root apt-get update >"$log" 2>&1 || true
packages=$(names) # as the lists name them now
echo "installing with apt:$packages"
# shellcheck disable=SC2086  # several words each
if ! $as_root DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages >>"$log" 2>&1; then
    cat "$log" >&2
    give_up 'apt could not install it; above is what it said.'
fi
[ -z "$(names)" ] || give_up 'apt has installed it, but it does not work here.'
