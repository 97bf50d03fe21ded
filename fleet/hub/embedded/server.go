// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"golang.org/x/time/rate"
)

// handshakesPerSecond limits the work that somebody without a key can cause. A thousand devices that return at once are
// connected again within a few seconds.
const handshakesPerSecond = 500

// Server is a NATS server in this process: TLS, JetStream on disk, one account, keys instead of passwords. Its methods
// can be called at once. [Start] makes one; close it.
type Server struct {
	server *server.Server
	gate   *gate
	pin    []byte
	lock   *os.File
	key    nkeys.KeyPair // of the service
	ended  chan struct{}
	end    sync.Once
	failed atomic.Pointer[string]
}

var _ hub.Server = (*Server)(nil)

// Start starts a server. Only this process can connect until Listen is called. Use it in [hub.Options].
func Start(so hub.ServerOptions) (_ hub.Server, err error) {
	e, err := start(so)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func start(so hub.ServerOptions) (_ *Server, err error) {
	folder, limits := so.Folder, so.Limits
	host, port, err := splitAddress(so.Listen)
	if err != nil {
		return nil, err
	}
	// The port is tried first, so that the error names it.
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("the server cannot listen: %w; give another address with --listen", err)
	}
	if port == 0 {
		port = l.Addr().(*net.TCPAddr).Port
	}
	l.Close()
	lock, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := safefile.Lock(lock, 0); err != nil {
		lock.Close()
		return nil, fmt.Errorf("another server of this fleet uses %s; stop it first", folder)
	}
	e := &Server{lock: lock, ended: make(chan struct{})}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	cert, err := certificate(filepath.Join(folder, "certificate.pem"))
	if err != nil {
		return nil, err
	}
	e.pin = pinOf(cert)
	if e.key, err = nkeys.CreateUser(); err != nil {
		return nil, err
	}
	public, err := e.key.PublicKey()
	if err != nil {
		return nil, err
	}
	e.gate = newGate(so.Fleet, public)
	handshakes := rate.NewLimiter(handshakesPerSecond, 2*handshakesPerSecond)
	secure := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	secure.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if !handshakes.Allow() {
			return nil, errors.New("too many connections begin at once")
		}
		return nil, nil
	}
	o := &server.Options{
		ServerName: "faceauth", Host: host, Port: port, DontListen: true, NoSigs: true, NoLog: true,
		AlwaysEnableNonce: true, CustomClientAuthentication: e.gate,
		TLSConfig: secure, TLSTimeout: 10, AuthTimeout: 12,
		MaxClosedClients: 2 * handshakesPerSecond, // enough for the seconds between two calls of Received
		MaxConn:          limits.Devices, MaxSubs: 200, MaxPayload: int32(limits.Message), MaxControlLine: 4096,
		MaxPending:   64 << 20, // above the 32 MiB that JetStream sends before it waits
		PingInterval: 30 * time.Second, MaxPingsOut: 2, WriteDeadline: 10 * time.Second,
		JetStream: true, StoreDir: filepath.Join(folder, "jetstream"), DisableJetStreamBanner: true,
		// The log and the snapshots have their own limits ([hub.Limits]). A smaller limit here would prevent lowering
		// them later.
		JetStreamMaxStore: 1 << 50, JetStreamMaxMemory: 256 << 20,
		// A confirmed entry must be on disk even if the power fails.
		SyncAlways: true,
	}
	if e.server, err = server.NewServer(o); err != nil {
		return nil, fmt.Errorf("the NATS server: %w", err)
	}
	// An error means that the connection is gone already.
	e.gate.kick = func(n uint64) { e.server.DisconnectClientByID(n) }
	e.gate.alive = func(n uint64) bool { return e.server.GetClient(n) != nil }
	e.server.SetLoggerV2(&natsLog{so.Log, &e.failed, e.over}, false, false, false)
	e.server.Start()
	if !e.server.ReadyForConnections(30 * time.Second) {
		err = errors.New("the NATS server does not start")
		if why := e.failed.Load(); why != nil {
			err = fmt.Errorf("the NATS server does not start: %s", *why)
		}
		return nil, err
	}
	if why := e.failed.Load(); why != nil {
		err = fmt.Errorf("the NATS server does not start: %s", *why)
		return nil, err
	}
	go func() { // it ends with the server
		e.server.WaitForShutdown()
		e.over()
	}()
	return e, nil
}

// InProcessConn returns a connection that goes through no socket.
func (e *Server) InProcessConn() (net.Conn, error) { return e.server.InProcessConn() }

// Key returns the key of the service, which may do everything. It is new at each start.
func (e *Server) Key() nkeys.KeyPair { return e.key }

// Pin returns the SHA-256 of the certificate.
func (e *Server) Pin() []byte { return e.pin }

// Admit lets these devices in, and ends the connections of all other devices.
func (e *Server) Admit(devices []string) { e.gate.admit(devices) }

// Invite lets the bearers of tokens ask to join, each until the given time.
func (e *Server) Invite(tokens map[string]time.Time) { e.gate.invite(tokens) }

// Rejoin implements [hub.Server].
func (e *Server) Rejoin() { e.gate.rejoin() }

// Revoked implements [hub.Server].
func (e *Server) Revoked(devices []string) { e.gate.tell(devices) }

// Pause refuses entries of a device until the given time. The device can still read.
func (e *Server) Pause(device string, until time.Time) { e.gate.pause(device, until) }

// Received implements [hub.Server].
func (e *Server) Received() map[string]int {
	all, err := e.server.Connz(&server.ConnzOptions{State: server.ConnAll, Limit: 1 << 20})
	if err != nil {
		return nil // the server is ending
	}
	in := make(map[uint64]int64, len(all.Conns))
	for _, c := range all.Conns {
		in[c.Cid] = c.InBytes
	}
	return e.gate.received(in)
}

// Connections returns the connected devices, each with the time of its connection.
func (e *Server) Connections() map[string]time.Time { return e.gate.connections() }

func (e *Server) over() { e.end.Do(func() { close(e.ended) }) }

// Ended is closed when the server has ended, or can store nothing any more.
func (e *Server) Ended() <-chan struct{} { return e.ended }

// Listen lets devices in.
func (e *Server) Listen() error {
	ready := make(chan struct{})
	go e.server.AcceptLoop(ready) // it returns when the socket is open; the server owns the goroutine that accepts
	<-ready
	if e.server.Addr() == nil {
		return errors.New(
			"the server cannot listen: another program has taken its address; give another address with --listen")
	}
	return nil
}

// Address returns the address at which the server listens.
func (e *Server) Address() string { return e.server.Addr().String() }

// Close stops the server and waits for its end.
func (e *Server) Close() {
	if e.server != nil {
		e.server.Shutdown()
		e.server.WaitForShutdown()
	}
	e.lock.Close()
}

// splitAddress returns host and port of an address such as :4222, 192.0.2.7:4222 or [::]:0.
func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("the address must look like :4222 or 192.0.2.7:4222, got %q", address)
	}
	return cmp.Or(host, "0.0.0.0"), port, nil
}

// natsLog passes on the warnings and errors of the NATS server.
type natsLog struct {
	log    *slog.Logger
	failed *atomic.Pointer[string]
	over   func()
}

var _ server.Logger = (*natsLog)(nil)

func (l *natsLog) Noticef(format string, v ...any) {
	l.log.Debug("nats", "said", fmt.Sprintf(format, v...))
}
func (l *natsLog) Debugf(string, ...any)          {}
func (l *natsLog) Tracef(string, ...any)          {}
func (l *natsLog) Warnf(format string, v ...any)  { l.trouble(fmt.Sprintf(format, v...)) }
func (l *natsLog) Errorf(format string, v ...any) { l.trouble(fmt.Sprintf(format, v...)) }

// Fatalf is called when the server ends itself.
func (l *natsLog) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.failed.Store(&text)
	l.log.Error("the NATS server has ended", "reason", text)
}

// trouble logs problems for an administrator. Failed logins of strangers are not such a problem.
func (l *natsLog) trouble(text string) {
	if strings.Contains(text, "authentication error") || strings.Contains(text, "TLS handshake error") {
		l.log.Debug("nats", "refused", text)
		return
	}
	l.log.Warn("nats", "said", text)
	// After such an error JetStream writes nothing until the server is started again.
	if strings.Contains(text, "ritical write error") || strings.Contains(text, "will be DISABLED") {
		l.failed.Store(&text)
		l.over()
	}
}
