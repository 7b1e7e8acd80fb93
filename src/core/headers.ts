/** What all answers say, unless they have a policy of their own. */
const SAID = {
  'x-api-version': 'v1',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
}
const complete = new WeakSet<Response>()

/** Of an answer in JSON, with what all answers say. */
export const jsonHeaders = new Headers({ 'content-type': 'application/json;charset=utf-8', ...SAID })

/** An answer whose headers began as `jsonHeaders`: copied as one, they cost a quarter of what they do one by one. */
export function jsonAnswer(text: string | null, headers: Headers, status = 200): Response {
  const answer = new Response(text, { status, headers })
  complete.add(answer)
  return answer
}

/** Has an answer say what all of them do. */
export function completed(answer: Response) {
  if (complete.has(answer)) return
  const { headers } = answer
  headers.set('x-api-version', SAID['x-api-version'])
  headers.set('x-content-type-options', SAID['x-content-type-options'])
  // What has a policy of its own stays frameable where that allows it, such as a plugin's page, which is in a sandbox.
  if (!headers.has('content-security-policy')) headers.set('x-frame-options', SAID['x-frame-options'])
  if (!headers.has('referrer-policy')) headers.set('referrer-policy', SAID['referrer-policy'])
}
