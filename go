#!/bin/sh
# Sets everything up and runs the main job.
#
#   ./go             set up, grip and lift a soft ball, make pictures of it
#   ./go test [...]  set up, run the tests (further arguments go to pytest)
#   ./go setup       set up only
#   ./go help        print these lines
#
# Set up means: a virtual environment in .venv with femsim (editable), its tests' tools, the kernels of the common scenes compiled
# (not for the tests), and, where this is root on a Debian, the two system packages that pictures need. Nothing but pictures
# depends on those.
#
# Environment: FEMSIM_VENV    where the virtual environment is (default .venv)
#              FEMSIM_PYTHON  which Python makes it (default: the first of 3.13, 3.12, 3.11, 3.14, python3 that is at least 3.11)
#              FEMSIM_TEST_WORKERS  how many processes run the tests (default: one a core, at most 4; 0: this one, as a debugger needs)
set -eu
cd "$(dirname "$0")"

venv=${FEMSIM_VENV:-.venv}
scene=scenes/soft_ball_gripping.py
picture_packages="libegl1 libgl1-mesa-dri"

say() { printf '%s\n' "go: $*"; }
die() { printf '%s\n' "go: $*" >&2; exit 2; }
may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

apt_install() { # PACKAGE...: quiet, never asks, says what it does; fails without stopping the script
    say "installing system packages: $*"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } >/dev/null 2>&1
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
has_venv() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

find_python() { # prefers a Python that can make virtual environments
    candidates=${FEMSIM_PYTHON:-python3.13 python3.12 python3.11 python3.14 python3 /usr/bin/python3}
    python=
    for candidate in $candidates; do
        if new_enough "$candidate"; then
            if has_venv "$candidate"; then python=$candidate; return 0; fi
            [ -n "$python" ] || python=$candidate
        fi
    done
    [ -n "$python" ]
}

make_venv() {
    new_enough "$venv/bin/python" && "$venv/bin/python" -c "import pip" >/dev/null 2>&1 && return 0
    if ! find_python && [ -z "${FEMSIM_PYTHON:-}" ] && may_install; then
        apt_install python3 python3-venv || true
        find_python || true
    fi
    [ -n "$python" ] || die "Python 3.11 or newer is needed and was not found (tried: $candidates);" \
        "install it (Debian: apt-get install python3 python3-venv) or name one with FEMSIM_PYTHON=/path/to/python3."
    if ! has_venv "$python"; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        if may_install; then apt_install "$package" || true; fi
        has_venv "$python" || die "$python cannot make virtual environments;" \
            "install the package $package (apt-get install $package) and run this again."
    fi
    say "making the virtual environment $venv with $("$python" --version 2>&1)"
    rm -f "$venv/femsim-stamp"
    "$python" -m venv "$venv"
}

install_femsim() { # skipped while pyproject.toml, constraints.txt and this folder's place are what they were
    stamp="$(cat pyproject.toml constraints.txt | cksum) $(pwd -P)"
    [ "$(cat "$venv/femsim-stamp" 2>/dev/null)" = "$stamp" ] && return 0
    say "installing femsim and what it needs into $venv (about 2.4 GB; a few minutes the first time)"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --constraint constraints.txt --editable '.[dev]' ||
        die "pip could not install femsim (its message is above); check the network and the disk space, then run this again."
    printf '%s\n' "$stamp" >"$venv/femsim-stamp"
}

can_render() { "$venv/bin/femsim" doctor --rendering >/dev/null 2>&1; }

prepare_pictures() { # sets pictures=yes|no
    pictures=yes
    can_render && return 0
    if may_install; then
        # shellcheck disable=SC2086 # a list of packages
        apt_install $picture_packages || true
        can_render && return 0
    fi
    pictures=no
    say "pictures cannot be made on this machine and are left out; everything else works." \
        "To have them: apt-get install -y --no-install-recommends $picture_packages"
}

compile_kernels() { # skipped where they are compiled already
    "$venv/bin/femsim" doctor --compile || say "not all kernels could be compiled ahead (see above); runs compile what they need."
}

set_up() { make_venv; install_femsim; }

run_main_job() {
    run="runs/soft_ball_gripping-$(date +%Y%m%d-%H%M%S)"
    status=0
    "$venv/bin/femsim" run "$scene" --out "$run" || status=$?
    # 3: finished, but some step did not converge; the results are there
    [ "$status" = 0 ] || [ "$status" = 3 ] || exit "$status"
    if [ "$pictures" = yes ]; then
        "$venv/bin/femsim" render "$run"
        say "ready: the film is $run/pictures/run.mp4; how to go on: README.md, $venv/bin/femsim --help"
    else
        say "ready: $run; no pictures of it, since this machine cannot render (see above)."
    fi
}

case ${1:-} in
    "") set_up; prepare_pictures; compile_kernels; run_main_job; exit "$status" ;;
    setup) set_up; compile_kernels; prepare_pictures; say "ready: $venv/bin/femsim --help" ;;
    test)
        shift; set_up
        # threads that wait for each other cost minutes where another process has the other core
        export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" MKL_NUM_THREADS="${MKL_NUM_THREADS:-1}" OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-1}"
        cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
        workers=${FEMSIM_TEST_WORKERS:-$((cores < 4 ? cores : 4))}
        # a worker that dies ends the run: xdist, asked for a new one, waits for ever with whole files as its units; their order is
        # that of tests/conftest.py, long ones first
        exec "$venv/bin/python" -m pytest -n "$workers" --dist loadfile --no-loadscope-reorder --max-worker-restart 0 "$@" ;;
    help | -h | --help) sed -n '2,/^set -eu/{/^set -eu/!s/^# \{0,1\}//p;}' "$0" ;;
    *) die "'$1' is not known; there are: ./go, ./go test, ./go setup, ./go help." ;;
esac
