import { HOP_BY_HOP_HEADERS } from './hop-by-hop'

/** What identifies callers to us, and what servers behind a proxy believe about the caller, the address or the method. */
const STRIPPED_REQUEST_HEADERS = [
  ...['authorization', 'cookie', 'tenant', 'idempotency-key', 'x-api-key', 'x-request-id', 'forwarded'],
  ...['x-real-ip', 'x-client-ip', 'x-cluster-client-ip', 'true-client-ip', 'cf-connecting-ip', 'fastly-client-ip'],
  ...['x-host', 'x-http-method', 'x-http-method-override', 'x-method-override', 'x-script-name'],
  // CGI makes HTTP_PROXY of it (CVE-2016-5385).
  'proxy',
]
const STRIPPED_REQUEST_PREFIXES = [
  ...['x-atoll-', 'x-forwarded-', 'x-impersonate-', 'x-encrypted-', 'x-original-', 'x-rewrite-'],
]

/** What an answer says about its origin, or has a browser do there: the origin is ours. */
const STRIPPED_RESPONSE_HEADERS = [
  ...['alt-svc', 'authentication-info', 'clear-site-data', 'content-security-policy-report-only', 'date', 'nel'],
  ...['origin-agent-cluster', 'public-key-pins', 'refresh', 'report-to', 'reporting-endpoints', 'server'],
  ...['service-worker-allowed', 'strict-transport-security', 'www-authenticate', 'x-api-version', 'x-request-id'],
]
const STRIPPED_RESPONSE_PREFIXES = ['access-control-', 'cross-origin-', 'x-original-', 'x-rewrite-']

/** By these a proxy in front of us would answer with a file, or another server's answer, that only it can reach. */
export const PROXY_CONTROL_HEADERS = [
  ...['x-accel-redirect', 'x-lighttpd-send-file', 'x-litespeed-location', 'x-reproxy-file', 'x-reproxy-url'],
  ...['x-sendfile', 'x-sendfile2', 'x-sendfile-temporary'],
]

/** The scripts of a page that is not ours run, but not with what the browser keeps for our origin. */
const SANDBOX_POLICY = 'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads'
const POLICY_HEADER = 'content-security-policy'

/**
 * The headers of a request as a plugin gets them: without what shows who the caller is to us. CGI and WSGI read `x_a` and
 * `x-a` as one name, so of names only those in letters, digits and hyphens pass.
 */
export function headersForPlugin(headers: Headers): Headers {
  const passed = stripHopByHop(headers)
  for (const name of [...passed.keys()])
    if (!/^[a-z0-9-]+$/.test(name) || isListed(name, STRIPPED_REQUEST_HEADERS, STRIPPED_REQUEST_PREFIXES))
      passed.delete(name)
  return passed
}

/** The headers of a plugin's answer as callers get them. */
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
 * Has a browser keep a page apart from our origin, in addition to the page's own policy: of several policies all hold
 * (Content Security Policy Level 3, §4.2).
 */
export function sandboxPage(headers: Headers) {
  const ownPolicy = headers.get(POLICY_HEADER)?.trim()
  headers.set(POLICY_HEADER, ownPolicy ? `${SANDBOX_POLICY}, ${ownPolicy}` : SANDBOX_POLICY)
}

/**
 * Whether a cookie that is not ours can neither be taken for one of ours nor reach other hosts. One without a name is
 * sent as its value, which may look like one of ours.
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
