package examples

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/script"
)

// client is a library, or redis-cli. A program in its language begins, connects in one of the ways, with the client's
// defaults, and makes four calls: a command, one of the script by its sha1, and two in a pipeline or transaction.
type client struct {
	versions     map[string][]string // the words before the program's text
	begin, calls string
	ways         map[string]string
	lacks        string // the ways of versions that don't have them
}

// newer is where build/test-languages.sh unpacks clients of the Debian after the one that has the others.
const newer = "../build/out/newer/usr/"

func node(pack string) []string {
	return []string{"sh", "-c", `cd ../build/out/node && PACKAGE=` + pack + ` exec node_modules/.bin/node --input-type=module -e "$0"`}
}

// nodeBegin and nodeCalls are the same for both libraries.
const (
	nodeBegin = `
import { readFileSync } from 'node:fs';
const { ADDR, TLS, CA, CLUSTER, SENTINEL, SCRIPT, PACKAGE } = process.env;
const lib = (await import(PACKAGE)).default;
const at = (addr) => ({ host: addr.split(':')[0], port: Number(addr.split(':')[1]) });
let send;
`
	nodeCalls = `
const words = ['GO.THROTTLE', 'k', '4', '5', '60'];
console.log(await send(words));
const evalsha = ['EVALSHA', await send(['SCRIPT', 'LOAD', readFileSync(SCRIPT, 'utf8')]), '1', 'k', 'GO.THROTTLE', '4', '5', '60'];
console.log(await send(evalsha));
console.log((await Promise.all([send(words), send(evalsha)])).sort((a, b) => b[2] - a[2])); // a redirected one comes late
process.exit();
`
)

var clients = map[string]client{
	"node-redis": {
		versions: map[string][]string{"4": node("redis4"), "5": node("redis5"), "6": node("redis")},
		begin:    nodeBegin + "const simple = async (options) => { const c = await lib.createClient(options).connect(); send = (w) => c.sendCommand(w); };\n",
		calls:    nodeCalls,
		ways: map[string]string{
			"defaults": "await simple({ url: 'redis://' + ADDR })",
			"RESP2":    "await simple({ url: 'redis://' + ADDR, RESP: 2 })",
			"RESP3":    "await simple({ url: 'redis://' + ADDR, RESP: 3 })",
			"TLS":      "await simple({ url: 'rediss://' + TLS, socket: { ca: readFileSync(CA) } })",
			"cluster": "const c = lib.createCluster({ rootNodes: [{ url: 'redis://' + CLUSTER }] }); await c.connect();" +
				"send = (w) => c.sendCommand('k', false, w)",
			"Sentinel": "const c = await lib.createSentinel({ name: 'main', sentinelRootNodes: [at(SENTINEL)] }).connect();" +
				"send = (w) => c.sendCommand(false, w)",
		},
		lacks: "4/Sentinel",
	},
	"ioredis": {
		versions: map[string][]string{"5": node("ioredis5"), "6": node("ioredis")},
		begin:    nodeBegin + "const simple = (options) => { const c = new lib.Redis(options); send = (w) => c.call(...w); };\n",
		calls:    nodeCalls,
		ways: map[string]string{
			"defaults": "simple(at(ADDR))",
			"TLS":      "simple({ ...at(TLS), tls: { ca: readFileSync(CA) } })",
			"Sentinel": "simple({ name: 'main', sentinels: [at(SENTINEL)] })",
			"cluster": "const c = new lib.Cluster([at(CLUSTER)]); const all = (w) => Promise.all(c.nodes('master').map((n) => n.call(...w)));" +
				"await c.ping(); send = (w) => (w[0] === 'SCRIPT' ? all(w).then(([sha]) => sha) : c.call(...w))",
		},
	},
	"redis-py": {
		versions: map[string][]string{"4": {"/usr/bin/python3", "-c"},
			"6": {"env", "PYTHONPATH=" + newer + "lib/python3/dist-packages", "/usr/bin/python3", "-c"}},
		begin: `
import os, redis, redis.sentinel
def at(name):
    host, port = os.environ[name].split(":")
    return host, int(port)
`,
		calls: `
words = "GO.THROTTLE", "k", 4, 5, 60
print(c.execute_command(*words))
sha = c.script_load(open(os.environ["SCRIPT"]).read())
print(c.evalsha(sha, 1, "k", "GO.THROTTLE", 4, 5, 60))
print(c.pipeline().execute_command(*words).execute_command(*words).execute())
`,
		ways: map[string]string{
			"defaults": `c = redis.Redis(*at("ADDR"))`,
			"RESP3":    `c = redis.Redis(*at("ADDR"), protocol=3)`,
			"TLS":      `c = redis.Redis(*at("TLS"), ssl=True, ssl_ca_certs=os.environ["CA"])`,
			"cluster":  `c = redis.RedisCluster(*at("CLUSTER"))`,
			"Sentinel": `c = redis.sentinel.Sentinel([at("SENTINEL")]).master_for("main")`,
		},
		lacks: "4/RESP3",
	},
	"phpredis": {
		versions: map[string][]string{"5": {"php", "-r"}},
		begin: `
function at($name) { [$host, $port] = explode(':', getenv($name)); return [$host, (int) $port]; }
$r = new Redis();
$to = [];
`,
		calls: `
$words = [...$to, 'GO.THROTTLE', 'k', 4, 5, 60];
echo json_encode($r->rawCommand(...$words));
$sha = $r->rawCommand(...$to, ...['SCRIPT', 'LOAD', file_get_contents(getenv('SCRIPT'))]);
echo json_encode($r->evalSha($sha, ['k', 'GO.THROTTLE', 4, 5, 60], 1));
$to ? $r->multi() : $r->pipeline();
$r->rawCommand(...$words);
$r->rawCommand(...$words);
echo json_encode($r->exec());
`,
		ways: map[string]string{
			"defaults": `$r->connect(...at('ADDR'));`,
			"TLS":      `$r->connect('tls://127.0.0.1', at('TLS')[1], 0, null, 0, 0, ['stream' => ['cafile' => getenv('CA')]]);`,
			"cluster":  `$r = new RedisCluster(null, [getenv('CLUSTER')]); $to = ['k'];`,
			"Sentinel": `$r->connect(...(new RedisSentinel(...at('SENTINEL')))->getMasterAddrByName('main'));`,
		},
	},
	"Predis": {
		versions: map[string][]string{"1": {"php", "-r"}, "2": {"php", "-d", "include_path=" + newer + "share/php", "-r"}},
		begin:    `require 'Predis/autoload.php';`,
		calls: `
echo json_encode($c->executeRaw(['GO.THROTTLE', 'k', 4, 5, 60]));
$sha = $c->script('load', file_get_contents(getenv('SCRIPT')));
$evalsha = fn($to) => $to->evalsha($sha, 1, 'k', 'GO.THROTTLE', 4, 5, 60);
echo json_encode($evalsha($c));
echo json_encode($c->pipeline(function ($p) use ($evalsha) { $evalsha($p); $evalsha($p); }));
`,
		ways: map[string]string{
			"defaults": `$c = new Predis\Client('tcp://' . getenv('ADDR'));`,
			"TLS":      `$c = new Predis\Client('tls://' . getenv('TLS') . '?ssl[cafile]=' . getenv('CA'));`,
			"Sentinel": `$c = new Predis\Client(['tcp://' . getenv('SENTINEL')], ['replication' => 'sentinel', 'service' => 'main']);`,
		},
	},
	"redis-rb": {
		versions: map[string][]string{"4": {"ruby", "-e"}, "5": {"ruby", "-I", newer + "lib", "-e"}},
		begin:    `require "redis"`,
		calls: `
words = ["GO.THROTTLE", "k", 4, 5, 60]
p c.call(*words)
sha = c.script(:load, File.read(ENV["SCRIPT"]))
p c.evalsha(sha, ["k"], ["GO.THROTTLE", 4, 5, 60])
p c.pipelined { |q| 2.times { q.call(*words) } }
`,
		ways: map[string]string{
			"defaults": `c = Redis.new(url: "redis://#{ENV["ADDR"]}")`,
			"TLS":      `c = Redis.new(url: "rediss://#{ENV["TLS"]}", ssl_params: { ca_file: ENV["CA"] })`,
			"cluster":  `c = Redis.new(cluster: ["redis://#{ENV["CLUSTER"]}"])`,
			"Sentinel": `c = Redis.new(url: "redis://main", sentinels: [%i[host port].zip(ENV["SENTINEL"].split(":")).to_h])`,
		},
		lacks: "5/cluster",
	},
	"redis-cli": {
		versions: map[string][]string{"": {"sh", "-ec"}},
		calls: `
cli GO.THROTTLE k 4 5 60
cli EVALSHA "$(cli SCRIPT LOAD "$(cat "$SCRIPT")")" 1 k GO.THROTTLE 4 5 60
printf 'GO.THROTTLE k 4 5 60\n%.0s' 1 2 | cli
`,
		ways: map[string]string{
			"defaults": `cli() { redis-cli -u "redis://$ADDR" "$@"; }`,
			"RESP3":    `cli() { redis-cli -3 -u "redis://$ADDR" "$@"; }`,
			"TLS":      `cli() { redis-cli -u "rediss://$TLS" --cacert "$CA" "$@"; }`,
		},
	},
}

// replies are those of the four calls.
const replies = "0 5 4 -1 12 0 5 3 -1 24 0 5 2 -1 36 0 5 1 -1 48"

var number = regexp.MustCompile(`-?\d+`)

func numbers(text string) string { return strings.Join(number.FindAllString(text, -1), " ") }

// The clients of other languages connect with their defaults to a server in memory, and get the same replies.
func TestClients(t *testing.T) {
	for name, c := range clients {
		for version, run := range c.versions {
			for way, connect := range c.ways {
				if c.lacks == version+"/"+way {
					continue
				}
				t.Run(strings.Join([]string{name, version, way}, "/"), func(t *testing.T) {
					t.Parallel()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					cmd := exec.CommandContext(ctx, run[0], append(slices.Clone(run[1:]), c.begin+"\n"+connect+c.calls)...)
					cmd.Env = append(os.Environ(), deployments(t)...)
					var errors strings.Builder
					cmd.Stderr = &errors
					said, err := cmd.Output()
					require.NoError(t, err, errors.String())
					require.Equal(t, replies, numbers(string(said)), "%s%s", said, errors.String())
				})
			}
		}
	}
}

// So does go-redis.
func TestClients_goRedis(t *testing.T) {
	for way, connect := range map[string]func(env map[string]string) redis.UniversalClient{
		"defaults": func(env map[string]string) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: env["ADDR"]})
		},
		"RESP2": func(env map[string]string) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: env["ADDR"], Protocol: 2})
		},
		"TLS": func(env map[string]string) redis.UniversalClient {
			ca, _ := os.ReadFile(env["CA"])
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(ca)
			return redis.NewClient(&redis.Options{Addr: env["TLS"], TLSConfig: &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}})
		},
		"cluster": func(env map[string]string) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{env["CLUSTER"]}})
		},
		"Sentinel": func(env map[string]string) redis.UniversalClient {
			return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{env["SENTINEL"]}})
		},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{}
			for _, word := range deployments(t) {
				name, value, _ := strings.Cut(word, "=")
				env[name] = value
			}
			rdb, ctx, gothrottle := connect(env), t.Context(), redis.NewScript(script.Text)
			defer rdb.Close()
			plain := rdb.Do(ctx, "GO.THROTTLE", "k", 4, 5, 60)
			require.NoError(t, gothrottle.Load(ctx, rdb).Err())
			scripted := gothrottle.EvalSha(ctx, rdb, []string{"k"}, "GO.THROTTLE", 4, 5, 60)
			both, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				p.Do(ctx, "GO.THROTTLE", "k", 4, 5, 60)
				gothrottle.EvalSha(ctx, p, []string{"k"}, "GO.THROTTLE", 4, 5, 60)
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, replies, numbers(fmt.Sprint(plain.Val(), scripted.Val(), both[0].(*redis.Cmd).Val(), both[1].(*redis.Cmd).Val())))
		})
	}
}
