/** About the connection, not about what it carries (RFC 9110 §7.6.1). */
const HOPS = [
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'expect', 'host'],
]

/** By what we know callers, and what we say to plugins ourselves. */
const OURS = [
  'authorization',
  'cookie',
  'tenant',
  'forwarded',
  'x-api-key',
  'x-real-ip',
  'idempotency-key',
  'x-request-id',
]
const OURS_BEGIN = ['x-atoll-', 'x-forwarded-', 'x-impersonate-', 'x-encrypted-']

/** What concerns the place that an answer comes from, which is ours. */
const PLACE = [
  ...['alt-svc', 'clear-site-data', 'content-security-policy-report-only', 'date', 'nel', 'origin-agent-cluster'],
  ...[
    'public-key-pins',
    'report-to',
    'reporting-endpoints',
    'server',
    'service-worker-allowed',
    'strict-transport-security',
  ],
  ...['x-api-version', 'x-request-id'],
]
const PLACE_BEGINS = ['access-control-', 'cross-origin-']

/** A page of a plugin is none of ours: its scripts run, but not with what the browser holds for us. */
const SANDBOX = 'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads'

/** The headers of a request as a plugin gets them: without what shows who the caller is to us. */
export function passedOn(headers: Headers): Headers {
  const kept = without(headers, [...HOPS, ...named(headers)])
  for (const name of [...kept.keys()])
    if (OURS.includes(name) || OURS_BEGIN.some((start) => name.startsWith(start))) kept.delete(name)
  return kept
}

/** The headers of a plugin's answer as callers get them; `isOurs` tells the names of our own cookies. */
export function passedBack(headers: Headers, isOurs: (name: string) => boolean): Headers {
  const kept = without(headers, [...HOPS, ...named(headers), 'set-cookie'])
  for (const name of [...kept.keys()])
    if (PLACE.includes(name) || PLACE_BEGINS.some((start) => name.startsWith(start))) kept.delete(name)
  for (const cookie of headers.getSetCookie()) if (isTheirs(cookie, isOurs)) kept.append('set-cookie', cookie)
  kept.set('content-security-policy', SANDBOX)
  return kept
}

/** A cookie without a name is sent as its value, which may look like one of ours. */
function isTheirs(cookie: string, isOurs: (name: string) => boolean) {
  const [pair = ''] = cookie.split(';')
  const [name = '', ...value] = pair.split('=')
  return value.length > 0 && !!name.trim() && !isOurs(name.trim())
}

const named = (headers: Headers) =>
  (headers.get('connection') ?? '').split(',').map((name) => name.trim().toLowerCase())

function without(headers: Headers, names: string[]) {
  const kept = new Headers(headers)
  for (const name of names.filter(isName)) kept.delete(name)
  return kept
}

const isName = (name: string) => /^[\w!#$%&'*+.^`|~-]+$/.test(name)
