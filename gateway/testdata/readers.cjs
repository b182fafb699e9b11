// Says how programs of Node read targets of requests. Each line of its input is a target, as JSON. Each line of its output has
// the routes that they serve: see ../paths_test.go.
const http = require('http'), net = require('net'), path = require('path').posix, url = require('url')

// route says which route a path is: a router may ignore the case, and a slash at the end.
const route = (p) => p === undefined ? '' : /^\/api(\/|$)/s.test(p) ? 'api' : (/^\/(login|health)\/?$/.exec(p) || ['', 'other'])[1]
const asURL = (t) => new URL(t, 'http://h').pathname
const parsed = (t) => url.parse(t, false, true).pathname || '/'

// served asks a router that calls its handlers with requests.
function served (serve, target) {
  const req = new http.IncomingMessage(new net.Socket())
  Object.assign(req, { method: 'POST', url: target })
  const res = new http.ServerResponse(req)
  let got = ''
  serve(req, res, (name) => { got = name })
  return got
}

let tell
const express = require('express')
const app = express()
app.use('/api', () => tell('api'))
for (const name of ['login', 'health']) app.all('/' + name, () => tell(name))
app.use(() => tell('other'))
app.use((err, req, res, next) => err && tell(''))

const router = (o) => {
  const r = require('find-my-way')({ defaultRoute: () => tell('other'), ...o })
  for (const name of ['login', 'health']) r.on('POST', '/' + name, () => tell(name))
  for (const all of ['/api', '/api/*']) r.on('POST', all, () => tell('api'))
  return r
}
const strict = router({ ignoreTrailingSlash: true }), lenient = router({ ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, caseSensitive: false, useSemicolonDelimiter: true })

const readers = {
  URL: (t) => route(asURL(t)),
  'URL, decoded': (t) => route(decodeURIComponent(asURL(t))),
  'URL, decodeURI': (t) => route(decodeURI(asURL(t))),
  'URL, decoded, normal': (t) => route(path.normalize(decodeURIComponent(asURL(t)))),
  'URL of a decoded target': (t) => route(asURL(decodeURIComponent(t))),
  parse: (t) => route(url.parse(t).pathname || '/'),
  'parse with hosts': (t) => route(parsed(t)),
  'parse with hosts, decoded': (t) => route(decodeURIComponent(parsed(t))),
  'parse, decoded, normal': (t) => route(path.normalize(decodeURIComponent(url.parse(t).pathname || '/'))),
  'split at ?, decoded': (t) => route(decodeURIComponent(t.split('?')[0])),
  'decoded, split at ?': (t) => route(decodeURIComponent(t).split('?')[0]),
  Express: (t) => served((req, res, then) => { tell = then; app(req, res) }, t),
  'find-my-way': (t) => served((req, res, then) => { tell = then; strict.lookup(req, res) }, t),
  'find-my-way, lenient': (t) => served((req, res, then) => { tell = then; lenient.lookup(req, res) }, t)
}

let out = ''
for (const line of require('fs').readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  const all = {}
  for (const [name, read] of Object.entries(readers)) {
    try { all[name] = read(JSON.parse(line)) } catch { all[name] = '' } // it refuses the request
  }
  out += JSON.stringify(all) + '\n'
}
require('fs').writeFileSync(1, out)
process.exit() // sockets of requests are open
