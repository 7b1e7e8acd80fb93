/** The functions of the process that `installWebApis` calls: text and bytes in, text and bytes out. */
export type WebHostFunctions = {
  url(href: string, base: string, name: string, value: string): string | null
  encode(bytes: ArrayBuffer, encoding: string): string
  decode(text: string, encoding: string): ArrayBuffer
  digest(algorithm: string, key: ArrayBuffer | null, data: ArrayBuffer): ArrayBuffer
  random(size: number): ArrayBuffer
}

/**
 * Defines the web APIs that the engine lacks, and returns `atoll.crypto`. It runs inside the sandbox, which receives
 * only the text of this function, so it must not refer to anything outside it.
 */
export function installWebApis(host: WebHostFunctions) {
  type Data = string | ArrayBuffer | ArrayBufferView

  const bytesOf = (data: Data): ArrayBuffer => {
    if (typeof data === 'string') return host.decode(data, 'utf8')
    if (data instanceof ArrayBuffer) return data.slice(0)
    if (ArrayBuffer.isView(data))
      return data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength) as ArrayBuffer
    throw new TypeError('A string, an ArrayBuffer or a typed array is expected.')
  }

  class TextEncoder {
    encoding = 'utf-8'
    encode = (text = '') => new Uint8Array(host.decode(`${text}`, 'utf8'))
  }

  class TextDecoder {
    encoding = 'utf-8'
    decode = (data?: Data) => (data === undefined ? '' : host.encode(bytesOf(data), 'utf8'))
  }

  const encodeComponent = (text: string) => encodeURIComponent(text).replaceAll('%20', '+')
  const decodeComponent = (text: string) => {
    const spaced = text.replaceAll('+', ' ')
    try {
      return decodeURIComponent(spaced)
    } catch {
      return spaced
    }
  }

  class URLSearchParams {
    #pairs: [string, string][] = []
    #changed?: (search: string) => void

    constructor(init: unknown = '', onChange?: (search: string) => void) {
      if (typeof init === 'string')
        for (const part of init.replace(/^\?/, '').split('&')) {
          const at = part.indexOf('=')
          if (part)
            this.append(
              decodeComponent(at < 0 ? part : part.slice(0, at)),
              at < 0 ? '' : decodeComponent(part.slice(at + 1)),
            )
        }
      else
        for (const [name, value] of init && typeof init === 'object' && Symbol.iterator in init
          ? (init as Iterable<[string, string]>)
          : Object.entries(init ?? {}))
          this.append(name, value)
      this.#changed = onChange
    }

    get size() {
      return this.#pairs.length
    }
    append(name: string, value: unknown) {
      this.#pairs.push([`${name}`, `${value}`])
      this.#changed?.(`${this}`)
    }
    set(name: string, value: unknown) {
      const at = this.#pairs.findIndex(([one]) => one === name)
      this.#pairs = this.#pairs.filter(([one], place) => one !== name || place === at)
      if (at < 0) return this.append(name, value)
      this.#pairs[this.#pairs.findIndex(([one]) => one === name)] = [name, `${value}`]
      this.#changed?.(`${this}`)
    }
    delete(name: string) {
      this.#pairs = this.#pairs.filter(([one]) => one !== name)
      this.#changed?.(`${this}`)
    }
    get = (name: string) => this.#pairs.find(([one]) => one === name)?.[1] ?? null
    getAll = (name: string) => this.#pairs.filter(([one]) => one === name).map(([, value]) => value)
    has = (name: string) => this.#pairs.some(([one]) => one === name)
    forEach(act: (value: string, name: string) => void) {
      for (const [name, value] of this.#pairs) act(value, name)
    }
    entries = () => this.#pairs.map(([name, value]) => [name, value])[Symbol.iterator]()
    keys = () => this.#pairs.map(([name]) => name)[Symbol.iterator]()
    values = () => this.#pairs.map(([, value]) => value)[Symbol.iterator]();
    [Symbol.iterator]() {
      return this.entries()
    }
    toString() {
      return this.#pairs.map(([name, value]) => `${encodeComponent(name)}=${encodeComponent(value)}`).join('&')
    }
  }

  const PARTS = ['protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'] as const

  class URL {
    #parts: Record<string, string>
    #params?: URLSearchParams

    constructor(href: unknown, base?: unknown) {
      const parts = host.url(`${href}`, base === undefined ? '' : `${base}`, '', '')
      if (parts === null) throw new TypeError(`"${href}" is not a valid URL.`)
      this.#parts = JSON.parse(parts)
      for (const name of PARTS)
        Object.defineProperty(this, name, {
          enumerable: true,
          get: () => this.#parts[name],
          set: (value) => {
            this.#set(name, value)
            this.#params = undefined
          },
        })
    }
    static canParse = (href: unknown, base?: unknown) =>
      host.url(`${href}`, base === undefined ? '' : `${base}`, '', '') !== null
    static parse = (href: unknown, base?: unknown) => (URL.canParse(href, base) ? new URL(href, base) : null)

    get href() {
      return this.#parts.href
    }
    get origin() {
      return this.#parts.origin
    }
    get searchParams() {
      this.#params ??= new URLSearchParams(this.#parts.search, (search) => this.#set('search', search))
      return this.#params
    }
    #set(name: string, value: unknown) {
      this.#parts = JSON.parse(host.url(`${this.#parts.href}`, '', name, `${value}`)!)
    }
    toString = () => this.#parts.href!
    toJSON = () => this.#parts.href!
  }

  const cryptography = {
    randomUUID() {
      const bytes = new Uint8Array(host.random(16))
      bytes[6] = (bytes[6]! & 0x0f) | 0x40
      bytes[8] = (bytes[8]! & 0x3f) | 0x80
      return host.encode(bytes.buffer, 'hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
    },
    getRandomValues(into: Uint8Array) {
      new Uint8Array(into.buffer, into.byteOffset, into.byteLength).set(new Uint8Array(host.random(into.byteLength)))
      return into
    },
  }

  /** `atoll.crypto`, for checking signatures. Strings are UTF-8; `hash` is sha1, sha256, sha384 or sha512. */
  const signing = {
    hash: (hash: string, data: Data) => new Uint8Array(host.digest(hash, null, bytesOf(data))),
    hmac: (hash: string, key: Data, data: Data) => new Uint8Array(host.digest(hash, bytesOf(key), bytesOf(data))),
    /** `encoding` is utf8, hex, base64 or base64url. */
    encode: (data: Data, encoding: string) => host.encode(bytesOf(data), encoding),
    decode: (text: string, encoding: string) => new Uint8Array(host.decode(`${text}`, encoding)),
    timingSafeEqual(one: Data, other: Data) {
      // With a secret random key, how many characters of the digests agree reveals nothing.
      const key = host.random(32)
      const [a, b] = [one, other].map((data) => host.encode(host.digest('sha256', key, bytesOf(data)), 'hex'))
      return a === b
    },
  }

  const globals = {
    TextEncoder,
    TextDecoder,
    URL,
    URLSearchParams,
    crypto: cryptography,
    btoa: (text: string) => host.encode(host.decode(`${text}`, 'latin1'), 'base64'),
    atob: (text: string) => host.encode(host.decode(`${text}`, 'base64'), 'latin1'),
  }
  for (const [name, value] of Object.entries(globals))
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true })
  return signing
}
