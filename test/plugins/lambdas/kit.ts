import { type Answer, type Client, type house, refusal } from '../../house'

export type Home = Awaited<ReturnType<typeof house>>

/** A lambda whose function is this text. */
export const code = (body: string) => `export default ${body}`

/** Makes a lambda of a function's text; returns its path. */
export async function made(admin: Client, body: string, more: object = {}): Promise<string> {
  const { status, body: lambda } = await admin.post('/lambdas', { name: 'test', code: code(body), ...more })
  if (status !== 201) throw new Error(JSON.stringify(lambda))
  return `/lambdas/${lambda._id}`
}

/** What a lambda of this text returns, or `[code, message]` of its failure. */
export async function result(admin: Client, body: string, input: object = {}, more: object = {}) {
  return told(await admin.post(`${await made(admin, body, more)}/execute`, input))
}

export function told(answer: Answer) {
  if (answer.status !== 200) return refusal(answer)
  const { error, result } = answer.body
  return error ? [error.code, error.message] : result
}

/** Asks until what is written after the answer is there. */
export async function until<T>(ask: () => Promise<T>, found: (value: T) => boolean): Promise<T> {
  for (let tries = 0; ; tries++) {
    const value = await ask()
    if (found(value) || tries > 500) return value
    await Bun.sleep(10)
  }
}
