import { badRequest } from '../core/problem'

/** First parts of paths that belong to the server. */
const RESERVED_PARTS = ['api', 'admin', 'operator', 'health', 'ready', 'metrics', 'openapi']
const RESERVED_PATH = new RegExp(`^/(${RESERVED_PARTS.join('|')})(?=[/?#]|$)`)

/** The longest path of a file, in bytes. */
const MAX_PATH_BYTES = 400
/** The only name with a dot in front that is served (RFC 8615). */
const WELL_KNOWN = '.well-known'

/** Returns where the path begins in the URL of a request. */
const pathStartOf = (url: string) => Math.max(0, url.indexOf('/', url.startsWith('http') ? 8 : 0))

/**
 * Returns the path and query of a request that may be for a site; undefined for one of the server itself. It runs at each
 * request, so paths below `/api` are recognized first.
 */
export function findSiteTarget({ method, url }: Request): string | undefined {
  const start = pathStartOf(url)
  if (url.startsWith('/api/', start) || (method !== 'GET' && method !== 'HEAD')) return
  const target = url.slice(start)
  return RESERVED_PATH.test(target) ? undefined : target
}

/** Returns a path of a request as a deployment names its files, without the first slash; undefined for a hostile one. */
export function decodePath(path: string): string | undefined {
  if (path.length > 3 * MAX_PATH_BYTES) return
  if (!path.includes('%')) return isSafe(path) ? path.slice(1) : undefined
  try {
    const decoded = decodeURIComponent(path).normalize('NFC')
    return isSafe(decoded) ? decoded.slice(1) : undefined
  } catch {
    return
  }
}

const isSafe = (path: string) => !HOSTILE_PATH.test(path)
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const HOSTILE_PATH = /[\0-\x1f\x7f\\]|\/\/|\/\.(?!well-known\/)/

/**
 * Returns the path of a file by its name in an archive.
 * @throws 400 INVALID_INPUT for a name that is refused
 */
export function parseFileName(name: string): string {
  const path = name.replace(/^(\.\/)+/, '').normalize('NFC')
  const reject = (reason: string) =>
    badRequest({ path: name, message: `The archive has "${name.slice(0, 100)}", ${reason}` })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (/[\0-\x1f\x7f\\\ufffd]/.test(path)) reject('whose name has a backslash, control characters or broken UTF-8.')
  if (path.startsWith('/') || /^[a-z]:/i.test(path)) reject('whose name is absolute.')
  const parts = path.split('/')
  if (parts.some((part) => part === '' || part === '.' || part === '..')) reject('whose name leads out of the site.')
  if (parts.some((part, index) => part.startsWith('.') && !(index === 0 && part === WELL_KNOWN && parts.length > 1)))
    reject('which begins with a dot. Leave such files out.')
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) reject(`whose name is longer than ${MAX_PATH_BYTES} bytes.`)
  const [first = ''] = parts
  if (RESERVED_PARTS.includes(first.toLowerCase().replace(/\.html$/, '')))
    reject(`but /${first.replace(/\.html$/i, '')} belongs to the server. Choose another name.`)
  return path
}
