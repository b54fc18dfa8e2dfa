#!/bin/sh
# Usage: generate.sh FOLDER
# Writes the Python modules of the API to FOLDER, by protoc and grpc_python_plugin (Debian: protobuf-compiler,
# protobuf-compiler-grpc) or by grpcio-tools (PyPI).
set -eu
mkdir -p "$1"
out=$(cd "$1" && pwd)
protos=$(mktemp -d)
trap 'rm -rf "$protos"' EXIT
npm --prefix "$(dirname "$0")/../.." run --silent proto:export -- "$protos"
cd "$protos"
files=$(find queuedcrawler google -name '*.proto')
if plugin=$(command -v grpc_python_plugin); then
  protoc -I . --python_out="$out" --grpc_out="$out" --plugin=protoc-gen-grpc="$plugin" $files
else
  python3 -m grpc_tools.protoc -I . --python_out="$out" --grpc_python_out="$out" $files
fi
