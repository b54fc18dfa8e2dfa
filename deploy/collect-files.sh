#!/bin/sh
# collect-files.sh ROOT PATH...: copies files and folders into ROOT, with the libraries that they link to, and
# names the packages of Debian that they are from where scanners look for them. For stages that end in `FROM scratch`.
set -eu
root=$1
shift
list=$(mktemp)
mkdir -p "$root"

for path; do
  [ -e "$path" ] || { echo "there is no $path" >&2 && exit 1; }
done
for path; do
  find "$path" -type f -o -type l
done | while read -r file; do
  echo "$file"
  ldd "$file" 2>/dev/null | grep -o '/[^ ]*' | grep -v ':$' || true
done | sort -u >"$list"

while read -r file; do
  # A library is copied under the name that programs ask for, in place of a link to it.
  cp -L --parents --preserve=mode "$file" "$root"
done <"$list"

mkdir -p "$root/var/lib/dpkg/status.d"
while read -r file; do
  # Debian's packages name some files without /usr.
  dpkg -S "$file" 2>/dev/null || dpkg -S "/usr$file" 2>/dev/null || dpkg -S "$(realpath "$file")" 2>/dev/null || true
done <"$list" | sed 's/: .*//; s/:.*//' | sort -u | while read -r name; do
  dpkg -s "$name" >"$root/var/lib/dpkg/status.d/$name"
done
rm "$list"
