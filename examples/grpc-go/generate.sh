#!/bin/sh
# Usage: generate.sh FOLDER
# Writes the Go package queuedcrawler/v1 to FOLDER/src, by protoc, protoc-gen-go and protoc-gen-go-grpc.
set -eu
mkdir -p "$1/src"
out=$(cd "$1/src" && pwd)
protos=$(mktemp -d)
trap 'rm -rf "$protos"' EXIT
npm --prefix "$(dirname "$0")/../.." run --silent proto:export -- "$protos"
cd "$protos"
protoc -I . --go_out="$out" --go-grpc_out="$out" $(find queuedcrawler -name '*.proto')
