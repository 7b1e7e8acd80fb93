/**
 * The problem of a request that the server refused. Its `code` says which one, its `message` what to do.
 * @example
 * try {
 *   await client.entities('tasks').get('nothing')
 * } catch (error) {
 *   if (error instanceof AtollError && error.code === 'ENTITY_NOT_FOUND') console.log(error.status, error.requestId)
 *   else throw error
 * }
 */
export class AtollError extends Error {
  override name = 'AtollError'
  readonly status: number
  readonly code: string
  readonly details: unknown
  /** The id of the request in the log of the server. */
  readonly requestId: string | undefined

  constructor(status: number, code: string, message: string, details?: unknown, requestId?: string) {
    super(message)
    this.status = status
    this.code = code
    this.details = details
    this.requestId = requestId
  }
}

/** The part of a response that `fetch` and `XMLHttpRequest` share. */
export type Answer = {
  readonly ok: boolean
  readonly status: number
  readonly statusText: string
  readonly headers: { get(name: string): string | null }
  text(): Promise<string>
}

export async function toAtollError(answer: Answer): Promise<AtollError> {
  const { status, statusText, headers } = answer
  let problem: { code?: unknown; message?: unknown; details?: unknown } = {}
  try {
    problem = Object(JSON.parse(await answer.text()))
  } catch {
    // Something between the client and the server has answered.
  }
  const { code = `HTTP_${status}`, message = statusText || `The server answered ${status}.`, details } = problem
  return new AtollError(status, String(code), String(message), details, headers.get('x-request-id') ?? undefined)
}
