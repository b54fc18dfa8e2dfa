#!/bin/sh
# Usage: generate.sh FOLDER
# Writes the Java classes of the API to FOLDER, by protoc and grpc_java_plugin, and compiles them with the program to
# FOLDER/classes. CLASSPATH has to have the jars of grpc-java and protobuf.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/classes"
out=$(cd "$1" && pwd)
protos=$(mktemp -d)
trap 'rm -rf "$protos"' EXIT
npm --prefix "$here/../.." run --silent proto:export -- "$protos"
cd "$protos"
protoc -I . --java_out="$out" --grpc-java_out="$out" --plugin=protoc-gen-grpc-java="$(command -v grpc_java_plugin)" \
  $(find queuedcrawler google -name '*.proto')
javac -nowarn -d "$out/classes" "$here/Crawl.java" $(find "$out" -name '*.java')
