import { type ApiClient, type createTestTenant, statusAndCode, type TestResponse } from '../test-tenant'

export type LambdaTestTenant = Awaited<ReturnType<typeof createTestTenant>>

/** A lambda whose function is this text. */
export const toModule = (body: string) => `export default ${body}`

/** Makes a lambda of a function's text; returns its path. */
export async function createLambda(admin: ApiClient, body: string, more: object = {}): Promise<string> {
  const { status, body: lambda } = await admin.post('/lambdas', { name: 'test', code: toModule(body), ...more })
  if (status !== 201) throw new Error(JSON.stringify(lambda))
  return `/lambdas/${lambda._id}`
}

/** What a lambda of this text returns, or `[code, message]` of its failure. */
export async function runOnce(admin: ApiClient, body: string, input: object = {}, more: object = {}) {
  return toResult(await admin.post(`${await createLambda(admin, body, more)}/execute`, input))
}

export function toResult(answer: TestResponse) {
  if (answer.status !== 200) return statusAndCode(answer)
  const { error, result } = answer.body
  return error ? [error.code, error.message] : result
}

/** Asks until what is written after the answer is there. */
export async function waitUntil<T>(read: () => Promise<T>, isDone: (value: T) => boolean): Promise<T> {
  for (let tries = 0; ; tries++) {
    const value = await read()
    if (isDone(value) || tries > 500) return value
    await Bun.sleep(10)
  }
}
