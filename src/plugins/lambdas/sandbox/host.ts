import type { QuickJSContext, QuickJSHandle } from 'quickjs-emscripten-core'
import type { Host } from './prelude'
import type { Ending, Level, Line, Shape } from './protocol'

/** A run, of whose lambda something is asked. */
export type Occupant = {
  /** How often it has asked, how many timers it has set, and how many characters it has logged. */
  calls: number
  set: number
  logged: number
  late(): boolean
  call(call: number, name: string, input: string): void
  line(line: Pick<Line, 'level' | 'text'>): void
  timer(id: number, ms: number): void
  end(ending: Ending): void
}

const TEXT = 2 << 20 // characters of what is asked at once
const OUTPUT = 1 << 20 // characters of what a lambda answers
const BYTES = 8 << 20
const LOGS = 64 << 10 // characters of a run, with what each line costs besides
const LINE = 32
const CALLS = 1_000 // of a run
const TIMERS = 1_000
const SHAPES: readonly Shape[] = ['value', 'answer', 'bytes']
const HASHES = ['sha1', 'sha256', 'sha384', 'sha512'] as const
const ENCODINGS = ['utf8', 'latin1', 'hex', 'base64', 'base64url']
const URL_PARTS = [
  'protocol',
  'username',
  'password',
  'host',
  'hostname',
  'port',
  'pathname',
  'search',
  'hash',
] as const

/** The functions that lead out of the sandbox. They take texts, numbers and bytes, and trust none. */
export function hostFunctions(context: QuickJSContext, occupant: () => Occupant): QuickJSHandle {
  const text = (handle: QuickJSHandle, most = TEXT) => {
    if (context.typeof(handle) !== 'string') throw new TypeError('A text is expected.')
    if (context.getProp(handle, 'length').consume((length) => context.getNumber(length)) > most)
      throw new RangeError(`This is too large: at most ${most} characters.`)
    return context.getString(handle)
  }
  const number = (handle: QuickJSHandle) => Number(context.getNumber(handle)) || 0
  const bytes = (handle: QuickJSHandle) => context.getArrayBuffer(handle).consume(({ value }) => bounded(value).slice())
  const bounded = <Bytes extends Uint8Array>(value: Bytes) => {
    if (value.byteLength > BYTES) throw new RangeError(`This is too large: at most ${BYTES} bytes.`)
    return value
  }
  const newBytes = (value: Uint8Array) =>
    context.newArrayBuffer(value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength) as ArrayBuffer)
  const oneOf = <Name extends string>(names: readonly Name[], handle: QuickJSHandle): Name => {
    const asked = text(handle, 20).toLowerCase()
    const name = names.find((one) => one === asked)
    if (!name) throw new TypeError(`Choose one of ${names.join(', ')}.`)
    return name
  }
  const encoding = (handle: QuickJSHandle) => oneOf(ENCODINGS, handle) as 'utf8'

  const functions: Record<keyof Host, (...values: QuickJSHandle[]) => QuickJSHandle | undefined> = {
    call(id, name, input) {
      if (++occupant().calls > CALLS) throw new RangeError(`A run asks "atoll" at most ${CALLS} times.`)
      occupant().call(number(id!), text(name!, 100), text(input!))
      return undefined
    },
    log(level, said) {
      const run = occupant()
      if (run.logged >= LOGS) return undefined
      const told = text(said!).slice(0, LOGS - run.logged)
      run.logged += told.length + LINE
      run.line({ level: text(level!, 10) as Level, text: told })
      if (run.logged >= LOGS) run.line({ level: 'warn', text: 'The rest of the log was left out: it is too long.' })
      return undefined
    },
    timer(id, ms) {
      if (++occupant().set > TIMERS) throw new RangeError(`A run sets at most ${TIMERS} timers.`)
      occupant().timer(number(id!), Math.min(Math.max(number(ms!), 1), 60_000))
      return undefined
    },
    end(value, shape) {
      occupant().end({ value: text(value!, OUTPUT), shape: oneOf(SHAPES, shape!) })
      return undefined
    },
    fail(name, message, stack) {
      const error = { name: text(name!, 200), message: text(message!, 4_000), stack: text(stack!, 8_000) }
      const memory = error.name === 'InternalError' && error.message === 'out of memory'
      occupant().end(memory ? { failure: 'memory' } : { failure: 'failed', error })
      return undefined
    },
    chance: () => context.newNumber(Math.random()),
    url(href, base, name, value) {
      const url = URL.parse(text(href!, 64 << 10), text(base!, 64 << 10) || undefined)
      if (!url) return context.null
      const part = URL_PARTS.find((one) => one === text(name!, 20))
      if (part) url[part] = text(value!, 64 << 10)
      const parts = Object.fromEntries(['href', 'origin', ...URL_PARTS].map((one) => [one, url[one as 'href']]))
      return context.newString(JSON.stringify(parts))
    },
    encode: (data, into) => context.newString(Buffer.from(bytes(data!)).toString(encoding(into!))),
    decode: (told, from) => newBytes(bounded(Buffer.from(text(told!, BYTES), encoding(from!)))),
    digest(algorithm, key, data) {
      const name = oneOf(HASHES, algorithm!)
      const keyed = context.typeof(key!) === 'object' && !context.sameValue(key!, context.null)
      const hash = new Bun.CryptoHasher(name, keyed ? bytes(key!) : undefined)
      return newBytes(hash.update(bytes(data!)).digest())
    },
    random(size) {
      if (number(size!) > 65_536) throw new RangeError('At most 65536 random bytes at once.')
      return newBytes(crypto.getRandomValues(new Uint8Array(number(size!))))
    },
  }
  const host = context.newObject()
  for (const [name, act] of Object.entries(functions))
    context.newFunction(name, (...values) => act(...values)).consume((made) => context.setProp(host, name, made))
  return host
}
