// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/internal/fixture"
)

// A network camera is reached by its address and by its name, and its server receives this name. It is reached again
// after it broke off, and after a first name was wrong.
func TestNetworkCamera(t *testing.T) {
	pictures, err := filepath.Glob(filepath.Join(fixture.Recordings(t, "faces/vidtimit_rot/p2"), "*"))
	if err != nil || len(pictures) < 3 {
		t.Fatal(err)
	}
	var mu sync.Mutex
	hosts := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		hosts[r.Host]++
		mu.Unlock()
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=x")
		for range 20 {
			for _, p := range pictures[:3] {
				b, err := os.ReadFile(p)
				if err != nil {
					t.Error(err)
				}
				if _, err := fmt.Fprintf(w, "--x\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n",
					len(b),
					b); err != nil {
					return
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost"} {
		e := start(t)
		if host == "localhost" {
			_, err := e.Open(t.Context(), "http://no-such-name.invalid:"+port+"/s",
				eye.Options{Gate: eye.Learn, Timeout: 5 * time.Second})
			if err == nil || !strings.Contains(err.Error(), "the name no-such-name.invalid cannot be found") ||
				eye.Broken(err) {
				t.Errorf("a name that there is not: %v", err)
			}
		}
		for range 2 {
			s, err := e.Open(t.Context(), "http://"+host+":"+port+"/stream", eye.Options{Gate: eye.Learn, Live: true})
			if err != nil {
				t.Fatal(err)
			}
			if f, err := s.Next(t.Context()); err != nil || len(f.Samples) != 1 {
				t.Errorf("%s: %d faces, %v", host, len(f.Samples), err)
			}
		}
		mu.Lock()
		if hosts[host+":"+port] < 2 {
			t.Errorf("the server was told %v, and not %s", hosts, host)
		}
		mu.Unlock()
		e.Close()
	}
}
