package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// settings are the flags. Those of the connection have the names that redis-cli gives them.
type settings struct {
	addr, listen, names           string
	anywhere, play                bool
	user, pass                    string
	db                            int
	tls, insecure                 bool
	caCert, cert, key, serverName string
}

func main() {
	s, err := readFlags(os.Args[1:], os.Getenv)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = serve(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

func readFlags(args []string, env func(string) string) (s settings, err error) {
	f := flag.NewFlagSet("playground", flag.ContinueOnError)
	f.StringVar(&s.addr, "addr", "127.0.0.1:6379", "the server to watch, as host:port")
	f.BoolVar(&s.play, "play", false, "let the page send traffic to that server, to keys that begin with playground")
	f.StringVar(&s.listen, "listen", "127.0.0.1:8080", "where the page is served; port 0 takes a free one")
	f.BoolVar(&s.anywhere, "listen-anywhere", false, "permit --listen on an address that other machines can reach: whoever reaches it sees the page")
	f.StringVar(&s.names, "name", "", "host names, separated by commas, that the page may be opened by, besides addresses and localhost")
	f.StringVar(&s.user, "user", "", "the user of the server")
	f.StringVar(&s.pass, "pass", "", "the password; REDISCLI_AUTH or VALKEYCLI_AUTH in the environment is safer, because other users can see flags")
	f.IntVar(&s.db, "n", 0, "the number of the database")
	f.BoolVar(&s.tls, "tls", false, "connect by TLS")
	f.BoolVar(&s.insecure, "insecure", false, "do not verify the server's certificate")
	f.StringVar(&s.caCert, "cacert", "", "file of the CA certificates; the system's if not given")
	f.StringVar(&s.cert, "cert", "", "file of the client's certificate")
	f.StringVar(&s.key, "key", "", "file of the client's key")
	f.StringVar(&s.serverName, "sni", "", "the server name of TLS; the host of --addr if not given")
	if err = f.Parse(args); err != nil {
		return s, err
	}
	for _, name := range []string{"REDISCLI_AUTH", "VALKEYCLI_AUTH"} {
		if s.pass == "" {
			s.pass = env(name)
		}
	}
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("unknown word %q", f.Arg(0))
	case !checkListen(s.listen, s.anywhere):
		return s, fmt.Errorf("--listen %s is not an address of this machine alone: use 127.0.0.1:8080, or add --listen-anywhere", s.listen)
	case !s.tls && (s.insecure || s.caCert+s.cert+s.key+s.serverName != ""):
		return s, errors.New("--cacert, --cert, --key, --sni and --insecure are of TLS: add --tls")
	case (s.cert == "") != (s.key == ""):
		return s, errors.New("--cert and --key belong together")
	}
	return s, nil
}

// serverTimeout is how long a page waits for a server that is stopped.
const serverTimeout = 500 * time.Millisecond

// options returns how to connect. Nothing is sent that the user may have no right to: that would stand in the log of ACL.
func (s settings) options() (*redis.Options, error) {
	o := &redis.Options{Addr: s.addr, Username: s.user, Password: s.pass, DB: s.db, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
		DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		DialTimeout: serverTimeout, ReadTimeout: serverTimeout, WriteTimeout: serverTimeout}
	if !s.tls {
		return o, nil
	}
	host, _, _ := net.SplitHostPort(s.addr)
	o.TLSConfig = &tls.Config{ServerName: pick(s.serverName != "", s.serverName, host), InsecureSkipVerify: s.insecure}
	if s.caCert != "" {
		text, err := os.ReadFile(s.caCert)
		if err != nil {
			return nil, err
		}
		o.TLSConfig.RootCAs = x509.NewCertPool()
		if !o.TLSConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate", s.caCert)
		}
	}
	if s.cert != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.key)
		if err != nil {
			return nil, err
		}
		o.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	return o, nil
}

// cli returns how redis-cli reaches the server. A password is left out.
func (s settings) cli() string {
	host, port, _ := net.SplitHostPort(s.addr)
	var words []string
	for _, option := range []struct {
		wanted bool
		words  []string
	}{
		{host != "127.0.0.1" && host != "localhost", []string{"-h", host}}, {port != "6379", []string{"-p", port}},
		{s.db != 0, []string{"-n", fmt.Sprint(s.db)}}, {s.user != "", []string{"--user", s.user}},
		{s.tls, []string{"--tls"}}, {s.insecure, []string{"--insecure"}}, {s.caCert != "", []string{"--cacert", s.caCert}},
		{s.cert != "", []string{"--cert", s.cert, "--key", s.key}}, {s.serverName != "", []string{"--sni", s.serverName}},
	} {
		if option.wanted {
			words = append(words, option.words...)
		}
	}
	return cliLine("redis-cli", words)
}

// serve serves the page until a signal comes. Then it deletes what the sessions have written.
func serve(s settings) error {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	o, err := s.options()
	if err != nil {
		return err
	}
	rdb := redis.NewClient(o)
	defer rdb.Close()
	about, err := s.ask(ctx, rdb)
	if err != nil {
		return fmt.Errorf("%s: %w", s.addr, err)
	}
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	a := newApp(rdb, about)
	defer a.close()
	server := &http.Server{Handler: guard(s.names, a.handler()), ReadHeaderTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Printf("open http://%s  (Ctrl-C ends it; %s)\n", listener.Addr(), pick(s.play, "the page may send traffic to "+s.addr, "the page only reads from "+s.addr))
	select {
	case err = <-failed:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.Background(), deletionTime)
	defer cancel()
	_ = server.Shutdown(ending)
	return nil
}

// ask learns from the server what the page is told, and whether it has the module.
func (s settings) ask(ctx context.Context, rdb *redis.Client) (About, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	about := About{Play: s.play, Addr: s.addr, CLI: s.cli(), Policies: []Policy{}}
	seen := newWatcher(rdb).ask(ctx)
	if seen.Error != "" {
		return about, errors.New(seen.Error)
	}
	about.Version = seen.Version
	if s.play {
		if values, err := rdb.ConfigGet(ctx, "gothrottle.policies").Result(); err == nil {
			about.Policies = playgroundPolicies(values["gothrottle.policies"])
		}
	}
	return about, nil
}
