// SPDX-License-Identifier: Apache-2.0

// Command fault is an eye that breaks in the way and at the frame in FACEAUTH_EYE_FAULT, such as
// "abort 3", by a fault in C, like a flaw in a decoder.
package main

/*
#include <stdlib.h>
#include <string.h>

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
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/eye/serve"
	"github.com/faceauth/faceauth/internal/eyecmd"
	"github.com/faceauth/faceauth/internal/wire"
)

func main() {
	if len(os.Args) > 1 {
		eyecmd.Main()
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	program, inside := conn(3), conn(pair[0])
	go io.Copy(program, inside)
	go func() {
		defer inside.Close()
		asked := 0
		for {
			var q request
			err := wire.ReadRequest(program, &q)
			if err != nil {
				return
			}
			if q.Next != nil {
				asked++
				fault(asked)
			}
			inside.Write(wire.AppendRequest(nil, q))
		}
	}()
	if err := serve.Main(context.Background(), pair[1], ""); err != nil {
		panic(err)
	}
}

type request = wire.Request[eye.Vision, eye.Options]

func conn(fd int) net.Conn {
	f := os.NewFile(uintptr(fd), "eye")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		panic(err)
	}
	return c
}

func fault(frame int) {
	var how string
	var at int
	fmt.Sscan(os.Getenv("FACEAUTH_EYE_FAULT"), &how, &at)
	if at != frame {
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
