/** One flaw of a request: `path` is a JSON pointer into the body, or the name of a query parameter. */
export type ProblemDetail = { path: string; message: string }

/** A request that the server refused: its status, code and sentence. */
export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: unknown,
    readonly requestId: string | null,
    /** After how many seconds the server takes the next attempt. */
    readonly retryAfterS?: number,
  ) {
    super(message)
  }

  /** The flaws that the server found, by their JSON pointers. */
  get fieldErrors(): ProblemDetail[] {
    return Array.isArray(this.details) ? this.details.filter((one) => typeof one?.message === 'string') : []
  }
}

/** A request that did not reach the server, or whose answer was lost. */
export class ConnectionLost extends Error {
  constructor() {
    super('The server cannot be reached.')
  }
}

/** Returns the problem that a response with a status of 400 or more describes. */
export async function readProblem(response: Response): Promise<ApiProblem> {
  const body = await response.json().catch(() => ({}))
  const message = body.message ?? `The server answered with the status ${response.status}.`
  const requestId = response.headers.get('x-request-id')
  const wait = Number(response.headers.get('retry-after')) || undefined
  return new ApiProblem(response.status, body.code ?? 'UNKNOWN', message, body.details, requestId, wait)
}

/** Returns the flaw that the server found in one property of a body, or undefined. */
export const findFieldProblem = (error: unknown, key: string): ProblemDetail | undefined =>
  error instanceof ApiProblem
    ? error.fieldErrors.find(({ path }) => path === `/${key}` || path.startsWith(`/${key}/`) || path === key)
    : undefined

/** Returns the server's sentence about one property of a body, or undefined. */
export const findFieldError = (error: unknown, key: string): string | undefined => findFieldProblem(error, key)?.message
