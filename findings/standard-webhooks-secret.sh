#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Standard Webhooks, official Go library 0.0.1: a secret without the prefix whsec_ is decoded as base64, too. A secret of
# hexadecimal digits is therefore taken without an error and means other bytes than its text, so a sender that signs with
# the text is refused; the constructor for plain bytes accepts that signature.
# Expected: without the prefix, the secret is the bytes of its text, or an error.
# Seen: hexadecimal: "no matching signature found"; as raw bytes: accepted; words with spaces: the constructor fails.
set -eu
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"

	sw "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	const text = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	body, now := []byte(`{"type":"door.opened"}`), time.Now()
	plain, _ := sw.NewWebhookRaw([]byte(text))
	signature, err := plain.Sign("msg_1", now, body)
	if err != nil {
		panic(err)
	}
	h := http.Header{}
	h.Set("webhook-id", "msg_1")
	h.Set("webhook-timestamp", fmt.Sprint(now.Unix()))
	h.Set("webhook-signature", signature)
	named, err := sw.NewWebhook(text)
	if err != nil {
		panic(err)
	}
	_, words := sw.NewWebhook("a long sentence that nobody guesses")
	fmt.Println("as text:", named.Verify(body, h))
	fmt.Println("as bytes:", plain.Verify(body, h))
	fmt.Println("words refused:", words != nil)
	if named.Verify(body, h) == nil || plain.Verify(body, h) != nil || words == nil {
		os.Exit(1)
	}
}
EOF
export GOFLAGS=-mod=mod GOPATH="$dir/go"
go mod init finding >/dev/null 2>&1
go get github.com/standard-webhooks/standard-webhooks/libraries@v0.0.1 >/dev/null 2>&1
go run .
