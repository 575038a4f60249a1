# shellcheck shell=bash
# Sourced by the scripts beside this folder. `prepare EXTRA` leaves $venv: a virtual environment in which this checkout
# is installed, so that a change of code takes effect at once; EXTRA is an extra of pyproject.toml, or ''.
#
# It stands in .venv, or in the caller's own cache folder where .venv belongs to somebody else or cannot be made.
# Nothing is installed again until pyproject.toml, setup.py or the Python changes.

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
unset PYTHONHOME PYTHONPATH PIP_USER PIP_TARGET PIP_PREFIX

say() { printf '%s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }

# The first Python that is new enough and can make environments; $PYTHON goes before all others.
find_python() {
  local name found_old='' lacks_venv=''
  for name in ${PYTHON:+"$PYTHON"} python3 python3.12 python3.11 python3.13 python3.14 python; do
    "$name" -c '' 2>/dev/null || continue
    if ! "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      found_old=$("$name" --version 2>&1)
    elif ! "$name" -c 'import ensurepip, venv' 2>/dev/null; then
      lacks_venv=$name
    else
      python=$name
      return
    fi
  done
  [ -z "$lacks_venv" ] || fail "$lacks_venv cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv"
  [ -z "$found_old" ] || fail "Remembrancer needs Python 3.11 or newer; found only $found_old. Name another with PYTHON=/path/to/python"
  fail 'Remembrancer needs Python 3.11 or newer; found none on the PATH. Name one with PYTHON=/path/to/python'
}

# The folder for the environment: one that this user owns, or can make and own.
choose_folder() {
  venv=$checkout/.venv
  if [ -e "$venv" ]; then [ -O "$venv" ] && [ -w "$venv" ] && return; else [ -w "$checkout" ] && return; fi

  local cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/remembrancer
  if ! mkdir -p "$cache" 2>/dev/null || [ ! -w "$cache" ]; then # a user without a home
    cache=${TMPDIR:-/tmp}/remembrancer-$(id -u)
    mkdir -m 700 "$cache" 2>/dev/null || [ -O "$cache" ] || fail "Neither $checkout nor a cache folder can be written: set XDG_CACHE_HOME."
  fi
  venv=$cache/venv-$(printf '%s' "$checkout" | cksum | cut -d ' ' -f 1)
}

# What the environment was made from and for; empty where it does not run, or was moved with its absolute paths.
fingerprint() {
  "$venv/bin/python" - "$venv" "$checkout/pyproject.toml" "$checkout/setup.py" 2>/dev/null <<'PYTHON'
import hashlib, pathlib, sys
venv, *files = sys.argv[1:]
assert sys.version_info >= (3, 11) and f"{venv}\n" == pathlib.Path(venv, "made-as").read_text()
parts = [sys.version.encode(), *(pathlib.Path(file).read_bytes() for file in files)]
print(hashlib.sha256(b"\0".join(parts)).hexdigest())
PYTHON
}

prepare() {
  local extra=$1 wanted log
  choose_folder
  wanted=$(fingerprint || true)
  if [ -z "$wanted" ]; then
    find_python
    say "Making a virtual environment with $("$python" --version) in $venv"
    "$python" -m venv --clear "$venv"
    printf '%s\n' "$venv" >"$venv/made-as"
    wanted=$(fingerprint) || fail "The virtual environment in $venv does not run."
  fi
  if [ "$(cat "$venv/installed-${extra:-plain}" 2>/dev/null)" = "$wanted" ]; then return; fi
  if [ -z "$extra" ] && [ "$(cat "$venv/installed-test" 2>/dev/null)" = "$wanted" ]; then return; fi

  say "Installing Remembrancer${extra:+ with its $extra extra} (once; a minute or two)"
  # Building leaves files beside pyproject.toml. Links keep them in the environment, out of a checkout that may not be ours.
  mkdir -p "$venv/project"
  ln -sfn "$checkout"/{domain,projections,services,pyproject.toml,setup.py,README.md,LICENSE} "$venv/project/"
  log=$venv/install.log
  "$venv/bin/python" -m pip install --no-input --disable-pip-version-check --editable "$venv/project${extra:+[$extra]}" >"$log" 2>&1 || {
    cat "$log" >&2
    fail "Installing failed; the messages above say why."
  }
  printf '%s\n' "$wanted" >"$venv/installed-${extra:-plain}"
}
