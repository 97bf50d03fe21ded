// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/faceauth/faceauth/internal/safefile"
)

// probeFile is written to see whether the disk takes data.
const probeFile = "probe"

// healthy returns nil if the server can store values.
func (s *service) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if s.server == nil {
		_, err := s.js.AccountInfo(ctx)
		return storing(err)
	}
	if err := s.server.failed(); err != nil {
		return fmt.Errorf("the NATS server has ended or cannot write its files: %w", err)
	}
	if status := s.server.server.Healthz(nil); status.StatusCode != 0 && status.StatusCode != http.StatusOK {
		return fmt.Errorf("the NATS server says: %s", status.Error)
	}
	return storing(safefile.Write(filepath.Join(s.Folder, probeFile), []byte("ok\n")))
}

// serveMetrics answers /healthz and /metrics until ctx ends.
func (s *service) serveMetrics(ctx context.Context, l net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.healthy(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		text, err := s.metrics(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		fmt.Fprint(w, text)
	})
	h := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second}
	defer context.AfterFunc(ctx, func() { h.Close() })()
	if err := h.Serve(l); ctx.Err() == nil {
		s.Log.Warn("the metrics are not served any more", "error", err)
	}
}

// metrics returns the numbers of the server in the format of Prometheus.
func (s *service) metrics(ctx context.Context) (string, error) {
	all, err := s.states(ctx)
	if err != nil {
		return "", err
	}
	names := make(map[string]string)
	for _, m := range s.present() {
		names[m.ID] = m.Name
	}
	var b strings.Builder
	head := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP faceauth_fleet_%s %s\n# TYPE faceauth_fleet_%[1]s %s\n", name, help, kind)
	}
	one := func(name, kind, help string, n int64) {
		head(name, kind, help)
		fmt.Fprintf(&b, "faceauth_fleet_%s %d\n", name, n)
	}
	// The label is quoted as Prometheus wants: names of devices are printable, and only these three characters count.
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	ids := slices.Sorted(maps.Keys(all))
	each := func(name, help string, number func(State) int) {
		head(name, "gauge", help)
		for _, id := range ids {
			fmt.Fprintf(&b, "faceauth_fleet_%s{device=\"%s\",id=\"%s\"} %d\n", name, quoted.Replace(names[id]), id,
				number(all[id]))
		}
	}
	truth := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	one("devices", "gauge", "Members that are not revoked.", int64(len(all)))
	each("stored_bytes", "Bytes of the values of the device.", func(x State) int { return int(x.Bytes) })
	if s.server != nil {
		one("throttled_total", "counter", "Connections slowed down for ten seconds.", s.pipes.slowed.Load())
		one("refused_total", "counter", "Connections refused.", s.server.gate.refused.Load())
		each("connected", "Whether the device is connected.", func(x State) int { return truth(x.Connected) })
		each("limited", "Whether the server slows the device down or drops requests of it.",
			func(x State) int { return truth(x.Limited != "") })
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return all[id].Status == nil })
	each("in_step", "Whether the device has all values, as it says.",
		func(x State) int { return truth(x.Status.InStep) })
	each("waiting", "Values of the device that the server lacks, as it says.",
		func(x State) int { return x.Status.Waiting })
	each("keys_missing", "People whose key the device lacks, as it says.", func(x State) int { return x.Status.Keys })
	return b.String(), nil
}

// notify tells systemd that the server is ready, and at half the requested interval that it can store (sd_notify(3)).
func (s *service) notify(ctx context.Context) {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		s.Log.Warn("the service manager is not told", "error", err)
	}
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval <= 0 {
		return
	}
	for {
		err := s.healthy(ctx)
		if err == nil {
			_, err = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("the watchdog is not told", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval / 2):
		}
	}
}
