const OPENAI_PATH = /^(?:https?:\/\/[^/]*)?\/api\/(?:v1\/)?ai\/v1(?:[/?]|$)/

/** Whether a request is for the routes with OpenAI's interface, whose clients expect its forms. */
export const isOpenAiRequest = ({ url }: { url: string }) => OPENAI_PATH.test(url)

const TYPES: Record<number, string> = {
  401: 'authentication_error',
  402: 'insufficient_quota',
  403: 'permission_error',
  429: 'rate_limit_error',
}

type ProblemBody = { status: number; code: string; message: string; details?: unknown }

/** Returns an error as OpenAI's clients read it. */
export const toOpenAiError = ({ status, code, message, details }: ProblemBody) => ({
  ...{ message, code, param: toParam(details) },
  type: TYPES[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error'),
})

/** Returns the parameter that is wrong, such as `messages[0].content`. */
function toParam(details: unknown): string | null {
  const path = Array.isArray(details) ? details[0]?.path : undefined
  if (typeof path !== 'string' || !path) return null
  const [first = '', ...parts] = path.replace(/^\//, '').split('/')
  return first + parts.map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`)).join('')
}
