package examples

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// client is a library that no package of ours uses. Its program begins, connects in one of the ways, and makes four calls: a command, one of the script by
// its sha1, and two in a pipeline or transaction.
type client struct {
	versions     map[string][]string // the words before the program's text
	begin, calls string
	ways         map[string]string
	lacks        string // a way that a version doesn't have
}

// newer is where build/test-languages.sh unpacks clients of Debian 13.
const newer = "../build/out/newer/usr/"

var clients = map[string]client{
	"phpredis": {
		versions: map[string][]string{"5": {"php", "-r"}},
		begin: `function at($name) { return explode(':', getenv($name)); }
			$r = new Redis();
			$to = [];`,
		calls: `$words = [...$to, 'GO.THROTTLE', 'k', 4, 5, 60];
			echo json_encode($r->rawCommand(...$words));
			$sha = $r->rawCommand(...$to, ...['SCRIPT', 'LOAD', file_get_contents(getenv('SCRIPT'))]);
			echo json_encode($r->evalSha($sha, ['k', 'GO.THROTTLE', 4, 5, 60], 1));
			$to ? $r->multi() : $r->pipeline();
			$r->rawCommand(...$words);
			$r->rawCommand(...$words);
			echo json_encode($r->exec());`,
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
		calls: `echo json_encode($c->executeRaw(['GO.THROTTLE', 'k', 4, 5, 60]));
			$sha = $c->script('load', file_get_contents(getenv('SCRIPT')));
			$evalsha = fn($to) => $to->evalsha($sha, 1, 'k', 'GO.THROTTLE', 4, 5, 60);
			echo json_encode([$evalsha($c), $c->pipeline(function ($p) use ($evalsha) { $evalsha($p); $evalsha($p); })]);`,
		ways: map[string]string{
			"defaults": `$c = new Predis\Client('tcp://' . getenv('ADDR'));`,
			"TLS":      `$c = new Predis\Client('tls://' . getenv('TLS') . '?ssl[cafile]=' . getenv('CA'));`,
			"Sentinel": `$c = new Predis\Client(['tcp://' . getenv('SENTINEL')], ['replication' => 'sentinel', 'service' => 'main']);`,
		},
	},
	"redis-rb": {
		versions: map[string][]string{"4": {"ruby", "-r", "redis", "-e"}, "5": {"ruby", "-I", newer + "lib", "-r", "redis", "-e"}},
		calls: `
			words = ["GO.THROTTLE", "k", 4, 5, 60]
			p c.call(*words), c.evalsha(c.script(:load, File.read(ENV["SCRIPT"])), ["k"], ["GO.THROTTLE", 4, 5, 60])
			p c.pipelined { |q| 2.times { q.call(*words) } }`,
		ways: map[string]string{
			"defaults": `c = Redis.new(url: "redis://#{ENV["ADDR"]}")`,
			"TLS":      `c = Redis.new(url: "rediss://#{ENV["TLS"]}", ssl_params: { ca_file: ENV["CA"] })`,
			"cluster":  `c = Redis.new(cluster: ["redis://#{ENV["CLUSTER"]}"])`,
			"Sentinel": `c = Redis.new(url: "redis://main", sentinels: [%i[host port].zip(ENV["SENTINEL"].split(":")).to_h])`,
		},
		lacks: "5/cluster",
	},
	"redis-cli": {
		versions: map[string][]string{"7": {"sh", "-ec"}},
		calls: `
			$cli GO.THROTTLE k 4 5 60
			$cli EVALSHA "$($cli SCRIPT LOAD "$(cat "$SCRIPT")")" 1 k GO.THROTTLE 4 5 60
			printf 'GO.THROTTLE k 4 5 60\n%.0s' 1 2 | $cli`,
		ways: map[string]string{
			"defaults": `cli="redis-cli -u redis://$ADDR"`,
			"RESP3":    `cli="redis-cli -3 -u redis://$ADDR"`,
			"TLS":      `cli="redis-cli -u rediss://$TLS --cacert $CA"`,
		},
	},
}

// replies are those of the four calls.
const replies = "0 5 4 -1 12 0 5 3 -1 24 0 5 2 -1 36 0 5 1 -1 48"

var number = regexp.MustCompile(`-?\d+`)

// Clients connect with their defaults to a server in memory, and get the same replies.
func TestClients(t *testing.T) {
	for name, c := range clients {
		for version, run := range c.versions {
			for way, connect := range c.ways {
				if way = version + "/" + way; c.lacks != way {
					t.Run(name+"/"+way, func(t *testing.T) {
						t.Parallel()
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						cmd := exec.CommandContext(ctx, run[0], append(slices.Clone(run[1:]), c.begin+connect+c.calls)...)
						cmd.Env = append(os.Environ(), deployments(t)...)
						var errors strings.Builder
						cmd.Stderr = &errors
						said, err := cmd.Output()
						require.NoError(t, err, errors.String())
						require.Equal(t, replies, strings.Join(number.FindAllString(string(said), -1), " "), "%s%s", said, errors.String())
					})
				}
			}
		}
	}
}
