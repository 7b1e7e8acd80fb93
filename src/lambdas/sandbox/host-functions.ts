import type { QuickJSContext, QuickJSHandle } from 'quickjs-emscripten-core'
import type { HostFunctions } from './prelude'
import type { LogLevel, LogLine, ResultFormat, RunResult } from './protocol'

/** The run in the sandbox now, as its host functions see it. */
export type CurrentRun = {
  /** The numbers of calls, timers and logged characters so far. */
  calls: number
  timerCount: number
  loggedCharacters: number
  isOverdue(): boolean
  call(call: number, name: string, input: string): void
  line(line: Pick<LogLine, 'level' | 'text'>): void
  timer(id: number, ms: number): void
  end(ending: RunResult): void
}

const MAX_TEXT_LENGTH = 2 << 20 // characters of one input
const MAX_OUTPUT_LENGTH = 1 << 20 // characters of the value of a lambda
const MAX_BYTES = 8 << 20
const MAX_LOG_LENGTH = 64 << 10 // characters per run, including the overhead of each line
const LOG_LINE_OVERHEAD = 32
const MAX_CALLS = 1_000 // per run
const MAX_TIMERS = 1_000 // per run
const RESULT_FORMATS: readonly ResultFormat[] = ['value', 'answer', 'bytes']
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

/** Returns the object of functions that lead out of the sandbox. They check each text, number and byte array. */
export function createHostFunctions(context: QuickJSContext, currentRun: () => CurrentRun): QuickJSHandle {
  const text = (handle: QuickJSHandle, maxLength = MAX_TEXT_LENGTH) => {
    if (context.typeof(handle) !== 'string') throw new TypeError('A string is expected.')
    if (context.getProp(handle, 'length').consume((length) => context.getNumber(length)) > maxLength)
      throw new RangeError(`The text is too large: at most ${maxLength} characters.`)
    return context.getString(handle)
  }
  const number = (handle: QuickJSHandle) => Number(context.getNumber(handle)) || 0
  const bytes = (handle: QuickJSHandle) =>
    context.getArrayBuffer(handle).consume(({ value }) => checkSize(value).slice())
  const checkSize = <Bytes extends Uint8Array>(value: Bytes) => {
    if (value.byteLength > MAX_BYTES) throw new RangeError(`The data is too large: at most ${MAX_BYTES} bytes.`)
    return value
  }
  const newBytes = (value: Uint8Array) =>
    context.newArrayBuffer(value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength) as ArrayBuffer)
  const oneOf = <Name extends string>(names: readonly Name[], handle: QuickJSHandle): Name => {
    const wanted = text(handle, 20).toLowerCase()
    const name = names.find((one) => one === wanted)
    if (!name) throw new TypeError(`Choose one of ${names.join(', ')}.`)
    return name
  }
  const encoding = (handle: QuickJSHandle) => oneOf(ENCODINGS, handle) as 'utf8'

  const functions: Record<keyof HostFunctions, (...values: QuickJSHandle[]) => QuickJSHandle | undefined> = {
    call(id, name, input) {
      if (++currentRun().calls > MAX_CALLS)
        throw new RangeError(`A run can make at most ${MAX_CALLS} calls of "atoll".`)
      currentRun().call(number(id!), text(name!, 100), text(input!))
      return undefined
    },
    log(level, rawText) {
      const run = currentRun()
      if (run.loggedCharacters >= MAX_LOG_LENGTH) return undefined
      const content = text(rawText!).slice(0, MAX_LOG_LENGTH - run.loggedCharacters)
      run.loggedCharacters += content.length + LOG_LINE_OVERHEAD
      run.line({ level: text(level!, 10) as LogLevel, text: content })
      if (run.loggedCharacters >= MAX_LOG_LENGTH)
        run.line({ level: 'warn', text: 'The log is too long and was truncated.' })
      return undefined
    },
    timer(id, ms) {
      if (++currentRun().timerCount > MAX_TIMERS) throw new RangeError(`A run can set at most ${MAX_TIMERS} timers.`)
      currentRun().timer(number(id!), Math.min(Math.max(number(ms!), 1), 60_000))
      return undefined
    },
    end(value, format) {
      currentRun().end({ value: text(value!, MAX_OUTPUT_LENGTH), format: oneOf(RESULT_FORMATS, format!) })
      return undefined
    },
    fail(name, message, stack) {
      const error = { name: text(name!, 200), message: text(message!, 4_000), stack: text(stack!, 8_000) }
      const memory = error.name === 'InternalError' && error.message === 'out of memory'
      currentRun().end(memory ? { failure: 'memory' } : { failure: 'failed', error })
      return undefined
    },
    randomNumber: () => context.newNumber(Math.random()),
    url(href, base, name, value) {
      const url = URL.parse(text(href!, 64 << 10), text(base!, 64 << 10) || undefined)
      if (!url) return context.null
      const part = URL_PARTS.find((one) => one === text(name!, 20))
      if (part) url[part] = text(value!, 64 << 10)
      const parts = Object.fromEntries(['href', 'origin', ...URL_PARTS].map((one) => [one, url[one as 'href']]))
      return context.newString(JSON.stringify(parts))
    },
    encode: (data, into) => context.newString(Buffer.from(bytes(data!)).toString(encoding(into!))),
    decode: (content, from) => newBytes(checkSize(Buffer.from(text(content!, MAX_BYTES), encoding(from!)))),
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
    context
      .newFunction(name, (...values) => act(...values))
      .consume((hostFunction) => context.setProp(host, name, hostFunction))
  return host
}
