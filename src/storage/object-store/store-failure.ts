import { readText } from './store-xml'

/** A store did not do what it was asked, also after repetitions. `code` is that of the store, or of the connection. */
export class StoreFailure extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly options: { cause?: unknown; status?: number; isTransient?: boolean; retryAfter?: number } = {},
  ) {
    super(message, { cause: options.cause })
  }
}

/** The connection moved nothing for too long. */
export const storeStalled = (ms: number) =>
  new StoreFailure('StoreStalled', `The store made no progress for ${Math.ceil(ms / 1_000)} s.`, { isTransient: true })

/** Codes with statuses that do not tell that a repetition may help. */
const TRANSIENT_CODES = ['RequestTimeout', 'OperationAborted', 'SlowDown', 'ServiceUnavailable', 'InternalError']
const MAX_ERROR_CHARACTERS = 4_096

/** Returns the failure that a store answered with. */
export function toStoreFailure(
  { status, headers }: { status: number; headers: Headers },
  body: string,
  retryAfter: number | undefined,
): StoreFailure {
  const text = body.slice(0, MAX_ERROR_CHARACTERS)
  const code = readText(text, 'Code') ?? `Http${status}`
  const isTransient = status === 408 || status === 429 || status >= 500 || TRANSIENT_CODES.includes(code)
  return new StoreFailure(code, describe(code, status, readText(text, 'Message'), headers), {
    ...{ status, isTransient, retryAfter },
  })
}

function describe(code: string, status: number, message: string | undefined, headers: Headers): string {
  if (code === 'RequestTimeTooSkewed') {
    const minutes = Math.round((Date.now() - Date.parse(headers.get('date') ?? '')) / 60_000)
    const difference = Number.isNaN(minutes) ? '' : ` by ${Math.abs(minutes)} minutes`
    return `the clock of this machine differs${difference} from that of the store; set it right`
  }
  return `the store answered ${status} ${code}${message ? `: ${message.replace(/\.$/, '')}` : ''}`
}
