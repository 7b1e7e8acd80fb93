import { HOP_BY_HOP_HEADERS } from './hop-by-hop'

/**
 * Request headers that identify the caller to us, or that servers behind a proxy trust for the caller, the address or
 * the method.
 */
const STRIPPED_REQUEST_HEADERS = [
  ...['authorization', 'cookie', 'tenant', 'idempotency-key', 'x-api-key', 'x-request-id', 'forwarded'],
  ...['x-real-ip', 'x-client-ip', 'x-cluster-client-ip', 'true-client-ip', 'cf-connecting-ip', 'fastly-client-ip'],
  ...['x-host', 'x-http-method', 'x-http-method-override', 'x-method-override', 'x-script-name'],
  // CGI turns it into HTTP_PROXY (CVE-2016-5385).
  'proxy',
]
const STRIPPED_REQUEST_PREFIXES = [
  ...['x-atoll-', 'x-forwarded-', 'x-impersonate-', 'x-encrypted-', 'x-original-', 'x-rewrite-'],
]

/** Response headers that describe the origin or change how a browser treats it: the origin is ours. */
const STRIPPED_RESPONSE_HEADERS = [
  ...['alt-svc', 'authentication-info', 'clear-site-data', 'content-security-policy-report-only', 'date', 'nel'],
  ...['origin-agent-cluster', 'public-key-pins', 'refresh', 'report-to', 'reporting-endpoints', 'server'],
  ...['service-worker-allowed', 'strict-transport-security', 'www-authenticate', 'x-api-version', 'x-request-id'],
]
const STRIPPED_RESPONSE_PREFIXES = ['access-control-', 'cross-origin-', 'x-original-', 'x-rewrite-']

/**
 * Response headers that make a proxy in front of us respond with a file, or with another server's response, that only
 * the proxy can reach.
 */
export const PROXY_CONTROL_HEADERS = [
  ...['x-accel-redirect', 'x-lighttpd-send-file', 'x-litespeed-location', 'x-reproxy-file', 'x-reproxy-url'],
  ...['x-sendfile', 'x-sendfile2', 'x-sendfile-temporary'],
]

/** A page of a third party may run scripts, but without access to what the browser stores for our origin. */
const SANDBOX_POLICY = 'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads'
const POLICY_HEADER = 'content-security-policy'

/**
 * Returns the request headers that a plugin receives, without those that identify the caller to us. CGI and WSGI read
 * `x_a` and `x-a` as one name, so only names of letters, digits and hyphens pass.
 */
export function headersForPlugin(headers: Headers): Headers {
  const passed = stripHopByHop(headers)
  for (const name of [...passed.keys()])
    if (!/^[a-z0-9-]+$/.test(name) || isListed(name, STRIPPED_REQUEST_HEADERS, STRIPPED_REQUEST_PREFIXES))
      passed.delete(name)
  return passed
}

/** Returns the headers of a plugin's response that the caller receives. */
export function headersFromPlugin(headers: Headers): Headers {
  const passed = stripHopByHop(headers)
  passed.delete('set-cookie')
  for (const name of [...passed.keys()])
    if (isListed(name, [...STRIPPED_RESPONSE_HEADERS, ...PROXY_CONTROL_HEADERS], STRIPPED_RESPONSE_PREFIXES))
      passed.delete(name)
  for (const cookie of headers.getSetCookie()) if (isHarmlessCookie(cookie)) passed.append('set-cookie', cookie)
  sandboxPage(passed)
  return passed
}

/**
 * Makes browsers isolate a page from our origin, in addition to the page's own policy: all policies of a response apply
 * (Content Security Policy Level 3, §4.2).
 */
export function sandboxPage(headers: Headers) {
  const ownPolicy = headers.get(POLICY_HEADER)?.trim()
  headers.set(POLICY_HEADER, ownPolicy ? `${SANDBOX_POLICY}, ${ownPolicy}` : SANDBOX_POLICY)
}

/**
 * Tells whether a cookie of a third party can neither be mistaken for one of ours nor reach other hosts. A cookie
 * without a name is sent as its bare value, which may look like one of ours.
 */
export function isHarmlessCookie(cookie: string): boolean {
  const [pair = '', ...attributes] = cookie.split(';')
  const [name = '', ...value] = pair.split('=')
  const plain = name.trim().replace(/^(__(host|secure|http|host-http)-)+/i, '')
  const reachesOthers = attributes.some((attribute) => /^\s*domain\s*=/i.test(attribute))
  return value.length > 0 && !!plain && !/^atoll[_-]/i.test(plain) && !reachesOthers
}

const isListed = (name: string, names: string[], prefixes: string[]) =>
  names.includes(name) || prefixes.some((prefix) => name.startsWith(prefix))

function stripHopByHop(headers: Headers) {
  const passed = new Headers(headers)
  const listedNames = (headers.get('connection') ?? '').split(',').map((name) => name.trim())
  for (const name of [...HOP_BY_HOP_HEADERS, ...listedNames.filter(isHeaderName)]) passed.delete(name)
  return passed
}

const isHeaderName = (name: string) => /^[\w!#$%&'*+.^`|~-]+$/.test(name)
