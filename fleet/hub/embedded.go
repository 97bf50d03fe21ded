// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"golang.org/x/time/rate"
)

// handshakesPerSecond limits the work that somebody without a key can cause. A thousand devices that return at once are
// connected again within a few seconds.
const handshakesPerSecond = 500

// embedded is a NATS server in this process: TLS, JetStream on disk, and keys instead of passwords. The account STORE
// has the streams, and each device has an account of its own: the server sends its answers to any subject that a
// request names, past the rights of the device, but only inside its account.
type embedded struct {
	server *server.Server
	gate   *gate
	key    nkeys.KeyPair // of this process and of the commands on this machine, new at each start
	cert   atomic.Pointer[tls.Certificate]
	lock   *os.File
	ended  chan struct{} // closed when the server has ended, or can store nothing any more
	end    sync.Once
	why    string // it has ended
}

// startEmbedded starts the server of a fleet. Devices reach it only by [limiter].
func startEmbedded(folder string, r *roster, connections int, log *slog.Logger) (_ *embedded, err error) {
	lock, err := os.OpenFile(filepath.Join(folder, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	e := &embedded{lock: lock, ended: make(chan struct{})}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	if err := safefile.Lock(lock, 0); err != nil {
		return nil, fmt.Errorf("%w: %s; stop it first", ErrRunning, folder)
	}
	if e.key, err = nkeys.CreateUser(); err != nil {
		return nil, err
	}
	public, err := e.key.PublicKey()
	if err != nil {
		return nil, err
	}
	store, err := storeAccount()
	if err != nil {
		return nil, err
	}
	e.gate = newGate(r, public, log)
	handshakes := rate.NewLimiter(handshakesPerSecond, 2*handshakesPerSecond)
	secure := &tls.Config{MinVersion: tls.VersionTLS13}
	secure.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		c := e.cert.Load()
		if c == nil || !handshakes.Allow() {
			return nil, errors.New("too many connections begin at once")
		}
		return c, nil
	}
	o := &server.Options{
		ServerName: "faceauth", Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true,
		Accounts:          []*server.Account{store},
		AlwaysEnableNonce: true, CustomClientAuthentication: e.gate, TLSConfig: secure, TLSTimeout: 10, AuthTimeout: 12,
		MaxConn: connections + 10, // for this machine
		MaxSubs: 32, MaxPayload: 1 << 20,
		MaxControlLine: 512 << 10, // CONNECT has the admission of a device
		MaxPending:     64 << 20, MaxClosedClients: 100,
		PingInterval: 30 * time.Second, MaxPingsOut: 2, WriteDeadline: 10 * time.Second,
		StreamMaxBufferedMsgs: 64, StreamMaxBufferedSize: 16 << 20, // a stream is not read while it writes these
		JetStream: true, StoreDir: filepath.Join(folder, storeFolder), DisableJetStreamBanner: true,
		// The streams have their own limits. A smaller limit here would prevent lowering them later.
		JetStreamMaxStore: 1 << 50, JetStreamMaxMemory: 64 << 20,
		SyncAlways: true, // a confirmed value must be on disk even if the power fails
	}
	if e.server, err = server.NewServer(o); err != nil {
		return nil, fmt.Errorf("the NATS server: %w", err)
	}
	e.gate.kick = func(n uint64) { e.server.DisconnectClientByID(n) } // an error means that it is gone already
	e.server.SetLoggerV2(&natsLog{log, e.over}, false, false, false)
	e.server.Start()
	if err := e.started(); err != nil {
		return nil, fmt.Errorf("the NATS server does not start: %w; check the disk and the folder %s", err, folder)
	}
	go func() { // it ends with the server
		e.server.WaitForShutdown()
		e.over("it was stopped")
	}()
	return e, nil
}

func (e *embedded) started() error {
	for begin := time.Now(); !e.server.ReadyForConnections(100 * time.Millisecond); {
		if err := e.failed(); err != nil {
			return err
		} else if time.Since(begin) > time.Minute {
			return errors.New("it is not ready after a minute")
		}
	}
	store, err := e.server.LookupAccount("STORE")
	if err == nil && !store.JetStreamEnabled() {
		err = store.EnableJetStream(nil, nil)
	}
	if err = cmp.Or(e.failed(), err); err != nil {
		return err
	}
	e.gate.open(e.server, store)
	return nil
}

// heardPrefix is where the service passes on what devices broadcast. It arrives at the subject at which it was said.
const heardPrefix = "F.heard."

// storeAccount returns the account of the streams and the service, and what others may import.
func storeAccount() (*server.Account, error) {
	a := server.NewAccount("STORE")
	const get = getPrefix + "*.*"
	var failed []error
	for _, subject := range []string{fleet.SayPrefix + "*.*", fleet.GivePrefix + "*", fleet.JoinPrefix + "*",
		fleet.AskPrefix + "*", fleet.AtPrefix + "*", fleet.RoomPrefix + "*"} {
		failed = append(failed, a.AddServiceExport(subject, nil))
	}
	failed = append(failed, a.AddServiceExportWithResponse(get, server.Streamed, nil),
		a.SetServiceExportResponseThreshold(get, 10*time.Second), a.AddStreamExport(fleet.NowPrefix+">", nil),
		a.AddStreamExport(heardPrefix+"*", nil))
	return a, errors.Join(failed...)
}

// account returns an account that imports the subjects at which its devices may publish, and makes it if there is none.
// The account of a revoked device stays until the server ends, .1 MB: NATS removes accounts only when it reads its
// options anew, and would then remove all that these do not name, and break the imports of the others.
func account(s *server.Server, store *server.Account, name string, publish []string) (*server.Account, error) {
	a, isNew := s.LookupOrRegisterAccount(name)
	if !isNew {
		return a, nil
	}
	failed := []error{a.AddStreamImport(store, fleet.NowPrefix+">", ""),
		a.AddMappedStreamImport(store, heardPrefix+"*", fleet.RoomPrefix+"*")}
	for _, subject := range publish {
		to := subject
		if stream, reads := strings.CutPrefix(subject, fleet.DirectGet); reads {
			to = getPrefix + name + "." + stream
		}
		failed = append(failed, a.AddServiceImport(store, subject, to))
	}
	return a, errors.Join(failed...)
}

// connect makes a connection of this process, which may do everything.
func (e *embedded) connect() (*nats.Conn, error) {
	public, err := e.key.PublicKey()
	if err != nil {
		return nil, err
	}
	return nats.Connect("", nats.InProcessServer(e.server), nats.Nkey(public, e.key.Sign), nats.MaxReconnects(-1),
		nats.ReconnectWait(100*time.Millisecond), nats.NoCallbacksAfterClientClose())
}

// over notes that the server has ended, or can store nothing any more.
func (e *embedded) over(why string) {
	e.end.Do(func() {
		e.why = why
		close(e.ended)
	})
}

// failed returns the reason why the server has ended, or nil.
func (e *embedded) failed() error {
	select {
	case <-e.ended:
		return errors.New(e.why)
	default:
		return nil
	}
}

// close stops the server and waits for its end.
func (e *embedded) close() {
	if e.server != nil {
		e.server.Shutdown()
		e.server.WaitForShutdown()
	}
	e.lock.Close()
}

// natsLog passes on the warnings and errors of the NATS server.
type natsLog struct {
	log  *slog.Logger
	over func(why string)
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
	l.log.Error("the NATS server has ended", "reason", text)
	l.over(text)
}

// trouble logs problems for an administrator. What a client does wrong is not such a problem, and could fill the log.
func (l *natsLog) trouble(text string) {
	for _, of := range []string{"authentication error", "TLS handshake error", "ermissions Violation", " - cid:"} {
		if strings.Contains(text, of) {
			l.log.Debug("nats", "refused", text)
			return
		}
	}
	l.log.Warn("nats", "said", text)
	// After such an error JetStream writes nothing until the server is started again.
	if strings.Contains(text, "ritical write error") || strings.Contains(text, "will be DISABLED") {
		l.over(text)
	}
}
