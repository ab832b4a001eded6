#!/bin/sh
set -e
exec python3 "$BAI_SCRIPTS_PATH/src/train.py" "$@"
