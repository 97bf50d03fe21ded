// SPDX-License-Identifier: Apache-2.0

//go:build eyefault

package serve

/*
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <signal.h>
#include <stdint.h>

static void fault_abort(void) { abort(); }
static void fault_segment(void) { *(volatile int *)8 = 1; }
static void fault_spin(void) { for (;;) { __asm__ volatile(""); } }
static void fault_memory(void) {
	for (;;) {
		char *p = malloc(64 << 20);
		if (p == NULL) abort();
		memset(p, 1, 64 << 20);
	}
}
*/
import "C"

import (
	"os"
	"strconv"
	"strings"
)

var asked int

// fault crashes in the way and at the frame in FACEAUTH_EYE_FAULT, such as "abort 3", by a fault in C, like a flaw in a
// decoder.
func fault() {
	how, at, ok := strings.Cut(os.Getenv("FACEAUTH_EYE_FAULT"), " ")
	asked++
	if n, err := strconv.Atoi(at); !ok || err != nil || asked != n {
		return
	}
	switch how {
	case "abort":
		C.fault_abort()
	case "segment":
		C.fault_segment()
	case "spin":
		C.fault_spin()
	case "memory":
		C.fault_memory()
	case "panic":
		panic("a fault")
	}
}
