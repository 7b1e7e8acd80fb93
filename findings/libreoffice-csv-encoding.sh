#!/usr/bin/env bash
# LibreOffice without a window reads a CSV file in UTF-8 as Windows-1252, even when it begins with a byte order mark, and
# when it writes UTF-8 the mark has become six bytes of text. Only a filter option (76 is UTF-8) makes it read UTF-8.
# Seen with LibreOffice 7.4.7.2. We expected the mark, or the locale, to decide.
set -euo pipefail
command -v soffice >/dev/null || { echo 'This needs LibreOffice (Debian: libreoffice-calc-nogui).'; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export HOME=$folder LANG=C.UTF-8 LC_ALL=C.UTF-8
convert() { soffice --headless "$@" >/dev/null 2>&1; }
hex() { od -An -tx1 "$1" | tr -d ' \n'; }

utf8='csv:Text - txt - csv (StarCalc):44,34,76'
printf '\xef\xbb\xbfname,town\nAda,K\xc3\xb6ln\n' >marked.csv
mkdir plain told
convert --convert-to "$utf8" --outdir plain marked.csv
convert --infilter=CSV:44,34,76 --convert-to "$utf8" --outdir told marked.csv
soffice --version | head -n 1
echo "as it comes:   $(hex plain/marked.csv)"
echo "told it is 76: $(hex told/marked.csv)"
[[ $(hex plain/marked.csv) == c3afc2bbc2bf* ]] || { echo 'CHANGED: the mark is no longer read as text.'; exit 1; }
[[ $(hex told/marked.csv) == *4bc3b66c6e* ]] || { echo 'CHANGED: the option no longer makes it read UTF-8.'; exit 1; }
echo 'As described.'
